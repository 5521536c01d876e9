/** The engine below the tools of docs/bundlers.md: with threads that sign, in a bundle, and refused inside one. */
import { execFile } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { build } from "vite";
import { afterAll, beforeAll, expect, test } from "vitest";
import { scratchFolder } from "../service.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const folder = scratchFolder();
const project = join(folder.path, "project");
const bin = (name: string) => join(project, "node_modules", ".bin", name);
afterAll(() => folder.remove());

/** Signs more heads than one thread does, and verifies: both need worker threads. */
const PROGRAM = `
import { createPool, generatePrivateKey, openLog, operatorKey } from "cairnlog";
export async function use(path) {
  const pool = createPool(1);
  const log = await openLog({ path, signer: operatorKey(generatePrivateKey("ed25519"), pool), pool });
  await log.append(Array.from({ length: 100 }, (_, n) => ({ event_type: "note", payload: { n } })));
  const { valid, entry_count } = await log.verify();
  await log.close();
  await pool.close();
  return valid ? entry_count : null;
}
`;
const MAIN = 'import { use } from "./use.mjs";\nuse(process.argv[2]).then(console.log);\n';
const TEST = 'import { use } from "./use.mjs";\ntest("use", async () => expect(await use(DATA)).toBe(100));\n';
const REFUSED = "CairnlogError: cairnlog does not run inside a bundle: ";

interface Ran {
  readonly code: number;
  readonly said: string;
}
const run = (command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ran> =>
  promisify(execFile)(command, args, { cwd: project, env: { ...process.env, ...env } }).then(
    ({ stdout, stderr }) => ({ code: 0, said: stdout + stderr }),
    ({ code, stdout, stderr }) => ({ code, said: stdout + stderr }),
  );
const node = (...args: string[]) => run(process.execPath, args);
const write = (name: string, content: string) => writeFileSync(join(project, name), content);
let count = 0;
const data = () => join(folder.path, `data-${count++}`);
const WORKED = { code: 0, said: "100\n" };

beforeAll(async () => {
  mkdirSync(project);
  write("package.json", JSON.stringify({ name: "consumer", private: true, type: "module" }));
  const packing = await promisify(execFile)("npm", ["pack", "--json", "--pack-destination", folder.path], {
    cwd: root,
  });
  const [{ filename }] = JSON.parse(packing.stdout) as [{ filename: string }];
  const quiet = ["--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error"];
  const tools = ["esbuild@0.25", "jest@30"];
  await promisify(execFile)("npm", ["install", ...quiet, join(folder.path, filename), ...tools], { cwd: project });
  symlinkSync(join(root, "node_modules", "vitest"), join(project, "node_modules", "vitest"));
  write("use.mjs", PROGRAM);
  write("main.mjs", MAIN);
});

test("node --eval", async () => {
  const script = `${PROGRAM}use(process.argv[1]).then(console.log);`;
  expect(await node("--input-type=module", "--eval", script, data())).toEqual(WORKED);
});

test("a worker thread of the program", async () => {
  const script = `new (require("node:worker_threads").Worker)("./main.mjs", { argv: [process.argv[1]] });`;
  expect(await node("--eval", script, data())).toEqual(WORKED);
});

test.each(["esm", "cjs"])(
  "esbuild, as %s: beside the bundle it works, inside of it the first line says what to do",
  async (format) => {
    const out = format === "esm" ? "out.mjs" : "out.cjs";
    const bundled = [
      "main.mjs",
      "--bundle",
      "--platform=node",
      `--format=${format}`,
      `--outfile=${out}`,
      "--log-level=error",
    ];
    expect(await run(bin("esbuild"), [...bundled, "--external:cairnlog"])).toMatchObject({ code: 0 });
    expect(await node(out, data())).toEqual(WORKED);
    await run(bin("esbuild"), bundled);
    expect(await node(out, data())).toMatchObject({ code: 1, said: expect.stringContaining(REFUSED) });
  },
);

test.each([[false], [true]])("Vite for Node; everything in the bundle: %s", async (noExternal) => {
  await build({
    configFile: false,
    root: project,
    logLevel: "error",
    ssr: { noExternal: noExternal || [] },
    build: {
      ssr: "main.mjs",
      outDir: "vite",
      emptyOutDir: true,
      rollupOptions: { output: { entryFileNames: "main.js" } },
    },
  });
  const ran = await node("vite/main.js", data());
  expect(ran).toEqual(noExternal ? { code: 1, said: expect.stringContaining(REFUSED) } : WORKED);
});

test("Vitest", async () => {
  write("use.test.mjs", `import { expect, test } from "vitest";\n${TEST.replace("DATA", JSON.stringify(data()))}`);
  const vitest = join(root, "node_modules", "vitest", "vitest.mjs");
  expect(await run(process.execPath, [vitest, "run", "--root", project, "use.test.mjs"])).toMatchObject({ code: 0 });
});

test("Jest", async () => {
  write("jest.config.json", JSON.stringify({ testMatch: ["**/use.jest.mjs"], transform: {}, testEnvironment: "node" }));
  write("use.jest.mjs", TEST.replace("DATA", JSON.stringify(data())));
  const options = { NODE_OPTIONS: "--experimental-vm-modules" };
  const { code, said } = await run(bin("jest"), ["--config", "jest.config.json"], options);
  expect({ code, said: code === 0 ? "" : said }).toEqual({ code: 0, said: "" });
});

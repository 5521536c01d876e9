/** The engine below the tools of docs/bundlers.md: with threads that sign, in a bundle, and refused inside one. */
import { execFile, spawn } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { build } from "vite";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { scratchFolder, startService } from "../service.js";

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
  const quiet = ["--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error"];
  const tools = ["esbuild@0.25", "jest@30", "bun@1", "deno@2", "next@16", "react@19", "react-dom@19"];
  await promisify(execFile)("npm", ["install", ...quiet, inject("packed").filename, ...tools], { cwd: project });
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

test("Next.js", async () => {
  const route = join(project, "app", "log");
  mkdirSync(route, { recursive: true });
  write("next.config.mjs", 'export default { serverExternalPackages: ["cairnlog"] };\n');
  write("app/layout.jsx", "export default ({ children }) => <html><body>{children}</body></html>;\n");
  write(
    "app/log/route.js",
    `import { use } from "../../use.mjs";
export const runtime = "nodejs";
export const dynamic = "force-dynamic";
export const GET = async () => new Response(String(await use(process.env.DATA)));
`,
  );
  const env = { NEXT_TELEMETRY_DISABLED: "1", DATA: data() };
  expect(await run(bin("next"), ["build"], env)).toMatchObject({ code: 0 });
  const server = spawn(bin("next"), ["start", "--port", "0"], { cwd: project, env: { ...process.env, ...env } });
  try {
    const url = await new Promise<string>((resolve, reject) => {
      let said = "";
      server.stdout.on("data", (text) => {
        said += text;
        const [, found] = /Local:\s+(http:\S+)[\s\S]*Ready/.exec(said) ?? [];
        if (found) resolve(found);
      });
      server.on("exit", () => reject(new Error(`Next.js ended: ${said}`)));
    });
    expect(await (await fetch(`${url}/log`)).text()).toBe("100");
  } finally {
    server.kill();
  }
});

describe.each([
  ["Bun", "bun", []],
  ["Deno", "deno", ["run", "--allow-all"]],
] as const)("%s", (_, command, options) => {
  test("the engine", async () => {
    expect(await run(bin(command), [...options, "main.mjs", data()])).toEqual(WORKED);
  });

  test("the client and the verifier, as docs/client.md shows them", async () => {
    const [, example] = /```js\n([\s\S]*?)```/.exec(readFileSync(join(root, "docs/client.md"), "utf8"))!;
    write("client.mjs", example!);
    const service = await startService(data());
    const ran = await run(bin(command), [...options, "client.mjs"], { SERVER: service.url });
    await service.stop();
    expect(ran).toEqual({ code: 0, said: expect.stringMatching(/^entry 2\ntrue\n1 key_registration\n2 https:\S+\n$/) });
  });
});

/** The package as users get it: packed, installed into an empty project, imported, type-checked, run. */
import { execFile, spawn } from "node:child_process";
import { hash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { brotliDecompressSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from "vitest";
import { scratchFolder, startService } from "../service.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const folder = scratchFolder();
const project = join(folder.path, "project");
const installed = join(project, "node_modules", "cairnlog");
const run = promisify(execFile);
afterAll(() => folder.remove());

const packed = inject("packed");
beforeAll(async () => {
  mkdirSync(project);
  write("package.json", { name: "consumer", private: true, type: "module" });
  const quiet = ["--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error"];
  await run("npm", ["install", ...quiet, packed.filename], { cwd: project });
});

function write(name: string, content: object | string): void {
  writeFileSync(join(project, name), typeof content === "string" ? content : JSON.stringify(content));
}

const entries = Object.keys(manifest.exports).filter((name) => name !== "./package.json");

describe("the content of the package", () => {
  test("compiled code, licence and documentation: no tests, no secrets, and no more than 2 MB beside the archives", () => {
    const strange = packed.files.filter(
      ({ path }) =>
        !/^(?:package\.json|README\.md|LICENSE|docs\/.+|dist\/(?:engine|server|wasm)\/.+|dist\/uws\/(?:LICENSE|index\.json|\w+\.br))$/.test(
          path,
        ),
    );
    expect(strange).toEqual([]);
    const unwanted =
      /(?:^|\/)(?:(?:test|bench|node_modules)\/|\.)|\.test\.|\.(?:pem|env|ndjson|mdb|tgz)$|(?<!\.d)\.tsx?$/;
    expect(packed.files.filter(({ path }) => unwanted.test(path))).toEqual([]);
    const archives = packed.files.filter(({ path }) => path.endsWith(".br"));
    expect(packed.size - archives.reduce((sum, { size }) => sum + size, 0)).toBeLessThan(2_000_000);
  });

  test("installed with all that it needs, it takes no more than 90 MB, and no script ran", async () => {
    const { stdout } = await run("du", ["-sm", "node_modules"], { cwd: project });
    expect(Number.parseInt(stdout, 10)).toBeLessThanOrEqual(90);
    const lock = JSON.parse(readFileSync(join(project, "node_modules", ".package-lock.json"), "utf8"));
    expect(lock.packages["node_modules/cairnlog"]).not.toHaveProperty("hasInstallScript");
  });

  test("the binaries of uWebSockets.js, each with a known hash, and their licence", async () => {
    const { KNOWN_BINARIES } = await import("#cairnlog/engine/native/known.generated.js");
    const hashes: Readonly<Record<string, string>> = KNOWN_BINARIES["uWebSockets.js"];
    const uws = join(installed, "dist", "uws");
    const index = JSON.parse(readFileSync(join(uws, "index.json"), "utf8"));
    const platforms = new Map<string, Buffer>();
    for (const [key, { offset, length }] of Object.entries<{ offset: number; length: number }>(index)) {
      const platform = key.replace(/_\d+$/, "");
      if (!platforms.has(platform))
        platforms.set(platform, brotliDecompressSync(readFileSync(join(uws, `${platform}.br`))));
      const digest = hash("sha256", platforms.get(platform)!.subarray(offset, offset + length), "hex");
      expect(digest, key).toBe(hashes[`uwebsockets@3.0.6/uws_${key}.node`]);
    }
    expect([...platforms.keys()].sort()).toEqual([
      "darwin_arm64",
      "darwin_x64",
      "linux_arm64",
      "linux_x64",
      "win32_x64",
    ]);
    expect(Object.keys(index)).toHaveLength(15);
    expect(readFileSync(join(uws, "LICENSE"), "utf8")).toContain("Apache License");
  });

  test("source maps hold the sources that they name", () => {
    const maps = readdirSync(installed, { recursive: true, encoding: "utf8" }).filter(
      (path) => path.endsWith(".js.map") && !path.includes("node_modules"),
    );
    expect(maps.length).toBeGreaterThan(40);
    for (const path of maps) {
      const { sources, sourcesContent } = JSON.parse(readFileSync(join(installed, path), "utf8"));
      expect(sourcesContent, path).toHaveLength(sources.length);
      expect(sources.filter(isAbsolute), path).toEqual([]);
    }
  });

  test("nothing of this machine", () => {
    for (const { path } of packed.files)
      expect(readFileSync(join(installed, path), "utf8").includes(root), path).toBe(false);
  });
});

test.each(entries)("%s can be imported by Node", async (name) => {
  const specifier = `cairnlog${name.slice(1)}`;
  const script = `const names = Object.keys(await import(${JSON.stringify(specifier)})); console.log(names.length > 0);`;
  const { stdout } = await run(process.execPath, ["--input-type=module", "--eval", script], { cwd: project });
  expect(stdout).toBe("true\n");
});

test("the command shows its version and its subcommands", async () => {
  const { stdout } = await run("npx", ["--no-install", "cairnlog", "--version"], { cwd: project });
  expect(stdout.trim()).toBe(manifest.version);
  expect((await run("npx", ["--no-install", "cairnlog", "--help"], { cwd: project })).stdout).toContain("attest");
});

test("the tour of the demonstration runs as it is printed, in a terminal that knows nothing of the project", async () => {
  // As npx runs it: with the project's programs in PATH.
  const path = `${join(project, "node_modules", ".bin")}:${process.env.PATH}`;
  const demo = spawn("cairnlog", ["demo"], { env: { ...process.env, PATH: path, PORT: "0" } });
  onTestFinished(() => void demo.kill());
  let tour = "";
  for await (const data of demo.stdout) {
    tour += data;
    if (tour.includes("Sign something yourself")) break;
  }
  const lines = [...tour.matchAll(/^ {2}((?:cd|alias|export|cairnlog verify) [^#\n]*)/gm)].map(([, line]) => line!);
  expect(lines.slice(0, 3).map((line) => line.split(" ")[0])).toEqual(["cd", "alias", "export"]);
  const { stdout } = await run("bash", ["-O", "expand_aliases", "-c", lines.slice(0, 4).join("\n")], { cwd: "/" });
  expect(stdout).toContain("notes.txt: verified\n");
});

test("the service uses uWebSockets.js", async () => {
  const main = join(installed, "dist", "server", "cli", "main.js");
  const service = await startService(join(folder.path, "data"), { SERVICE_TRANSPORT: "uws" }, { main });
  try {
    expect(await (await fetch(`${service.url}/metrics`)).text()).toContain('cairnlog_http_info{transport="uws"');
  } finally {
    await service.stop();
  }
});

const SERVER_PROGRAM = `
import { type Log, openLog, openOperatorKey } from "cairnlog";
import { createClient } from "cairnlog/client";
import { type LogSink, type RunningServer, readSettings, startServer } from "cairnlog/server";
import { verifyTreeHead } from "cairnlog/verify";
import { encryptClaim } from "cairnlog/verify/claims";
import { kernel } from "cairnlog/wasm";
const signer = openOperatorKey("operator.pem");
export const log: Promise<Log> = openLog({ path: "data", signer });
export const server: Promise<RunningServer> = startServer(readSettings({ PORT: "0" }));
export const another = (logger: LogSink) => startServer({ port: 0, dataDir: "data", trustedProxies: ["10.0.0.0/8"] }, { logger });
export const client = createClient({ server: "http://localhost" });
export const others = [verifyTreeHead, encryptClaim, kernel];
// @ts-expect-error a port is a number
export const text = () => startServer({ port: "8080" });
// @ts-expect-error an append takes an event
export const wrong = log.then((opened) => opened.append(1));
`;

const CLIENT_PROGRAM = `
import { type Attested, type Client, ClientError, createClient, type KeyDetail, webCryptoSigner } from "cairnlog/client";
import { parsePublicKey, verifyBundle } from "cairnlog/verify";
import { encryptClaim } from "cairnlog/verify/claims";
export async function attest(pair: CryptoKeyPair, pem: string): Promise<boolean> {
  const client: Client = createClient({ server: "http://localhost", signer: await webCryptoSigner(pair) });
  const { bundle, receipt }: Attested = await client.attest({ title: "A", content_hash: "sha256:00" });
  const leaf: number = receipt.leaf_index;
  for await (const key of client.keys.list()) console.log(key.fingerprint satisfies string, leaf);
  const detail: KeyDetail = await client.keys.find("sha256:00");
  const { payload } = encryptClaim({ a: 1 }, { recipient: parsePublicKey(detail.public_key), lookupKey: "00" });
  await client.claims.post({ ...payload }).catch((error: unknown) => error instanceof ClientError && error.code);
  // @ts-expect-error an entry has no such member
  console.log((await client.log.entry(1)).entry.colour);
  return (await verifyBundle(bundle, { fileHash: "00", operatorKey: parsePublicKey(pem) })).valid;
}
`;

describe.each([
  ["nodenext", { module: "nodenext", moduleResolution: "nodenext" }],
  ["bundler", { module: "esnext", moduleResolution: "bundler" }],
])("types resolved as %s", (_, resolution) => {
  const strict = {
    target: "es2023",
    strict: true,
    noEmit: true,
    skipLibCheck: false,
    exactOptionalPropertyTypes: true,
  };

  async function check(options: object, file: string): Promise<string> {
    write("tsconfig.json", { compilerOptions: { ...strict, ...resolution, ...options }, files: [file] });
    const tsc = join(root, "node_modules", ".bin", "tsc");
    return run(tsc, ["--project", "tsconfig.json"], { cwd: project }).then(
      ({ stdout }) => stdout,
      (error) => `${error.stdout}${error.stderr}`,
    );
  }

  test("of the client, in a project that knows nothing of Node", async () => {
    write("client.ts", CLIENT_PROGRAM);
    expect(await check({ types: [], lib: ["es2023", "dom", "dom.iterable"] }, "client.ts")).toBe("");
  });

  test("of everything, in one for Node that knows nothing of the DOM and checks all libraries", async () => {
    write("server.ts", SERVER_PROGRAM);
    const typeRoots = [join(root, "node_modules", "@types")];
    expect(await check({ types: ["node"], typeRoots, lib: ["es2023"] }, "server.ts")).toBe("");
  });
});

test("the types of the client are written out: a compiler has little to derive", async () => {
  write("client.ts", CLIENT_PROGRAM);
  /** What the compiler counts. Without `skipLibCheck`, most of it are the declarations of the language and of the DOM. */
  async function counted(skipLibCheck: boolean): Promise<Record<string, number>> {
    const options = { target: "es2023", module: "nodenext", lib: ["es2023", "dom", "dom.iterable"], types: [] };
    const compilerOptions = { ...options, strict: true, noEmit: true, skipLibCheck };
    write("tsconfig.json", { compilerOptions, files: ["client.ts"] });
    const tsc = join(root, "node_modules", ".bin", "tsc");
    const { stdout } = await run(tsc, ["--project", "tsconfig.json", "--extendedDiagnostics"], { cwd: project });
    const lines = [...stdout.matchAll(/^(\w+): +(\d+)$/gm)];
    return Object.fromEntries(lines.map(([, name, count]) => [name, Number(count)]));
  }
  // Where types are derived from the schemas, it is 5,900 and 2,490,000 instantiations, and 319,000 types.
  expect((await counted(true)).Instantiations).toBeLessThan(1_000);
  const all = await counted(false);
  expect(all.Instantiations).toBeLessThan(150_000);
  expect(all.Types).toBeLessThan(120_000);
});

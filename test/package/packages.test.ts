/** The packages of dist/packages as users get them: packed, installed into an empty folder, bundled, type-checked, used. */
import { execFile } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { build, type Rollup } from "vite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { scratchFolder, startService } from "../service.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const folder = scratchFolder();
const project = join(folder.path, "project");
const run = promisify(execFile);
afterAll(() => folder.remove());

beforeAll(async () => {
  await run(process.execPath, ["scripts/packages.mjs"], { cwd: root });
  mkdirSync(project);
  write("package.json", JSON.stringify({ name: "consumer", private: true, type: "module" }));
  const tarballs: string[] = [];
  for (const name of ["verify", "client"]) {
    const packing = ["pack", "--json", "--pack-destination", folder.path];
    const { stdout } = await run("npm", packing, { cwd: join(root, "dist", "packages", name) });
    tarballs.push(join(folder.path, (JSON.parse(stdout) as [{ filename: string }])[0].filename));
  }
  const quiet = ["--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error"];
  await run("npm", ["install", ...quiet, ...tarballs], { cwd: project });
});

const write = (name: string, content: string): void => writeFileSync(join(project, name), content);
const filesBelow = (path: string) => readdirSync(path, { recursive: true, encoding: "utf8" });

test("only noble comes with them, and nothing native", () => {
  const installed = join(project, "node_modules");
  const scopes = readdirSync(installed).filter((name) => !name.startsWith("."));
  expect(scopes).toEqual(["@cairnlog", "@noble"]);
  expect(
    filesBelow(installed).filter((file) => /\.(?:node|map|pem|mdb)$/.test(file) && !file.includes("@noble")),
  ).toEqual([]);
  for (const name of ["verify", "client"]) {
    const own = join(installed, "@cairnlog", name);
    const manifest = JSON.parse(readFileSync(join(own, "package.json"), "utf8"));
    expect(manifest).toMatchObject({
      sideEffects: false,
      publishConfig: { access: "public" },
      repository: "github:cairnlog/cairnlog",
    });
    expect(Object.keys(manifest)).not.toContain("scripts");
    for (const file of filesBelow(own).filter((path) => /\.(?:js|ts)$/.test(path))) {
      const code = readFileSync(join(own, file), "utf8");
      expect(code, file).not.toContain(root);
      expect(code, file).not.toMatch(/from "(?:typebox|node:)/);
    }
  }
});

/** What a bundler makes of a module, minified. */
async function bundled(code: string, isNobleIn: boolean): Promise<string> {
  write("entry.js", code);
  const made = (await build({
    configFile: false,
    root: project,
    publicDir: false,
    logLevel: "error",
    build: {
      write: false,
      target: "es2022",
      lib: { entry: join(project, "entry.js"), formats: ["es"] },
      rollupOptions: { external: isNobleIn ? [] : [/^@noble\//], output: { minify: true } },
    },
  })) as Rollup.RollupOutput[];
  return made[0]!.output.map((chunk) => (chunk.type === "chunk" ? chunk.code : "")).join("");
}

describe("bundled and minified", () => {
  test.each([
    ["@cairnlog/verify", 62.5 * 1024],
    ["@cairnlog/client", 144.5 * 1024],
  ])("%s has less than %i bytes beside noble", async (name, most) => {
    expect((await bundled(`export * from "${name}";`, false)).length).toBeLessThan(most);
  });

  test("encodeBase64 alone brings nothing else", async () => {
    const code = await bundled('export { encodeBase64 } from "@cairnlog/verify";', true);
    expect(code.length).toBeLessThan(500);
  });

  test("the client has the schemas as data, without the library and without their descriptions", async () => {
    const code = await bundled('export * from "@cairnlog/client";', true);
    expect(code).not.toContain("Lower-case hexadecimal");
    expect(code).not.toMatch(/~kind|~optional|WebAssembly/);
  });
});

const PROGRAM = `
import { readFileSync, writeFileSync } from "node:fs";
import { createHash, webcrypto } from "node:crypto";
import { ClientError, createClient, webCryptoSigner } from "@cairnlog/client";
import { parseIJson, parsePublicKey, verifyBundle } from "@cairnlog/verify";
import { verifyClaimCommitment } from "@cairnlog/verify/claims";

const pair = await webcrypto.subtle.generateKey("Ed25519", true, ["sign", "verify"]);
const client = createClient({ server: process.argv[2], signer: await webCryptoSigner(pair) });
const hash = createHash("sha256").update("a document").digest("hex");
const { bundle } = await client.attest({ title: "A", content_hash: "sha256:" + hash }, { pseudonym: "Ada" });
const key = await client.log.operatorKey();
const judged = async (value, fileHash) => (await verifyBundle(parseIJson(JSON.stringify(value)), { fileHash, operatorKey: parsePublicKey(key.pem) })).valid;
const entries = [];
for await (const { event_type } of client.log.entries()) entries.push(event_type);
const names = [];
for await (const { pseudonym } of client.keys.list()) names.push(pseudonym);
const refused = await client.log.entry(999).catch((error) => error instanceof ClientError && error.code);
console.log(JSON.stringify({
  honest: await judged(bundle, hash),
  otherFile: await judged(bundle, hash.replace(/./g, "0")),
  otherEntry: await judged({ ...bundle, entry: { ...bundle.entry, entry_hash: hash } }, hash),
  names,
  entries: entries.length,
  refused,
  claims: typeof verifyClaimCommitment,
}));
`;

test("used in that folder against a service: attested by one, verified by the other", async () => {
  write("main.mjs", PROGRAM);
  const service = await startService(join(folder.path, "data"));
  try {
    const { stdout } = await run(process.execPath, ["main.mjs", service.url], { cwd: project });
    expect(JSON.parse(stdout)).toEqual({
      honest: true,
      otherFile: false,
      otherEntry: false,
      names: ["Ada"],
      entries: 2,
      refused: "not-found",
      claims: "function",
    });
  } finally {
    await service.stop();
  }
});

const TYPED = `
import { type Attested, type Client, ClientError, createClient, type KeyDetail, webCryptoSigner } from "@cairnlog/client";
import { type BundleVerdict, parsePublicKey, verifyBundle } from "@cairnlog/verify";
import { encryptClaim } from "@cairnlog/verify/claims";
export async function attest(pair: CryptoKeyPair, pem: string): Promise<BundleVerdict> {
  const client: Client = createClient({ server: "http://localhost", signer: await webCryptoSigner(pair) });
  const { bundle, receipt }: Attested = await client.attest({ title: "A", content_hash: "sha256:00" });
  const leaf: number = receipt.leaf_index;
  for await (const key of client.keys.list()) console.log(key.fingerprint satisfies string, key.expires_at satisfies string | null, leaf);
  const detail: KeyDetail = await client.keys.find("sha256:00");
  const status: "active" | "succeeded" | "revoked" | "expired" = detail.status;
  const { payload } = encryptClaim({ a: 1 }, { recipient: parsePublicKey(detail.public_key), lookupKey: "00" });
  await client.claims.post({ ...payload }).catch((error: unknown) => error instanceof ClientError && error.code);
  // @ts-expect-error an entry has no such member
  console.log((await client.log.entry(1)).entry.colour, status);
  return verifyBundle(bundle, { fileHash: "00", operatorKey: parsePublicKey(pem) });
}
`;

test.each([
  ["nodenext", { module: "nodenext", moduleResolution: "nodenext" }],
  ["bundler", { module: "esnext", moduleResolution: "bundler" }],
])("types resolved as %s, in a project that knows nothing of Node and checks all libraries", async (_, resolution) => {
  write("typed.ts", TYPED);
  const strict = {
    target: "es2023",
    strict: true,
    noEmit: true,
    skipLibCheck: false,
    exactOptionalPropertyTypes: true,
  };
  const compilerOptions = { ...strict, ...resolution, types: [], lib: ["es2023", "dom", "dom.iterable"] };
  write("tsconfig.json", JSON.stringify({ compilerOptions, files: ["typed.ts"] }));
  const tsc = join(root, "node_modules", ".bin", "tsc");
  const said = await run(tsc, ["--project", "tsconfig.json"], { cwd: project }).catch(({ stdout }) => ({ stdout }));
  expect(said.stdout).toBe("");
});

test("the package cairnlog holds what its README links, and what only a checkout needs is not in its package.json", () => {
  const own = join(root, "dist", "packages", "cairnlog");
  const manifest = JSON.parse(readFileSync(join(own, "package.json"), "utf8"));
  for (const name of ["scripts", "devDependencies", "overrides"]) expect(manifest).not.toHaveProperty(name);
  const links = (path: string) =>
    [...readFileSync(join(own, path), "utf8").matchAll(/\]\(([^)#\s]+)(?:#[^)\s]*)?\)/g)]
      .map(([, link]) => link!)
      .filter((link) => !/^https?:/.test(link));
  const present = new Set(filesBelow(own));
  const missing = ["README.md", "docs/README.md"].flatMap((path) =>
    links(path)
      .map((link) => join(dirname(path), link))
      .filter((link) => !present.has(link)),
  );
  expect(missing).toEqual([]);
});

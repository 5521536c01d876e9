/** The bundle for browsers: client and offline verification, without any module of Node. */
import { builtinModules } from "node:module";
import { fileURLToPath } from "node:url";
import { build, type Rollup } from "vite";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));
const PROGRAM = "\0program";

/** Bundles a program that uses all exports of an entry point of the package. */
async function bundle(source: string): Promise<{ code: string; builtins: string[] }> {
  const builtins: string[] = [];
  const result = (await build({
    configFile: false,
    root,
    logLevel: "silent",
    build: { write: false, rollupOptions: { input: PROGRAM }, modulePreload: false },
    plugins: [
      {
        name: "program",
        enforce: "pre",
        resolveId(id, importer) {
          if (id === PROGRAM) return id;
          if (id.startsWith("node:") || builtinModules.includes(id)) builtins.push(`${id} from ${importer}`);
          return undefined;
        },
        load: (id) => (id === PROGRAM ? source : undefined),
      },
    ],
  })) as Rollup.RollupOutput;
  return { code: result.output[0].code, builtins };
}

const using = (...names: string[]) =>
  names.map((name, i) => `import * as m${i} from ${JSON.stringify(name)}; globalThis.m${i} = m${i};`).join("\n");

test.each([
  ["cairnlog/client", 400_000],
  ["cairnlog/verify", 300_000],
  ["cairnlog/verify/claims", 200_000],
])("%s has no Node module in it, and is no larger than it should be", async (name, limit) => {
  const { code, builtins } = await bundle(using(name));
  expect(builtins).toEqual([]);
  expect(code).not.toContain("__vite-browser-external");
  // Globals that exist only in Node.
  expect(code.match(/\b(?:Buffer\.(?:from|alloc)|process\.(?:env|versions)|require\()/g) ?? []).toEqual([]);
  expect(code.length).toBeLessThan(limit);
});

test("the check sees a Node module", async () => {
  expect((await bundle(using("cairnlog"))).builtins).not.toEqual([]);
});

/** The arrows of the house: which folder may import which (`docs/architecture.md`). */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Folder → what its files may import besides themselves; the longest matching folder counts. */
const ARROWS: Readonly<Record<string, readonly string[]>> = {
  wasm: [],
  "engine/error.ts": [],
  "engine/own-text.ts": [],
  "engine/recent.ts": [],
  "engine/verify": ["wasm", "engine/error.ts"],
  "engine/crypto": ["engine/verify", "engine/error.ts", "engine/own-text.ts", "engine/recent.ts"],
  "engine/store": ["engine/error.ts", "engine/recent.ts"],
  "engine/log": ["engine/store", "engine/crypto", "engine/verify", "engine/error.ts", "engine/recent.ts", "wasm"],
  "engine/registry": [
    "engine/log",
    "engine/store",
    "engine/crypto",
    "engine/verify",
    "engine/error.ts",
    "engine/own-text.ts",
    "engine/recent.ts",
  ],
  "engine/index.ts": ["engine"],
  "server/wire": [],
  "server/client": ["server/wire", "engine/verify", "engine/error.ts"],
  "server/explorer": ["server/client", "server/wire", "engine/verify", "engine/error.ts", "wasm"],
  server: ["engine", "server"],
};
/** Code that also runs in browsers. */
const PURE = ["wasm", "engine/verify", "engine/error.ts", "server/wire", "server/client", "server/explorer"];

const isWithin = (file: string, folder: string) => file === folder || file.startsWith(`${folder}/`);

function* sources(folder: string): Iterable<string> {
  for (const name of readdirSync(join(root, folder))) {
    const path = `${folder}/${name}`;
    if (path === "wasm/assembly") continue;
    if (statSync(join(root, path)).isDirectory()) yield* sources(path);
    else if (/\.tsx?$/.test(name)) yield path;
  }
}

const importsOf = (file: string): string[] =>
  [...readFileSync(join(root, file), "utf8").matchAll(/(?:\bfrom|\bimport)\s*\(?\s*"([^"]+)"/g)].map(
    (match) => match[1]!,
  );

function forbiddenImports(file: string, imports: readonly string[]): string[] {
  const home = Object.keys(ARROWS)
    .filter((folder) => isWithin(file, folder))
    .sort((a, b) => b.length - a.length)[0];
  if (!home) return ["file stands outside every known folder"];
  return imports.filter((name) => {
    if (!name.startsWith(".")) return name.startsWith("node:") && PURE.some((folder) => isWithin(file, folder));
    const target = relative(root, join(root, dirname(file), name)).replace(/\.js$/, ".ts");
    return ![home, ...ARROWS[home]!].some((allowed) => isWithin(target, allowed));
  });
}

describe("imports run one way", () => {
  test.each(["wasm", "engine", "server"].flatMap((folder) => [...sources(folder)]))("%s", (file) => {
    expect(forbiddenImports(file, importsOf(file))).toEqual([]);
  });

  test("the check sees an arrow that runs the wrong way", () => {
    expect(forbiddenImports("engine/log/log.ts", ["../../server/index.js"])).toHaveLength(1);
    expect(forbiddenImports("engine/log/log.ts", ["../registry/keys.js"])).toHaveLength(1);
    expect(forbiddenImports("engine/verify/tree/merkle.ts", ["node:crypto"])).toHaveLength(1);
    expect(forbiddenImports("wasm/index.ts", ["../engine/error.js"])).toHaveLength(1);
    expect(forbiddenImports("server/explorer/main.tsx", ["../http/app.js", "node:fs"])).toHaveLength(2);
    expect(forbiddenImports("engine/log/log.ts", ["../store/store.js", "node:fs", "lmdb"])).toEqual([]);
  });
});

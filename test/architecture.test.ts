/** The rules of the architecture: which folder may import which (`docs/architecture.md`). */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/**
 * The folders from which the files of a folder may import, besides the folder itself. The longest matching folder
 * counts.
 */
const ARROWS: Readonly<Record<string, readonly string[]>> = {
  wasm: [],
  "engine/error.ts": [],
  "engine/flush.ts": ["engine/owner.ts"],
  "engine/folders.ts": ["engine/owner.ts"],
  "engine/native": ["engine/error.ts"],
  "engine/own-text.ts": [],
  "engine/owner.ts": [],
  "engine/recent.ts": [],
  "engine/search.ts": [],
  "engine/tracing.ts": [],
  "engine/turns.ts": [],
  "engine/verify": ["wasm", "engine/error.ts"],
  "engine/crypto": [
    "engine/verify",
    "engine/error.ts",
    "engine/flush.ts",
    "engine/folders.ts",
    "engine/native",
    "engine/owner.ts",
    "engine/own-text.ts",
    "engine/recent.ts",
  ],
  "engine/store": [
    "engine/verify",
    "engine/error.ts",
    "engine/flush.ts",
    "engine/folders.ts",
    "engine/native",
    "engine/owner.ts",
    "engine/recent.ts",
    "engine/search.ts",
    "engine/turns.ts",
  ],
  "engine/journal": ["engine/store", "engine/verify", "engine/error.ts"],
  "engine/log": [
    "engine/journal",
    "engine/store",
    "engine/crypto",
    "engine/verify",
    "engine/error.ts",
    "engine/flush.ts",
    "engine/folders.ts",
    "engine/native",
    "engine/owner.ts",
    "engine/recent.ts",
    "engine/search.ts",
    "engine/tracing.ts",
    "engine/turns.ts",
    "wasm",
  ],
  "engine/registry": [
    "engine/log",
    "engine/store",
    "engine/crypto",
    "engine/verify",
    "engine/error.ts",
    "engine/own-text.ts",
    "engine/recent.ts",
    "engine/turns.ts",
  ],
  "engine/index.ts": ["engine"],
  "server/wire": ["engine/verify"],
  "server/client": ["server/wire", "engine/verify", "engine/error.ts"],
  "server/explorer": ["server/client", "server/wire", "engine/verify", "engine/error.ts"],
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

const FILES = ["wasm", "engine", "server"].flatMap((folder) => [...sources(folder)]);

/** The files that import themselves through other files, each with the files on the way. */
function circles(imports: ReadonlyMap<string, readonly string[]>): string[] {
  const found: string[] = [];
  const done = new Set<string>();
  const visit = (file: string, way: readonly string[]): void => {
    const at = way.indexOf(file);
    if (at >= 0) found.push([...way.slice(at), file].join(" → "));
    if (at >= 0 || done.has(file)) return;
    for (const target of imports.get(file) ?? []) visit(target, [...way, file]);
    done.add(file);
  };
  for (const file of imports.keys()) visit(file, []);
  return found;
}

/** The file that `file` imports as `name`; undefined for a package or a style sheet. */
function targetOf(file: string, name: string): string | undefined {
  if (!name.startsWith(".")) return undefined;
  const path = join(dirname(file), name);
  return [path, path.replace(/\.js$/, ".ts"), path.replace(/\.js$/, ".tsx")].find((target) => FILES.includes(target));
}

describe("imports make no circle", () => {
  test("in the tree, imports of types included", () => {
    const targets = (file: string) => importsOf(file).flatMap((name) => targetOf(file, name) ?? []);
    expect(circles(new Map(FILES.map((file) => [file, targets(file)])))).toEqual([]);
  });

  test("the check sees a circle", () => {
    const imports = new Map([
      ["a", ["b"]],
      ["b", ["c", "d"]],
      ["c", ["d"]],
      ["d", ["b"]],
    ]);
    expect(circles(imports)).toEqual(["b → c → d → b"]);
  });
});

/** Files that know committed state. A command file must not import any of them, not even for types. */
const COMMITTED = ["engine/log/log.ts", "engine/log/view.ts", "engine/log/writer.ts", "engine/store/store.ts"];
/** Time and random values. Commands get them with their input or from the transaction. */
const CHANCE = /\b(?:systemClock|Date\.now|performance\.|Math\.random|randomUUID|randomBytes)/;
/** Memory between two runs of a command. */
const MEMORY = /^(?:export )?let /m;
/** Files with memory that does not change the result of a command. */
const REMEMBERING: readonly string[] = [
  // Keeps the newest terms, because they are needed twice in a row. They depend only on their input.
  "engine/registry/attestations/events.ts",
  // Keeps the newest key that an event creates, because rows and terms both need it.
  "engine/registry/keys/events.ts",
];

/** The faults of a file that defines commands, and of the files that it imports. */
function faultsOfCommands(
  file: string,
  textOf: (file: string) => string,
  targetsOf: (file: string) => readonly string[],
): string[] {
  const faults: string[] = /\bclass\s+\w+\s*\{|\bthis\.[#\w]/.test(code(textOf(file)))
    ? [`${file} has an object of its own`]
    : [];
  const reached = new Set([file]);
  for (const from of reached) {
    const targets = targetsOf(from);
    for (const target of targets) reached.add(target);
    for (const target of targets) if (COMMITTED.includes(target)) faults.push(`${from} knows ${target}`);
    if (!from.startsWith("engine/registry/")) continue;
    if (CHANCE.test(code(textOf(from)))) faults.push(`${from} asks for time or chance`);
    if (MEMORY.test(textOf(from)) && !REMEMBERING.includes(from)) faults.push(`${from} remembers`);
  }
  return faults;
}

/** A source text without its comments. */
const code = (text: string): string => text.replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, "");

describe("a command sees nothing but its transaction and its input", () => {
  const textOf = (file: string) => readFileSync(join(root, file), "utf8");
  const defining = FILES.filter((file) => /\bdefine\(\s*"/.test(textOf(file)));

  test.each(defining)("%s", (file) => {
    expect(
      faultsOfCommands(file, textOf, (from) => importsOf(from).flatMap((name) => targetOf(from, name) ?? [])),
    ).toEqual([]);
  });

  test("every concept has its commands in files of their own", () => {
    expect(defining.length).toBeGreaterThan(9);
    for (const file of defining.filter((file) => file.startsWith("engine/registry/")))
      expect(file).toMatch(/\/commands\.ts$/);
  });

  test("the check sees a command that reads committed state, the clock, chance or its own memory", () => {
    const [commands, keys] = ["engine/registry/keys/commands.ts", "engine/registry/keys/keys.ts"];
    const faults = (
      texts: Readonly<Record<string, string>>,
      arrows: Readonly<Record<string, readonly string[]>> = {},
    ) =>
      faultsOfCommands(
        commands,
        (file) => texts[file] ?? "",
        (file) => arrows[file] ?? [],
      );
    expect(faults({}, { [commands]: [keys], [keys]: ["engine/log/log.ts"] })).toEqual([
      `${keys} knows engine/log/log.ts`,
    ]);
    expect(faults({}, { [commands]: ["engine/store/store.ts"] })).toHaveLength(1);
    expect(faults({ [commands]: "const id = randomUUID();" })).toHaveLength(1);
    expect(faults({ [keys]: "const now = Date.now();" }, { [commands]: [keys] })).toHaveLength(1);
    expect(faults({ [keys]: "const kept = [];\nlet newest;" }, { [commands]: [keys] })).toHaveLength(1);
    expect(faults({ [commands]: "tx.put(this.#key, row);" })).toHaveLength(1);
    expect(faults({ [commands]: "// Date.now() of this class\nconst row = tx.get(key);" })).toEqual([]);
  });
});

describe("imports run one way", () => {
  test.each(FILES)("%s", (file) => {
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

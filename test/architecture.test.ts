/** The rules of the architecture: which folder may import which (`docs/architecture.md`). */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/**
 * Which folder imports from which: `arrows.txt`, each folder with a sentence and the folders that it imports from. A folder
 * stands after all of these, so no circle can be drawn.
 */
const TABLE = readFileSync(join(root, "test", "arrows.txt"), "utf8");
const ARROWS = drawn(TABLE);

function drawn(text: string): ReadonlyMap<string, readonly string[]> {
  const arrows = new Map<string, string[]>();
  for (const block of text.split(/\n(?! )/).filter(Boolean)) {
    const [head, ...to] = block.split("\n");
    arrows.set(head!.split(":")[0]!, to.join(" ").split(/\s+/).filter(Boolean));
  }
  return arrows;
}

/** The first line of a folder. */
const SENTENCE = /^[\w/-]+: .*\b(?:no|not|none|nothing|never|only|alone|without)\b.*\.$/;

/** Code that also runs in browsers. */
const PURE = ["wasm", "engine/verify", "engine/contract", "server/client", "server/explorer"];

const isWithin = (file: string, folder: string) => file === folder || file.startsWith(`${folder}/`);

function* sources(folder: string): Iterable<string> {
  for (const name of readdirSync(join(root, folder))) {
    const path = `${folder}/${name}`;
    if (path === "wasm/assembly" || name === "node_modules") continue;
    if (statSync(join(root, path)).isDirectory()) yield* sources(path);
    else if (/\.(tsx?|mjs)$/.test(name)) yield path;
  }
}

const importsOf = (file: string): string[] =>
  [...readFileSync(join(root, file), "utf8").matchAll(/(?:\bfrom|\bimport)\s*\(?\s*"([^"]+)"/g)].map(
    (match) => match[1]!,
  );

const FILES = ["wasm", "engine", "server"].flatMap((folder) => [...sources(folder)]);

/** Of whatever a comment names that looks like the path of a source file, what is not there. Declarations may be generated. */
function namesOfNothing(files: readonly string[]): string[] {
  const isThere = (by: string, path: string) =>
    files.some((file) => `/${file}`.endsWith(`/${path}`)) || existsSync(join(root, dirname(by), path));
  return files.flatMap((file) => {
    const comments = readFileSync(join(root, file), "utf8").match(/\/\*\*[\s\S]*?\*\/|^\s*\/\/ .*/gm) ?? [];
    const named = comments.flatMap((comment) => comment.match(/(?<![\w/.-])[\w/-][\w./-]*\.(?:tsx?|mjs)\b/g) ?? []);
    return named.filter((path) => !path.endsWith(".d.ts") && !isThere(file, path)).map((path) => `${file}: ${path}`);
  });
}

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
const COMMITTED = ["engine/log/log.ts", "engine/log/view/view.ts", "engine/log/writer.ts", "engine/store/store.ts"];
/** Time and random values. Commands get them with their input or from the transaction. */
const CHANCE = /\b(?:systemClock|Date\.now|performance\.|Math\.random|randomUUID|randomBytes)/;
/** Memory between two runs of a command. */
const MEMORY = /^(?:export )?let /m;
/** Files with memory that does not change the result of a command. */
const REMEMBERING: readonly string[] = [
  // Keeps the newest terms, because they are needed twice in a row. They depend only on their input.
  "engine/registry/events/attestations.ts",
  // Keeps the newest key that an event creates, because rows and terms both need it.
  "engine/registry/events/keys.ts",
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

describe("the arrows between folders", () => {
  const imports = new Map(FILES.map((file) => [file, importsOf(file).flatMap((name) => targetOf(file, name) ?? [])]));

  test("are those of the table, no more and no fewer", () => {
    expect(Object.fromEntries(arrowsOf(imports))).toEqual(
      Object.fromEntries([...ARROWS].map(([folder, to]) => [folder, [...to].sort()])),
    );
  });

  test("are of folders with a sentence each: what it is, and what it may not do", () => {
    expect(TABLE.split("\n").filter((line) => /^\S/.test(line) && !SENTENCE.test(line))).toEqual([]);
  });

  test("run to folders that stand before", () => {
    expect(backward(ARROWS)).toEqual([]);
  });

  test("an arrow that is not in the table is seen, and one that runs backward", () => {
    const files = new Map([
      ["a/x.ts", ["b/y.ts", "a/z.ts"]],
      ["b/y.ts", ["b/c/z.ts"]],
      ["b/c/z.ts", []],
    ]);
    expect([...arrowsOf(files)]).toEqual([
      ["a", ["b"]],
      ["b", ["b/c"]],
      ["b/c", []],
    ]);
    expect("b: It is b.").not.toMatch(SENTENCE);
    expect(backward(drawn("b: It is b.\n  a b/c\na\n  b\nb/c\n"))).toEqual(["b → a", "b → b/c"]);
  });

  test("code that also runs in browsers reaches nothing of Node", () => {
    const reached = new Set(FILES.filter((file) => PURE.some((folder) => isWithin(file, folder))));
    for (const file of reached) for (const target of imports.get(file) ?? []) reached.add(target);
    expect([...reached].filter((file) => importsOf(file).some((name) => name.startsWith("node:")))).toEqual([]);
    expect(reached).toContain("engine/base/error.ts");
  });
});

/** The folders of these files, each with the other folders from which its files import. */
function arrowsOf(imports: ReadonlyMap<string, readonly string[]>): ReadonlyMap<string, readonly string[]> {
  const arrows = new Map<string, Set<string>>();
  for (const [file, targets] of imports) {
    const folder = dirname(file);
    const to = arrows.get(folder) ?? new Set();
    arrows.set(folder, to);
    for (const target of targets) if (dirname(target) !== folder) to.add(dirname(target));
  }
  return new Map([...arrows].map(([folder, to]) => [folder, [...to].sort()]));
}

/** The arrows to folders that do not stand before. */
function backward(arrows: ReadonlyMap<string, readonly string[]>): string[] {
  const before = new Set<string>();
  return [...arrows].flatMap(([folder, to]) => {
    const wrong = to.filter((target) => !before.has(target)).map((target) => `${folder} → ${target}`);
    before.add(folder);
    return wrong;
  });
}

/** What `cairnlog` and its subpaths lead to. */
const ENTRIES = Object.values<string>(JSON.parse(readFileSync(join(root, "package.json"), "utf8")).exports).map(
  (path) => path.replace(/^\.\/dist\/(.*)\.js$/, "$1.ts"),
);

/**
 * What a file exports, and no public entry exports, and no other file names that has the path of that file in it: in an import,
 * or as the address of a thread's code.
 */
function unusedExports(texts: ReadonlyMap<string, string>, entries: readonly string[]): string[] {
  const users = new Map([...texts.keys()].map((file) => [file, new Set<string>()]));
  const passedOn: [by: string, file: string][] = [];
  for (const [by, text] of texts)
    for (const [, all, path] of text.matchAll(/(export \*[\w ]* from )?"((?:\.\.?|#cairnlog)\/[^"\s]+)"/g)) {
      const at = path!.startsWith("#") ? path!.slice("#cairnlog/".length) : join(dirname(by), path!);
      const stem = at.replace(/^dist\//, "").replace(/\.js$/, "");
      const file = [`${stem}.ts`, `${stem}.tsx`].find((name) => texts.has(name));
      if (file !== undefined) users.get(file)!.add(by);
      if (file !== undefined && all !== undefined) passedOn.push([by, file]);
    }
  const open = new Set(entries);
  for (const [by, file] of passedOn) {
    if (open.has(by)) open.add(file);
    for (const user of users.get(by)!) users.get(file)!.add(user);
  }
  const words = new Map([...texts].map(([file, text]) => [file, new Set(code(text).match(/[\w$]+/g))]));
  return [...texts].flatMap(([file, text]) => {
    const declared = [
      ...text.matchAll(/^export (?:(?:abstract|async|declare) )*(?:const|class|function\*?|interface|type) (\w+)/gm),
    ];
    const names =
      open.has(file) || !["wasm", "engine", "server"].some((folder) => isWithin(file, folder)) ? [] : declared;
    const isUsed = (name: string) => [...users.get(file)!].some((user) => words.get(user)!.has(name));
    return names.flatMap((match) => (isUsed(match[1]!) ? [] : `${file}: ${match[1]}`));
  });
}

describe("the words of a file", () => {
  test("begin with what it is", () => {
    const first = (file: string) =>
      readFileSync(join(root, file), "utf8")
        .split("\n")
        .find((line) => !/^(?:#!|\/\/ biome-ignore)/.test(line));
    expect(FILES.filter((file) => !/^\/[/*]/.test(first(file)!))).toEqual([]);
  });

  test("name files that are there", () => {
    const folders = ["test", "bench", "scripts"];
    expect(namesOfNothing([...FILES, ...folders.flatMap((folder) => [...sources(folder)])])).toEqual([]);
  });
});

describe("what is exported", () => {
  test("is used by another file that is no test, or public", () => {
    const files = [...FILES, ...sources("bench"), ...sources("scripts")];
    expect(
      unusedExports(new Map(files.map((file) => [file, readFileSync(join(root, file), "utf8")])), ENTRIES),
    ).toEqual([]);
  });

  test("and is not, is seen", () => {
    const texts = new Map([
      ["engine/index.ts", 'export * from "./a.js";\nexport { type Shown } from "./b.js";'],
      ["engine/a.ts", "export interface Public {}"],
      [
        "engine/b.ts",
        "export interface Shown {}\nexport const LIMIT = 1;\nexport function work() {}\nconst own = LIMIT;",
      ],
      ["engine/c.ts", 'new URL("./b.js");\n"work"; // LIMIT\nexport async function run() {}'],
      ["bench/d.ts", 'import { run } from "#cairnlog/engine/c.js";\nexport const LIMIT = 2;'],
    ]);
    expect(unusedExports(texts, ["engine/index.ts"])).toEqual(["engine/b.ts: LIMIT"]);
  });
});

describe("what a program in a text imports, which no compiler reads", () => {
  /** Names that a program within backquotes imports from a module of ours, and that it does not export. */
  async function missing(text: string): Promise<string[]> {
    const programs = text.match(/`[^`]*`/g) ?? [];
    const imports = programs.flatMap((program) => [
      ...program.matchAll(/\{([^{}]*)\} (?:from |= await import\()"#cairnlog\/((?:engine|server|wasm)\/[\w./-]+)"/g),
    ]);
    const names = imports.map(async ([, names, path]) => {
      const exported = await import(new URL(`../dist/${path}`, import.meta.url).href);
      return names!.match(/\w+/g)!.flatMap((name) => (name in exported ? [] : [`${path}: ${name}`]));
    });
    return (await Promise.all(names)).flat();
  }

  test("is exported", async () => {
    const files = ["test", "bench", "scripts"].flatMap((folder) => [...sources(folder)]);
    const texts = files
      .filter((file) => file !== "test/architecture.test.ts")
      .map((file) => readFileSync(join(root, file), "utf8"));
    expect((await Promise.all(texts.map(missing))).flat()).toEqual([]);
  });

  test("and is not, is seen", async () => {
    const module = '"#cairnlog/engine/base/error.js"';
    const all = await Promise.all([
      missing(`const HOOK = \`\nimport { CairnlogError, Health } from ${module}\`;`),
      missing(`run(\`const { Health } = await import(${module});\`)`),
      missing(`import { Health } from ${module};`),
    ]);
    expect(all).toEqual([["engine/base/error.js: Health"], ["engine/base/error.js: Health"], []]);
  });
});

/**
 * Names that stand for one thing each in two rooms that nobody reads together: what the client exports beside the engine, the
 * trees of both kinds, which are called by their file (`rfc6962.leafHash`), and a command beside what it does.
 */
const TWINS = {
  client: ["Answer", "GraphAnswer", "GraphFilter", "LogReader", "Signer", "Store", "Writers"],
  trees: ["EMPTY_ROOT", "leafHash", "nodeHash", "verifyConsistency", "verifyInclusion", "kernel"],
  commands: ["restore"],
};

test("an exported name has one meaning", () => {
  const places = new Map<string, { readonly file: string; readonly isType: boolean }[]>();
  for (const file of FILES)
    for (const [, kind, name] of readFileSync(join(root, file), "utf8").matchAll(
      /^export (?:async )?(const|function|class|interface|type|abstract class) (\w+)/gm,
    )) {
      const all = places.get(name!) ?? [];
      places.set(name!, [...all, { file, isType: kind === "interface" || kind === "type" }]);
    }
  // A resource of the contract has its schema there, and its type where it is made or read.
  const isContract = (file: string) => isWithin(file, "engine/contract");
  const several = [...places]
    .filter(([, all]) => new Set(all.map(({ file }) => file)).size > 1)
    .filter(
      ([, all]) => !all.some(({ file }) => isContract(file)) || all.some((one) => !isContract(one.file) && !one.isType),
    )
    .map(([name]) => name);
  expect(several.sort()).toEqual(Object.values(TWINS).flat().sort());
});

test("the page asks by its own fetch alone, which has a limit of time", () => {
  const asking = FILES.filter((file) => {
    const code = readFileSync(join(root, file), "utf8").replace(/\/\*[\s\S]*?\*\/|\/\/ .*/g, "");
    return (
      isWithin(file, "server/explorer") &&
      /(?<!typeof )\bfetch\b(?!:)|\bXMLHttpRequest\b|createClient\(\{(?![^}]*\bfetch:)/.test(code)
    );
  });
  expect(asking).toEqual(["server/explorer/state/timely.ts"]);
});

/** Mutants: all small faults that can be planted in the compiled code, each identified by its place in the source. */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { SourceMap } from "node:module";
import { join } from "node:path";
import { parseAst } from "vite";
import { type Edit, editsOf, isSilent, type Node } from "./operators.js";

export interface Mutant extends Edit {
  /** `engine/log/tree/tree.ts:31:14:boundary`. It stays the same between runs while the source does not change. */
  readonly id: string;
  /** Source file below the project. */
  readonly file: string;
  /** Compiled file below the build. */
  readonly built: string;
  /** In the source, counted from 1. */
  readonly line: number;
  readonly column: number;
  /** Source line, without surrounding white space. */
  readonly source: string;
  /** Replaced text of the compiled code. */
  readonly original: string;
  /** Its number, from 1, among the mutants of its line that have the same kind and replace the same text. */
  readonly nth: number;
}

/** Compiled files without behaviour of their own: the bundled explorer, examples, style sheets, help texts. */
const WITHOUT_BEHAVIOUR = [/^server\/explorer\//, /\.generated\.js$/, /^server\/http\/docs\/style\.js$/];

const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && typeof (value as { type?: unknown }).type === "string";

/** Every edit of a module's text. */
export function* edits(code: string): Generator<Edit> {
  function* walk(node: Node, ancestors: Node[]): Generator<Edit> {
    if (isSilent(node, code)) return;
    yield* editsOf(node, ancestors, code);
    ancestors.push(node);
    for (const value of Object.values(node))
      for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) yield* walk(child, ancestors);
    ancestors.pop();
  }
  yield* walk(parseAst(code), []);
}

/** A function that converts an offset to line and column, both counted from 0. */
function positions(code: string): (offset: number) => [line: number, column: number] {
  const starts = [0];
  for (let at = code.indexOf("\n"); at >= 0; at = code.indexOf("\n", at + 1)) starts.push(at + 1);
  return (offset) => {
    let low = 0;
    let high = starts.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (starts[middle]! <= offset) low = middle;
      else high = middle;
    }
    return [low, offset - starts[low]!];
  };
}

/** The mutants of one compiled file. @throws Error if it does not exist or has no source map */
export const mutantsOf = (dist: string, built: string): Mutant[] => located(dist, built, edits);

/** A fault that somebody chose by hand. */
export interface Chosen {
  /** Stands in the mutant's id in the place of its kind. */
  readonly id: string;
  readonly built: string;
  /** Part of the compiled file that occurs in it once. */
  readonly from: string;
  readonly to: string;
}

/** The mutant of a chosen fault. @throws Error if the file has no such part, or more than one */
export function mutantOf(dist: string, { id, built, from, to }: Chosen): Mutant {
  return located(dist, built, (code) => {
    const start = code.indexOf(from);
    if (start < 0 || code.includes(from, start + 1)) throw new Error(`${id}: ${built} must contain this once: ${from}`);
    return [{ kind: id, start, end: start + from.length, replacement: to }];
  })[0]!;
}

function located(dist: string, built: string, editsOfCode: (code: string) => Iterable<Edit>): Mutant[] {
  const code = readFileSync(join(dist, built), "utf8");
  const map = JSON.parse(readFileSync(join(dist, `${built}.map`), "utf8"));
  const sources = new SourceMap(map);
  const lines = (map.sourcesContent[0] as string).split("\n");
  const place = positions(code);
  const file = built.replace(/\.js$/, ".ts");
  const seen = new Map<string, number>();
  const next = (name: string): number => {
    seen.set(name, (seen.get(name) ?? 0) + 1);
    return seen.get(name)!;
  };
  return [...editsOfCode(code)].map((edit) => {
    const entry = sources.findEntry(...place(edit.start)) as { originalLine?: number; originalColumn?: number };
    const line = (entry.originalLine ?? 0) + 1;
    const column = (entry.originalColumn ?? 0) + 1;
    const name = `${file}:${line}:${column}:${edit.kind}`;
    const original = code.slice(edit.start, edit.end);
    const count = next(name);
    const nth = next(`${line} ${edit.kind} ${original}`);
    const source = lines[line - 1]?.trim() ?? "";
    return { ...edit, id: count > 1 ? `${name}#${count}` : name, file, built, line, column, source, original, nth };
  });
}

/** The code with the mutant's fault. */
export const planted = (code: string, { start, end, replacement }: Edit): string =>
  code.slice(0, start) + replacement + code.slice(end);

/** The compiled files below a file or folder of the source or of the build. @throws Error if there is none */
export function builtFiles(dist: string, path: string): string[] {
  const below = path
    .replace(/^\.?\//, "")
    .replace(/^dist\//, "")
    .replace(/\/$/, "");
  const found: string[] = [];
  const look = (name: string) => {
    if (WITHOUT_BEHAVIOUR.some((pattern) => pattern.test(name))) return;
    if (statSync(join(dist, name)).isDirectory())
      for (const entry of readdirSync(join(dist, name)).sort()) look(join(name, entry));
    // A bundled library has no source map.
    else if (name.endsWith(".js") && existsSync(join(dist, `${name}.map`))) found.push(name);
  };
  look(below.replace(/\.tsx?$/, ".js"));
  return found;
}

/** A choice of `count` items in their order. It depends only on the seed and the items' ids. */
export function sample<T extends { readonly id: string }>(items: readonly T[], count: number, seed: number): T[] {
  const rank = ({ id }: T) => createHash("sha256").update(`${seed}\0${id}`).digest("hex");
  const chosen = new Set(
    items
      .map((item) => ({ item, rank: rank(item) }))
      .sort((a, b) => (a.rank < b.rank ? -1 : 1))
      .slice(0, count)
      .map(({ item }) => item),
  );
  return items.filter((item) => chosen.has(item));
}

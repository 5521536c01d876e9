/** Handlers by path. A part in braces stands for any part that is not empty; a part that is written out goes first. */

/** What is below a part of a path. */
interface Branch<T> {
  readonly fixed: Map<string, Branch<T>>;
  any: Branch<T> | null;
  value: T | null;
}

const branch = <T>(): Branch<T> => ({ fixed: new Map(), any: null, value: null });

export class Router<T> {
  readonly #root: Branch<T> = branch();

  constructor(values: ReadonlyMap<string, T>) {
    for (const [path, value] of values) {
      let at = this.#root;
      for (const part of path.split("/")) at = part.startsWith("{") ? openAny(at) : openFixed(at, part);
      at.value = value;
    }
  }

  /** The value of a path, and its parts that stand for names, as they are; null if there is none. */
  find(path: string): { readonly value: T; readonly params: readonly string[] } | null {
    const params: string[] = [];
    const value = walk(this.#root, path.split("/"), 0, params);
    return value === null ? null : { value, params };
  }
}

function openAny<T>(at: Branch<T>): Branch<T> {
  at.any ??= branch();
  return at.any;
}

function openFixed<T>(at: Branch<T>, part: string): Branch<T> {
  const known = at.fixed.get(part) ?? branch<T>();
  at.fixed.set(part, known);
  return known;
}

/** Goes no deeper than the longest known path, however many parts the client sends. */
function walk<T>(at: Branch<T>, parts: readonly string[], depth: number, params: string[]): T | null {
  if (depth === parts.length) return at.value;
  const part = parts[depth]!;
  const fixed = at.fixed.get(part);
  const found = fixed ? walk(fixed, parts, depth + 1, params) : null;
  if (found !== null || !at.any || part === "") return found;
  params.push(part);
  const other = walk(at.any, parts, depth + 1, params);
  if (other === null) params.pop();
  return other;
}

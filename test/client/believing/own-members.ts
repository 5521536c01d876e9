/** Arguments of a call with a member of the caller's own, in one of their objects. */
import type { Client } from "#cairnlog/server/client/index.js";

type Arguments = readonly unknown[];
type Path = readonly (string | number)[];

const NAME = "x_own";

/**
 * The client, whose `method` gets its arguments with one more member.
 * @param n in which of the objects
 * @param counted told how many there are
 */
export function addingMember(client: Client, method: string, n: number, counted: (objects: number) => void): Client {
  const change = (args: Arguments): Arguments => {
    const paths = objectsIn(args, []);
    counted(paths.length);
    return paths[n] ? (withMember(args, paths[n]) as Arguments) : args;
  };
  return within(client, method.split("."), change);
}

function within<T extends object>(
  target: T,
  [name, ...rest]: readonly string[],
  change: (args: Arguments) => Arguments,
): T {
  return new Proxy(target, {
    get(_, member) {
      const value = Reflect.get(target, member) as unknown;
      if (member !== name) return typeof value === "function" ? value.bind(target) : value;
      if (rest.length) return within(value as object, rest, change);
      return (...args: Arguments) => (value as (...args: Arguments) => unknown).apply(target, [...change(args)]);
    },
  });
}

/** Where values are objects that hold nothing but data. */
function objectsIn(value: unknown, path: Path): Path[] {
  if (typeof value !== "object" || value === null) return [];
  const inner = Object.entries(value).flatMap(([name, member]) => objectsIn(member, [...path, name]));
  const isData =
    Object.getPrototypeOf(value) === Object.prototype &&
    !Object.values(value).some((member) => typeof member === "function");
  return isData ? [path, ...inner] : inner;
}

function withMember(value: unknown, [next, ...rest]: Path): unknown {
  if (next === undefined) return { ...(value as object), [NAME]: "mine" };
  const copy = Array.isArray(value) ? [...value] : { ...(value as object) };
  return Object.assign(copy, { [next]: withMember((value as Record<string | number, unknown>)[next], rest) });
}

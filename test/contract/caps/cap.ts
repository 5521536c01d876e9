/** A limit of the contract with a request that tests it, and limits made from the rows of a list. */
import { expect } from "vitest";
import { expectProblem, type Reply } from "../../server/harness.js";

export interface Cap {
  /** Route and member. */
  readonly name: string;
  readonly unit: "characters" | "bytes" | "items" | "levels";
  readonly min: number;
  readonly max: number;
  /** JSON Pointer of the fault for a value beyond the limit. */
  readonly path: string;
  /** Whether values can hold characters beyond ASCII. */
  readonly asciiOnly?: boolean;
  /** Makes a value of this size from this character. */
  make(size: number, character: string): unknown;
  send(value: unknown): Promise<Reply>;
  /** Asserts that a value within the limit was accepted unchanged. */
  taken(reply: Reply, value: unknown): void;
}

export type Body = Readonly<Record<string, unknown>>;
type Row = readonly [member: string, min: number, max: number, more?: Partial<Cap>];
export interface Route {
  readonly name: string;
  /** Sends a request that is valid except for `more`. */
  readonly send: (more: Body) => Promise<Reply>;
  /** JSON Pointer below which its members are reported. */
  readonly below?: string;
}

export const taken = (reply: Reply) => expect([200, 201], reply.text.slice(0, 400)).toContain(reply.status);
/** Asserts that the answer contains the whole value. */
function shown(reply: Reply, value: unknown): void {
  taken(reply);
  expect(reply.text.includes(JSON.stringify(value)), reply.text.slice(0, 400)).toBe(true);
}
/** The value is refused, but not for its size. */
export const refused = (status: number, code: string, message = /./) => ({
  taken(reply: Reply) {
    expectProblem(reply, status, code);
    expect(reply.body.errors?.[0].message ?? reply.body.detail).toMatch(message);
  },
});

export function capsOf(
  unit: Cap["unit"],
  make: Cap["make"],
  { name, send, below = "" }: Route,
  rows: readonly Row[],
): Cap[] {
  return rows.map(([member, min, max, more]) => ({
    name: `${name}: ${member}`,
    unit,
    min,
    max,
    path: `${below}/${member}`,
    make,
    send: (value) => send({ [member]: value }),
    taken: shown,
    ...more,
  }));
}

export const texts = (route: Route, ...rows: Row[]) =>
  capsOf("characters", (size, character) => character.repeat(size), route, rows);
export const bytes = (route: Route, frame: (text: string) => unknown, ...rows: Row[]) =>
  capsOf("bytes", (size, character) => valueOfBytes(size, character, frame), route, rows);
export const items = (route: Route, item: (i: number) => unknown, ...rows: Row[]) =>
  capsOf("items", (size) => Array.from({ length: size }, (_, i) => item(i)), route, rows);

/** A value with one text, whose canonical JSON has exactly this number of bytes. */
function valueOfBytes(size: number, character: string, frame: (text: string) => unknown): unknown {
  const room = size - Buffer.byteLength(JSON.stringify(frame("")));
  const filler = character.repeat(Math.floor(room / Buffer.byteLength(character)));
  return frame(filler + "x".repeat(room - Buffer.byteLength(filler)));
}

/** Sends with a value from `make`, which is reused until a request succeeds. */
export function reusing<T>(make: () => Promise<T>, send: (made: T, more: Body) => Promise<Reply>): Route["send"] {
  let made: Promise<T> | null = null;
  return async (more) => {
    made ??= make();
    const reply = await send(await made, more);
    if (reply.status < 300) made = null;
    return reply;
  };
}

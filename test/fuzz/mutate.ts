/** Changes of valid inputs. For each of them there was a parser that handled it wrongly. */
import fc from "fast-check";
import type { Random } from "../reliability/random.js";
import { texts } from "../texts.js";

/** Lengths close to limits. */
const CAPS = [0, 1, 12, 64, 100, 128, 200, 254, 256, 500, 512, 1000, 1024, 2048, 4096, 5000, 8192, 16_384, 65_536];

const NASTY_NAMES = [
  "__proto__",
  "constructor",
  "prototype",
  "toString",
  "hasOwnProperty",
  "then",
  "toJSON",
  "",
  "\u0000",
  "a/b~c",
  "length",
];

const NASTY_TEXTS = [
  "",
  " ",
  "\u0000",
  "a\u0000b",
  "\ud800",
  "\udfff\ud800",
  "e\u0301",
  "\u202e\u2066",
  "İ",
  "ﬃ",
  "🪨".repeat(3),
  "\r\nx-injected: yes\r\n",
  "../../etc/passwd",
  "=cmd|' /C calc'!A0",
  "%24{jndi:ldap://x}",
  "<script>",
  "null",
  "NaN",
  "-0",
  "1e309",
  "2026-02-30T00:00:00Z",
  "9999-12-31T23:59:60Z",
  "0000-00-00T00:00:00Z",
  "+275760-09-13T00:00:00.001Z",
  "sha256:",
  `sha256:${"g".repeat(64)}`,
  `SHA256:${"A".repeat(64)}`,
  "-----BEGIN PUBLIC KEY-----\n\n-----END PUBLIC KEY-----\n",
  "http://[::1]:0/",
  "https://x-service.example/predicates/%76ault-publication/v1",
  "javascript:alert(1)",
];

const NASTY_NUMBERS = [
  0,
  -0,
  -1,
  1.5,
  1e-7,
  2 ** 31,
  2 ** 32,
  2 ** 53 - 1,
  2 ** 53,
  -(2 ** 53),
  1e21,
  1e308,
  Number.MIN_VALUE,
];

const TEXTS = texts();

export function nastyText(random: Random): string {
  if (random.chance(0.3)) return fc.sample(TEXTS, { numRuns: 1, seed: random.below(2 ** 31) })[0]!;
  if (random.chance(0.6)) return random.pick(NASTY_TEXTS);
  const length = Math.max(0, random.pick(CAPS) + random.below(3) - 1);
  return random.pick(["a", "é", "🪨", "0", " ", "\u0001", "\ud83d"]).repeat(length).slice(0, length);
}

const nastyName = (random: Random): string =>
  random.chance(0.5) ? random.pick(NASTY_NAMES) : nastyText(random).slice(0, 64);

export function nastyValue(random: Random): unknown {
  switch (random.below(8)) {
    case 0:
      return null;
    case 1:
      return random.chance(0.5);
    case 2:
      return random.pick(NASTY_NUMBERS);
    case 3:
      return [];
    case 4:
      return {};
    case 5:
      return nested(random.pick([2, 9, 40, 200, 600]), random.chance(0.5));
    case 6:
      return Array.from({ length: random.pick([1, 33, 101, 257, 1_001]) }, () => nastyText(random).slice(0, 20));
    default:
      return nastyText(random);
  }
}

function nested(depth: number, isArray: boolean): unknown {
  let value: unknown = 1;
  for (let i = 0; i < depth; i++) value = isArray ? [value] : { all: value, a: 1 };
  return value;
}

/** Every container in a value, with the names in it. */
function places(value: unknown, found: { container: Record<string, unknown>; name: string }[] = [], depth = 0) {
  if (typeof value !== "object" || value === null || depth > 50) return found;
  for (const name of Object.keys(value)) {
    found.push({ container: value as Record<string, unknown>, name });
    places((value as Record<string, unknown>)[name], found, depth + 1);
  }
  return found;
}

/** Changes one place of a JSON value, in a copy. */
export function mutateValue(value: unknown, random: Random): unknown {
  const copy = structuredClone(value);
  const all = places(copy);
  if (!all.length) return nastyValue(random);
  const { container, name } = random.pick(all);
  const set = (key: string, member: unknown) => {
    if (Array.isArray(container) && !/^\d+$/.test(key)) container.push(member);
    else Object.defineProperty(container, key, { value: member, enumerable: true, configurable: true, writable: true });
  };
  const held = container[name];
  switch (random.below(8)) {
    case 0:
      if (Array.isArray(container)) container.splice(Number(name), 1);
      else delete container[name];
      break;
    case 1:
      set(name, nastyValue(random));
      break;
    case 2:
      set(nastyName(random), nastyValue(random));
      break;
    case 3:
      delete container[name];
      set(random.chance(0.5) ? nastyName(random) : name.toUpperCase(), held);
      break;
    case 4:
      set(name, random.pick(all).container);
      return JSON.parse(safely(copy));
    case 5:
      if (Array.isArray(held)) held.push(...structuredClone(held), ...structuredClone(held));
      else set(name, [held]);
      break;
    case 6:
      set(name, typeof held === "string" ? mutateText(held, random) : nastyText(random));
      break;
    default:
      set(name, typeof held === "number" ? random.pick(NASTY_NUMBERS) : nastyText(random));
  }
  return copy;
}

/** JSON of a value that may contain itself. */
function safely(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "null";
  } catch {
    return "{}";
  }
}

export function mutateText(text: string, random: Random): string {
  const at = random.below(text.length + 1);
  switch (random.below(8)) {
    case 0:
      return text.slice(0, at);
    case 1:
      return text.slice(0, at) + nastyText(random) + text.slice(at);
    case 2:
      return text.slice(0, at) + text.slice(at + 1 + random.below(4));
    case 3:
      return text + text;
    case 4:
      return text.toUpperCase();
    case 5: {
      // Repeats a part of the text often enough to make non-linear time visible.
      const part = text.slice(at, at + 1 + random.below(12)) || "a";
      return text.slice(0, at) + part.repeat(random.pick([10, 100, 5_000])).slice(0, 50_000) + text.slice(at);
    }
    case 6: {
      // ASCII characters are as frequent as all others.
      const code = random.below(random.chance(0.5) ? 0x80 : 0x250);
      return text.slice(0, at) + String.fromCharCode(code) + text.slice(at + 1);
    }
    default:
      return ` ${text}\n`;
  }
}

/** Changes bytes in ways that no change of a JSON value can produce. */
export function mutateBytes(bytes: Buffer, random: Random): Buffer {
  const at = random.below(bytes.length + 1);
  const insert = (...parts: (string | number[])[]) =>
    Buffer.concat([bytes.subarray(0, at), ...parts.map((part) => Buffer.from(part as string)), bytes.subarray(at)]);
  switch (random.below(10)) {
    case 0: {
      const copy = Buffer.from(bytes);
      if (copy.length) copy[at % copy.length]! ^= 1 << random.below(8);
      return copy;
    }
    case 1:
      return bytes.subarray(0, at);
    case 2:
      return insert([0xc0, 0x80]);
    case 3:
      return insert([0xed, 0xa0, 0x80]);
    case 4:
      return Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), bytes]);
    case 5:
      return Buffer.concat([bytes, bytes]);
    case 6:
      return insert(
        random.pick(["\\u0000", "\\ud800", '"', "{", "[", ",", ":", "1e400", "1E400", "-", "00", "\u0000", "\\"]),
      );
    case 7: {
      // The members of the first object, twice.
      const text = bytes.toString("latin1");
      const end = text.lastIndexOf("}");
      return Buffer.from(end < 1 ? text : `${text.slice(0, end)},${text.slice(1, end)}}`, "latin1");
    }
    case 8:
      return insert(random.pick(["[", '{"a":', " "]).repeat(random.pick([100, 10_000])));
    default: {
      const length = 1 + random.below(16);
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + length)]);
    }
  }
}

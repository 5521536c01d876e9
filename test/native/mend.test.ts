/** The message of lmdb that is too long for its memory is shortened in the memory of the process, and nowhere else. */
import { closeSync, openSync, readdirSync, readFileSync, readSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import "#cairnlog/engine/native/lmdb.js";
import { shortenMessage } from "#cairnlog/engine/native/mend.js";

const LONG = "Attempting to write page at position %u, size %u, blocks %u, buffer sizes %i %i %i\0";
const SHORT = LONG.replace(", buffer", "\0 buffer");
const PACKAGES = fileURLToPath(new URL("../../node_modules/@lmdb", import.meta.url));

/** What the mapped binaries of lmdb of this process hold, and their files. */
function* mapped(): Iterable<{ readonly memory: Buffer; readonly file: Buffer }> {
  const memory = openSync("/proc/self/mem", "r");
  const parts = readFileSync("/proc/self/maps", "utf8").matchAll(/^(\w+)-(\w+) r-[x-]p .*?(\/.*lmdb.*\.node)$/gm);
  for (const [, from, to, path] of parts) {
    const start = Number(`0x${from}`);
    const bytes = Buffer.alloc(Number(`0x${to}`) - start);
    readSync(memory, bytes, 0, bytes.length, start);
    yield { memory: bytes, file: readFileSync(path!) };
  }
  closeSync(memory);
}

test("the message ends before its numbers, in memory alone, and is found no second time", () => {
  const parts = [...mapped()];
  expect(parts.filter(({ memory }) => memory.includes(SHORT))).toHaveLength(1);
  expect(parts.filter(({ memory }) => memory.includes(LONG))).toEqual([]);
  expect(parts.every(({ file }) => file.includes(LONG))).toBe(true);
  expect(shortenMessage()).toBe(0);
});

test("each binary for Linux that is installed has the message once", () => {
  const binaries = readdirSync(PACKAGES)
    .filter((name) => name.startsWith("lmdb-linux"))
    .flatMap((name) =>
      readdirSync(`${PACKAGES}/${name}`)
        .filter((file) => file.endsWith(".node"))
        .map((file) => readFileSync(`${PACKAGES}/${name}/${file}`, "latin1")),
    );
  expect(binaries.length).toBeGreaterThan(0);
  for (const binary of binaries) expect(binary.split(LONG)).toHaveLength(2);
});

test("where the system shows no memory, or lets nothing be written to it, nothing happens", () => {
  expect(shortenMessage("/proc/none")).toBe(0);
});

test("the longest message that is left fits into its memory", () => {
  const longest = SHORT.split("\0")[0]!.replaceAll("%u", String(2 ** 32 - 1));
  expect(longest.length + 1).toBeLessThanOrEqual(100);
});

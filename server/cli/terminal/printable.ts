/** Text that others wrote, on its way to a terminal. */

/** `text` with everything that could steer a terminal spelt out; line feeds stay. */
export function printable(text: string): string {
  return text.replace(/[^\P{C}\n]/gu, (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`);
}

/** Like `printable`, but also spells line feeds out, so that the text cannot look like several lines. */
export function printableLine(text: string): string {
  return printable(text).replaceAll("\n", "\\u{a}");
}

/** A value as one line of JSON. What could steer a terminal is spelt as `\\u` escapes, so the value stays what it is. */
export function printableJson(value: unknown): string {
  return steerless(JSON.stringify(value));
}

/** JSON text of the same value in which nothing steers a terminal. Such characters can only stand within its strings. */
export function steerless(json: string): string {
  return json.replace(/[^\P{C}\n]|[\p{Zl}\p{Zp}]/gu, (character) =>
    Array.from({ length: character.length }, (_, i) => escapeUnit(character.charCodeAt(i))).join(""),
  );
}

const escapeUnit = (unit: number): string => `\\u${unit.toString(16).padStart(4, "0")}`;

/** Makes text from other parties safe for a terminal. */

/** `text` with everything that could control a terminal replaced by escapes; line feeds stay. */
export function printable(text: string): string {
  return text.replace(/[^\P{C}\n]/gu, (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`);
}

/**
 * `text` with everything that could control a terminal replaced by escapes, including line feeds. So the text cannot
 * look like several lines.
 */
export function printableLine(text: string): string {
  return printable(text).replaceAll("\n", "\\u{a}");
}

/** A value as one line of JSON. Characters that could control a terminal become `\\u` escapes, which keep the value. */
export function printableJson(value: unknown): string {
  return steerless(JSON.stringify(value));
}

/**
 * Replaces characters that could control a terminal by escapes in JSON text, which keeps its value. Such characters
 * occur only inside strings.
 */
export function steerless(json: string): string {
  return json.replace(/[^\P{C}\n]|[\p{Zl}\p{Zp}]/gu, (character) =>
    Array.from({ length: character.length }, (_, i) => escapeUnit(character.charCodeAt(i))).join(""),
  );
}

const escapeUnit = (unit: number): string => `\\u${unit.toString(16).padStart(4, "0")}`;

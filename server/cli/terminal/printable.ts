/** Text that others wrote, on its way to a terminal. */

/** `text` with everything that could steer a terminal spelt out; line feeds stay. */
export function printable(text: string): string {
  return text.replace(/[^\P{C}\n]/gu, (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`);
}

/** The same for text that must not look like several lines. */
export function printableLine(text: string): string {
  return printable(text).replaceAll("\n", "\\u{a}");
}

/** JSON of a value that others wrote: ASCII alone, which no terminal obeys and every parser reads. */
export function printableJson(value: unknown): string {
  return JSON.stringify(value).replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

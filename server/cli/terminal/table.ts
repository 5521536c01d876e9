/** Facts and lists as people read them. Other parties chose some of the words, so everything is made printable. */
import { styleText } from "node:util";
import { isPrefixedHash } from "../../../engine/verify/bytes/encoding.js";
import { printableLine } from "./printable.js";

/** Spaces between two columns. */
const GAP = "  ";

/** Text that may hold escapes of its own for colours; words of other parties in it are printable. */
export interface Styled {
  readonly styled: string;
}

type Colour = "green" | "red" | "yellow" | "bold" | "dim";

/** `text` in a colour, if stdout is a terminal that has colours and NO_COLOR is not set. */
export function coloured(colour: Colour, text: string): string {
  return process.stdout.isTTY && process.stdout.hasColors() ? styleText(colour, text) : text;
}

/** A line for each fact: its name, in a column of its own, and its value. Facts without a value are left out. */
export function facts(named: readonly (readonly [name: string, value: string | number | null | undefined])[]): string {
  const present = named.filter(([, value]) => value !== null && value !== undefined);
  const width = Math.max(...present.map(([name]) => name.length));
  return present
    .map(([name, value]) => `${coloured("dim", printableLine(name).padEnd(width))}${GAP}${printableLine(`${value}`)}`)
    .join("\n");
}

/** A row whose cells begin in fixed columns. A cell that is too wide moves the rest; the last one has no width. */
export function alignedRow(widths: readonly number[], cells: readonly string[]): string {
  return cells
    .map((cell, i) => printableLine(cell).padEnd(widths[i] ?? 0))
    .join(GAP)
    .trimEnd();
}

/** A table with a heading, as wide as its contents. */
export function table(heading: readonly string[], rows: readonly (readonly string[])[]): Styled {
  const widths = heading.map((name, i) =>
    Math.max(name.length, ...rows.map((cells) => printableLine(cells[i]!).length)),
  );
  widths.pop();
  return {
    styled: [coloured("bold", alignedRow(widths, heading)), ...rows.map((cells) => alignedRow(widths, cells))].join(
      "\n",
    ),
  };
}

const SHORT_DIGITS = 12;

/** The beginning of a fingerprint, for lists. */
export const shortFingerprint = (fingerprint: string): string =>
  isPrefixedHash(fingerprint) ? `${fingerprint.slice(0, "sha256:".length + SHORT_DIGITS)}…` : fingerprint;

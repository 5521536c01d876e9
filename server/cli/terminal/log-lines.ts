/** The service's log for people: a line for each, with its time, instead of JSON. */
import { type LogSink, sinkOf } from "../../process/logger.js";
import { printable } from "./printable.js";

/** Details of every line of a kind, which the line says already or nobody on a terminal asks for. */
const UNSAID = new Set(["err"]);

/** @param write takes each line, with its line feed */
export const logLines = (write: (line: string) => void): LogSink =>
  sinkOf((level, details, sentence) => {
    const time = new Date().toTimeString().slice(0, 8);
    const word = level === "info" ? "" : `${level}: `;
    const shown = Object.entries(details).filter(([name]) => !UNSAID.has(name));
    const rest = shown.length ? ` (${shown.map(([name, value]) => `${name} ${textOf(value)}`).join(", ")})` : "";
    const { err } = details as { readonly err?: unknown };
    const cause = err instanceof Error ? `\n${level === "warn" ? err.message : (err.stack ?? err.message)}` : "";
    write(printable(`${time} ${word}${sentence}${rest}${cause}\n`));
  });

const textOf = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

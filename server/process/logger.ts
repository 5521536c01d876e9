/**
 * The service's own log. It never gets bodies or headers, so it cannot contain secrets. Without a logger of the program
 * that embeds the service, it is JSON lines on stderr.
 */
import { pino } from "pino";
import { inputError } from "../../engine/base/error.js";
import { tell } from "../../engine/base/lock.js";
import { stderrLines } from "./stderr.js";

export const LOG_LEVELS = ["fatal", "error", "warn", "info", "debug", "trace", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** The levels of the lines that the service writes, the most severe first. */
const LINE_LEVELS = ["fatal", "error", "warn", "info", "debug"] as const;
export type LineLevel = (typeof LINE_LEVELS)[number];

/** Writes one line: a sentence, and the details that a program may want. An error is the detail `err`. */
export interface WriteLine {
  (details: object, sentence: string): void;
  (sentence: string): void;
}

/** Takes the lines of the service. Loggers of pino fit. */
export type LogSink = Readonly<Record<LineLevel, WriteLine>>;

export interface Logger extends LogSink {
  isLevelEnabled(level: LineLevel): boolean;
}

/**
 * A logger that writes the lines of this level and of more severe ones. Without a sink it never blocks (`stderr.ts`).
 * @param sink where to; stderr without one. Nothing that is logged stops because of what it throws
 * @throws CairnlogError `invalid-input` for a sink that lacks a level
 */
export function createLogger(level: LogLevel, sink?: LogSink): Logger {
  if (!sink) return pino({ name: "cairnlog", level }, stderrLines());
  if (!LINE_LEVELS.every((name) => typeof sink[name] === "function"))
    throw inputError(`\`logger\` needs the functions ${LINE_LEVELS.join(", ")}.`);
  const isLevelEnabled = (asked: LineLevel) => LOG_LEVELS.indexOf(asked) <= lastOf(level);
  const lines = LINE_LEVELS.map((name): [LineLevel, WriteLine] => [
    name,
    (...line: [object, string] | [string]) => {
      if (isLevelEnabled(name)) tell(() => (sink[name] as (...line: unknown[]) => void)(...line));
    },
  ]);
  return { ...(Object.fromEntries(lines) as LogSink), isLevelEnabled };
}

/** The place of the least severe level that is written; none is for `silent`. */
const lastOf = (level: LogLevel): number => (level === "silent" ? -1 : LOG_LEVELS.indexOf(level));

/** A sink that hands each line to `write`, with empty details where there are none. */
export function sinkOf(write: (level: LineLevel, details: object, sentence: string) => void): LogSink {
  const lines = LINE_LEVELS.map((level): [LineLevel, WriteLine] => [
    level,
    (first: object | string, sentence?: string) =>
      typeof first === "string" ? write(level, {}, first) : write(level, first, sentence ?? ""),
  ]);
  return Object.fromEntries(lines) as LogSink;
}

/** The service's own log: JSON lines on stderr. It never gets bodies or headers, so it cannot contain secrets. */
import { destination, type Logger, pino } from "pino";

export type { Logger } from "pino";

export const LOG_LEVELS = ["fatal", "error", "warn", "info", "debug", "trace", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export const createLogger = (level: LogLevel): Logger => pino({ name: "cairnlog", level }, destination(2));

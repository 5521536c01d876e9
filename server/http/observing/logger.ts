/** The service's own log: JSON lines on stderr. Bodies and headers never reach it, so nothing secret can. */
import { destination, type Logger, pino } from "pino";

export type { Logger } from "pino";

export const LOG_LEVELS = ["fatal", "error", "warn", "info", "debug", "trace", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export const createLogger = (level: LogLevel): Logger => pino({ name: "cairnlog", level }, destination(2));

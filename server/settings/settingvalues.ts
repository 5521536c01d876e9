/**
 * The kinds of values that settings have: how each is read from text, and checked where a program gives it. What is not of
 * the kind is thrown as an `Error` whose message completes "NAME must be …".
 */
import { resolve } from "node:path";
import { isOrigin } from "../../engine/contract/check.js";
import { signerPath } from "../../engine/crypto/signer/socket-signer.js";
import { parseConnectionString } from "../../engine/journal/postgres/connection-string.js";
import type { RecordVerification } from "../../engine/journal/postgres/journal.js";
import { canonicalFingerprint } from "../../engine/registry/events/keys.js";
import { isNoteName } from "../../engine/verify/note/note.js";
import { parseNetwork } from "../http/transport/client-address.js";
import { TRANSPORTS, type TransportName } from "../http/transport/transport.js";
import { LOG_LEVELS, type LogLevel } from "../process/logger.js";

const ORIGIN_FORM =
  "origins such as https://log.example or http://log.example:8080 (lower case, without the default port, and nothing behind the port)";

export interface Kind<T> {
  /** The value that a text stands for. */
  read(text: string): T;
  /** The value, in its canonical form. */
  check(value: unknown): T;
}

/** A kind that is read from text by giving all of the text to `check`; null for the empty text. */
function optional<T extends string>(check: (text: string) => T): Kind<T | null> {
  return {
    read: (text) => (text === "" ? null : check(text)),
    check: (value) => (value === null ? null : check(textOf(value))),
  };
}

/** A kind whose values are texts. */
const textual = <T extends string>(check: (text: string) => T): Kind<T> => ({
  read: check,
  check: (value) => check(textOf(value)),
});

/** A kind whose values are lists of texts, which are read between commas. */
const listed = (check: (parts: readonly string[]) => readonly string[]): Kind<readonly string[]> => ({
  read: (text) => check(text.split(",").flatMap((part) => part.trim() || [])),
  check(value) {
    if (!Array.isArray(value)) throw new Error("a list of texts");
    return check(value.map(textOf));
  },
});

function textOf(value: unknown): string {
  if (typeof value !== "string") throw new Error("text");
  return value;
}

function numeric(words: string, form: RegExp, isOne: (value: number) => boolean): Kind<number> {
  const check = (value: unknown): number => {
    if (typeof value === "number" && isOne(value)) return value;
    throw new Error(words);
  };
  return { read: (text) => check(form.test(text) ? Number(text) : undefined), check };
}

/** A whole number. */
export const integer = (min: number, max: number): Kind<number> =>
  numeric(
    `a whole number from ${min} to ${max}`,
    /^\d{1,15}$/,
    (value) => Number.isSafeInteger(value) && value >= min && value <= max,
  );

/** A number from 0 to 1. */
export const fraction: Kind<number> = numeric(
  "a number from 0 to 1",
  /^(?:0|1|[01]?\.\d{1,12})$/,
  (value) => value >= 0 && value <= 1,
);

/** Fingerprints, in canonical form. */
export const fingerprints = listed((parts) =>
  parts.map((part) => {
    const fingerprint = canonicalFingerprint(part);
    if (fingerprint === undefined) throw new Error("a comma-separated list of fingerprints (sha256: and 64 digits)");
    return fingerprint;
  }),
);

/** At most `most` different texts, each of which passes `isOne`. */
const different = (most: number, words: string, isOne: (part: string) => boolean) => (parts: readonly string[]) => {
  if (parts.length > most || new Set(parts).size < parts.length || !parts.every(isOne))
    throw new Error(`at most ${most} different ${words}, comma-separated`);
  return parts;
};

function isCalendar(part: string): boolean {
  const url = URL.canParse(part) ? new URL(part) : null;
  return /^https?:$/.test(url?.protocol ?? "") && !url!.search && !url!.hash && !url!.username && !url!.password;
}

/** At most `most` different addresses of calendars, without the slashes at their ends. */
export const calendars = (most: number): Kind<readonly string[]> => {
  const check = different(most, "http: or https: URLs", isCalendar);
  return listed((given) => check(given.map((part) => part.replace(/\/+$/, ""))));
};

/** At most `most` different origins. */
export const origins = (most: number): Kind<readonly string[]> => listed(different(most, ORIGIN_FORM, isOrigin));

const HOST_NAME = /^(?:[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])$/;
const HOST_FORM = "names or addresses of hosts such as log.internal or [fd00::1] (lower case, without a port)";

const isHostName = (part: string): boolean =>
  HOST_NAME.test(part) && URL.canParse(`http://${part}`) && new URL(`http://${part}`).hostname === part;

/** At most `most` different names or addresses of hosts, as a URL has them, without a port. */
export const hostNames = (most: number): Kind<readonly string[]> => listed(different(most, HOST_FORM, isHostName));

/** The text as it is. */
export const textSetting = textual((text) => text);

/** One line of text for people; null where none is given. */
export const line = (limit: number) =>
  optional((text) => {
    if (text.length > limit || /[\p{Cc}\p{Surrogate}]/u.test(text))
      throw new Error(`one line of at most ${limit} characters`);
    return text;
  });

/** The rules by which the service knows who may write, beside a list. */
export const WRITERS_RULES = ["everybody", "registered", "endorsed"] as const;

/** One of them, or the absolute path of a list. */
export const writersRule = textual((text) => WRITERS_RULES.find((rule) => rule === text) ?? resolve(text));

/** An absolute path. */
export const anyPath = textual((text) => resolve(text));

/** An absolute path; null where none is given. */
export const optionalPath = optional((text) => resolve(text));

/** Address of a signer's socket; null where none is given. */
export const signerAddress = optional((text) => {
  if (signerPath(text) === undefined) throw new Error("unix: and the absolute path of a socket, of at most 107 bytes");
  return text;
});

/** Where a socket listens. */
export interface SocketAddress {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
}

const ADDRESS = /^(?:(?:\[([\da-fA-F:.]+)\]|([^\s:[\]]+)):)?(\d{1,5})$/;
const MAX_PORT = 65_535;

/** An address, or a port of 127.0.0.1; null where none is given. */
export const socketAddress: Kind<SocketAddress | null> = {
  read(text) {
    if (text === "") return null;
    const [, ipv6, name, port] = ADDRESS.exec(text) ?? [];
    if (port === undefined || Number(port) > MAX_PORT) throw new Error("host:port such as 127.0.0.1:9464, or a port");
    return { host: ipv6 ?? name ?? "127.0.0.1", port: Number(port) };
  },
  check(value) {
    if (value === null) return null;
    const { host, port } = value as Partial<SocketAddress>;
    if (typeof host !== "string" || !Number.isInteger(port) || port! < 0 || port! > MAX_PORT)
      throw new Error("null, or an object of a host and a port");
    return { host, port: port! };
  },
};

/** Connection string of the servers of a replicated log; null where none is given. */
export const replicationUrl = optional((text) => {
  parseConnectionString(text);
  return text;
});

export const replicationVerify = textual((text): RecordVerification => {
  if (text !== "standby" && text !== "engine") throw new Error("standby or engine");
  return text;
});

/** An origin; null where none is given. */
export const optionalOrigin = optional((text) => {
  if (!isOrigin(text)) throw new Error(`one of ${ORIGIN_FORM}`);
  return text;
});

/** Null where none is given. */
export const optionalLogName = optional((text) => {
  if (!isNoteName(text)) throw new Error("a name without spaces, control characters and plus signs");
  return text;
});

/** An https: URL that something can be put behind. */
export const httpsUrl = textual((text) => {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url?.protocol !== "https:" || url.search || url.hash || url.username || text.endsWith("/"))
    throw new Error("an https: URL without query, fragment or slash at its end");
  return text;
});

/** True for on. */
export const onOff: Kind<boolean> = {
  read(text) {
    if (text !== "on" && text !== "off") throw new Error("on or off");
    return text === "on";
  },
  check(value) {
    if (typeof value !== "boolean") throw new Error("true or false");
    return value;
  },
};

/** Addresses and networks, as text that a message to another thread can carry. */
export const networks = listed((parts) =>
  parts.map((part) => {
    const network = parseNetwork(part);
    if (!network) throw new Error("a comma-separated list of addresses or networks such as 10.0.0.0/8");
    const [address, bits] = network;
    return `${address}/${bits}`;
  }),
);

export const logLevel = textual((text): LogLevel => {
  const level = LOG_LEVELS.find((name) => name === text);
  if (!level) throw new Error(`one of ${LOG_LEVELS.join(", ")}`);
  return level;
});

export const nativeCode = textual((text): "known" | "any" => {
  if (text !== "known" && text !== "any") throw new Error("known or any");
  return text;
});

/** Null where none is given. */
export const transportName = optional((text): TransportName => {
  const name = TRANSPORTS.find((known) => known === text);
  if (!name) throw new Error(TRANSPORTS.join(" or "));
  return name;
});

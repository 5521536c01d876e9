/**
 * How the values of settings are read from text. What cannot be read is thrown as an `Error` whose message completes
 * "NAME must be …".
 */
import { resolve } from "node:path";
import { signerPath } from "../engine/crypto/signer/socket-signer.js";
import { canonicalFingerprint } from "../engine/registry/keys/events.js";
import { isNoteName } from "../engine/verify/tree/checkpoint.js";
import { LOG_LEVELS, type LogLevel } from "./http/observing/logger.js";
import { type Network, parseNetwork } from "./http/transport/client-address.js";
import { TRANSPORTS, type TransportName } from "./http/transport/transport.js";

/** A whole number. */
export function integer(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= min && value <= max)) throw new Error(`a whole number from ${min} to ${max}`);
    return value;
  };
}

/** A number from 0 to 1. */
export function fraction(text: string): number {
  const value = /^(?:0|1|[01]?\.\d{1,12})$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= 0 && value <= 1)) throw new Error("a number from 0 to 1");
  return value;
}

/** Fingerprints between commas, in canonical form. */
export function fingerprints(text: string): readonly string[] {
  const parts = text.split(",").flatMap((part) => part.trim() || []);
  return parts.map((part) => {
    const fingerprint = canonicalFingerprint(part);
    if (fingerprint === undefined) throw new Error("a comma-separated list of fingerprints (sha256: and 64 digits)");
    return fingerprint;
  });
}

/** At most `most` different addresses of calendars, without the slashes at their ends. */
export function calendars(most: number): (text: string) => readonly string[] {
  return (text) => {
    const parts = text.split(",").flatMap((part) => part.trim().replace(/\/+$/, "") || []);
    const isCalendar = (part: string): boolean => {
      const url = URL.canParse(part) ? new URL(part) : null;
      return /^https?:$/.test(url?.protocol ?? "") && !url!.search && !url!.hash && !url!.username && !url!.password;
    };
    if (parts.length > most || new Set(parts).size < parts.length || !parts.every(isCalendar))
      throw new Error(`at most ${most} different http: or https: URLs, comma-separated`);
    return parts;
  };
}

/** The text as it is. */
export function anyText(text: string): string {
  return text;
}

/** An absolute path; null where none is given. */
export function optionalPath(text: string): string | null {
  return text === "" ? null : resolve(text);
}

/** Address of a signer's socket; null where none is given. */
export function signerAddress(text: string): string | null {
  if (text === "") return null;
  if (signerPath(text) === undefined) throw new Error("unix: and the absolute path of a socket, of at most 107 bytes");
  return text;
}

/** Null where none is given. */
export function logName(text: string): string | null {
  if (text === "") return null;
  if (!isNoteName(text)) throw new Error("a name without spaces, control characters and plus signs");
  return text;
}

/** An https: URL that something can be put behind. */
export function httpsUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url?.protocol !== "https:" || url.search || url.hash || url.username || text.endsWith("/"))
    throw new Error("an https: URL without query, fragment or slash at its end");
  return text;
}

/** True for on. */
export function onOff(text: string): boolean {
  if (text !== "on" && text !== "off") throw new Error("on or off");
  return text === "on";
}

/** Addresses and networks between commas. */
export function networks(text: string): readonly Network[] {
  const parts = text.split(",").flatMap((part) => part.trim() || []);
  return parts.map((part) => {
    const network = parseNetwork(part);
    if (!network) throw new Error("a comma-separated list of addresses or networks such as 10.0.0.0/8");
    return network;
  });
}

export function logLevel(text: string): LogLevel {
  const level = LOG_LEVELS.find((name) => name === text);
  if (!level) throw new Error(`one of ${LOG_LEVELS.join(", ")}`);
  return level;
}

/** Null where none is given. */
export function transportName(text: string): TransportName | null {
  if (text === "") return null;
  const name = TRANSPORTS.find((known) => known === text);
  if (!name) throw new Error(TRANSPORTS.join(" or "));
  return name;
}

/** Reads and checks the input of a new subscription; also derives the HMAC key from a secret. */

import type { Value } from "../../contract/types.js";
import type { Subscribe } from "../../contract/webhooks.js";
import type { WebhookRow } from "../../store/schema/rows.js";
import { decodeBase64, utf8 } from "../../verify/bytes/encoding.js";
import { normaliseContentHash } from "../../verify/events/manifest.js";
import { WEBHOOK_EVENTS, WEBHOOK_SECRET, WEBHOOK_URL, type WebhookEvent } from "../../verify/keys/contract.js";
import { canonicalFingerprint } from "../events/keys.js";
import { boundedText, Faults, members } from "../shared/input.js";
import { isVisiblyPrivate } from "./publicaddress.js";

export type WebhookInput = Value<typeof Subscribe>;

export type WebhookDraft = Pick<WebhookRow, "url" | "events" | "key_fingerprint" | "document_hash" | "secret"> &
  Required<Pick<WebhookRow, "host">>;

/**
 * The host that an URL leads to, in one spelling: lower case, no port, no final dot.
 * @param url one that `readSubscription` has taken
 */
export const hostOf = (url: string): string => new URL(url).hostname.replace(/\.$/, "");

/** Prefix of secrets in the form of Standard Webhooks; base64 of the key follows. */
const ENCODED_SECRET = "whsec_";
/** The URL parser silently removes these; two readers of one text must not see two addresses. */
const BLANK = /[\s\p{Cc}]/u;

/**
 * Reads a subscription. The client chooses every value.
 * @param allowPrivate whether the operator allows addresses that are not public
 * @throws CairnlogError `invalid-input`
 */
export function readSubscription(subscription: WebhookInput, allowPrivate: boolean): WebhookDraft {
  const input = members(subscription);
  const faults = new Faults();
  const url = readUrl(input.url, allowPrivate, faults);
  const events = readEvents(input.events, faults);
  const secret = readSecret(input.secret, faults);
  const draft = {
    key_fingerprint: readFilter(input.key_fingerprint, "/key_fingerprint", canonicalFingerprint, faults),
    document_hash: readFilter(input.document_hash, "/document_hash", normaliseContentHash, faults),
  };
  faults.check();
  return { url: url!, host: hostOf(url!), events, secret: secret!, ...draft };
}

/**
 * The HMAC key of a secret: the bytes of the base64 after `whsec_`, as in Standard Webhooks, or the UTF-8 bytes of any
 * other secret. Undefined if the text after `whsec_` is not strict base64.
 */
export function webhookKey(secret: string): Uint8Array | undefined {
  return secret.startsWith(ENCODED_SECRET) ? decodeBase64(secret.slice(ENCODED_SECRET.length)) : utf8(secret);
}

function readUrl(value: unknown, allowPrivate: boolean, faults: Faults): string | undefined {
  const text = boundedText(value, "/url", WEBHOOK_URL, faults);
  if (text === undefined) return undefined;
  const url = URL.canParse(text) && !BLANK.test(text) ? new URL(text) : null;
  if (!url || !/^https?:$/.test(url.protocol)) faults.add("/url", "It must be an absolute http: or https: URL.");
  else if (url.username || url.password) faults.add("/url", "It must not hold a user name or password.");
  else if (url.hash) faults.add("/url", "It must not have a fragment, which is never sent.");
  else if (!allowPrivate && isVisiblyPrivate(url.hostname))
    faults.add("/url", "Its host is not on the public internet.");
  return text;
}

function readEvents(value: unknown, faults: Faults): readonly WebhookEvent[] {
  if (value === undefined || value === null) return [];
  const isKnown = (name: unknown): name is WebhookEvent => WEBHOOK_EVENTS.some((known) => known === name);
  if (Array.isArray(value) && value.every(isKnown)) return [...new Set(value)];
  faults.add("/events", `It must be a list of ${WEBHOOK_EVENTS.join(", ")}.`);
  return [];
}

function readFilter(
  value: unknown,
  path: string,
  canonical: (text: string) => string | undefined,
  faults: Faults,
): string | null {
  if (value === undefined || value === null) return null;
  const read = typeof value === "string" ? canonical(value) : undefined;
  if (read === undefined) faults.add(path, "It must be a SHA-256 in hexadecimal, with or without `sha256:` before it.");
  return read ?? null;
}

function readSecret(value: unknown, faults: Faults): string | null | undefined {
  if (value === undefined || value === null) return null;
  const secret = boundedText(value, "/secret", WEBHOOK_SECRET, faults);
  if (secret !== undefined && !webhookKey(secret)?.length)
    faults.add("/secret", `After ${ENCODED_SECRET} it must be base64, padded and without spaces.`);
  return secret;
}

/**
 * Sends one delivery. An attacker may choose the address. It is checked at the moment of connecting, for exactly the
 * addresses that are connected to, so a name cannot pass the check and then change.
 */
import { isIPv6, type LookupFunction } from "node:net";
import { literalAddress } from "../../engine/registry/webhooks/publicaddress.js";
import { exchange, type RawAnswer } from "../outgoing/exchange.js";
import { AddressPlaces, addressBlock, Held } from "./address-places.js";
import type { DeliveryRequest } from "./message.js";
import { dnsResolver, PublicAddresses, type Resolve } from "./public-addresses.js";

/** Time limit for one attempt in milliseconds, from resolving the name to the end of the answer. */
export const ATTEMPT_TIMEOUT_MS = 10_000;
/** Maximum number of bytes of an answer. They are not used, but a receiver may want to finish its answer. */
const MAX_ANSWER_BYTES = 64 * 1024;
/** Number of addresses of a name that are tried. */
const MAX_ADDRESSES = 8;
/** Longest time that an endpoint may ask to be left alone, in seconds. */
const MAX_RETRY_AFTER_S = 86_400;
const GONE = 410;
const DECIMAL = /^\d{1,9}$/;

/** The result of an attempt. */
export interface AttemptResult {
  readonly isDelivered: boolean;
  /** For the service's log: a status or an error code. Never a part of the URL, which may contain a secret. */
  readonly reason: string;
  /** The address that has as many attempts as it may have: nothing was sent, and the attempt counts for nothing. */
  readonly busy?: string;
  /** Whether the endpoint said that it is gone for good. */
  readonly isGone?: true;
  /** Seconds for which the endpoint asked not to be tried again. */
  readonly retryAfter?: number;
}

/** Never rejects. Ends soon after `signal` is aborted. */
export type Send = (request: DeliveryRequest, signal: AbortSignal) => Promise<AttemptResult>;

/** Why there was no answer; `code` is the reason for the service's log. */
class Unanswered extends Error {
  readonly code: string;

  constructor(reason: string, { cause }: ErrorOptions = {}) {
    super(reason, { cause });
    this.code = (cause as { readonly code?: string } | undefined)?.code ?? reason;
  }
}

/** The host is, or resolves to, an address that is not on the public internet. */
class PrivateAddress extends Error {
  readonly code = "private-address";
}

/** The name has no address. */
class UnknownHost extends Error {
  readonly code = "unknown-host";
}

/** All addresses of the host have as many attempts as they may have. */
class Busy extends Error {
  readonly code = "busy";
  readonly place: string;

  constructor(address: string) {
    super();
    this.place = addressBlock(address);
  }
}

/**
 * Sends over HTTP and HTTPS (docs/spec §16.2). A whole answer with 2xx is success, everything else is a failure;
 * redirects are not followed.
 * @param options.allowPrivate whether addresses that are not public may be called
 * @param options.places at addresses; by default those of this sender alone
 */
export function httpSender(options: {
  readonly allowPrivate: boolean;
  readonly resolve?: Resolve;
  readonly places?: AddressPlaces;
  readonly timeoutMs?: number;
  readonly reach?: PublicAddresses;
}): Send {
  const {
    allowPrivate,
    resolve = dnsResolver(),
    places = new AddressPlaces(),
    timeoutMs = ATTEMPT_TIMEOUT_MS,
  } = options;
  const { reach = new PublicAddresses(resolve) } = options;
  const check = (address: string | undefined): void => {
    if (!allowPrivate && !(address !== undefined && reach.allows(address))) throw new PrivateAddress();
  };
  const enter = (held: Held, addresses: readonly string[]): readonly string[] => {
    const free = held.enter(addresses);
    if (!free.length) throw new Busy(addresses[0]!);
    return free;
  };

  const post = ({ url, headers, body }: DeliveryRequest, signal: AbortSignal, held: Held): Promise<RawAnswer> => {
    const target = new URL(url);
    const address = literalAddress(target.hostname);
    // `lookup` is not called if the host is an address.
    if (address !== undefined) {
      check(address);
      enter(held, [address]);
    }
    const lookup: LookupFunction = (hostname, { all }, callback) => {
      const resolved = resolve(hostname, signal).then((addresses) => {
        // One private address among public ones is enough to refuse: no honest owner configures that.
        for (const address of addresses) check(address);
        if (!addresses.length) throw new UnknownHost();
        const free = enter(held, addresses.slice(0, MAX_ADDRESSES));
        return free.map((address) => ({ address, family: isIPv6(address) ? 6 : 4 }));
      });
      resolved.then(
        (addresses) => (all ? callback(null, addresses) : callback(null, addresses[0]!.address, addresses[0]!.family)),
        (error) => callback(error, ""),
      );
    };
    return exchange(
      { url: target, headers, body: Buffer.from(body), attributes: { "cairnlog.delivery": headers["webhook-id"] } },
      { timeoutMs, maxBytes: MAX_ANSWER_BYTES, signal },
      (reason, options) => new Unanswered(reason, options),
      {
        lookup,
        connected: ({ remoteAddress }) => {
          check(remoteAddress);
          if (remoteAddress === undefined || !held.keep(remoteAddress)) throw new PrivateAddress();
        },
      },
    );
  };

  return async (request, signal) => {
    const held = new Held(places);
    try {
      if (!allowPrivate) await reach.look();
      const { status, headers } = await post(request, signal, held);
      if (status >= 200 && status < 300) return { isDelivered: true, reason: `${status}` };
      const refused = { isDelivered: false, reason: `${status}` };
      if (status === GONE) return { ...refused, isGone: true };
      const retryAfter = secondsOf(headers["retry-after"]);
      return retryAfter === undefined ? refused : { ...refused, retryAfter };
    } catch (error) {
      if (signal.aborted) return { isDelivered: false, reason: "timeout" };
      const { code = "failed", cause } = error as NodeJS.ErrnoException;
      const busy = [error, cause].find((one) => one instanceof Busy);
      return { isDelivered: false, reason: code, ...(busy && { busy: busy.place }) };
    } finally {
      held.leave();
    }
  };
}

/** The seconds in a `Retry-After`, which is a number or a date; undefined if there is none that can be read. */
function secondsOf(value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  const seconds = DECIMAL.test(value) ? Number(value) : (Date.parse(value) - Date.now()) / 1000;
  return seconds > 0 ? Math.min(Math.ceil(seconds), MAX_RETRY_AFTER_S) : undefined;
}

/**
 * Sends one delivery. An attacker may choose the address. It is checked at the moment of connecting, for exactly the
 * addresses that are connected to, so a name cannot pass the check and then change.
 */
import { type ClientRequest, type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { isIPv6, type LookupFunction } from "node:net";
import { isPublicAddress, literalAddress } from "../../engine/registry/webhooks/publicaddress.js";
import type { DeliveryRequest } from "./message.js";
import { dnsResolver, type Resolve } from "./resolver.js";

/** Number of bytes of an answer that are read: they are not used, but a receiver may want to finish its answer. */
const MAX_ANSWER_BYTES = 16 * 1024;
/** Number of addresses of a name that are tried. */
const MAX_ADDRESSES = 8;

/** The result of an attempt. */
export interface Verdict {
  readonly isDelivered: boolean;
  /** For the service's log: a status or an error code. Never a part of the URL, which may contain a secret. */
  readonly reason: string;
}

/** Never rejects. Ends soon after `signal` is aborted. */
export type Send = (request: DeliveryRequest, signal: AbortSignal) => Promise<Verdict>;

/** The host is, or resolves to, an address that is not on the public internet. */
class PrivateAddress extends Error {
  readonly code = "private-address";
}

/** The name has no address. */
class UnknownHost extends Error {
  readonly code = "unknown-host";
}

/**
 * Sends over HTTP and HTTPS (`api.md`, webhooks). 2xx is success, everything else is a failure; redirects are not
 * followed.
 * @param options.allowPrivate whether addresses that are not public may be called
 */
export function httpSender(options: { readonly allowPrivate: boolean; readonly resolve?: Resolve }): Send {
  const { allowPrivate, resolve = dnsResolver() } = options;
  const check = (address: string | undefined): void => {
    if (!allowPrivate && !(address !== undefined && isPublicAddress(address))) throw new PrivateAddress();
  };

  const post = ({ url, headers, body }: DeliveryRequest, signal: AbortSignal): Promise<number> => {
    const target = new URL(url);
    const address = literalAddress(target.hostname);
    // `lookup` is not called if the host is an address.
    if (address !== undefined) check(address);
    const lookup: LookupFunction = (hostname, { all }, callback) => {
      const resolved = resolve(hostname, signal).then((addresses) => {
        // One private address among public ones is enough to refuse: no honest owner configures that.
        for (const address of addresses) check(address);
        if (!addresses.length) throw new UnknownHost();
        return addresses.slice(0, MAX_ADDRESSES).map((address) => ({ address, family: isIPv6(address) ? 6 : 4 }));
      });
      resolved.then(
        (addresses) => (all ? callback(null, addresses) : callback(null, addresses[0]!.address, addresses[0]!.family)),
        (error) => callback(error, ""),
      );
    };
    const open = target.protocol === "https:" ? requestHttps : requestHttp;
    return new Promise((resolve, reject) => {
      let status: number | undefined;
      // A separate connection: one that is kept open would outlive the check.
      const request = open(target, { method: "POST", headers, agent: false, lookup, signal });
      request.on("socket", (socket) => {
        // Before anything is written: check the address that the socket is really connected to.
        socket.once("connect", () => guard(request, () => check(socket.remoteAddress)));
      });
      // The status decides, even if the rest of the answer fails.
      request.on("error", (error) => (status === undefined ? reject(error) : resolve(status)));
      request.on("response", (response) => {
        status = response.statusCode!;
        drain(response).on("close", () => resolve(status!));
      });
      request.end(body);
    });
  };

  return async (request, signal) => {
    try {
      const status = await post(request, signal);
      return { isDelivered: status >= 200 && status < 300, reason: `${status}` };
    } catch (error) {
      if (signal.aborted) return { isDelivered: false, reason: "timeout" };
      return { isDelivered: false, reason: (error as NodeJS.ErrnoException).code ?? "failed" };
    }
  };
}

function guard(request: ClientRequest, check: () => void): void {
  try {
    check();
  } catch (error) {
    request.destroy(error as Error);
  }
}

/** Reads an answer to its end, or up to the limit. */
function drain(response: IncomingMessage): IncomingMessage {
  let bytes = 0;
  response.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > MAX_ANSWER_BYTES) response.destroy();
  });
  return response.on("error", () => {});
}

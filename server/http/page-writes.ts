/**
 * Writes that a page has a browser send. A browser lets every page send requests to every address that it can reach, one on
 * loopback or in an intranet too, and the page need not see the answer to do harm. So pages of other origins may not write.
 * A page whose own name was made to point to the service (DNS rebinding) has the same origin as the service, for the
 * browser. Its requests are known by their `Host`.
 *
 * Reads stay open: what they show is public, and what is not asks for a session, which pages of others do not have.
 */
import { networkInterfaces } from "node:os";
import type { Settings } from "../settings/settings.js";
import { hostName, LOOPBACK_NAMES, type Origins } from "./origins.js";
import { HttpError } from "./route/problems.js";
import type { Request } from "./transport/request.js";

/** Addresses that stand for all of the machine. */
const WILDCARDS: ReadonlySet<string> = new Set(["0.0.0.0", "::", ""]);

/** Who may write. Belongs to one `HttpServer`. */
export interface PageRules {
  /** Whether pages of this origin may write, and see the answer. */
  allows(origin: string): boolean;
  /** Why a write is refused; null if it is not. Called before anything of the body is read. */
  refusalOf(request: Request): HttpError | null;
}

/** For a server that no page has any business with, and that is called by whatever name. */
export const NO_PAGES: PageRules = {
  allows: () => false,
  refusalOf: ({ origin, fetchSite }) => (origin || fetchSite === "cross-site" ? foreignOrigin(origin) : null),
};

/** The rules of the service. */
export class ServicePages implements PageRules {
  readonly #origins: Origins;
  readonly #allowed: ReadonlySet<string>;
  /** Names of the service besides those in its origins, in lower case. */
  readonly #names: ReadonlySet<string>;
  /** The `Host` of the last write that was accepted. Most clients use the same one. */
  #lastHost: string | null = null;

  constructor(origins: Origins, settings: Pick<Settings, "allowedOrigins" | "allowedHosts" | "host">) {
    const { allowedOrigins, allowedHosts, host } = settings;
    this.#origins = origins;
    this.#allowed = new Set(allowedOrigins);
    const listening = WILDCARDS.has(host) ? ownAddresses() : [host];
    this.#names = new Set([...allowedHosts, ...LOOPBACK_NAMES, ...listening.map(inUrl)].map(hostName));
  }

  allows(origin: string): boolean {
    return this.#allowed.has(origin) || this.#origins.all.includes(origin);
  }

  refusalOf({ host, origin, fetchSite, contentType, hasBody }: Request): HttpError | null {
    if (host !== this.#lastHost) {
      if (!this.#isNamed(host)) return misdirected();
      this.#lastHost = host;
    }
    if (!origin) return fetchSite === "cross-site" ? foreignOrigin(origin) : null;
    if (!this.allows(origin)) return foreignOrigin(origin);
    // A form of a page may send other types, and no browser asks before it does.
    return hasBody && !JSON_TYPE.test(contentType) ? notJson() : null;
  }

  /** The port does not matter: whoever can choose it for a page can choose the host, too. A tunnel may change it. */
  #isNamed(host: string): boolean {
    const name = hostName(host);
    return this.#names.has(name) || this.#origins.hasHost(name);
  }
}

const JSON_TYPE = /^application\/json[ \t]*(?:;|$)/i;

/** An address as a URL has it. */
const inUrl = (host: string): string => (host.includes(":") && !host.startsWith("[") ? `[${host}]` : host);

/** The addresses of this machine. One that it gets later is known after a restart. */
const ownAddresses = (): string[] =>
  Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address));

const foreignOrigin = (origin: string): HttpError =>
  new HttpError(
    "foreign-origin",
    `Pages of ${origin ? "this origin" : "other sites"} may not write; nothing was done. The service's own pages may (SERVICE_PUBLIC_URL), and those that its operator allows (SERVICE_ALLOWED_ORIGINS).`,
  );

const misdirected = (): HttpError =>
  new HttpError(
    "misdirected-request",
    "The Host header is no name of this service; nothing was done. A proxy in front must pass on the Host of its client, or the operator names the host in SERVICE_ALLOWED_HOSTS.",
  );

const notJson = (): HttpError =>
  new HttpError(
    "unsupported-media-type",
    "A page must send its body with Content-Type: application/json; nothing was done.",
  );

/**
 * How the service is called: its own origins (RFC 6454). Signatures are bound to them, and pages of other origins may not
 * write. They follow from the settings and from the port that the service really listens on. What a request says of the
 * name by which it came (`Host`) is the client's choice; it only selects among the service's own origins.
 */

import { networkInterfaces } from "node:os";
import { CairnlogError } from "../../engine/base/error.js";
import type { Settings } from "../settings/settings.js";
import { HttpError } from "./route/problems.js";
import type { Request } from "./transport/request.js";

type OriginSettings = Pick<Settings, "publicUrls" | "nodeUrl" | "host" | "port" | "tlsCertificate">;

const LOOPBACK_NAMES = ["127.0.0.1", "localhost", "[::1]"];
const LOOPBACK = /^(?:localhost|::1|127(?:\.\d{1,3}){3})$/i;

/** Whether only this machine can reach what listens on an address. */
const isLoopback = (host: string): boolean => LOOPBACK.test(host);

/**
 * A service that others than this machine can reach must be told its name: it can find out neither its domain nor what a
 * proxy in front of it is called.
 * @throws CairnlogError `invalid-input`
 */
export function requirePublicUrl({ host, publicUrls }: Pick<Settings, "host" | "publicUrls">): void {
  if (publicUrls.length || isLoopback(host)) return;
  const message = `The service listens on ${host}, which others than this machine can reach, and does not know how they call it: set SERVICE_PUBLIC_URL to its public address, such as https://log.example.`;
  throw new CairnlogError("invalid-input", message, { details: [{ path: "SERVICE_PUBLIC_URL", message }] });
}

/** The name of a host, in lower case: a `Host` header without its port. */
const hostName = (host: string): string => host.toLowerCase().replace(/:\d*$/, "");

/** The origins of one service. Every front end has its own copy; they are equal once all of them listen. */
export class Origins {
  readonly #settings: OriginSettings;
  #all: readonly string[] = [];
  /** By host and port as a `Host` header names them, in lower case. */
  #byHost: ReadonlyMap<string, string> = new Map();
  #hostNames: ReadonlySet<string> = new Set();

  /** Where `port` of the settings is 0, `listensOn` must be called before any request is handled. */
  constructor(settings: OriginSettings) {
    this.#settings = settings;
    this.listensOn(settings.port);
  }

  /** Says on which port the service listens. */
  listensOn(port: number): void {
    const { publicUrls, nodeUrl, host, tlsCertificate } = this.#settings;
    const scheme = tlsCertificate === null ? "http" : "https";
    const listening = isLoopback(host) ? [host, ...LOOPBACK_NAMES].map((name) => originOf(scheme, name, port)) : [];
    this.#all = [...new Set([...publicUrls, ...(nodeUrl === null ? [] : [nodeUrl]), ...listening])];
    const byHost = new Map<string, string>();
    for (const origin of this.#all) for (const key of hostsOf(origin)) if (!byHost.has(key)) byHost.set(key, origin);
    this.#byHost = byHost;
    this.#hostNames = new Set(this.#all.map((origin) => new URL(origin).hostname));
  }

  /**
   * All of them; the first is the name of the service. They are what `SERVICE_PUBLIC_URL` lists, then a node's own address
   * (`SERVICE_NODE_URL`), then, while the service listens on loopback alone, the addresses of that.
   */
  get all(): readonly string[] {
    return this.#all;
  }

  /** The name of the service. */
  get name(): string {
    return this.#all[0]!;
  }

  /** Whether a host is that of one of its origins, whatever the port. @param name as `hostName` gives it */
  hasHost(name: string): boolean {
    return this.#hostNames.has(name);
  }

  /**
   * The origin under which a request came.
   * @param host its `Host` header as sent, which an attacker may choose; of another host than the service's own, the
   *   answer is the name of the service. The scheme is that of the origin which has the host: a proxy in front may speak
   *   https where the service hears http.
   */
  of(host: string): string {
    return this.#byHost.get(host) ?? this.#byHost.get(host.toLowerCase()) ?? this.name;
  }
}

const originOf = (scheme: string, host: string, port: number): string =>
  new URL(`${scheme}://${host === "::1" ? `[${host}]` : host}:${port}`).origin;

/** The `Host` headers under which an origin is asked: a client may write the default port out. */
function hostsOf(origin: string): string[] {
  const { host, port, protocol } = new URL(origin);
  return port ? [host] : [host, `${host}:${protocol === "https:" ? 443 : 80}`];
}

// Writes that a page has a browser send. A browser lets every page send requests to every address that it can reach, one on
// loopback or in an intranet too, and the page need not see the answer to do harm. So pages of other origins may not write.
// A page whose own name was made to point to the service (DNS rebinding) has the same origin as the service, for the
// browser. Its requests are known by their `Host`.
//
// Reads stay open: what they show is public, and what is not asks for a session, which pages of others do not have.

/** Addresses that stand for all of the machine. */
const WILDCARDS: ReadonlySet<string> = new Set(["0.0.0.0", "::", ""]);

/** Which pages may write. Each `HttpServer` has its own rules. */
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

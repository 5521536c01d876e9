/**
 * How the service is called: its own origins (RFC 6454). Signatures are bound to them, and pages of other origins may not
 * write. They follow from the settings and from the port that the service really listens on. What a request says of the
 * name by which it came (`Host`) is the client's choice; it only selects among the service's own origins.
 */
import { CairnlogError } from "../../engine/base/error.js";
import type { Settings } from "../settings/settings.js";

type OriginSettings = Pick<Settings, "publicUrls" | "nodeUrl" | "host" | "port" | "tlsCertificate">;

export const LOOPBACK_NAMES = ["127.0.0.1", "localhost", "[::1]"];
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
export const hostName = (host: string): string => host.toLowerCase().replace(/:\d*$/, "");

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

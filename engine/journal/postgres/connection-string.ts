/**
 * Where PostgreSQL is: a connection string with one or more servers, as libpq reads it. Which of them is the primary is
 * found out later, and may change at any time.
 */
import { readFileSync } from "node:fs";
import type { ConnectionOptions } from "node:tls";
import { CairnlogError } from "../../base/error.js";

export interface ServerAddress {
  readonly host: string;
  readonly port: number;
}

export interface ConnectionString {
  readonly places: readonly ServerAddress[];
  readonly user: string;
  readonly password: string | undefined;
  readonly database: string;
  /**
   * False for a connection without TLS. To be called for each connection: files are read again, and may have been renewed.
   * @throws Error for a file that cannot be read
   */
  readonly tls: () => ConnectionOptions | false;
}

const DEFAULT_PORT = 5432;
const MODES = ["disable", "require", "verify-ca", "verify-full"] as const;
const FILES = { sslrootcert: "ca", sslcert: "cert", sslkey: "key" } as const;
const KNOWN: ReadonlySet<string> = new Set(["sslmode", ...Object.keys(FILES)]);
const FORM = /^postgres(?:ql)?:\/\/(?:([^:@/?#]+)(?::([^@/?#]*))?@)([^@/?#]+)\/([^/?#]+)(?:\?([^#]*))?$/;
const LOOPBACK = /^(?:127\.\d+\.\d+\.\d+|::1|localhost)$/;

/**
 * Reads `postgres://user:password@host:port,host:port/database?sslmode=…`. Without `sslmode`, servers on loopback are
 * asked without TLS, and all others must show a certificate that verifies.
 * @throws CairnlogError `invalid-input` whose message completes "… must be"
 */
export function parseConnectionString(text: string): ConnectionString {
  const match = FORM.exec(text);
  if (!match) throw misfit("a connection string: postgres://user:password@host:port,host:port/database");
  const [, user, password, hosts, database, query = ""] = match as unknown as [string, string, string, string, string];
  const parameters = new URLSearchParams(query);
  for (const name of parameters.keys())
    if (!KNOWN.has(name)) throw misfit(`without the parameter ${name}: ${[...KNOWN].join(", ")} are known`);
  const places = hosts.split(",").map(placeOf);
  const tls = tlsOf(parameters, places);
  try {
    tls();
  } catch (error) {
    throw misfit(`a connection string whose files can be read: ${(error as Error).message}`);
  }
  return {
    places,
    user: decoded(user),
    password: password ? decoded(password) : undefined,
    database: decoded(database),
    tls,
  };
}

/** `host:port`, for people. */
export const hostAndPort = ({ host, port }: ServerAddress): string =>
  `${host.includes(":") ? `[${host}]` : host}:${port}`;

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw misfit("a connection string in which each % begins the code of a character (%25 is %)");
  }
}

function placeOf(text: string): ServerAddress {
  const match = /^(?:\[([0-9a-fA-F:]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/.exec(text);
  const port = Number(match?.[3] ?? DEFAULT_PORT);
  if (!match || port < 1 || port > 65_535) throw misfit("a connection string whose hosts are host or host:port");
  return { host: decoded(match[1] ?? match[2]!), port };
}

function tlsOf(parameters: URLSearchParams, places: readonly ServerAddress[]): ConnectionString["tls"] {
  const isHere = places.every(({ host }) => LOOPBACK.test(host));
  const given = parameters.get("sslmode") ?? (isHere ? "disable" : "verify-full");
  const mode = MODES.find((known) => known === given);
  if (!mode) throw misfit(`a connection string whose sslmode is one of ${MODES.join(", ")}`);
  if (mode === "disable") return () => false;
  const files = Object.entries(FILES).flatMap(([name, option]) => {
    const path = parameters.get(name);
    return path === null ? [] : [{ name, option, path }];
  });
  return () => ({
    ...Object.fromEntries(files.map(({ name, option, path }) => [option, readFile(name, path)])),
    rejectUnauthorized: mode !== "require",
    ...(mode === "verify-ca" && { checkServerIdentity: () => undefined }),
  });
}

function readFile(name: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (cause) {
    throw new Error(`${name} cannot be read (${(cause as NodeJS.ErrnoException).code})`, { cause });
  }
}

const misfit = (what: string): CairnlogError => new CairnlogError("invalid-input", what);

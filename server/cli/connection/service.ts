/** Access to a running service for subcommands: JSON over HTTP, with errors as sentences. */
import { OversizedAnswer, readBody } from "../../client/base/body.js";
import { silenceReason } from "../../client/base/error.js";
import { UsageError } from "../line/usage.js";
import { readConfig, serverAddress } from "./config-file.js";

/** The service returned an error, or did not answer. */
export class ServiceError extends Error {}

export interface ServiceAccess {
  /** @throws ServiceError; the reason of `signal` */
  get<T>(path: string, signal?: AbortSignal): Promise<T>;
}

/**
 * The addresses of the service that are named: by the option, or else by the environment, or else by the config file. There
 * are several where several nodes keep the log.
 */
export const namedServers = (option: string | undefined): readonly string[] =>
  addressesIn(option ?? (process.env.CAIRNLOG_SERVER || undefined) ?? readConfig().server ?? "");

/** The first of them, under which all that belongs to the service is kept. */
export const namedServer = (option: string | undefined): string | undefined => namedServers(option)[0];

/** The addresses in a list with commas. */
export const addressesIn = (text: string): readonly string[] => text.split(",").flatMap((part) => part.trim() || []);

/** The addresses of the service. @throws UsageError if none is named, or if one is no address */
export function serversOf(option: string | undefined): readonly [string, ...string[]] {
  const [first, ...others] = namedServers(option).map((server) => checkAddress(server, "--server"));
  if (first === undefined) throw new UsageError('--server is missing ("cairnlog config set server URL" remembers one)');
  return [first, ...others];
}

/** The first of them. @throws UsageError as `serversOf` */
export const serverOf = (option: string | undefined): string => serversOf(option)[0];

/** @throws UsageError for what is no address of a service: paths are put behind it */
export function checkAddress(server: string, name: string, example = "http://127.0.0.1:8080"): string {
  if (checkUrl(server, name, example).search(/[?#]/) < 0) return server;
  throw new UsageError(`${name} ends before ? and #: it must be an address such as ${example}, not ${server}`);
}

/** @throws UsageError for what `fetch` does not take: it would be known when something is to be sent */
export function checkUrl(text: string, name: string, example: string): string {
  if (!/^https?:\/\//.test(text) || !URL.canParse(text))
    throw new UsageError(`${name} must be an address such as ${example}, not ${text}`);
  const { username, password } = new URL(text);
  if (username === "" && password === "") return text;
  throw new UsageError(`${name} has a user or password before @, to whom nothing is sent: leave that out`);
}

/** The service at `server`, the address that `cairnlog serve` prints. @throws UsageError */
export function connect(server: string): ServiceAccess {
  const base = `${serverAddress(checkAddress(server, "--server"))}/api/v1`;
  const get = async <T>(path: string, signal: AbortSignal | null = null): Promise<T> => {
    let response: Response;
    let bytes: Uint8Array;
    try {
      // A redirect could lead to any machine that this one can reach.
      response = await fetch(base + path, { redirect: "error", signal });
      bytes = await readBody(response);
    } catch (cause) {
      signal?.throwIfAborted();
      const detail =
        cause instanceof OversizedAnswer ? `${server} answered with too much.` : silenceReason(server, cause);
      throw new ServiceError(detail, { cause });
    }
    const body = parsed(bytes);
    if (response.ok && body !== null) return body as T;
    throw new ServiceError(body?.detail ?? `${server} answered ${response.status} without saying why.`);
  };
  return { get };
}

/** The parsed JSON; null for anything else. */
function parsed(bytes: Uint8Array): { readonly detail?: string } | null {
  try {
    return JSON.parse(new TextDecoder().decode(bytes)) as { detail?: string } | null;
  } catch {
    return null;
  }
}

/** Access to a running service for subcommands: JSON over HTTP, with errors as sentences. */
import { OversizedAnswer, readBody } from "../client/body.js";
import { unreachable } from "../client/error.js";
import { required, UsageError } from "./usage.js";

/** The service returned an error, or did not answer. */
export class ServiceError extends Error {}

export interface Service {
  get<T>(path: string): Promise<T>;
}

/** The address of the service: of the option, or else of the environment. @throws UsageError without either */
export const serverOf = (option: string | undefined): string =>
  required(option ?? (process.env.CAIRNLOG_SERVER || undefined), "--server");

/** The service at `server`, the address that `cairnlog serve` prints. @throws UsageError */
export function connect(server: string): Service {
  if (!/^https?:\/\//.test(server) || !URL.canParse(server))
    throw new UsageError(`--server must be an address such as http://127.0.0.1:8080, not ${server}`);
  const base = `${server.replace(/\/+$/, "").replace(/\/api\/v1$/, "")}/api/v1`;
  const get = async <T>(path: string): Promise<T> => {
    let response: Response;
    let bytes: Uint8Array;
    try {
      response = await fetch(base + path);
      bytes = await readBody(response);
    } catch (cause) {
      const detail =
        cause instanceof OversizedAnswer ? `${server} answered with too much.` : unreachable(server, cause);
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

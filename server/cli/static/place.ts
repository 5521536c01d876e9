/** Where a published log is: a folder, a bucket, or a web server. */
import { ClientError } from "../../client/base/error.js";
import { Http } from "../../client/base/http.js";
import type { Files, Range } from "../../client/log/served.js";
import { BucketTarget } from "../../publishing/bucket.js";
import { FolderTarget } from "../../publishing/folder.js";
import type { Target } from "../../publishing/target.js";
import { webAddress } from "../connection/connection.js";
import { UsageError } from "../line/usage.js";

export const REGION = "us-east-1";

/**
 * A folder or bucket.
 * @param patient makes the `fetch` that sends requests to a store, of one that signs them
 * @throws UsageError
 */
export function targetOf(
  target: string,
  endpoint: string | undefined,
  patient: (send: typeof fetch) => typeof fetch,
): Target {
  if (!target.startsWith("s3:")) {
    if (endpoint !== undefined) throw new UsageError("--endpoint is for a target such as s3://bucket/prefix");
    return new FolderTarget(target);
  }
  const [, bucket, path = ""] = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/([\w.~/-]*))?$/.exec(target) ?? [];
  if (
    bucket === undefined ||
    path.split("/").some((part, i, { length }) => /^\.*$/.test(part) && !(part === "" && i === length - 1))
  )
    throw new UsageError(`${target} is not such as s3://bucket/prefix, of letters, digits and . _ ~ -`);
  const { env } = process;
  const [accessKeyId, secretAccessKey] = [env.AWS_ACCESS_KEY_ID, env.AWS_SECRET_ACCESS_KEY];
  if (!accessKeyId || !secretAccessKey)
    throw new UsageError("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must be set, for the store");
  const region = env.AWS_REGION || env.AWS_DEFAULT_REGION || REGION;
  const address = endpoint ?? (env.AWS_ENDPOINT_URL_S3 || env.AWS_ENDPOINT_URL || `https://s3.${region}.amazonaws.com`);
  return new BucketTarget({
    ...{ region, accessKeyId, secretAccessKey, bucket, patient },
    endpoint: webAddress(address, "--endpoint").replace(/\/+$/, ""),
    sessionToken: env.AWS_SESSION_TOKEN || undefined,
    prefix: path === "" || path.endsWith("/") ? path : `${path}/`,
  });
}

/** The files of a published log, wherever it is. @param called how the user named the place. @throws UsageError */
export function filesAt(place: string, patient: (send?: typeof fetch) => typeof fetch, called = "--log"): Files {
  if (/^https?:/.test(place)) return new Http(webAddress(place, called).replace(/\/+$/, ""), patient());
  return new TargetFiles(targetOf(place, undefined, patient));
}

/** A folder or bucket that is read and not written. */
class TargetFiles implements Files {
  readonly #target: Target;

  constructor(target: Target) {
    this.#target = target;
  }

  get server(): string {
    return this.#target.name;
  }

  async rootBytes(path: string, range?: Range): Promise<Uint8Array> {
    const stored = await this.#target.read(path.slice(1));
    if (!stored) throw new ClientError("not-found", `There is no ${path} in ${this.server}.`, { status: 404 });
    return range ? stored.bytes.subarray(range.from, range.to) : stored.bytes;
  }
}

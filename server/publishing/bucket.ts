/**
 * A bucket of an S3 store. An object is made under the condition that none is there, and the checkpoint replaced under the
 * condition that it is still the one that was read. Where a store does not know these conditions, it is read first, and two
 * publishers are not safe.
 */
import { createHash } from "node:crypto";
import { extname } from "node:path";
import { AwsV4Signer } from "aws4fetch";
import { CairnlogError } from "../../engine/base/error.js";
import { ClientError, silenceReason } from "../client/base/error.js";
import { DIRECTIVES } from "../http/transport/caching.js";
import { TYPES } from "../http/transport/static.js";
import type { Stored, StoredFile, Target } from "./target.js";

interface BucketOptions {
  /** `https://s3.eu-central-1.amazonaws.com`, without a slash at its end. */
  readonly endpoint: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
  readonly bucket: string;
  /** What stands before every path; empty, or with a slash at its end. */
  readonly prefix: string;
  /** Makes the `fetch` that sends requests, of one that signs them. */
  readonly patient: (send: typeof fetch) => typeof fetch;
}

/** What is never replaced. */
const KEPT = { "content-type": "application/octet-stream", "cache-control": DIRECTIVES.forever };
/** The checkpoint and its key. */
const TEXT = { "content-type": "text/plain; charset=utf-8", "cache-control": DIRECTIVES.revalidate };

/** By the beginning of the path. */
const HEADERS: Readonly<Record<string, typeof KEPT>> = {
  tile: KEPT,
  entries: { ...KEPT, "content-type": "application/gzip" },
  index: KEPT,
  log: { ...TEXT, "content-type": "application/json" },
  "index.html": { ...TEXT, "content-type": TYPES[".html"]! },
};

/** The headers with which an object is served. */
function headersOf(path: string): typeof KEPT {
  const [first = ""] = path.split("/");
  const type = first === "explorer" ? TYPES[extname(path)] : undefined;
  return type === undefined ? (HEADERS[first] ?? TEXT) : { ...KEPT, "content-type": type };
}

/** Of a request that makes an object. */
const CREATE = { "if-none-match": "*" };

/** Of a request that replaces an object which has no content that there is. */
const OF_NO_OBJECT = { "if-match": "0".repeat(32) };

/** How often a request is sent that the store refuses because of another one at the same moment. */
const TRIES = 4;

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Uint8Array;
}

export class BucketTarget implements Target {
  readonly name: string;
  readonly #options: BucketOptions;
  readonly #fetch: typeof fetch;
  /** Whether the store is right about conditions; null until it was seen. */
  #hasConditions: boolean | null = null;

  constructor(options: BucketOptions) {
    this.name = `s3://${options.bucket}/${options.prefix}`.replace(/\/$/, "");
    this.#options = options;
    this.#fetch = options.patient((input, init = {}) => this.#signed(String(input), init));
  }

  /** Whether two publishers are safe; null until something was written. */
  get hasConditions(): boolean | null {
    return this.#hasConditions;
  }

  async read(path: string): Promise<Stored | undefined> {
    const { status, headers, bytes } = await this.#send("GET", path, {}, [200, 404]);
    return status === 404 ? undefined : { bytes, tag: headers.get("etag") };
  }

  async create(path: string, bytes: Uint8Array): Promise<boolean> {
    if (this.#hasConditions === null) return this.#createFirst(path, bytes);
    if (this.#hasConditions) return (await this.#put(path, bytes, CREATE)) === true;
    if (await this.read(path)) return false;
    return (await this.#put(path, bytes, {})) === true;
  }

  async #createFirst(path: string, bytes: Uint8Array): Promise<boolean> {
    const there = await this.read(path);
    const isMade = there ? false : await this.#put(path, bytes, CREATE);
    this.#hasConditions = isMade !== null && (await this.#refuses(path, there?.bytes ?? bytes));
    return isMade ?? this.create(path, bytes);
  }

  /**
   * Whether an object that is there is refused under both conditions: there are stores that do not know one, and replace it.
   * @param bytes its content, so that it stays as it is in either case
   */
  async #refuses(path: string, bytes: Uint8Array): Promise<boolean> {
    for (const condition of [CREATE, OF_NO_OBJECT])
      if ((await this.#put(path, bytes, condition)) !== false) return false;
    return true;
  }

  async replace(path: string, bytes: Uint8Array, before: Stored): Promise<boolean> {
    if (!this.#hasConditions) {
      const now = await this.read(path);
      if (!now || Buffer.compare(now.bytes, before.bytes) !== 0) return false;
      this.#hasConditions ??= await this.#refuses(path, now.bytes);
      if (!this.#hasConditions) return (await this.#put(path, bytes, {})) === true;
    }
    const bare = before.tag?.replaceAll('"', "");
    if (!bare)
      throw new CairnlogError(
        "storage-failed",
        `${this.name}: the store answered GET ${path} without an ETag, so ${path} cannot be replaced. A proxy before it may remove the ETag.`,
      );
    // radosgw knows the tag without its quotes only, others may want them, as HTTP does.
    for (const tag of [bare, `"${bare}"`]) if (await this.#put(path, bytes, { "if-match": tag })) return true;
    return false;
  }

  async remove(path: string): Promise<void> {
    await this.#send("DELETE", path, {}, [200, 204, 404]);
  }

  async *list(folder: string): AsyncIterable<StoredFile> {
    const { prefix } = this.#options;
    const query = new URLSearchParams({ "list-type": "2", prefix: `${prefix}${folder}/` });
    for (;;) {
      const { bytes } = await this.#request("GET", `?${query}`, {}, [200]);
      const text = new TextDecoder().decode(bytes);
      // The order is that of the bytes, so 000 comes before 000.p.
      for (const [, content = ""] of text.matchAll(/<Contents>(.*?)<\/Contents>/gs)) {
        const [key = "", modified = ""] = [member(content, "Key"), member(content, "LastModified")];
        if (key.startsWith(prefix)) yield { path: key.slice(prefix.length), modified: Date.parse(modified) };
      }
      const token = member(text, "NextContinuationToken");
      if (member(text, "IsTruncated") !== "true" || token === undefined) return;
      query.set("continuation-token", token);
    }
  }

  /** @returns whether it was put; null if the store says that it does not know the condition */
  async #put(path: string, bytes: Uint8Array, condition: Readonly<Record<string, string>>): Promise<boolean | null> {
    const headers = { ...headersOf(path), ...condition };
    for (let tries = 1; ; tries++) {
      const { status } = await this.#send("PUT", path, headers, [200, 201, 204, 404, 409, 412, 501], bytes);
      if (status === 501) return null;
      if (status === 412 || status === 404) return false;
      // Another request for the object is under way.
      if (status !== 409) return true;
      if (tries === TRIES) return false;
    }
  }

  #send(
    method: string,
    path: string,
    headers: Readonly<Record<string, string>>,
    expected: readonly number[],
    body?: Uint8Array,
  ): Promise<Answer> {
    return this.#request(method, `/${this.#options.prefix}${path}`, headers, expected, body);
  }

  /** @throws ClientError if the store does not answer; CairnlogError `storage-failed` for any other answer than expected */
  async #request(
    method: string,
    path: string,
    headers: Readonly<Record<string, string>>,
    expected: readonly number[],
    body?: Uint8Array,
  ): Promise<Answer> {
    const { endpoint, bucket } = this.#options;
    const init = {
      method,
      headers,
      redirect: "manual",
      ...(body && { body: body as Uint8Array<ArrayBuffer> }),
    } as const;
    let response: Response;
    try {
      response = await this.#fetch(`${endpoint}/${bucket}${path}`, init);
    } catch (cause) {
      throw new ClientError("no-answer", silenceReason(endpoint, cause), { cause });
    }
    const { status } = response;
    const bytes = new Uint8Array(await response.arrayBuffer());
    const code = status >= 300 ? member(new TextDecoder().decode(bytes), "Code") : undefined;
    // A bucket that is not there is no missing object.
    if (expected.includes(status) && code !== "NoSuchBucket") return { status, headers: response.headers, bytes };
    const sentence = `${this.name}: the store answers ${status}${code === undefined ? "" : ` (${code})`} to ${method} ${path}.`;
    // It may be able to later.
    if (status >= 500) throw new ClientError("no-answer", sentence, { status });
    throw new CairnlogError("storage-failed", sentence);
  }

  /** Sends a request, signed at this moment: the store takes no signature that is older than some minutes. */
  async #signed(url: string, init: RequestInit): Promise<Response> {
    const { region, accessKeyId, secretAccessKey, sessionToken } = this.#options;
    const body = (init.body as Uint8Array<ArrayBuffer> | undefined) ?? "";
    // The store compares the content with this, so nobody on the way can change it.
    const digest = createHash("sha256").update(body).digest("hex");
    const signer = new AwsV4Signer({
      ...{ url, method: init.method!, service: "s3", region, accessKeyId, secretAccessKey },
      headers: { ...(init.headers as Record<string, string>), "x-amz-content-sha256": digest },
      ...(sessionToken !== undefined && { sessionToken }),
    });
    return fetch(url, { ...init, headers: (await signer.sign()).headers });
  }
}

/** The text of the first such member of an XML document whose texts have no escapes; undefined if there is none. */
function member(xml: string, name: string): string | undefined {
  return new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1];
}

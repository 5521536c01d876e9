/** Stores of published logs in memory: a target, and an S3 store as `BucketTarget` asks it, which knows conditions or does not. */
import { createHash } from "node:crypto";
import type { Stored, StoredFile, Target } from "#cairnlog/server/publishing/target.js";

export type Objects = Map<string, Buffer>;

/** A store in memory. What runs at an effect stands in for what happens there. */
export class MemoryTarget implements Target {
  readonly name = "memory";
  readonly objects: Objects;
  effects = 0;
  /** Called behind each effect. */
  behind: (number: number) => unknown = () => {};

  constructor(objects: Objects = new Map()) {
    this.objects = new Map(objects);
  }

  async read(path: string): Promise<Stored | undefined> {
    const bytes = this.objects.get(path);
    return bytes && { bytes, tag: null };
  }

  async create(path: string, bytes: Uint8Array): Promise<boolean> {
    if (this.objects.has(path)) return false;
    return this.#done(() => this.objects.set(path, Buffer.from(bytes)));
  }

  async replace(path: string, bytes: Uint8Array, before: Stored): Promise<boolean> {
    if (!this.objects.get(path)?.equals(before.bytes)) return false;
    return this.#done(() => this.objects.set(path, Buffer.from(bytes)));
  }

  async remove(path: string): Promise<void> {
    await this.#done(() => this.objects.delete(path));
  }

  async *list(folder: string): AsyncIterable<StoredFile> {
    for (const path of [...this.objects.keys()].sort())
      if (path.startsWith(`${folder}/`)) yield { path, modified: Date.now() };
  }

  async #done(effect: () => unknown): Promise<true> {
    effect();
    await this.behind(++this.effects);
    return true;
  }
}

/** What a store makes of the conditions of a request. */
export const CONDITIONS = ["known", "quoted", "refused", "ignored", "half known"] as const;

/** An S3 store with one bucket, `logs`, whose listings have two objects a page. */
export class MemoryS3 {
  readonly objects: Objects = new Map();
  readonly #conditions: (typeof CONDITIONS)[number];
  /** Requests that it refuses because another one is under way, before it takes one. */
  busy = 0;
  /** What it answers in the place of anything else. */
  instead: { readonly status: number; readonly body: string } | null = null;

  constructor(conditions: (typeof CONDITIONS)[number]) {
    this.#conditions = conditions;
  }

  readonly fetch: typeof fetch = async (input, init = {}) => {
    const { pathname, searchParams } = new URL(String(input));
    const { status, body, headers } = this.#answer(init, pathname.slice("/logs".length), searchParams);
    return new Response(status === 204 ? null : (body as Uint8Array<ArrayBuffer>), {
      status,
      ...(headers && { headers }),
    });
  };

  #answer({ method, body, headers }: RequestInit, path: string, query: URLSearchParams) {
    if (this.instead) return { ...this.instead, body: Buffer.from(this.instead.body) };
    if (path === "" && query.getAll("continuation-token").length > 1) return { status: 400 };
    if (path === "") return { status: 200, body: Buffer.from(this.#listed(query)) };
    const key = path.slice(1);
    const there = this.objects.get(key);
    if (method === "GET")
      return there ? { status: 200, body: there, headers: { etag: tagOf(there) } } : { status: 404 };
    if (method === "DELETE") {
      this.objects.delete(key);
      return { status: 204 };
    }
    if (this.busy && this.busy--) return { status: 409 };
    const status = this.#refusal(headers as Record<string, string>, there);
    if (!status) this.objects.set(key, Buffer.from(body as Uint8Array));
    return { status: status || 200 };
  }

  #refusal(headers: Readonly<Record<string, string>>, there: Buffer | undefined): number {
    const { "if-match": match, "if-none-match": none } = headers;
    if ((match ?? none) === undefined || this.#conditions === "ignored") return 0;
    if (this.#conditions === "refused") return 501;
    if (none !== undefined) return there ? 412 : 0;
    if (this.#conditions === "half known") return 0;
    const tag = there && (this.#conditions === "quoted" ? tagOf(there) : tagOf(there).slice(1, -1));
    return tag === match ? 0 : there ? 412 : 404;
  }

  #listed(query: URLSearchParams): string {
    const keys = [...this.objects.keys()].filter((key) => key.startsWith(query.get("prefix")!)).sort();
    // A token may have any characters.
    const from = Number(/^&\+\/=(\d+)$/.exec(query.get("continuation-token") ?? "&+/=0")![1]);
    const found = keys.slice(from, from + 2).map((key) => {
      return `<Contents><Key>${key}</Key><LastModified>${new Date().toISOString()}</LastModified></Contents>`;
    });
    const isCut = from + 2 < keys.length;
    const next = isCut ? `<NextContinuationToken>&+/=${from + 2}</NextContinuationToken>` : "";
    return `<R><IsTruncated>${isCut}</IsTruncated>${next}${found.join("")}</R>`;
  }
}

const tagOf = (bytes: Uint8Array): string => `"${createHash("md5").update(bytes).digest("hex")}"`;

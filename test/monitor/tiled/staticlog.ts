/** A log of tiles made from the definitions with node:crypto, and served without a socket, as its liar wants it. */
import { tilePath } from "#cairnlog/engine/verify/index.js";
import { checkpointOf, type NoteSigner, newNoteSigner } from "../../verify/note/notes.js";
import { hashOf, plainRoot } from "../../verify/tlog/plain-rfc6962.js";

export const ORIGIN = "tiles.example/log";
export const URL_OF_LOG = "http://log.invalid/tiles";

export class StaticLog {
  readonly signer: NoteSigner;
  readonly #entries: readonly Buffer[];
  readonly #leaves: readonly Uint8Array[];

  /** @param twist number of the first entry that is another one: with it, the log is a fork */
  constructor(size: number, { twist = size, signer = newNoteSigner(ORIGIN) } = {}) {
    this.signer = signer;
    // Entries of all lengths, the empty one among them.
    this.#entries = Array.from({ length: size }, (_, i) => Buffer.alloc((i * 7) % 90, `${i < twist ? "a" : "b"}${i} `));
    this.#leaves = this.#entries.map((entry) => hashOf(0, entry));
  }

  root(size = this.#entries.length): Uint8Array {
    return plainRoot(this.#leaves.slice(0, size));
  }

  /** Hash of a leaf. */
  leaf(index: number): Uint8Array {
    return this.#leaves[index]!;
  }

  text(size = this.#entries.length): string {
    return checkpointOf(this.signer.name, size, this.root(size));
  }

  /** Path → content, of a checkpoint of this size. Partial forms of what is full are not there. */
  files(size = this.#entries.length): Map<string, Buffer> {
    const files = new Map([["checkpoint", Buffer.from(this.signer.note(this.text(size)))]]);
    for (let level = 0; size >= 256 ** level; level++) {
      const nodes = Math.floor(size / 256 ** level);
      for (let index = 0; index * 256 < nodes; index++) {
        const end = Math.min(nodes, index * 256 + 256);
        const numbers = Array.from({ length: end - index * 256 }, (_, i) => index * 256 + i);
        const span = 256 ** level;
        const hashes = numbers.map((node) => plainRoot(this.#leaves.slice(node * span, (node + 1) * span)));
        files.set(tilePath({ level, index, width: numbers.length }), Buffer.concat(hashes));
        if (level > 0) continue;
        const entries = numbers.map((number) => {
          const data = this.#entries[number]!;
          return Buffer.concat([Buffer.of(data.length >> 8, data.length & 255), data]);
        });
        files.set(tilePath({ level: "entries", index, width: numbers.length }), Buffer.concat(entries));
      }
    }
    return files;
  }
}

/** A `fetch` that serves files below `URL_OF_LOG`. Each path that is asked for is noted. */
export function serving(files: ReadonlyMap<string, Uint8Array | string>, asked: string[] = []): typeof fetch {
  return async (input) => {
    const path = String(input).slice(URL_OF_LOG.length + 1);
    asked.push(path);
    const content = files.get(path);
    return content === undefined ? new Response("no such file", { status: 404 }) : new Response(content as BodyInit);
  };
}

/** The same files, one of them changed. */
export function changed(
  files: ReadonlyMap<string, Buffer>,
  path: string,
  change: (content: Buffer) => Buffer | string,
): Map<string, Buffer> {
  const content = files.get(path);
  if (!content) throw new Error(`there is no ${path}`);
  return new Map([...files, [path, Buffer.from(change(Buffer.from(content)))]]);
}

/** Takes a stream of PostgreSQL's protocol (version 3, without TLS) apart into messages, and gives out the wanted ones. */

/** Type and length. */
const HEADER = 5;

export class Messages {
  readonly #wanted: ReadonlySet<string>;
  readonly #give: (type: string, body: Buffer) => void;
  #rest: Buffer = Buffer.alloc(0);
  /** Bytes of an unwanted message that are still to come. */
  #skip = 0;
  /** The first message of a client has no type. */
  #isFirst: boolean;

  /** @param wanted types of messages, one letter each */
  constructor(from: "client" | "server", wanted: string, give: (type: string, body: Buffer) => void) {
    this.#isFirst = from === "client";
    this.#wanted = new Set(wanted);
    this.#give = give;
  }

  push(chunk: Buffer): void {
    if (this.#skip >= chunk.length) {
      this.#skip -= chunk.length;
      return;
    }
    let bytes = this.#skip ? chunk.subarray(this.#skip) : chunk;
    this.#skip = 0;
    if (this.#rest.length) bytes = Buffer.concat([this.#rest, bytes]);
    let at = 0;
    for (;;) {
      const lengthAt = this.#isFirst ? at : at + 1;
      if (bytes.length < lengthAt + HEADER - 1) break;
      const end = lengthAt + bytes.readInt32BE(lengthAt);
      const type = this.#isFirst ? "" : String.fromCharCode(bytes[at]!);
      const isWanted = this.#wanted.has(type);
      if (isWanted && end > bytes.length) break;
      this.#isFirst = false;
      if (isWanted) this.#give(type, bytes.subarray(lengthAt + 4, end));
      if (end >= bytes.length) {
        this.#skip = end - bytes.length;
        at = bytes.length;
        break;
      }
      at = end;
    }
    // A copy: the chunk belongs to the socket.
    this.#rest = at < bytes.length ? Buffer.from(bytes.subarray(at)) : Buffer.alloc(0);
  }
}

/** The values of a Bind message; null for SQL's null. */
export function boundValues(body: Buffer): (Buffer | null)[] {
  let at = body.indexOf(0) + 1;
  at = body.indexOf(0, at) + 1;
  at += 2 + 2 * body.readInt16BE(at);
  return fields(body, at);
}

/** The values of a DataRow message. */
export const rowValues = (body: Buffer): (Buffer | null)[] => fields(body, 0);

function fields(body: Buffer, start: number): (Buffer | null)[] {
  let at = start + 2;
  return Array.from({ length: body.readInt16BE(start) }, () => {
    const length = body.readInt32BE(at);
    at += 4;
    if (length < 0) return null;
    const value = body.subarray(at, at + length);
    at += length;
    return value;
  });
}

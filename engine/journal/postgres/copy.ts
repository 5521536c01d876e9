/**
 * Reads `COPY … TO STDOUT (FORMAT binary)`: bytes as they are, where a query would give each of them as two characters.
 * The form is that of PostgreSQL's manual: a header of 19 bytes, then for each row the number of its fields, and each
 * field with its length. Every row comes in a message of its own, the first one behind the header.
 */

/** Fields of a row; null for SQL's null. */
export type CopyRow = readonly (Buffer | null)[];

const SIGNATURE = Buffer.from("PGCOPY\n\xff\r\n\0", "latin1");
/** The signature, flags, and the length of an extension, which is 0. */
const HEADER = SIGNATURE.length + 8;
const END = -1;

/** The connection of a client of `pg`, as a query sees it. */
interface Wire {
  query(text: string): void;
  sendCopyFail(reason: string): void;
}

/** To be given to `Client.query`, which calls the methods. */
export class CopyReader {
  readonly #text: string;
  readonly #messages: Buffer[] = [];
  readonly done: Promise<CopyRow[]>;
  #resolve: (rows: CopyRow[]) => void = () => {};
  #reject: (error: Error) => void = () => {};

  constructor(text: string) {
    this.#text = text;
    this.done = new Promise((resolve, reject) => {
      [this.#resolve, this.#reject] = [resolve, reject];
    });
    this.done.catch(() => {});
  }

  submit(wire: Wire): void {
    wire.query(this.#text);
  }

  handleCopyData({ chunk }: { readonly chunk: Buffer }): void {
    // The buffer belongs to the library, which uses it again. Its bytes are copied once: records are megabytes.
    this.#messages.push(Buffer.from(chunk));
  }

  handleReadyForQuery(): void {
    try {
      this.#resolve(rowsOf(this.#messages));
    } catch (error) {
      this.#reject(error as Error);
    }
  }

  handleError(error: Error): void {
    this.#reject(error);
  }

  handleCopyInResponse(wire: Wire): void {
    wire.sendCopyFail("nothing is to be copied in");
  }

  handleCommandComplete(): void {}
  handleRowDescription(): void {}
  handleDataRow(): void {}
  handlePortalSuspended(): void {}
  handleEmptyQuery(): void {}
}

function rowsOf(messages: readonly Buffer[]): CopyRow[] {
  if (!messages[0]?.subarray(0, SIGNATURE.length).equals(SIGNATURE)) throw new Error("COPY did not begin as it should");
  const rows: CopyRow[] = [];
  let start = HEADER;
  for (const bytes of messages) {
    for (let at = start; at < bytes.length; ) {
      const count = bytes.readInt16BE(at);
      at += 2;
      if (count === END) return rows;
      const row: (Buffer | null)[] = [];
      for (let field = 0; field < count; field++) {
        const length = bytes.readInt32BE(at);
        at += 4;
        if (length > bytes.length - at) throw new Error("COPY gave a part of a row");
        row.push(length < 0 ? null : bytes.subarray(at, at + length));
        at += Math.max(0, length);
      }
      rows.push(row);
    }
    start = 0;
  }
  throw new Error("COPY did not end as it should");
}

/** A `bigint` field. */
export const bigintOf = (field: Buffer | null | undefined): number => Number(field!.readBigInt64BE());

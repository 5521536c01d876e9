/** What a reader of `COPY` gives, however the rows lie in the messages, whose memory the library uses again. */
import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { PgConnection } from "#cairnlog/engine/journal/postgres/connection.js";
import { bigintOf, CopyReader, type CopyRow } from "#cairnlog/engine/journal/postgres/copy.js";

const HEADER = Buffer.concat([Buffer.from("PGCOPY\n\xff\r\n\0", "latin1"), Buffer.alloc(8)]);
const END = Buffer.of(0xff, 0xff);

const fieldOf = (field: Buffer | null): Buffer => {
  const length = Buffer.alloc(4);
  length.writeInt32BE(field ? field.length : -1);
  return Buffer.concat([length, field ?? Buffer.alloc(0)]);
};
const rowOf = (row: CopyRow): Buffer => Buffer.concat([Buffer.of(0, row.length), ...row.map(fieldOf)]);

/** Rows of all kinds of fields, each with its number. */
const rowsOf = (count: number): CopyRow[] =>
  Array.from({ length: count }, (_, i) => {
    const number = Buffer.alloc(8);
    number.writeBigInt64BE(BigInt(2 ** 40 + i));
    return [number, i % 3 ? Buffer.alloc(i * 10, i) : null, Buffer.alloc(0)];
  });

/** Gives messages to a reader as `pg` does: views of one buffer, written over by the next ones. */
function read(messages: readonly Buffer[]): Promise<CopyRow[]> {
  const reader = new CopyReader("COPY");
  const shared = Buffer.alloc(100_000);
  for (const message of messages) {
    shared.fill(0xee);
    message.copy(shared, 7);
    reader.handleCopyData({ chunk: shared.subarray(7, 7 + message.length) });
  }
  shared.fill(0xee);
  reader.handleReadyForQuery();
  return reader.done;
}

test.each([0, 1, 2, 40])(
  "%i rows are given as they were sent, whatever comes into the same memory later",
  async (count) => {
    const rows = rowsOf(count);
    const [first, ...others] = rows.map(rowOf);
    const messages = first ? [Buffer.concat([HEADER, first]), ...others, END] : [Buffer.concat([HEADER, END])];
    const found = await read(messages);
    expect(found).toEqual(rows);
    expect(found.map(([number]) => bigintOf(number))).toEqual(rows.map((_, i) => 2 ** 40 + i));
  },
);

test("what is no whole answer is an error, and not fewer rows", async () => {
  const [row] = rowsOf(1).map(rowOf) as [Buffer];
  const begun = Buffer.concat([HEADER, row]);
  for (const messages of [[], [begun], [begun.subarray(1), END], [begun.subarray(0, -3), END], [row, END]])
    await expect(read(messages)).rejects.toThrow(Error);
});

test("an error of the server ends it, and the end of the query behind that changes nothing", async () => {
  const reader = new CopyReader("COPY");
  const sent: string[] = [];
  reader.submit({ query: (text) => sent.push(text), sendCopyFail: (reason) => sent.push(reason) });
  reader.handleCopyInResponse({ query() {}, sendCopyFail: (reason) => sent.push(reason) });
  reader.handleError(new Error("no such table"));
  reader.handleReadyForQuery();
  await expect(reader.done).rejects.toThrow("no such table");
  expect(sent).toEqual(["COPY", "nothing is to be copied in"]);
});

test("what a connection that has ended is asked for fails once: nothing that was begun fails unheard", async () => {
  /** As `pg` answers behind the end: later, and by itself. */
  class Ended extends EventEmitter {
    connection = { stream: { destroy() {} } };
    async query(asked: object) {
      await null;
      const error = new Error("not queryable");
      if (asked instanceof CopyReader) asked.handleError(error);
      else throw error;
    }
  }
  const Open = PgConnection as unknown as new (client: object, place: object) => PgConnection;
  const connection = new Open(new Ended(), { host: "s1.example", port: 5432 });
  connection.close();
  await expect(connection.query({ text: "SELECT 1" }, 1_000)).rejects.toThrow("the connection has ended");
  await expect(connection.copy("COPY", 1_000)).rejects.toThrow("the connection has ended");
  await new Promise((resolve) => setImmediate(resolve));
});

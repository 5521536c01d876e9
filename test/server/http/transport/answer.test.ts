/** Answers of which the socket takes nothing at first, several at once. */
import { expect, test } from "vitest";
import { Answer, writeAnswer } from "#cairnlog/server/http/transport/answer.js";
import { PendingBytes } from "#cairnlog/server/http/transport/pending.js";
import type { TransportResponse } from "#cairnlog/server/http/transport/transport.js";

const COURSE = { withBody: true, isLast: false, isClosing: false, early: null, isOver: () => false, failed: () => {} };

/** A socket that takes `bytes` of a body whenever it is told to go on. As a library may, it takes them when `tryEnd` returns. */
function client(body: Buffer | string) {
  let received = "";
  let room = 0;
  let goOn = (_: number): boolean => false;
  const response: Partial<TransportResponse> = {
    writeHeader: () => {},
    tryEnd(rest, total) {
      const taken = rest.subarray(0, room);
      received += taken.toString("latin1");
      return [taken.length > 0, received.length === total];
    },
    onWritable(writable) {
      goOn = writable;
    },
  };
  let isDrained = false;
  const pending = new PendingBytes(2 ** 26);
  writeAnswer(response as TransportResponse, new Answer(body), ["a", "b"], COURSE, pending, () => {
    isDrained = true;
  });
  const read = (bytes: number) => {
    room = bytes;
    goOn(received.length);
    return isDrained;
  };
  return { read, received: () => received };
}

test.each([9_000, 16_384, 16_385, 200_000])(
  "texts of %i bytes do not share the memory they are sent from",
  (length) => {
    const bodies = ["a", "b", "c"].map((letter) => letter.repeat(length));
    const clients = [...bodies, Buffer.from("d".repeat(length))].map(client);
    while (clients.filter(({ read }) => !read(4_000)).length);
    for (const [i, { received }] of clients.entries()) expect(received()).toBe("abcd"[i]!.repeat(length));
  },
);

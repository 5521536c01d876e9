/** A connection of `node:http`: when a request may begin on it, and how it ends. */
import type { Socket } from "node:net";
import { PassThrough } from "node:stream";
import { afterEach, expect, test, vi } from "vitest";
import { Connection, type OpenAnswer } from "#cairnlog/server/http/servers/node/connection.js";
import { refusalBytes } from "#cairnlog/server/http/servers/node/refusals.js";

afterEach(() => {
  vi.useRealTimers();
});

const REFUSAL = { status: "400 Bad Request", sentence: "The request cannot be read." };

/** A connection whose socket is a stream in this process. */
function newConnection() {
  const stream = new PassThrough();
  const connection = new Connection(stream as unknown as Socket);
  const state = { aborted: 0 };
  const answer = (more: Partial<OpenAnswer> = {}): OpenAnswer => {
    const opened = { isEnded: false, isArriving: false, isDue: false, ...more, abort: () => void state.aborted++ };
    connection.opened(opened);
    return opened;
  };
  const sent = () => (stream.read() as Buffer | null)?.toString() ?? "";
  return { stream, connection, state, answer, sent };
}

test("a request may begin when every earlier answer is ended, and not too many wait for their reader", () => {
  const { connection, answer } = newConnection();
  expect(connection.isFree).toBe(true);
  const waiting = Array.from({ length: 63 }, () => answer({ isEnded: true }));
  expect(connection.isFree).toBe(true);
  const last = answer({ isEnded: true });
  expect(connection.isFree).toBe(false);
  connection.settled(last);
  expect(connection.isFree).toBe(true);
  const made = answer();
  expect(connection.isFree).toBe(false);
  for (const one of waiting) connection.settled(one);
  expect(connection.isFree).toBe(false);
  connection.settled(made);
  expect(connection.isFree).toBe(true);
});

test("a refusal is the last that a connection says, and what still comes is thrown away for two seconds", () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "performance"] });
  const { stream, connection, state, sent } = newConnection();
  expect([connection.isLast, connection.isFlushed]).toEqual([false, true]);
  connection.refuse(REFUSAL);
  expect([connection.isLast, stream.writableEnded, state.aborted]).toEqual([true, true, 0]);
  const withoutDate = (text: string) => text.replace(/^date: .*$/m, "");
  expect(withoutDate(sent())).toBe(withoutDate(refusalBytes(REFUSAL)));
  connection.refuse(REFUSAL);
  expect(sent()).toBe("");
  vi.advanceTimersByTime(1_999);
  expect(stream.destroyed).toBe(false);
  vi.advanceTimersByTime(1);
  expect(stream.destroyed).toBe(true);
});

test("a refusal takes the place of the answer to a request that still arrives", () => {
  const { stream, connection, state, answer, sent } = newConnection();
  answer({ isArriving: true });
  connection.refuse(REFUSAL);
  expect(sent()).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
  expect([connection.isLast, state.aborted, stream.destroyed]).toEqual([true, 1, false]);
});

test.each([
  ["one answer is being made", [{}]],
  ["one answer is read slowly", [{ isEnded: true }]],
  ["one of two requests arrives", [{ isArriving: true }, {}]],
  ["the later of two requests arrives", [{ isEnded: true }, { isArriving: true }]],
])("while %s, a refusal would be taken for that one: the connection ends", (_, answers) => {
  const { stream, connection, state, answer, sent } = newConnection();
  for (const one of answers) answer(one);
  connection.refuse(REFUSAL);
  expect([sent(), stream.destroyed, connection.isLast, state.aborted]).toEqual(["", true, true, answers.length]);
});

test("nothing is said on a connection that is ended for writing, or behind its last answer", () => {
  const ended = newConnection();
  ended.stream.end();
  ended.connection.refuse(REFUSAL);
  expect([ended.sent(), ended.connection.isLast]).toEqual(["", false]);
  const last = newConnection();
  last.connection.isLast = true;
  last.answer();
  last.connection.refuse(REFUSAL);
  expect([last.sent(), last.stream.writableEnded, last.stream.destroyed, last.state.aborted]).toEqual([
    "",
    false,
    false,
    0,
  ]);
});

test("a connection on which nothing moves ends, unless its client waits for the service", () => {
  const { stream, connection, state, answer } = newConnection();
  const due = answer({ isDue: true });
  answer();
  connection.idle();
  expect([stream.destroyed, state.aborted]).toEqual([false, 0]);
  connection.settled(due);
  connection.idle();
  expect([stream.destroyed, connection.isLast, state.aborted]).toEqual([true, true, 1]);
  const bare = newConnection();
  bare.connection.idle();
  expect(bare.stream.destroyed).toBe(true);
});

test.each([
  [0, true],
  [1, false],
])("with %i bytes that are not handed over, all of it is flushed: %s", (writableLength, isFlushed) => {
  expect(new Connection({ writableLength } as Socket).isFlushed).toBe(isFlushed);
});

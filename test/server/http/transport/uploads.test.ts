/** Bodies on their way in: when one is whole, when it is refused, and what is held of it. */
import { afterEach, expect, test, vi } from "vitest";
import { Uploads } from "#cairnlog/server/http/body/body.js";
import type { TransportResponse } from "#cairnlog/server/http/transport/transport.js";

const MAX_READ_ON_BYTES = 32 * 2 ** 20;

const BOUNDS = { maxBodyBytes: 100, maxPendingBytes: 500, requestTimeoutSeconds: 2 };
const opened: Uploads[] = [];
afterEach(() => {
  for (const uploads of opened.splice(0)) uploads.close();
  vi.useRealTimers();
});

function newUploads(more: Partial<typeof BOUNDS> = {}): Uploads {
  const uploads = new Uploads({ ...BOUNDS, ...more });
  opened.push(uploads);
  return uploads;
}

/** A body that the test sends, and what was received of it. */
function begin(uploads: Uploads, isBulk?: boolean) {
  let take = (_: ArrayBuffer, __: boolean): void => {};
  const onData = (receive: typeof take) => {
    take = receive;
  };
  const response = { onData } as unknown as TransportResponse;
  const received: (Buffer | Error)[] = [];
  const upload = uploads.read(response, performance.now(), (body) => received.push(body), isBulk);
  const send = (bytes: string | number, isLast = false) => {
    const text = typeof bytes === "number" ? "x".repeat(bytes) : bytes;
    const chunk = Uint8Array.from(Buffer.from(text));
    take(chunk.buffer, isLast);
    // The socket uses this memory again.
    if (!isLast) chunk.fill(0);
  };
  return { received, send, release: () => upload.release() };
}

const OVERLOADED = { code: "overloaded", retryAfter: 2 };

test("a body is given when it is whole, once, and counts until it is released", () => {
  const uploads = newUploads();
  const { received, send, release } = begin(uploads);
  expect([uploads.arriving, uploads.pending.waiting]).toEqual([1, 1]);
  send("one, ");
  expect([uploads.pending.held, received]).toEqual([5, []]);
  send("two, ");
  send("three", true);
  expect(received.map(String)).toEqual(["one, two, three"]);
  expect([uploads.arriving, uploads.pending.waiting, uploads.pending.held]).toEqual([0, 0, 15]);
  send("four", true);
  expect(received).toHaveLength(1);
  release();
  expect(uploads.pending.held).toBe(0);
});

test.each([
  [false, 100],
  [true, 300],
])("with many requests in it: %s; it has at most %i bytes", (isBulk, most) => {
  const uploads = newUploads();
  const fitting = begin(uploads, isBulk);
  fitting.send(most - 1);
  fitting.send(1, true);
  expect(fitting.received).toEqual([Buffer.alloc(most, "x")]);
  fitting.release();
  const large = begin(uploads, isBulk);
  large.send(most);
  expect(large.received).toEqual([]);
  // Refused at once, and the rest is thrown away.
  large.send(1);
  expect(large.received).toMatchObject([
    { code: "payload-too-large", message: `The body is larger than ${most} bytes.` },
  ]);
  expect([uploads.arriving, uploads.pending.held]).toEqual([0, 0]);
  large.send(1);
  large.send("", true);
  expect(large.received).toHaveLength(1);
  expect(uploads.pending.held).toBe(0);
});

test("one body fits always, the largest too", () => {
  expect(newUploads({ maxPendingBytes: 10 }).pending.limit).toBe(300);
  expect(newUploads().pending.limit).toBe(500);
});

test("where there is no room, the oldest of those that arrive is given up", () => {
  const uploads = newUploads();
  const bodies = Array.from({ length: 5 }, () => begin(uploads));
  for (const { send } of bodies) send(100);
  const another = begin(uploads);
  another.send(100);
  expect(bodies[0]!.received).toMatchObject([OVERLOADED]);
  for (const { received } of [...bodies.slice(1), another]) expect(received).toEqual([]);
  expect([uploads.arriving, uploads.pending.held, uploads.pending.givenUp]).toEqual([5, 500, 1]);
  bodies[0]!.send(1, true);
  expect(bodies[0]!.received).toHaveLength(1);
});

test("a body that is whole is not given up for another, which is refused", () => {
  const uploads = newUploads();
  const bodies = Array.from({ length: 5 }, () => begin(uploads));
  for (const { send } of bodies) send(100, true);
  const refused = begin(uploads);
  refused.send(1);
  expect(refused.received).toMatchObject([OVERLOADED]);
  expect([uploads.arriving, uploads.pending.held, uploads.pending.givenUp]).toEqual([0, 500, 0]);
  for (const { received } of bodies) expect(received).toEqual([Buffer.alloc(100, "x")]);
  bodies[0]!.release();
  const next = begin(uploads);
  next.send(100, true);
  expect(next.received).toEqual([Buffer.alloc(100, "x")]);
});

test("of a request that was aborted nothing is given or held", () => {
  const uploads = newUploads();
  const { received, send, release } = begin(uploads);
  send(10);
  release();
  expect([uploads.arriving, uploads.pending.held, uploads.pending.waiting]).toEqual([0, 0, 0]);
  send(10);
  send(10, true);
  expect([received, uploads.pending.held]).toEqual([[], 0]);
});

test("a body that is late is refused, and later ones have their own time", () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  const uploads = newUploads();
  const first = begin(uploads);
  vi.advanceTimersByTime(1_000);
  const [second, third] = [begin(uploads), begin(uploads)];
  first.send(10);
  vi.advanceTimersByTime(999);
  expect(first.received).toEqual([]);
  vi.advanceTimersByTime(1);
  const late = {
    code: "request-timeout",
    status: 408,
    message: "The body did not arrive in 2 seconds; nothing was done.",
  };
  expect(first.received).toMatchObject([late]);
  expect([second.received, uploads.arriving, uploads.pending.held]).toEqual([[], 2, 0]);
  second.send("in time", true);
  vi.advanceTimersByTime(1_000);
  expect(third.received).toMatchObject([late]);
  expect([String(second.received), uploads.arriving]).toEqual(["in time", 0]);
  uploads.close();
  expect(vi.getTimerCount()).toBe(0);
});

/** A body that nobody wants, whose request is answered. */
function answered(uploads: Uploads) {
  let take = (_: ArrayBuffer, __: boolean): void => {};
  let abort = (): void => {};
  const events: string[] = [];
  const response = {
    onData: (receive: typeof take) => {
      take = receive;
    },
    onAborted: (aborted: typeof abort) => {
      abort = aborted;
    },
    close: () => {
      events.push("closed");
      abort();
    },
  } as unknown as TransportResponse;
  const upload = uploads.ignore(response);
  const send = (bytes: number, isLast = false) => take(new ArrayBuffer(bytes), isLast);
  return { upload, events, send, abort: () => abort(), answer: () => upload.readOn(response) };
}

test("behind an early answer a body is read on to its end, and nothing of it is held", () => {
  const uploads = newUploads();
  const { upload, events, send, answer } = answered(uploads);
  send(1000);
  answer();
  send(100_000);
  expect([events, upload.isWhole, uploads.pending.held, uploads.arriving]).toEqual([[], false, 0, 0]);
  send(1, true);
  expect([events, upload.isWhole]).toEqual([["closed"], true]);
});

test("but not more than a number of bytes", () => {
  const { events, send, answer } = answered(newUploads());
  answer();
  send(MAX_READ_ON_BYTES);
  expect(events).toEqual([]);
  send(1);
  send(1);
  expect(events).toEqual(["closed"]);
});

test("and not for longer than 10 seconds, however it is sent, nor for 2 seconds in which nothing comes", () => {
  vi.useFakeTimers();
  const uploads = newUploads();
  const [slow, silent, gone] = [answered(uploads), answered(uploads), answered(uploads)];
  for (const { answer } of [slow, silent, gone]) answer();
  gone.abort();
  vi.advanceTimersByTime(1_500);
  expect([slow.events, silent.events]).toEqual([[], []]);
  for (let seconds = 1.5; seconds < 9; seconds++) {
    slow.send(1);
    vi.advanceTimersByTime(1_000);
  }
  expect([slow.events, silent.events]).toEqual([[], ["closed"]]);
  vi.advanceTimersByTime(1_500);
  expect([slow.events, silent.events, gone.events]).toEqual([["closed"], ["closed"], []]);
});

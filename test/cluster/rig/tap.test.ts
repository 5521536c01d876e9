/** What the checker of replication sees on the ways between nodes and servers, and the clock that it sets. */
import { execFileSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { join } from "node:path";
import { expect, test } from "vitest";
import { scratchFolder } from "../../service.js";
import { SettableClock } from "./clock.js";
import { Tap } from "./tap.js";

const int16 = (value: number) => Buffer.from([value >> 8, value & 255]);
const int32 = (value: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
};
const message = (type: string, body: Buffer) => Buffer.concat([Buffer.from(type), int32(body.length + 4), body]);
const values = (all: readonly (Buffer | null)[]) =>
  Buffer.concat([int16(all.length), ...all.flatMap((value) => (value ? [int32(value.length), value] : [int32(-1)]))]);

const startup = Buffer.concat([int32(8), int32(196_608)]);
const bind = (parameters: readonly (Buffer | null)[]) =>
  message("B", Buffer.concat([Buffer.from("\0append\0"), int16(1), int16(1), values(parameters), int16(0)]));
const row = (...all: (Buffer | null)[]) => message("D", values(all));

/** The body of a record without a batch. */
function record(): { body: Buffer; hash: string } {
  const head = randomBytes(115);
  const hash = createHash("sha256").update(head).digest();
  return { body: Buffer.concat([head, hash, int32(0)]), hash: hash.toString("hex") };
}

test("a proposal is known by its bytes, and what became of it by the answer, in whatever pieces they come", () => {
  const tap = new Tap();
  const { sent, received } = tap.observer(() => false);
  const [accepted, refused, failed, unknown] = [record(), record(), record(), record()];
  const observer = tap.observer(() => false);
  const feed = (push: (chunk: Buffer) => void, bytes: Buffer) => {
    for (let at = 0; at < bytes.length; at += 7) push(bytes.subarray(at, at + 7));
  };
  feed(observer.sent, startup);
  feed(observer.received, Buffer.concat([message("R", int32(0)), message("Z", Buffer.from("I"))]));
  const ask = ({ body }: { body: Buffer }, answer: Buffer) => {
    feed(
      observer.sent,
      Buffer.concat([
        message("P", Buffer.alloc(300)),
        bind([Buffer.from("1"), null, body]),
        message("S", Buffer.alloc(0)),
      ]),
    );
    feed(observer.received, Buffer.concat([message("1", Buffer.alloc(0)), answer, message("Z", Buffer.from("I"))]));
  };
  ask(refused, row(Buffer.from("0")));
  ask(accepted, row(Buffer.from("1")));
  ask(failed, message("E", Buffer.from("SERROR\0VERROR\0C23505\0\0", "latin1")));
  ask(unknown, message("E", Buffer.from("SFATAL\0VFATAL\0C57P01\0\0", "latin1")));
  expect([...tap.proposals].map(([hash, { sent, refused }]) => [hash, sent, refused])).toEqual([
    [refused.hash, 1, 1],
    [failed.hash, 1, 1],
    [unknown.hash, 1, 0],
  ]);
  // Sent again by a node that did not get the answer: it is in the journal, so the second one is no refusal.
  ask(accepted, row(Buffer.from("0")));
  expect(tap.proposals.has(accepted.hash)).toBe(false);
  // Another connection is another stream.
  sent(startup);
  received(message("Z", Buffer.from("I")));
});

test("a record that a standby has when it is asked for it is noted at its first time, and not of a primary", () => {
  const tap = new Tap();
  const hash = randomBytes(32);
  const ready = message("Z", Buffer.from("I"));
  let isStandby = false;
  const { sent, received } = tap.observer(() => isStandby);
  sent(startup);
  const ask = (answer: Buffer) => {
    sent(bind([Buffer.from("7"), hash]));
    received(Buffer.concat([answer, ready]));
  };
  const yes = row(Buffer.from("1"));
  ask(yes);
  isStandby = true;
  ask(Buffer.alloc(0));
  // Of another statement.
  received(yes);
  expect(tap.shownAt.size).toBe(0);
  ask(yes);
  const first = tap.shownAt.get(hash.toString("hex"));
  expect(first).toBeLessThanOrEqual(performance.now());
  ask(yes);
  expect([...tap.shownAt]).toEqual([[hash.toString("hex"), first]]);
});

test("a mark that a standby shows stands for the record that was the newest when it was made", () => {
  const tap = new Tap();
  const mark = "0123456789abcdef0123456789abcdef";
  const primary = tap.observer(() => false);
  const standby = tap.observer(() => true);
  for (const { sent } of [primary, standby]) sent(startup);
  const ready = message("Z", Buffer.from("I"));
  primary.sent(bind([Buffer.from("3"), Buffer.from("holder"), Buffer.from("41"), Buffer.from(mark)]));
  primary.received(Buffer.concat([row(Buffer.from("1")), ready]));
  standby.sent(bind([Buffer.from(mark)]));
  standby.received(ready);
  expect(tap.markedAt.size).toBe(0);
  standby.sent(bind([Buffer.from(mark)]));
  standby.received(Buffer.concat([row(Buffer.from("1")), ready]));
  expect([...tap.markedAt.keys()]).toEqual([41]);
});

test("a process has the clock that is set for it, in its worker threads too", () => {
  const folder = scratchFolder();
  try {
    const clock = new SettableClock(join(folder.path, "n1"));
    clock.set(-3_600_000);
    const program = `
      import { Worker } from "node:worker_threads";
      console.log(Date.now(), new Date().getTime(), new Date(5).getTime(), Date.parse("1970-01-01T00:00:01Z"));
      new Worker("console.log(Date.now())", { eval: true });`;
    const env = { ...process.env, ...clock.environment };
    const said = execFileSync(process.execPath, ["--input-type=module", "--eval", program], { encoding: "utf8", env });
    const [now, made, given, parsed, inWorker] = said.trim().split(/\s/).map(Number);
    const wanted = Date.now() - 3_600_000;
    for (const time of [now, made, inWorker]) expect(Math.abs(time! - wanted)).toBeLessThan(60_000);
    expect([given, parsed]).toEqual([5, 1000]);
  } finally {
    folder.remove();
  }
});

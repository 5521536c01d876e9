/** What a front end and the writer's thread say to each other, over a real channel in one thread. */
import { MessageChannel } from "node:worker_threads";
import { afterEach, expect, test } from "vitest";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import type { FeedMessage } from "#cairnlog/engine/log/follow/feed.js";
import type { Command } from "#cairnlog/engine/log/state/commands.js";
import type { Committed, Payer, Receipt } from "#cairnlog/engine/log/state/executor.js";
import { revokeKey } from "#cairnlog/engine/registry/keys/commands.js";
import type { Shared } from "#cairnlog/server/front/calls.js";
import type { ToFront } from "#cairnlog/server/front/messages.js";
import { type FrontWord, WriterSide } from "#cairnlog/server/front/writer-side.js";
import { type FrontOrder, WriterPort } from "#cairnlog/server/front/writerport.js";
import { inTrace, traceparent } from "#cairnlog/server/process/tracing.js";
import { recordSpans } from "../recordedspans.js";

/** A command that the writer's log has taken. */
interface Taken {
  readonly name: string;
  readonly input: unknown;
  readonly resolve: (committed: Committed<unknown>) => void;
  readonly reject: (error: unknown) => void;
  readonly payer: Payer | null;
  /** Below which it was taken. */
  readonly span: string;
}

const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

/** Both ends. `fed` is what the writer has told all front ends before. */
function connected(shared: object = {}, fed = 0) {
  const { port1, port2 } = new MessageChannel();
  const taken: Taken[] = [];
  const heard: FrontWord[] = [];
  let due = 0;
  const log = {
    enqueue: (
      { name }: { name: string },
      input: unknown,
      resolve: Taken["resolve"],
      reject: Taken["reject"],
      payer: Payer | null,
    ) => void taken.push({ name, input, resolve, reject, payer, span: traceparent() }),
  };
  const writerSide = new WriterSide({
    port: port1,
    log: log as never,
    shared: shared as Shared,
    due: () => {
      due++;
    },
    heard: (word) => void heard.push(word),
  });
  const sharedState = { fed };
  const writer = new WriterPort(port2, sharedState, fed);
  ends.push(() => writerSide.close());
  const told: FeedMessage[] = [];
  /** As `FrontThreads` does: counted before it is sent. */
  const tell = (...feed: FeedMessage[]) => {
    sharedState.fed = (sharedState.fed + feed.length) | 0;
    writerSide.tell(feed);
  };
  const follow = () => writer.follow((message) => void told.push(message));
  return { writerSide, writer, sharedState, taken, heard, told, tell, follow, due: () => due };
}

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise((resolve) => setImmediate(resolve));
}

const frozen = (to: number): FeedMessage => ({ kind: "frozen", to });
const execute = <Input, Output>(writer: WriterPort, command: Command<Input, Output>, input: Input) =>
  new Promise<Committed<Output>>((resolve, reject) => writer.enqueue(command, input, resolve, reject));
const revoke = (writer: WriterPort, fingerprint: string) => execute(writer, revokeKey, { fingerprint });

/** The receipt of the entry at `leaf_index`, from a batch of that time by that operator key. */
function receipt(leaf_index: number, time: string, key_id: string): Receipt {
  const head = { root_hash: `root ${leaf_index}`, signature: `signature ${leaf_index}` };
  const sth = { tree_size: leaf_index + 1, ...head, timestamp: `head ${time}`, key_id, tree_version: 2 as const };
  const json = Buffer.from(`{"entry":${"é".repeat(leaf_index)}${leaf_index}}`);
  return { log_entry_id: leaf_index + 100, leaf_index, entry_hash: `hash ${leaf_index}`, timestamp: time, sth, json };
}
const plain = ({ json, ...rest }: Receipt) => ({ ...rest, json: json.toString() });

test("commands of one turn come in order, and their receipts are those of the log", async () => {
  const { writerSide, writer, taken, due } = connected();
  const results = ["a", "b", "c", "d"].map((fingerprint) => revoke(writer, fingerprint));
  await until(() => taken.length === 4);
  const names = taken.map(({ name, input }) => [name, input]);
  expect(names).toEqual(["a", "b", "c", "d"].map((fingerprint) => [revokeKey.name, { fingerprint }]));
  // Two batches, an operator key that was replaced between two heads of one moment, and a command without an entry.
  const receipts = [receipt(0, "1", "k"), receipt(1, "1", "k"), receipt(2, "2", "k"), receipt(3, "2", "l")];
  taken[1]!.resolve({ value: undefined, receipts: receipts.slice(0, 3) });
  taken[0]!.resolve({ value: { any: "thing" }, receipts: [] });
  taken[3]!.resolve({ value: 7, receipts: receipts.slice(3) });
  expect(due()).toBe(3);
  writerSide.tell([]);
  const [first, second, fourth] = await Promise.all([results[0], results[1], results[3]]);
  expect(first).toEqual({ value: { any: "thing" }, receipts: [] });
  expect([second!.value, fourth!.value]).toEqual([undefined, 7]);
  expect([...second!.receipts, ...fourth!.receipts].map(plain)).toEqual(receipts.map(plain));
  // What was told is not told again.
  taken[2]!.resolve({ value: null, receipts: [receipt(4, "3", "l")] });
  writerSide.tell([]);
  expect((await results[2]!).receipts.map(plain)).toEqual([plain(receipt(4, "3", "l"))]);
});

test("a message has the heads of its own receipts, and none of those that were sent before", async () => {
  const { port1, port2 } = new MessageChannel();
  let time = 0;
  const enqueue = (_: unknown, input: unknown, resolve: Taken["resolve"]) =>
    resolve({ value: input, receipts: [receipt(0, `${++time}`, "k")] });
  const writerSide = new WriterSide({
    ...{ port: port1, log: { enqueue } as never, shared: {} as Shared, heard: () => {} },
    due: () => writerSide.tell([]),
  });
  ends.push(() => writerSide.close());
  const heads: number[] = [];
  port2.on("message", (message: ToFront & { kind: "feed" }) => heads.push(message.heads.length));
  for (let n = 0; n < 3; n++) port2.postMessage({ kind: "commands", commands: [[n, revokeKey.name, {}]] });
  await until(() => heads.length === 3);
  expect(heads).toEqual([1, 1, 1]);
});

test.each([
  ["", null],
  [", with a tracer", recordSpans],
])("a command is paid for by whom its client says, and by nobody else%s", async (_, record) => {
  const recording = record?.();
  try {
    const { writer, taken } = connected({ metrics: { text: async () => traceparent() } });
    const payers: (Payer | null)[] = [
      { client: "192.0.2.1", isReached: false },
      { client: "2001:db8::1", isReached: true },
      null,
      { client: "192.0.2.1", isReached: true },
    ];
    const spans = payers.map((_, n) => (n % 2 && record ? `00-${`${n}`.repeat(32)}-${`${n}`.repeat(16)}-01` : ""));
    const calls = payers.map((payer, n) =>
      inTrace(spans[n]!, () => {
        writer.enqueue(
          revokeKey,
          { fingerprint: `${n}` },
          () => {},
          () => {},
          payer,
        );
        return writer.calls.metrics.text();
      }),
    );
    await until(() => taken.length === payers.length);
    expect(taken.map(({ payer }) => payer)).toEqual(payers);
    expect(taken.map(({ span }) => span)).toEqual(spans);
    expect(await Promise.all(calls)).toEqual(spans);
  } finally {
    recording?.stop();
  }
});

test("a refusal between receipts of one message takes no text from them", async () => {
  const { writerSide, writer, taken } = connected();
  // Two entries, a refusal, one entry, a command without an entry, a refusal, three entries.
  const numbers = [[0, 1], null, [2], [], null, [3, 4, 5]];
  const receipts = numbers.map((list) => list?.map((number) => receipt(number, "1", "k")) ?? null);
  const results = Promise.allSettled(receipts.map((_, i) => revoke(writer, `${i}`)));
  await until(() => taken.length === numbers.length);
  for (const [i, list] of receipts.entries())
    if (list) taken[i]!.resolve({ value: i, receipts: list });
    else taken[i]!.reject(new CairnlogError("forbidden", `${i}`));
  writerSide.tell([]);
  for (const [i, result] of (await results).entries()) {
    if (result.status === "rejected") expect(result.reason).toMatchObject({ code: "forbidden", message: `${i}` });
    else expect(result.value.receipts.map(plain)).toEqual(receipts[i]!.map(plain));
    expect(result.status === "rejected").toBe(receipts[i] === null);
  }
});

test.each(["taken", "refused"])("a command is %s when the batch with it has been followed", async (how) => {
  const { writer, taken, tell, follow, told } = connected();
  follow();
  const seen: number[] = [];
  const ended = () => void seen.push(told.length);
  writer.enqueue(revokeKey, { fingerprint: "a" }, ended, ended);
  await until(() => taken.length === 1);
  if (how === "taken") taken[0]!.resolve({ value: undefined, receipts: [] });
  else taken[0]!.reject(new CairnlogError("forbidden", "refused"));
  tell(frozen(1), frozen(2));
  await until(() => seen.length === 1);
  expect(seen).toEqual([2]);
});

test("a command that fails, or that nobody knows, rejects with the error", async () => {
  const { writerSide, writer, taken } = connected();
  const known = revoke(writer, "a");
  const unknown = execute(writer, { ...revokeKey, name: "key.unheard-of" }, { fingerprint: "b" });
  await until(() => taken.length === 1);
  taken[0]!.reject(new CairnlogError("overloaded", "Too much.", { retryAfter: 3 }));
  await new Promise((resolve) => setImmediate(resolve));
  writerSide.tell([]);
  await expect(known).rejects.toMatchObject({ code: "overloaded", message: "Too much.", retryAfter: 3 });
  await expect(unknown).rejects.toMatchObject({
    code: "invalid-input",
    message: "There is no command of the name key.unheard-of.",
  });
});

test("a call is answered with its own result or error, in whatever order", async () => {
  const waiting: (() => void)[] = [];
  const { writer } = connected({
    passwords: {
      check: (fingerprint: string, password: string) =>
        new Promise<void>((resolve, reject) =>
          waiting.push(() => (password === "right" ? resolve() : reject(new CairnlogError("forbidden", fingerprint)))),
        ),
    },
    metrics: { text: async () => "text" },
  });
  const { passwords, metrics } = writer.calls;
  const [right, wrong] = [passwords.check("a", "right"), passwords.check("b", "wrong")];
  expect(await metrics.text()).toBe("text");
  for (const answer of waiting.reverse()) answer();
  await expect(wrong).rejects.toMatchObject({ code: "forbidden", message: "b" });
  expect(await right).toBeUndefined();
});

test("what the writer tells is followed in order, what came early too", async () => {
  const { writerSide, writer, told, tell, follow } = connected();
  tell(frozen(1), frozen(2));
  tell(frozen(3));
  let asked = 0;
  writer.obey(() => asked++);
  writerSide.send({ kind: "report" });
  await until(() => asked === 1);
  expect(told).toEqual([]);
  follow();
  expect(told).toEqual([1, 2, 3].map(frozen));
  tell(frozen(4));
  await until(() => told.length === 4);
  expect(told[3]).toEqual(frozen(4));
});

test.each([0, 5, 2 ** 31 - 2])("all that is counted is followed at once, when %i were counted before", async (fed) => {
  const { writer, sharedState, told, tell, follow } = connected({}, fed | 0);
  follow();
  writer.catchUp();
  tell(frozen(1));
  tell(frozen(2), frozen(3));
  tell(frozen(4));
  expect(told).toEqual([]);
  writer.catchUp();
  expect(told).toEqual([1, 2, 3, 4].map(frozen));
  expect(sharedState.fed).toBe((fed + 4) | 0);
  await new Promise((resolve) => setImmediate(resolve));
  writer.catchUp();
  expect(told).toHaveLength(4);
});

test("an answer that waits among what is followed is not lost", async () => {
  const { writer, taken, tell, follow } = connected({ metrics: { text: async () => "text" } });
  follow();
  const [result, called] = [revoke(writer, "a"), writer.calls.metrics.text()];
  await until(() => taken.length === 1);
  taken[0]!.resolve({ value: 1, receipts: [receipt(0, "1", "k")] });
  tell(frozen(1));
  writer.catchUp();
  expect((await result).receipts).toHaveLength(1);
  expect(await called).toBe("text");
});

test("orders and words arrive as they are", async () => {
  const { writerSide, writer, heard } = connected();
  const orders: FrontOrder[] = [];
  const sent: ToFront[] = [
    { kind: "listen", host: "::1", port: 7, isShared: true },
    { kind: "report" },
    { kind: "close" },
    { kind: "abandon" },
  ];
  writerSide.send({ kind: "report" });
  await new Promise((resolve) => setImmediate(resolve));
  writer.obey((order) => void orders.push(order));
  for (const order of sent) writerSide.send(order);
  writer.send({ kind: "opened" });
  writer.send({ kind: "listening", port: 8 });
  await until(() => orders.length >= sent.length && heard.length === 2);
  expect(orders.slice(-sent.length)).toEqual(sent);
  expect(heard).toEqual([{ kind: "opened" }, { kind: "listening", port: 8 }]);
});

test("a front end that ends refuses everybody who waits", async () => {
  const { writer, taken } = connected({ metrics: { text: () => new Promise(() => {}) } });
  const waiting = [revoke(writer, "a"), writer.calls.metrics.text()];
  await until(() => taken.length === 1);
  writer.close();
  for (const one of waiting) await expect(one).rejects.toMatchObject({ code: "closed" });
});

test("where there is nothing to tell, no message is sent", async () => {
  const { writerSide, writer, told, follow } = connected();
  follow();
  let messages = 0;
  const { port1, port2 } = new MessageChannel();
  const bare = new WriterSide({ port: port1, log: {} as never, shared: {} as Shared, due: () => {}, heard: () => {} });
  port2.on("message", () => messages++);
  bare.tell([]);
  bare.tell([frozen(1)]);
  bare.tell([]);
  await until(() => messages > 0);
  await new Promise((resolve) => setImmediate(resolve));
  expect([messages, told]).toEqual([1, []]);
  bare.close();
  writerSide.tell([]);
  writer.catchUp();
});

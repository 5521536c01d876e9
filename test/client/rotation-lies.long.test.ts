/**
 * Chains of operator keys that nobody should believe, though the keys in them have signed them: told to a client that comes
 * anew, to one that knows the log, to a monitor of either kind, and in a bundle. All is signed here by node:crypto.
 */
import { generateKeyPairSync, sign } from "node:crypto";
import { cpSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { rotateOperatorKey } from "#cairnlog/engine/log/history/rotate.js";
import { projection } from "#cairnlog/engine/registry/events/projection.js";
import {
  type AttestationBundle,
  type OperatorTerm,
  parsePublicKey,
  verifyBundle,
} from "#cairnlog/engine/verify/index.js";
import { type Client, createClient, memoryStore, type State, type Store } from "#cairnlog/server/client/index.js";
import type { Misconduct } from "#cairnlog/server/monitor/alarm.js";
import { anyEvent } from "../anyevent.js";
import { caught, newMonitor } from "../monitor/monitors.js";
import { startTestService, type TestService, temporaryFolder } from "../server/harness.js";
import { all, conviction, failure, newClient } from "./clients.js";
import { LyingProxy } from "./proxy.js";

/** An operator key: of the log (a, then b), of a thief of a (x). */
function newKey() {
  const { privateKey } = generateKeyPairSync("ed25519");
  const pem = privateKey.export({ type: "pkcs8", format: "pem" }) as string;
  const { fingerprint, pem: publicPem } = parsePublicKey(operatorKey(pem).public.pem);
  return { pem, fingerprint, publicPem, sign: (text: string) => sign(null, Buffer.from(text), pem).toString("base64") };
}
type Key = ReturnType<typeof newKey>;
const [a, b, x] = [newKey(), newKey(), newKey()];
const FILE = "ab".repeat(32);
/** Entries before the rotation. */
const PLACE = 3;

let honest: TestService;
/** A log with the same entries up to the rotation. Its rotation names another key. */
let thief: TestService;
let proxy: LyingProxy;
let bundle: AttestationBundle;
const roots = new Map<number, string>();

beforeAll(async () => {
  const [folder, copy] = [temporaryFolder(), join(temporaryFolder(), "data")];
  const start = async (SERVICE_DATA_DIR: string, key: Key) => {
    writeFileSync(join(SERVICE_DATA_DIR, "operator.pem"), key.pem, { mode: 0o600 });
    return startTestService({ SERVICE_DATA_DIR });
  };
  const grow = ({ server, url }: TestService) => server.registry.log.append([1, 2, 3].map(() => anyEvent({ url })));
  const first = await start(folder, a);
  await grow(first);
  await first.close();
  cpSync(folder, copy, { recursive: true });
  const handOver = (data: string, to: Key) =>
    rotateOperatorKey({ path: join(data, "log"), from: operatorKey(a.pem), to: operatorKey(to.pem), projection });
  await handOver(folder, b);
  await handOver(copy, x);
  honest = await start(folder, b);
  thief = await start(copy, x);
  for (const service of [honest, thief]) await grow(service);
  const { client } = newClient(honest.url, { operatorKey: a.publicPem });
  bundle = (await client.attest({ title: "T", content_hash: FILE }, { pseudonym: "Ada" })).bundle;
  for (const { tree_size, root_hash } of (await honest.get("/log/heads?limit=100")).body.heads)
    roots.set(tree_size, root_hash);
});
beforeEach(async () => {
  proxy = await LyingProxy.before(honest.url);
});

/** A term of a chain, and who signs its rotation as the old key: by default the key before. */
interface Term {
  readonly key: Key;
  readonly from: number;
  readonly until?: number;
  readonly root?: string;
  readonly by?: Key;
}

function chainOf(...terms: readonly Term[]): OperatorTerm[] {
  return terms.map(({ key, from, until, root, by }, i) => {
    const old = terms[i - 1]?.key;
    const root_hash = root ?? roots.get(from - 1) ?? FILE;
    const text = `cairnlog-operator-key-rotation/v1:${old?.fingerprint}:${key.fingerprint}:${from - 1}:${root_hash}`;
    const signed = { old_key_signature: (by ?? old)?.sign(text) ?? "", new_key_signature: key.sign(text) };
    return {
      ...{ key_id: key.fingerprint, algorithm: "ed25519", public_key: key.publicPem },
      ...{ from_size: from, until_size: until ?? null },
      rotation: old ? { entry_id: from, root_hash, ...signed } : null,
    };
  });
}

/** Every head in an answer, signed by the key whose term in the chain its size is in. */
// biome-ignore lint/suspicious/noExplicitAny: heads are in answers of every shape
function underChain(answer: any, chain: readonly OperatorTerm[]): any {
  if (typeof answer !== "object" || answer === null) return answer;
  if (Array.isArray(answer)) return answer.map((one) => underChain(one, chain));
  const { root_hash, tree_size, timestamp } = answer;
  if (!("key_id" in answer && "signature" in answer && root_hash))
    return Object.fromEntries(Object.entries(answer).map(([name, value]) => [name, underChain(value, chain)]));
  const key_id = chain.findLast(({ from_size }) => from_size <= tree_size)!.key_id;
  const key = [a, b, x].find(({ fingerprint }) => fingerprint === key_id)!;
  return { ...answer, key_id, signature: key.sign(`${root_hash}:${tree_size}:${timestamp}`) };
}

interface ChainLie {
  readonly chain: () => OperatorTerm[];
  /** What a monitor that comes anew calls it. */
  readonly kind: Misconduct;
  /** Whether a client that comes anew can see it: the lie contradicts something that such a client reads. */
  readonly isSeenAnew?: false;
  /** Whether it contradicts itself, so that a bundle shows it offline. */
  readonly isSeenOffline?: true;
}

const LIES: Readonly<Record<string, ChainLie>> = {
  "over another root": {
    chain: () => chainOf({ key: a, from: 1, until: PLACE }, { key: b, from: PLACE + 1, root: FILE }),
    kind: "operator-key",
  },
  "of an older size": {
    chain: () => chainOf({ key: a, from: 1, until: PLACE - 1 }, { key: b, from: PLACE }),
    kind: "operator-key",
  },
  "of an older size, over the root of the true one": {
    chain: () => chainOf({ key: a, from: 1, until: PLACE - 1 }, { key: b, from: PLACE, root: roots.get(PLACE)! }),
    kind: "operator-key",
  },
  "of a size that the log has not reached": {
    chain: () => chainOf({ key: a, from: 1, until: 1_000 }, { key: b, from: 1_001 }),
    kind: "missing-proof",
  },
  "to another key at the same place": {
    chain: () => chainOf({ key: a, from: 1, until: PLACE }, { key: x, from: PLACE + 1 }),
    kind: "operator-key",
  },
  "to two keys at one place, both signed by the old one": {
    chain: () =>
      chainOf(
        { key: a, from: 1, until: PLACE },
        { key: b, from: PLACE + 1, until: PLACE + 1 },
        { key: x, from: PLACE + 2, by: a },
      ),
    kind: "operator-key",
    isSeenOffline: true,
  },
  "to two keys at one place, one after the other": {
    chain: () =>
      chainOf(
        { key: a, from: 1, until: PLACE },
        { key: b, from: PLACE + 1, until: PLACE },
        { key: x, from: PLACE + 1 },
      ),
    kind: "operator-key",
    isSeenOffline: true,
  },
  "in a circle": {
    chain: () =>
      chainOf(
        { key: a, from: 1, until: PLACE },
        { key: b, from: PLACE + 1, until: PLACE + 2 },
        { key: a, from: PLACE + 3 },
      ),
    kind: "operator-key",
    isSeenOffline: true,
  },
  "that is hidden, with heads by the retired key": {
    chain: () => chainOf({ key: a, from: 1 }),
    kind: "wrong-root",
    isSeenAnew: false,
  },
};

/** The service tells this chain, with heads that its keys have signed. */
function tell(chain: OperatorTerm[]): void {
  proxy.lie = (path, answer) =>
    path === "/log/operator-key"
      ? { ...answer, fingerprint: chain.at(-1)!.key_id, public_key: chain.at(-1)!.public_key, operators: chain }
      : underChain(answer, chain);
}

const clientWith = (store: Store) => createClient({ server: proxy.url, operatorKey: a.publicPem, store });

test("the true chain, made in the same way, is believed by everybody", async () => {
  const chain = chainOf({ key: a, from: 1, until: PLACE }, { key: b, from: PLACE + 1 });
  expect(chain).toEqual((await honest.get("/log/operator-key")).body.operators);
  tell(chain);
  expect(await clientWith(memoryStore()).log.head()).toMatchObject({ key_id: b.fingerprint });
  const { monitor } = newMonitor(proxy.url, { operatorKey: a.publicPem });
  await monitor.round();
  await monitor.close();
  const told = { ...bundle, ...underChain({ tree_head: bundle.tree_head }, chain), operators: chain };
  expect(await verdictOf(told)).toBe(true);
});

test("the true chain is not believed where the log does not begin with the tree that was handed over", async () => {
  const store = memoryStore();
  // The log has the rotation at its place. What is before it may have been written anew by whoever has both keys.
  proxy.lie = (path, answer) =>
    path.startsWith(`/log/consistency?from=${PLACE}&`)
      ? { ...answer, extension: answer.extension.with(0, FILE) }
      : answer;
  await conviction(clientWith(store).log.operators());
  expect(await store.load()).toEqual({ operator_key: a.publicPem, head: null });
});

test("a head that nobody has signed is called so by a monitor to which the true chain is new", async () => {
  const signature = x.sign("something else");
  proxy.lie = (path, answer) => (path === "/log/sth" ? { ...answer, signature } : answer);
  const { monitor } = newMonitor(proxy.url, { operatorKey: a.publicPem });
  expect(await caught(monitor.round(), "bad-signature")).toMatchObject({ shown: { signature } });
  await monitor.close();
});

const verdictOf = async (told: AttestationBundle) =>
  (await verifyBundle(told, { fileHash: FILE, operatorKey: parsePublicKey(a.publicPem) })).valid;

describe.each(Object.entries(LIES))("a rotation %s", (_, { chain: make, kind, isSeenAnew = true, isSeenOffline }) => {
  if (isSeenAnew)
    test("is not believed by a client that comes anew, which keeps nothing of it", async () => {
      const store = memoryStore();
      tell(make());
      // The second one begins with what the first one has kept.
      for (let tries = 0; tries < 2; tries++) {
        await conviction(clientWith(store).log.operators());
        expect(await store.load()).toEqual({ operator_key: a.publicPem, head: null });
      }
    });

  test("is not believed by a client that knows the log, which goes on from what it knew", async () => {
    const store = memoryStore();
    await clientWith(store).log.head();
    const before = await store.load();
    const chain = make();
    tell(chain);
    // A client asks for the chain when a head names a key that it does not know.
    const { tree_size } = before!.head!;
    const isAsked = chain.findLast(({ from_size }) => from_size <= tree_size)!.key_id !== b.fingerprint;
    if (isAsked) await conviction(clientWith(store).log.head());
    else await clientWith(store).log.head();
    expect(await store.load()).toEqual(before);
    proxy.repent();
    expect(await clientWith(store).log.head()).toMatchObject({ key_id: b.fingerprint });
  });

  test("is an alarm of a monitor that comes anew, which mirrors nothing of it", async () => {
    const chain = make();
    tell(chain);
    let { monitor, folder } = newMonitor(proxy.url, { operatorKey: a.publicPem });
    // Also one that begins again in the same folder.
    for (let rounds = 0; rounds < 2; rounds++) {
      const { shownOperators } = await caught(monitor.round(), kind);
      if (kind === "operator-key") expect(shownOperators).toEqual(chain);
      expect(monitor.size).toBeLessThanOrEqual(PLACE);
      await monitor.close();
      ({ monitor, folder } = newMonitor(proxy.url, { operatorKey: a.publicPem, folder }));
    }
  });

  test("is an alarm of a monitor that knows the log, with both chains", async () => {
    const { monitor, folder } = newMonitor(proxy.url, { operatorKey: a.publicPem });
    await monitor.round();
    const [size, state] = [monitor.size, await folder.store.load()];
    const chain = make();
    tell(chain);
    const { operators, shownOperators } = await caught(monitor.round(), "operator-key");
    expect(operators.map(({ key_id }) => key_id)).toEqual([a.fingerprint, b.fingerprint]);
    expect(shownOperators).toEqual(chain);
    expect([monitor.size, await folder.store.load()]).toEqual([size, state]);
    await monitor.close();
  });

  if (isSeenOffline)
    test("makes no bundle valid", async () => {
      const chain = make();
      const told = { ...bundle, ...underChain({ tree_head: bundle.tree_head }, chain), operators: chain };
      expect(await verdictOf(told)).toBe(false);
    });
});

describe("while a chain is checked against the log, a head of yet another key", () => {
  const toB = () => chainOf({ key: a, from: 1, until: PLACE }, { key: b, from: PLACE + 1 });
  /** The first head is the chain's, the next one is of `x`. */
  function change(later: () => OperatorTerm[]): void {
    let heads = 0;
    let chains = 0;
    proxy.lie = (path, answer) => {
      if (path === "/log/operator-key") {
        const operators = chains++ ? later() : toB();
        return { ...answer, public_key: operators.at(-1)!.public_key, operators };
      }
      return path === "/log/sth" && heads++
        ? underChain(answer, chainOf({ key: a, from: 1, until: PLACE }, { key: x, from: PLACE + 1 }))
        : answer;
    };
  }

  test("that no chain names is a lie, and the chain is not kept", async () => {
    const store = memoryStore();
    change(toB);
    await conviction(clientWith(store).log.head());
    expect(await store.load()).toEqual({ operator_key: a.publicPem, head: null });
    expect(proxy.asked.length).toBeLessThan(8);
  });

  test("that the chain names by then is a rotation that came in between: asked again, it is believed or not", async () => {
    const store = memoryStore();
    change(() =>
      chainOf({ key: a, from: 1, until: PLACE }, { key: b, from: PLACE + 1, until: 5 }, { key: x, from: 6 }),
    );
    expect(await failure(clientWith(store).log.head())).toMatchObject({ code: "stale-answer" });
    expect(await store.load()).toEqual({ operator_key: a.publicPem, head: null });
    await conviction(clientWith(store).log.head());
    expect(await store.load()).toEqual({ operator_key: a.publicPem, head: null });
  });
});

describe("a client that has seen the chain of before the rotation", () => {
  const READS: Readonly<Record<string, (client: Client, size: number) => Promise<unknown>>> = {
    "the newest head": ({ log }) => log.head(),
    "the head of a size": ({ log }, size) => log.headOf(size),
    "heads of both keys": ({ log }, size) => log.heads(1, size),
    "a summary": ({ log }) => log.summary(),
    "a checkpoint": ({ log }) => log.checkpoint(),
    "an entry": ({ log }) => log.entry(1),
    "every entry": ({ log }) => all(log.since(0)),
    "a list": ({ log }) => all(log.entries()),
    "a proof": ({ log }) => log.proof(0),
    "the consistency of heads of both keys": ({ log }, size) => log.consistency(PLACE, size),
    "whether the log has ended": ({ shards }) => shards.end(),
  };
  test.each(Object.entries(READS))("reads %s of after it, and accuses nobody", async (_, read) => {
    let isBefore = true;
    const before = { fingerprint: a.fingerprint, public_key: a.publicPem, operators: chainOf({ key: a, from: 1 }) };
    proxy.lie = (path, answer) => (isBefore && path === "/log/operator-key" ? { ...answer, ...before } : answer);
    const client = createClient({ server: proxy.url, operatorKey: a.publicPem });
    expect((await client.log.operators()).chain).toHaveLength(1);
    isBefore = false;
    await read(client, await honest.entryCount());
  });
});

describe("of two logs to which the old key has handed over at the same place", () => {
  const ORDERS: [string, () => readonly [TestService, TestService], Key][] = [
    ["the true one", () => [honest, thief], b],
    ["the thief's", () => [thief, honest], x],
  ];
  test.each(ORDERS)("a client that knows %s takes no head of the other", async (_, services, known) => {
    const [own, other] = services();
    const store = memoryStore();
    proxy.upstream = own.url;
    expect(await clientWith(store).log.head()).toMatchObject({ key_id: known.fingerprint });
    const before = (await store.load()) as State;
    proxy.upstream = other.url;
    const evidence = await conviction(clientWith(store).log.head());
    expect(evidence.operators.map(({ key_id }) => key_id)).toEqual([a.fingerprint, known.fingerprint]);
    expect(evidence.known).toEqual(before.head);
    expect(evidence.shown!.key_id).toBe((known === b ? x : b).fingerprint);
    expect(await store.load()).toEqual(before);
  });

  test.each(ORDERS)("a monitor that knows %s raises an alarm that names both", async (_, services, known) => {
    const [own, other] = services();
    proxy.upstream = own.url;
    const { monitor, folder } = newMonitor(proxy.url, { operatorKey: a.publicPem });
    await monitor.round();
    const before = await folder.store.load();
    proxy.upstream = other.url;
    const { operators, shownOperators, shownKey } = await caught(monitor.round(), "operator-key");
    const unknown = known === b ? x : b;
    expect([operators.at(-1)!.key_id, shownOperators!.at(-1)!.key_id]).toEqual([
      known.fingerprint,
      unknown.fingerprint,
    ]);
    expect(shownKey).toBe(unknown.publicPem);
    expect(await folder.store.load()).toEqual(before);
    await monitor.close();
  });
});

/** A service whose operator key is rotated: who pinned a key of it goes on, and believes nothing that the chain does not cover. */
import { createPrivateKey, sign } from "node:crypto";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { type Rotated, rotateOperatorKey } from "#cairnlog/engine/log/history/rotate.js";
import { projection } from "#cairnlog/engine/registry/events/projection.js";
import { type AttestationBundle, parsePublicKey, type TreeHead, verifyBundle } from "#cairnlog/engine/verify/index.js";
import { createClient, memoryStore, type Signer } from "#cairnlog/server/client/index.js";
import { operatorPublicKeyPath } from "#cairnlog/server/settings/settings.js";
import { anyEvent } from "../anyevent.js";
import { caught, newMonitor } from "../monitor/monitors.js";
import { startTestService, type TestService, temporaryFolder } from "../server/harness.js";
import { all, asSigner, conviction, failure, newClient } from "./clients.js";
import { type Lie, LyingProxy } from "./proxy.js";

const PEMS = (["ed25519", "ecdsa-p256", "rsa-2048"] as const).map((algorithm) => generatePrivateKey(algorithm));
const KEYS = PEMS.map((pem) => operatorKey(pem));
const [first, second, third] = KEYS.map((key) => parsePublicKey(key.public.pem)) as [
  ReturnType<typeof parsePublicKey>,
  ReturnType<typeof parsePublicKey>,
  ReturnType<typeof parsePublicKey>,
];
const HASH = "ab".repeat(32);

const folder = temporaryFolder();
let service: TestService;
let proxy: LyingProxy;
const rotations: Rotated[] = [];
const bundles: AttestationBundle[] = [];
/** One signer attested in the term of each operator key. The signers stand here in that order. */
const signers: Signer[] = [];
const earlyStore = memoryStore();
const early = () => createClient({ server: proxy.url, operatorKey: first.pem, store: earlyStore });
const earlyMonitor = () => monitors;
let monitors: ReturnType<typeof newMonitor>;
let sessionOfFirst: string;
let eve: Signer;

async function start(term: number): Promise<void> {
  rmSync(join(folder, "operator.pem"), { force: true });
  writeFileSync(join(folder, "operator.pem"), PEMS[term]!, { mode: 0o600 });
  service = await startTestService({ SERVICE_DATA_DIR: folder });
  if (proxy) proxy.upstream = service.url;
}

async function attest(): Promise<void> {
  const { client, signer } = newClient(service.url, { operatorKey: first.pem });
  signers.push(asSigner(signer));
  bundles.push((await client.attest({ title: "T", content_hash: HASH }, { pseudonym: "Ada" })).bundle);
}

const grow = () => service.server.registry.log.append([0, 1].map(() => anyEvent({ at: service.url })));

beforeAll(async () => {
  await start(0);
  proxy = await LyingProxy.before(service.url);
  monitors = newMonitor(proxy.url, { operatorKey: first.pem });
  for (const term of [0, 1, 2]) {
    if (term > 0) {
      await service.close();
      const [from, to] = [KEYS[term - 1]!, KEYS[term]!];
      rotations.push(await rotateOperatorKey({ path: join(folder, "log"), from, to, projection }));
      await start(term);
    }
    await attest();
    await grow();
    if (term === 0) {
      await early().log.head();
      await monitors.monitor.round();
      const { client, signer } = newClient(service.url);
      eve = asSigner(signer);
      await client.attest({ title: "S", content_hash: HASH }, { pseudonym: "Eve" });
      sessionOfFirst = (await client.login()).token;
    }
  }
});

describe("the service", () => {
  test("shows the chain", async () => {
    const { body } = await service.get("/log/operator-key");
    const [a, b] = rotations as [Rotated, Rotated];
    expect(body).toMatchObject({ fingerprint: third.fingerprint, algorithm: "rsa-2048", public_key: third.pem });
    expect(body.operators).toMatchObject([
      { key_id: first.fingerprint, from_size: 1, until_size: a.tree_size, rotation: null },
      { key_id: second.fingerprint, from_size: a.tree_size + 1, until_size: b.tree_size },
      { key_id: third.fingerprint, until_size: null, rotation: { entry_id: b.log_entry_id, root_hash: b.root_hash } },
    ]);
    expect(await (await service.post("/log/verify")).body).toMatchObject({ valid: true });
  });

  test("tells what became of the keys", async () => {
    const record = (key: typeof first) => service.get(`/keys/${key.fingerprint}`).then(({ body }) => body);
    expect(await record(first)).toMatchObject({ status: "succeeded", successor_fingerprint: second.fingerprint });
    expect(await record(third)).toMatchObject({
      status: "active",
      predecessor_fingerprint: second.fingerprint,
      log_entry_id: rotations[1]!.log_entry_id,
    });
  });

  test("has ended the sessions that the retired key signed", async () => {
    const headers = { authorization: `Bearer ${sessionOfFirst}` };
    expect(await service.post("/auth/renew", {}, headers)).toMatchObject({ status: 401 });
  });

  test("keeps the name of its log", async () => {
    const name = `cairnlog/${first.fingerprint.slice("sha256:".length).slice(0, 16)}`;
    // An RSA key signs no notes.
    expect((await service.get("/log/checkpoint")).status).toBe(404);
    expect(service.server.registry.log.operators.first.fingerprint).toContain(name.slice("cairnlog/".length));
  });
});

describe("a client", () => {
  test("that pinned the first key before goes on by itself", async () => {
    const head = await early().log.head();
    expect(head).toMatchObject({ key_id: third.fingerprint, tree_size: await service.entryCount() });
    const state = await earlyStore.load();
    expect(state).toMatchObject({ operator_key: first.pem, head: { key_id: third.fingerprint } });
    expect(state!.operators).toHaveLength(3);
  });

  test.each([
    ["first", first],
    ["second", second],
    ["third", third],
  ])("that pins the %s key now reads heads of every term", async (_, { pem }) => {
    const { log } = createClient({ server: service.url, operatorKey: pem });
    const size = await service.entryCount();
    expect((await log.heads(1, size)).length).toBe(size);
    expect((await log.headOf(1)).key_id).toBe(first.fingerprint);
    expect((await log.consistency(1, size)).from_root).toMatch(/^[0-9a-f]{64}$/);
    expect((await log.operators()).chain).toHaveLength(3);
  });

  test("that asks a node that is behind for the head says how far the chain leads", async () => {
    // A node gives what it has, unless it is told that there is more.
    const old = rotations[0]!.tree_size;
    const fetcher: typeof fetch = (input, init) => {
      const seen = Number(new Headers(init?.headers).get("cairnlog-size"));
      return fetch(String(input).endsWith("/log/sth") && seen <= old ? `${input}/${old}` : input, init);
    };
    const { log } = createClient({ server: service.url, operatorKey: first.pem, fetch: fetcher });
    expect((await log.head())?.key_id).toBe(first.fingerprint);
    expect((await log.operators()).chain).toHaveLength(3);
  });

  test("that pins an unrelated key refuses", async () => {
    const operatorPem = operatorKey(generatePrivateKey("ed25519")).public.pem;
    const { log } = createClient({ server: service.url, operatorKey: operatorPem });
    const evidence = await conviction(log.head(), "operator-key-mismatch");
    expect(evidence).toMatchObject({ operatorKey: operatorPem, shown: { key_id: third.fingerprint } });
  });

  test("that pins a later key than the one in its store goes on, and not with another", async () => {
    const client = createClient({ server: service.url, operatorKey: second.pem, store: earlyStore });
    expect((await client.log.head())?.key_id).toBe(third.fingerprint);
    const stranger = operatorKey(generatePrivateKey("ed25519")).public.pem;
    const other = createClient({ server: service.url, operatorKey: stranger, store: earlyStore });
    expect((await failure(other.log.head())).code).toBe("operator-key-mismatch");
  });
});

/** A head of the newest size and root that a key signs, whether it may or not. */
function signedBy(term: number, { root_hash, tree_size, timestamp, tree_version }: TreeHead): TreeHead {
  const message = Buffer.from(`${root_hash}:${tree_size}:${timestamp}`);
  const signature = sign(term === 0 ? null : "sha256", message, createPrivateKey(PEMS[term]!)).toString("base64");
  return { root_hash, tree_size, timestamp, tree_version, signature, key_id: KEYS[term]!.fingerprint };
}

const chainWith =
  // biome-ignore lint/suspicious/noExplicitAny: lies are told about answers of every shape
    (change: (chain: any[]) => unknown): Lie =>
    (path, answer) => {
      if (path !== "/log/operator-key") return answer;
      const operators = change(structuredClone(answer.operators)) as { public_key: string }[];
      return { ...answer, public_key: operators.at(-1)?.public_key ?? answer.public_key, operators };
    };
const CHAIN_LIES: [string, Lie][] = [
  ["shortened at its end", chainWith((chain) => [{ ...chain[0], until_size: null }])],
  ["shortened at its beginning", chainWith((chain) => chain.slice(1))],
  ["in another order", chainWith((chain) => chain.reverse())],
  ["without the signature of an old key", chainWith(([a, b, c]) => [a, noOldSignature(b), c])],
  ["with a rotation at another size", chainWith(([a, b, c]) => [{ ...a, until_size: 2 }, { ...b, from_size: 3 }, c])],
  ["with another root", chainWith(([a, b, c]) => [a, b, { ...c, rotation: { ...c.rotation, root_hash: HASH } }])],
  ["that is empty", chainWith(() => [])],
];
const noOldSignature = (term: { rotation: object }) => ({
  ...term,
  rotation: { ...term.rotation, old_key_signature: Buffer.alloc(64, 1).toString("base64") },
});

describe("a chain", () => {
  test.each(CHAIN_LIES)("%s is refused by a client that pinned the first key", async (_, lie) => {
    proxy.lie = lie;
    await conviction(createClient({ server: proxy.url, operatorKey: first.pem }).log.head());
    proxy.repent();
  });

  test.each<[string, Lie]>([
    [
      "have another entry",
      (path, answer) =>
        path === `/log/${rotations[0]!.log_entry_id}` ? { ...answer, payload: { ...answer.payload, note: 1 } } : answer,
    ],
    [
      "are elsewhere",
      (path, answer) =>
        path.startsWith(`/log/proof/${rotations[0]!.tree_size}?`) ? { ...answer, leaf_index: 0 } : answer,
    ],
  ])(
    "whose rotations %s on the log is refused, though both keys signed it, each time that it is shown",
    async (_, lie) => {
      const store = memoryStore();
      const { log } = createClient({ server: proxy.url, operatorKey: first.pem, store });
      proxy.lie = lie;
      for (const _ of [1, 2]) {
        await conviction(log.head());
        expect((await log.knownOperators()).chain).toHaveLength(1);
      }
      expect(await store.load()).toEqual({ operator_key: first.pem, head: null });
      proxy.repent();
      expect(await log.head()).toMatchObject({ key_id: third.fingerprint });
    },
  );
});

test("a head by a retired key, of a later size than its term has, is refused", async () => {
  proxy.lie = (path, answer) => (path === "/log/sth" ? signedBy(0, answer) : answer);
  const error = await failure(early().log.head());
  expect(error.message).toMatch(/signed by operator key sha256:\w+, which was retired at size \d+\.$/);
  expect(error.evidence).toMatchObject({ shown: { key_id: first.fingerprint }, operators: [{}, {}, {}] });
  proxy.repent();
});

describe("a monitor that pinned the first key", () => {
  test("goes on, mirrors every term, and tells of each rotation once", async () => {
    const told: number[] = [];
    const { folder } = earlyMonitor();
    await earlyMonitor().monitor.close();
    const { monitor } = newMonitor(proxy.url, { folder, onRotation: async ({ id }) => void told.push(id) });
    await monitor.round({ audit: true });
    await monitor.round();
    expect(monitor.size).toBe(await service.entryCount());
    // The key by which a service opens the mirror, while the monitor goes on.
    const shown = readFileSync(operatorPublicKeyPath(folder.mirror), "utf8");
    expect(shown).toBe((await service.get("/log/operator-key")).body.public_key);
    expect(told).toEqual(rotations.map(({ log_entry_id }) => log_entry_id));
    await monitor.close();
  });

  test("tells of a rotation that comes in the middle of its round", async () => {
    const told: number[] = [];
    let isOld = true;
    proxy.lie = (path, answer) => {
      if (path !== "/log/operator-key" || !isOld) return answer;
      isOld = false;
      const { fingerprint, algorithm, pem: public_key } = first;
      const operators = [{ ...answer.operators[0], until_size: null }];
      return { ...answer, fingerprint, algorithm, public_key, operators };
    };
    const { monitor } = newMonitor(proxy.url, {
      operatorKey: first.pem,
      onRotation: async ({ id }) => void told.push(id),
    });
    await monitor.round();
    proxy.repent();
    expect(told).toEqual(rotations.map(({ log_entry_id }) => log_entry_id));
    await monitor.close();
  });

  test("begins anew with any key of the chain", async () => {
    for (const { pem } of [second, third]) {
      const { monitor } = newMonitor(service.url, { operatorKey: pem });
      await monitor.round();
      expect(monitor.size).toBe(await service.entryCount());
      await monitor.close();
    }
  });

  test.each(CHAIN_LIES)("raises an alarm for a chain %s", async (_, lie) => {
    proxy.lie = lie;
    const { monitor } = newMonitor(proxy.url, { folder: earlyMonitor().folder });
    const { shownOperators, operators } = await caught(monitor.round(), "operator-key");
    expect(shownOperators).not.toBeNull();
    expect(operators).toHaveLength(3);
    proxy.repent();
    await monitor.close();
  });

  test("raises an alarm for a head that a retired key signs", async () => {
    proxy.lie = (path, answer) => (path === "/log/sth" ? signedBy(1, answer) : answer);
    const { monitor } = newMonitor(proxy.url, { folder: earlyMonitor().folder });
    const { shown } = await caught(monitor.round(), "retired-key");
    expect(shown).toMatchObject({ key_id: second.fingerprint });
    proxy.repent();
    await monitor.close();
  });
});

describe("a bundle", () => {
  const verdict = (bundle: AttestationBundle, operator: typeof first) =>
    verifyBundle(bundle, { fileHash: HASH, operatorKey: operator }).then(({ valid }) => valid);

  test("of each term holds for those who pinned the first key", async () => {
    expect(bundles.map(({ operators }) => operators?.length)).toEqual([undefined, 2, 3]);
    for (const bundle of bundles) expect(await verdict(bundle, first)).toBe(true);
  });

  test("holds for those who pinned a later key, unless its head is of a key that was retired before", async () => {
    const [a, b, c] = bundles as [AttestationBundle, AttestationBundle, AttestationBundle];
    expect(await verdict(a, second)).toBe(false);
    expect(await verdict({ ...a, operators: c.operators! }, second)).toBe(false);
    expect(await verdict(b, second)).toBe(true);
    expect(await verdict(c, second)).toBe(true);
    expect(await verdict(b, third)).toBe(false);
    expect(await verdict(c, third)).toBe(true);
  });

  test("of what was attested under the first key, got again, holds for those who pin any key now", async () => {
    const old = { title: "S", content_hash: HASH };
    for (const [title, key] of Object.entries({ first, second, third })) {
      const client = createClient({ server: service.url, operatorKey: key.pem, signer: eve });
      const outcomes = await all(client.attestAll([old, { title, content_hash: HASH }]));
      for (const { receipt, bundle } of [...outcomes, await client.attest(old)])
        expect([receipt?.duplicate, await verdict(bundle!, key)], title).toEqual([
          receipt !== outcomes[1]?.receipt,
          true,
        ]);
    }
  });

  test("of each term, got again, has the chain of that term", async () => {
    for (const [term, signer] of signers.entries()) {
      const client = createClient({ server: service.url, operatorKey: first.pem, signer });
      const { bundle } = await client.attest({ title: "T", content_hash: HASH }, { pseudonym: "Ada" });
      const { operators = [expect.objectContaining({ key_id: first.fingerprint, until_size: null })], ...rest } =
        bundles[term]!;
      expect(bundle).toEqual({ ...rest, operators });
    }
  });

  test("without its chain, or with a forged one, does not hold", async () => {
    const { operators, ...bare } = bundles[2]!;
    expect(await verdict(bare, first)).toBe(false);
    const [a, b, c] = operators!;
    for (const forged of [[a!, c!], [b!, c!], [a!, noOldSignature(b as never) as never, c!], []])
      expect(await verdict({ ...bare, operators: forged }, first)).toBe(false);
  });
});

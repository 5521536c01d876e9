/** Each way in which a log can lie raises its alarm, with evidence, and leaves the verified mirror as it was. */
import { createHash, generateKeyPairSync, sign } from "node:crypto";
import { cpSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Entry, TreeHead } from "#cairnlog/engine/verify/index.js";
import { parsePublicKey } from "#cairnlog/engine/verify/index.js";
import type { MonitorFolder } from "#cairnlog/server/monitor/folder.js";
import { Mirror } from "#cairnlog/server/monitor/mirror.js";
import type { Monitor } from "#cairnlog/server/monitor/monitor.js";
import { type Lie, LyingProxy } from "../client/proxy.js";
import { startTestService, type TestService, temporaryFolder } from "../server/harness.js";
import { canonical, newSigner } from "../server/signers.js";
import { caught, expectFork, forged, hastyFetch, isSigned, newMonitor } from "./monitors.js";

/** Entries that both histories begin with. */
const COMMON = 4;

/** Two services under one operator key, of one history up to `COMMON`; and a proxy before the first. */
let service: TestService;
let fork: TestService;
let operatorPem: string;
let proxy: LyingProxy;
beforeAll(async () => {
  const [folder, copy] = [temporaryFolder(), join(temporaryFolder(), "data")];
  const first = await startTestService({ SERVICE_DATA_DIR: folder });
  await grow(first, COMMON);
  await first.close();
  cpSync(folder, copy, { recursive: true });
  operatorPem = readFileSync(join(folder, "operator.pem"), "utf8");
  service = await startTestService({ SERVICE_DATA_DIR: folder });
  fork = await startTestService({ SERVICE_DATA_DIR: copy });
  await grow(service, COMMON + 4);
  await grow(fork, COMMON + 4);
});
beforeEach(async () => {
  proxy = await LyingProxy.before(service.url);
});

async function grow(to: TestService, size: number): Promise<void> {
  const missing = size - (await to.entryCount());
  const note = { event_type: "note", payload: { of: to.url } };
  if (missing > 0) await to.server.registry.log.append(Array.from({ length: missing }, () => note));
}
const growBy = async (count: number) => grow(service, (await service.entryCount()) + count);

const otherHash = (hash: string) => (hash.startsWith("0") ? "1" : "0") + hash.slice(1);
const isPage = (path: string) => path.startsWith("/log?");
const isHeads = (path: string) => path.startsWith("/log/heads");
// biome-ignore lint/suspicious/noExplicitAny: lies are told about answers of every shape
type Change = (answer: any) => unknown;
const at = (where: (path: string) => boolean, change: Change): Lie => {
  return (path, answer) => (where(path) ? change(answer) : answer);
};
const newestAt = (change: Change) => at((path) => path === "/log/sth", change);

/** A head that the operator key signs, whatever it says. */
function signedHead(head: TreeHead, changes: Partial<TreeHead>, key: string = operatorPem): TreeHead {
  const { root_hash, tree_size, timestamp } = { ...head, ...changes };
  const signature = sign(null, Buffer.from(`${root_hash}:${tree_size}:${timestamp}`), key).toString("base64");
  return { ...head, ...changes, signature };
}

/** A monitor that has mirrored what there is, and then saw the log grow. */
async function acquainted(growth = 3) {
  const made = newMonitor(proxy.url);
  await made.monitor.round();
  const size = await service.entryCount();
  const head: TreeHead = (await service.get("/log/sth")).body;
  expect(made.monitor.size).toBe(size);
  if (growth) await growBy(growth);
  return { ...made, size, head };
}

/** The mirror is that of the true log, of this size, and follows on when the truth is told again. */
async function expectUnharmed(monitor: Monitor, folder: MonitorFolder, size: number): Promise<void> {
  await monitor.close();
  const key = parsePublicKey((await service.get("/log/operator-key")).body.public_key);
  const mirror = await Mirror.open(folder.mirror, key);
  const leaves = Array.from({ length: mirror.size }, (_, index) => index);
  expect(leaves.length).toBe(size);
  const { entries } = (await service.get("/log?per_page=200")).body;
  expect(leaves.map((index) => mirror.entry(index))).toEqual(entries.slice(0, size));
  const { heads } = (await service.get(`/log/heads?limit=${size}`)).body;
  expect(leaves.map((index) => mirror.head(index + 1))).toEqual(heads);
  await mirror.close();
  proxy.repent();
  proxy.upstream = service.url;
  const next = newMonitor(proxy.url, { folder });
  await next.monitor.round({ audit: true });
  expect(next.monitor.size).toBe(await service.entryCount());
  await next.monitor.close();
}

describe("the newest head", () => {
  test("1: another root than was signed", async () => {
    const { monitor, folder, size, head } = await acquainted();
    proxy.lie = newestAt((shown) => ({ ...shown, root_hash: otherHash(shown.root_hash) }));
    const evidence = await caught(monitor.round(), "bad-signature");
    expect(evidence).toMatchObject({ known: head, shown: { tree_size: size + 3 } });
    expect([isSigned(evidence, evidence.known), isSigned(evidence, evidence.shown)]).toEqual([true, false]);
    await expectUnharmed(monitor, folder, size);
  });

  test("2: a forged signature", async () => {
    const { monitor, folder, size, head } = await acquainted();
    const { privateKey } = generateKeyPairSync("ed25519");
    const pem = privateKey.export({ type: "pkcs8", format: "pem" }) as string;
    proxy.lie = newestAt((shown) => signedHead(shown, {}, pem));
    const evidence = await caught(monitor.round(), "bad-signature");
    expect(evidence.known).toEqual(head);
    expect(isSigned(evidence, evidence.shown)).toBe(false);
    await expectUnharmed(monitor, folder, size);
  });

  test("3: another operator key, with heads that it signs", async () => {
    const { monitor, folder, size } = await acquainted();
    const stranger = newSigner();
    proxy.lie = (path, answer) => {
      const { publicKey, fingerprint, algorithm, privateKey } = stranger;
      if (path === "/log/operator-key") return { fingerprint, algorithm, public_key: publicKey };
      return path === "/log/sth" ? { ...signedHead(answer, {}, privateKey), key_id: fingerprint } : answer;
    };
    const evidence = await caught(monitor.round(), "operator-key");
    expect(evidence.shownKey).toBe(stranger.publicKey);
    expect(parsePublicKey(evidence.operatorKey).fingerprint).toBe(service.server.operatorFingerprint);
    await expectUnharmed(monitor, folder, size);
    // A monitor that was given the key believes no other from the beginning.
    proxy.lie = (path, answer) =>
      path === "/log/operator-key" ? { ...answer, public_key: stranger.publicKey } : answer;
    const operatorKey = (await service.get("/log/operator-key")).body.public_key;
    await caught(newMonitor(proxy.url, { operatorKey }).monitor.round(), "operator-key");
  });

  test("5: a rewritten history, every head of it signed", async () => {
    const { monitor, folder, size, head } = await acquainted();
    await grow(fork, size + 5);
    proxy.upstream = fork.url;
    const evidence = await caught(monitor.round(), "fork");
    expect(evidence.known).toEqual(head);
    expectFork(evidence);
    await expectUnharmed(monitor, folder, size);
  });

  test("8: one of a smaller log", async () => {
    const { monitor, folder, size, head } = await acquainted();
    const earlier: TreeHead = (await service.get(`/log/sth/${COMMON}`)).body;
    proxy.lie = newestAt(() => earlier);
    const evidence = await caught(monitor.round(), "shrunken");
    expect(evidence).toMatchObject({ known: head, shown: earlier });
    expect([isSigned(evidence, evidence.known), isSigned(evidence, evidence.shown)]).toEqual([true, true]);
    await expectUnharmed(monitor, folder, size);
  });

  test("8: one of a smaller log with another history", async () => {
    const { monitor, folder, size } = await acquainted();
    const earlier = (await fork.get(`/log/sth/${COMMON + 2}`)).body;
    proxy.lie = newestAt(() => earlier);
    expectFork(await caught(monitor.round(), "fork"));
    await expectUnharmed(monitor, folder, size);
  });

  test("8: none any more", async () => {
    const { monitor, folder, size, head } = await acquainted();
    proxy.lie = newestAt(() => ({
      type: "about:blank",
      title: "No",
      status: 404,
      detail: "Empty.",
      code: "not-found",
    }));
    proxy.status = 404;
    expect(await caught(monitor.round(), "missing-head")).toMatchObject({ known: head, shown: null });
    await expectUnharmed(monitor, folder, size);
  });

  test("9: two of one size", async () => {
    const { monitor, folder, size, head } = await acquainted(0);
    proxy.lie = newestAt((shown) => signedHead(shown, { root_hash: otherHash(shown.root_hash) }));
    const evidence = await caught(monitor.round(), "fork");
    expect(evidence.known).toEqual(head);
    expectFork(evidence);
    await expectUnharmed(monitor, folder, size);
  });

  test("9: another one than the size has, before anything is known", async () => {
    const { monitor, folder } = newMonitor(proxy.url);
    const size = await service.entryCount();
    proxy.lie = newestAt((shown) => signedHead(shown, { root_hash: otherHash(shown.root_hash) }));
    expectFork(await caught(monitor.round(), "fork"));
    // What was mirrored is under signed heads, too; which of the two histories others saw, nobody here can know.
    await monitor.close();
    const again = newMonitor(service.url, { folder });
    expectFork(await caught(again.monitor.round(), "fork"));
    expect(again.monitor.size).toBe(size);
  });
});

describe("entries", () => {
  test("4: a changed payload", async () => {
    const { monitor, folder, size, head } = await acquainted();
    const change = (entry: Entry) => (entry.id === size + 2 ? forged(entry) : entry);
    proxy.lie = at(isPage, (page) => ({ ...page, entries: page.entries.map(change) }));
    const evidence = await caught(monitor.round(), "bad-entry");
    expect(evidence).toMatchObject({ entry: { id: size + 2, payload: { forged: true } }, other: { id: size + 1 } });
    expect(evidence.known!.tree_size).toBe(head.tree_size + 3);
    await expectUnharmed(monitor, folder, size);
  });

  test("4: a changed payload of an entry that is mirrored", async () => {
    const { monitor, folder, size } = await acquainted(0);
    const change = (entry: Entry) => (entry.id === 2 ? forged(entry) : entry);
    proxy.lie = at(isPage, (page) => ({ ...page, entries: page.entries.map(change) }));
    const evidence = await caught(monitor.round(), "changed-entry");
    const truth = (await service.get("/log/2")).body;
    expect(evidence).toMatchObject({ entry: forged(truth), other: truth, known: { tree_size: 2 } });
    await expectUnharmed(monitor, folder, size);
  });

  test("4: a changed event type, which no hash covers", async () => {
    const { monitor } = await acquainted(0);
    proxy.lie = at(isPage, (page) => ({
      ...page,
      entries: page.entries.map((entry: Entry) =>
        entry.id === 1 ? { ...entry, event_type: "key_revocation" } : entry,
      ),
    }));
    expect(await caught(monitor.round(), "changed-entry")).toMatchObject({ entry: { id: 1 }, other: { id: 1 } });
  });

  test("5: re-chained from a changed one on, under the heads of the true one", async () => {
    const { monitor, folder, size } = await acquainted();
    proxy.lie = at(isPage, (page) => ({ ...page, entries: rechained(page.entries, size + 1) }));
    const evidence = await caught(monitor.round(), "wrong-root");
    expect(evidence.shown).toEqual((await service.get(`/log/sth/${size + 1}`)).body);
    expect(isSigned(evidence, evidence.shown)).toBe(true);
    expect(evidence.entry!.payload).toMatchObject({ forged: true });
    await expectUnharmed(monitor, folder, size);
  });

  test("6: one left out in the middle", async () => {
    const { monitor, folder, size } = await acquainted();
    const leaveOut = (entries: Entry[]) => entries.filter(({ id }) => id !== size + 2);
    proxy.lie = at(isPage, (page) => ({ ...page, entries: leaveOut(page.entries) }));
    const evidence = await caught(monitor.round(), "broken-chain");
    expect(evidence).toMatchObject({ entry: { id: size + 3 }, other: { id: size + 1 } });
    await expectUnharmed(monitor, folder, size);
  });

  test("6: the end left out", async () => {
    const { monitor, folder, size } = await acquainted();
    proxy.lie = at(isPage, (page) => ({ ...page, entries: page.entries.slice(0, size) }));
    const { shown } = await caught(monitor.round(), "missing-entry");
    expect(shown!.tree_size).toBe(size + 3);
    await expectUnharmed(monitor, folder, size);
  });

  test("7: reordered", async () => {
    const { monitor, folder, size } = await acquainted();
    const swapped = (entries: Entry[]) => [...entries.slice(0, -2), entries.at(-1)!, entries.at(-2)!];
    proxy.lie = at(isPage, (page) => ({ ...page, entries: swapped(page.entries) }));
    const evidence = await caught(monitor.round(), "broken-chain");
    expect(evidence).toMatchObject({ entry: { id: size + 3 }, other: { id: size + 1 } });
    await expectUnharmed(monitor, folder, size);
  });

  test("ids with a gap, which no hash covers", async () => {
    const { monitor, folder, size } = await acquainted();
    const later = (entry: Entry) => (entry.id > size + 1 ? { ...entry, id: entry.id + 1 } : entry);
    proxy.lie = at(isPage, (page) => ({ ...page, entries: page.entries.map(later) }));
    expect(await caught(monitor.round(), "broken-chain")).toMatchObject({ entry: { id: size + 3 } });
    await expectUnharmed(monitor, folder, size);
  });

  test("a timestamp that goes back", async () => {
    const { monitor, folder, size } = await acquainted();
    const timestamp = "2001-01-01T00:00:00.000000Z";
    proxy.lie = at(isPage, (page) => ({ ...page, entries: rechained(page.entries, size + 2, { timestamp }) }));
    expect(await caught(monitor.round(), "time-reversal")).toMatchObject({ entry: { id: size + 2, timestamp } });
    await expectUnharmed(monitor, folder, size);
  });
});

describe("heads of the sizes in between", () => {
  const lieAbout = (size: number, change: (head: TreeHead) => TreeHead | null): void => {
    proxy.lie = at(isHeads, ({ heads }) => ({
      heads: heads.flatMap((head: TreeHead) => (head.tree_size === size ? (change(head) ?? []) : head)),
    }));
  };

  test("another root, signed", async () => {
    const { monitor, folder, size } = await acquainted();
    lieAbout(size + 2, (head) => signedHead(head, { root_hash: otherHash(head.root_hash) }));
    const evidence = await caught(monitor.round(), "wrong-root");
    expect(evidence.shown!.tree_size).toBe(size + 2);
    expect(isSigned(evidence, evidence.shown)).toBe(true);
    await expectUnharmed(monitor, folder, size);
  });

  test("another root, not signed", async () => {
    const { monitor, folder, size } = await acquainted();
    lieAbout(size + 2, (head) => ({ ...head, root_hash: otherHash(head.root_hash) }));
    expect((await caught(monitor.round(), "bad-signature")).shown!.tree_size).toBe(size + 2);
    await expectUnharmed(monitor, folder, size);
  });

  test("a signature that is none", async () => {
    const { monitor, folder, size } = await acquainted();
    lieAbout(size + 1, (head) => ({ ...head, signature: Buffer.alloc(64, 1).toString("base64") }));
    await caught(monitor.round(), "bad-signature");
    await expectUnharmed(monitor, folder, size);
  });

  test("one that is missing", async () => {
    const { monitor, folder, size } = await acquainted();
    lieAbout(size + 2, () => null);
    await caught(monitor.round(), "missing-head");
    await expectUnharmed(monitor, folder, size);
  });

  test("one that is older than the one before it", async () => {
    const { monitor, folder, size } = await acquainted();
    lieAbout(size + 2, (head) => signedHead(head, { timestamp: "2001-01-01T00:00:00.000000Z" }));
    expect((await caught(monitor.round(), "time-reversal")).shown!.tree_size).toBe(size + 2);
    await expectUnharmed(monitor, folder, size);
  });

  test("another one than was mirrored", async () => {
    const { monitor, folder, size } = await acquainted(0);
    lieAbout(COMMON, (head) => signedHead(head, { root_hash: otherHash(head.root_hash) }));
    expectFork(await caught(monitor.round(), "fork"));
    await expectUnharmed(monitor, folder, size);
  });
});

describe("the checkpoint", () => {
  const isCheckpoint = (path: string) => path === "/log/checkpoint";

  test("of another history", async () => {
    const { monitor, folder } = await acquainted(0);
    const size = await service.entryCount();
    await grow(fork, size);
    const other = await startTestService({ SERVICE_OPERATOR_KEY: join(service.server.dataDir, "operator.pem") });
    await grow(other, COMMON);
    const note = (await other.get("/log/checkpoint")).text;
    proxy.lie = at(isCheckpoint, () => note);
    const { checkpoint, known } = await caught(monitor.round(), "fork");
    expect(checkpoint).toBe(note);
    expect(known).toEqual((await service.get(`/log/sth/${COMMON}`)).body);
    await expectUnharmed(monitor, folder, size);
  });

  test("not signed, or larger than the head that came after it", async () => {
    const { monitor, folder, size } = await acquainted(0);
    const note = (await service.get("/log/checkpoint")).text;
    proxy.lie = at(isCheckpoint, () => note.replace(`\n${size}\n`, `\n${size + 1}\n`));
    expect((await caught(monitor.round(), "bad-signature")).checkpoint).toContain(`\n${size + 1}\n`);
    const old: TreeHead = (await service.get("/log/sth")).body;
    await growBy(1);
    proxy.lie = newestAt(() => old);
    expect(await caught(monitor.round(), "shrunken")).toMatchObject({ shown: old });
    await expectUnharmed(monitor, folder, size);
  });
});

describe("answers that are no answers accuse nobody, and fill no memory", () => {
  test.each([
    ["garbage", (text: string) => `<html>${text}`],
    ["half of it", (text: string) => text.slice(0, -10)],
    ["duplicate members", (text: string) => text.replace("{", '{"page":1,')],
    ["another shape", () => "[]"],
    ["nothing", () => ""],
  ])("%s", async (_, spoil) => {
    const { monitor, folder, size } = await acquainted();
    proxy.lie = at(isPage, (page) => spoil(JSON.stringify(page)));
    await expect(monitor.round()).rejects.toMatchObject({ code: "malformed-answer" });
    await expectUnharmed(monitor, folder, size);
  });

  test("a page with more entries than were asked for", async () => {
    const { monitor, folder, size } = await acquainted();
    proxy.lie = at(isPage, (page) => ({ ...page, entries: Array(201).fill(page.entries[0]) }));
    await expect(monitor.round()).rejects.toMatchObject({ code: "malformed-answer" });
    await expectUnharmed(monitor, folder, size);
  });

  test("heads that were not asked for", async () => {
    const { monitor, folder, size } = await acquainted();
    proxy.lie = at(isHeads, ({ heads }) => ({ heads: [...heads, ...heads] }));
    await expect(monitor.round()).rejects.toMatchObject({ code: "malformed-answer" });
    await expectUnharmed(monitor, folder, size);
  });

  test("an answer without end", async () => {
    const { monitor, folder, size } = await acquainted();
    let sent = 0;
    proxy.seize = (path, response) => {
      if (!isPage(path)) return false;
      const chunk = Buffer.alloc(2 ** 16, " ");
      const more = () => {
        sent += chunk.length;
        if (!response.destroyed && response.write(chunk)) setImmediate(more);
      };
      response.writeHead(200, { "content-type": "application/json" }).on("drain", more);
      more();
      return true;
    };
    await expect(monitor.round()).rejects.toMatchObject({ code: "no-answer" });
    // Smaller pages were tried, each cut off where it got too long, but for what was on the way.
    expect(sent).toBeLessThan(4 * 32 * 2 ** 20);
    await expectUnharmed(monitor, folder, size);
  });

  test("a page of somebody else's, or nothing, instead of the checkpoint", async () => {
    const { monitor, folder, size } = await acquainted();
    proxy.lie = at(
      (path) => path === "/log/checkpoint",
      () => "<h1>Maintenance</h1>",
    );
    await expect(monitor.round()).rejects.toMatchObject({ code: "malformed-answer" });
    proxy.seize = (path, response) => path === "/log/checkpoint" && Boolean(response.destroy());
    await expect(monitor.round()).rejects.toMatchObject({ code: "no-answer" });
    await expectUnharmed(monitor, folder, size);
  });

  test("an answer that stays away", async () => {
    const { monitor, folder, size } = await acquainted();
    await monitor.close();
    proxy.seize = (path) => path === "/log/sth";
    const hasty = newMonitor(proxy.url, { folder, fetch: hastyFetch([], 300) });
    await expect(hasty.monitor.round()).rejects.toMatchObject({ code: "no-answer" });
    await expectUnharmed(hasty.monitor, folder, size);
  });
});

/** The entries with one of them changed and all that follow linked to it again: hashes right, history another. */
function rechained(entries: readonly Entry[], from: number, changes: Partial<Entry> = {}): Entry[] {
  let previous: Entry | undefined;
  return entries.map((entry) => {
    let next = entry;
    if (entry.id >= from) {
      const changed = entry.id === from ? { ...forged(entry), ...changes } : entry;
      const { payload, timestamp } = changed;
      const previous_hash = previous?.entry_hash ?? null;
      const body = canonical({ payload, previous_hash, timestamp });
      const entry_hash = createHash("sha256").update(`service.log.entry.v2\0${body}`).digest("hex");
      const entry_hashes = [{ algorithm: "sha2-256", digest_hex: entry_hash, is_primary: true }];
      next = { ...changed, previous_hash, entry_hash, entry_hashes };
    }
    previous = next;
    return next;
  });
}

/** Every kind of lie raises its alarm, with evidence, and leaves the verified mirror unchanged. */
import { generateKeyPairSync } from "node:crypto";
import { describe, expect, test } from "vitest";
import { type Entry, parsePublicKey, type TreeHead } from "#cairnlog/engine/verify/index.js";
import { newSigner } from "../server/signers.js";
import { at, COMMON, grow, isHeads, isPage, Liar, newestAt, noSignature, otherHash, rechained } from "./liar.js";
import { caught, expectFork, forged, hastyFetch, isSigned, newMonitor, older } from "./monitors.js";

const liar = Liar.forTests();

describe("the newest head", () => {
  test("1: another root than was signed", async () => {
    const { monitor, folder, size, head } = await liar.acquainted();
    liar.proxy.lie = newestAt((shown) => ({ ...shown, root_hash: otherHash(shown.root_hash) }));
    const evidence = await caught(monitor.round(), "bad-signature");
    expect(evidence).toMatchObject({ known: head, shown: { tree_size: size + 3 } });
    expect([isSigned(evidence, evidence.known), isSigned(evidence, evidence.shown)]).toEqual([true, false]);
    await liar.expectUnharmed(monitor, folder, size);
  });

  test("2: a forged signature", async () => {
    const { monitor, folder, size, head } = await liar.acquainted();
    const { privateKey } = generateKeyPairSync("ed25519");
    const pem = privateKey.export({ type: "pkcs8", format: "pem" }) as string;
    liar.proxy.lie = newestAt((shown) => liar.signed(shown, {}, pem));
    const evidence = await caught(monitor.round(), "bad-signature");
    expect(evidence.known).toEqual(head);
    expect(isSigned(evidence, evidence.shown)).toBe(false);
    await liar.expectUnharmed(monitor, folder, size);
  });

  test("2: a forged signature of the same head", async () => {
    const { monitor, folder, size, head } = await liar.acquainted(0);
    liar.proxy.lie = newestAt((shown) => ({ ...shown, signature: noSignature() }));
    const evidence = await caught(monitor.round(), "bad-signature");
    expect(evidence.known).toEqual(head);
    expect(evidence.shown).toEqual({ ...head, signature: noSignature() });
    await liar.expectUnharmed(monitor, folder, size);
  });

  test("another signed head of the same size and root is not a lie", async () => {
    const { monitor, folder, size, head } = await liar.acquainted(0);
    liar.proxy.lie = newestAt((shown) => liar.signed(shown, { timestamp: new Date().toISOString() }));
    await monitor.round();
    expect(await monitor.newestHead()).toEqual(head);
    await liar.expectUnharmed(monitor, folder, size);
  });

  test("3: another operator key, with heads that it signs", async () => {
    const { monitor, folder, size } = await liar.acquainted();
    const stranger = newSigner();
    liar.proxy.lie = (path, answer) => {
      const { publicKey, fingerprint, algorithm, privateKey } = stranger;
      const term = { key_id: fingerprint, algorithm, public_key: publicKey, from_size: 1, until_size: null };
      const operators = [{ ...term, rotation: null }];
      if (path === "/log/operator-key") return { fingerprint, algorithm, public_key: publicKey, operators };
      return path === "/log/sth" ? { ...liar.signed(answer, {}, privateKey), key_id: fingerprint } : answer;
    };
    const evidence = await caught(monitor.round(), "operator-key");
    expect(evidence.shownKey).toBe(stranger.publicKey);
    expect(parsePublicKey(evidence.operatorKey).fingerprint).toBe(liar.service.server.operatorFingerprint);
    await liar.expectUnharmed(monitor, folder, size);
    // A monitor with a pinned key trusts no other key from the beginning.
    liar.proxy.lie = (path, answer) =>
      path === "/log/operator-key" ? { ...answer, public_key: stranger.publicKey } : answer;
    const operatorKey = (await liar.service.get("/log/operator-key")).body.public_key;
    await caught(newMonitor(liar.proxy.url, { operatorKey }).monitor.round(), "operator-key");
  });

  test("5: a rewritten history, every head of it signed", async () => {
    const { monitor, folder, size, head } = await liar.acquainted();
    await grow(liar.fork, size + 5);
    liar.proxy.upstream = liar.fork.url;
    // Otherwise its checkpoint, once it is published, may be the evidence, which comes first.
    liar.proxy.seize = (path, response) => path === "/tlog/checkpoint" && Boolean(response.writeHead(404).end());
    const evidence = await caught(monitor.round(), "fork");
    expect(evidence.known).toEqual(head);
    expectFork(evidence);
    await liar.expectUnharmed(monitor, folder, size);
  });

  describe("5: a head that is not shown to go on from the last", () => {
    const isProof = (path: string) => path.startsWith("/log/consistency");
    test.each<[string, (known: TreeHead, path: string) => unknown]>([
      ["and whose size the service knows as we do", (_, path) => path],
      ["and the service has no head of that size", () => "<html>"],
      [
        "and the service's head of that size is not signed",
        (known) => ({ ...known, root_hash: otherHash(known.root_hash) }),
      ],
    ])("%s", async (_, theirs) => {
      const { monitor, folder, size, head } = await liar.acquainted();
      liar.proxy.lie = (path, answer) => {
        if (isProof(path)) return { ...answer, peaks: answer.peaks.map(otherHash) };
        const told = path === `/log/sth/${size}` ? theirs(head, path) : path;
        return told === path ? answer : told;
      };
      const evidence = await caught(monitor.round(), "missing-proof", /is not shown to be the beginning of that of/);
      expect(evidence).toMatchObject({ known: head, shown: { tree_size: size + 3 } });
      expect(evidence.proof).not.toBeNull();
      expect([isSigned(evidence, evidence.known), isSigned(evidence, evidence.shown)]).toEqual([true, true]);
      await liar.expectUnharmed(monitor, folder, size);
    });

    test("and the service's head of that size is another one that it signed", async () => {
      const { monitor, folder, size, head } = await liar.acquainted();
      const other = liar.signed(head, { root_hash: otherHash(head.root_hash) });
      liar.proxy.lie = (path, answer) => {
        if (isProof(path)) return { ...answer, peaks: answer.peaks.map(otherHash) };
        return path === `/log/sth/${size}` ? other : answer;
      };
      const evidence = await caught(
        monitor.round(),
        "fork",
        new RegExp(`two different tree heads of size ${size}\\.$`),
      );
      expect(evidence).toMatchObject({ known: head, shown: other });
      expect(evidence.proof).not.toBeNull();
      await liar.expectUnharmed(monitor, folder, size);
    });
  });

  test("3: no operator key at all", async () => {
    const { monitor, folder, size } = await liar.acquainted();
    liar.proxy.lie = at(
      (path) => path === "/log/operator-key",
      (answer) => ({ ...answer, public_key: "none" }),
    );
    const { fingerprint } = await liar.operatorKey();
    const evidence = await caught(
      monitor.round(),
      "operator-key",
      new RegExp(`^The service shows the operator key \\(none\\); pinned is ${fingerprint}\\.$`),
    );
    expect(evidence.shownKey).toBe("none");
    await liar.expectUnharmed(monitor, folder, size);
  });

  test("1: another root than was signed, before anything is known", async () => {
    const { monitor } = newMonitor(liar.proxy.url);
    liar.proxy.lie = newestAt((shown) => ({ ...shown, root_hash: otherHash(shown.root_hash) }));
    expect(await caught(monitor.round(), "bad-signature")).toMatchObject({ known: null });
    expect(monitor.size).toBe(0);
    await monitor.close();
  });

  test("8: one of a smaller log", async () => {
    const { monitor, folder, size, head } = await liar.acquainted();
    const earlier: TreeHead = (await liar.service.get(`/log/sth/${COMMON}`)).body;
    liar.proxy.lie = newestAt(() => earlier);
    const evidence = await older(monitor.round());
    expect(evidence).toMatchObject({ known: head, shown: earlier });
    expect([isSigned(evidence, evidence.known), isSigned(evidence, evidence.shown)]).toEqual([true, true]);
    await liar.expectUnharmed(monitor, folder, size);
  });

  test("8: one of a smaller log with another history", async () => {
    const { monitor, folder, size } = await liar.acquainted();
    const earlier = (await liar.fork.get(`/log/sth/${COMMON + 2}`)).body;
    liar.proxy.lie = newestAt(() => earlier);
    expectFork(await caught(monitor.round(), "fork"));
    await liar.expectUnharmed(monitor, folder, size);
  });

  test("8: none any more", async () => {
    const { monitor, folder, size, head } = await liar.acquainted();
    liar.proxy.lie = newestAt(() => ({
      type: "about:blank",
      title: "No",
      status: 404,
      detail: "Empty.",
      code: "not-found",
    }));
    liar.proxy.status = 404;
    expect(await caught(monitor.round(), "missing-head")).toMatchObject({ known: head, shown: null });
    await liar.expectUnharmed(monitor, folder, size);
  });

  test("9: two of one size", async () => {
    const { monitor, folder, size, head } = await liar.acquainted(0);
    liar.proxy.lie = newestAt((shown) => liar.signed(shown, { root_hash: otherHash(shown.root_hash) }));
    const evidence = await caught(monitor.round(), "fork");
    expect(evidence.known).toEqual(head);
    expectFork(evidence);
    await liar.expectUnharmed(monitor, folder, size);
  });

  test("9: another one than the size has, before anything is known", async () => {
    const { monitor, folder } = newMonitor(liar.proxy.url);
    const size = await liar.service.entryCount();
    liar.proxy.lie = newestAt((shown) => liar.signed(shown, { root_hash: otherHash(shown.root_hash) }));
    expectFork(await caught(monitor.round(), "fork"));
    // The mirrored entries are under signed heads, too. This monitor cannot know which history other clients saw.
    await monitor.close();
    const again = newMonitor(liar.service.url, { folder });
    expectFork(await caught(again.monitor.round(), "fork"));
    expect(again.monitor.size).toBe(size);
  });
});

describe("entries", () => {
  test("4: a changed payload", async () => {
    const { monitor, folder, size, head } = await liar.acquainted();
    const change = (entry: Entry) => (entry.id === size + 2 ? forged(entry) : entry);
    liar.proxy.lie = at(isPage, (page) => ({ ...page, entries: page.entries.map(change) }));
    const evidence = await caught(monitor.round(), "bad-entry");
    expect(evidence).toMatchObject({ entry: { id: size + 2, payload: { forged: true } }, other: { id: size + 1 } });
    expect(evidence.known!.tree_size).toBe(head.tree_size + 3);
    await liar.expectUnharmed(monitor, folder, size);
  });

  test("4: a changed payload of an entry that is mirrored", async () => {
    const { monitor, folder, size } = await liar.acquainted(0);
    const change = (entry: Entry) => (entry.id === 2 ? forged(entry) : entry);
    liar.proxy.lie = at(isPage, (page) => ({ ...page, entries: page.entries.map(change) }));
    const evidence = await caught(monitor.round(), "changed-entry");
    const truth = (await liar.service.get("/log/2")).body;
    expect(evidence).toMatchObject({ entry: forged(truth), other: truth, known: { tree_size: 2 } });
    await liar.expectUnharmed(monitor, folder, size);
  });

  test("4: a changed event type, which no hash covers", async () => {
    const { monitor } = await liar.acquainted(0);
    liar.proxy.lie = at(isPage, (page) => ({
      ...page,
      entries: page.entries.map((entry: Entry) =>
        entry.id === 1 ? { ...entry, event_type: "key_revocation" } : entry,
      ),
    }));
    expect(await caught(monitor.round(), "changed-entry")).toMatchObject({ entry: { id: 1 }, other: { id: 1 } });
  });

  const hashes = (entry: Entry, changes: object) => ({ entry_hashes: [{ ...entry.entry_hashes[0]!, ...changes }] });
  test.each<[string, (entry: Entry) => object]>([
    ["id", () => ({ id: 1000 })],
    ["timestamp", () => ({ timestamp: "2001-01-01T00:00:00.000000Z" })],
    ["previous hash", ({ entry_hash }) => ({ previous_hash: entry_hash })],
    ["hash", ({ entry_hash }) => ({ entry_hash: otherHash(entry_hash) })],
    ["version", () => ({ chain_version: 1 })],
    ["name of a digest", (entry) => hashes(entry, { algorithm: "sha2-512" })],
    ["digest", (entry) => hashes(entry, { digest_hex: otherHash(entry.entry_hash) })],
    ["first digest", (entry) => hashes(entry, { is_primary: false })],
    ["number of digests", ({ entry_hashes }) => ({ entry_hashes: [...entry_hashes, ...entry_hashes] })],
  ])("4: another %s of an entry that is mirrored", async (_, changes) => {
    const { monitor, folder, size } = await liar.acquainted(0);
    const truth = (await liar.service.get("/log/2")).body;
    const told = { ...truth, ...changes(truth) };
    const change = (entry: Entry) => (entry.id === 2 ? told : entry);
    liar.proxy.lie = at(isPage, (page) => ({ ...page, entries: page.entries.map(change) }));
    const evidence = await caught(monitor.round(), "changed-entry", /^Entry 2 is not served as it was mirrored\.$/);
    expect(evidence).toMatchObject({ entry: told, other: truth });
    await liar.expectUnharmed(monitor, folder, size);
  });

  test("4: a timestamp proof that has come meanwhile changes nothing", async () => {
    const { monitor, folder, size } = await liar.acquainted(0);
    const proven = (entry: Entry) => ({ ...entry, ots_proof: Buffer.from("a proof").toString("base64") });
    liar.proxy.lie = at(isPage, (page) => ({ ...page, entries: page.entries.map(proven) }));
    await monitor.round({ audit: true });
    await liar.expectUnharmed(monitor, folder, size);
  });

  test("5: re-chained from a changed one on, under the heads of the true one", async () => {
    const { monitor, folder, size } = await liar.acquainted();
    liar.proxy.lie = at(isPage, (page) => ({ ...page, entries: rechained(page.entries, size + 1) }));
    const evidence = await caught(monitor.round(), "wrong-root");
    expect(evidence.shown).toEqual((await liar.service.get(`/log/sth/${size + 1}`)).body);
    expect(isSigned(evidence, evidence.shown)).toBe(true);
    expect(evidence.entry!.payload).toMatchObject({ forged: true });
    await liar.expectUnharmed(monitor, folder, size);
  });

  test("6: one left out in the middle", async () => {
    const { monitor, folder, size } = await liar.acquainted();
    const leaveOut = (entries: Entry[]) => entries.filter(({ id }) => id !== size + 2);
    liar.proxy.lie = at(isPage, (page) => ({ ...page, entries: leaveOut(page.entries) }));
    const evidence = await caught(monitor.round(), "broken-chain");
    expect(evidence).toMatchObject({ entry: { id: size + 3 }, other: { id: size + 1 } });
    await liar.expectUnharmed(monitor, folder, size);
  });

  test("6: the end left out", async () => {
    const { monitor, folder, size } = await liar.acquainted();
    liar.proxy.lie = at(isPage, (page) => ({ ...page, entries: page.entries.slice(0, size) }));
    const { shown } = await caught(monitor.round(), "missing-entry");
    expect(shown!.tree_size).toBe(size + 3);
    await liar.expectUnharmed(monitor, folder, size);
  });

  test("7: reordered", async () => {
    const { monitor, folder, size } = await liar.acquainted();
    const swapped = (entries: Entry[]) => [...entries.slice(0, -2), entries.at(-1)!, entries.at(-2)!];
    liar.proxy.lie = at(isPage, (page) => ({ ...page, entries: swapped(page.entries) }));
    const evidence = await caught(monitor.round(), "broken-chain");
    expect(evidence).toMatchObject({ entry: { id: size + 3 }, other: { id: size + 1 } });
    await liar.expectUnharmed(monitor, folder, size);
  });

  test.each([1, 2])("ids with a gap before entry %i of a round, which no hash covers", async (place) => {
    const { monitor, folder, size } = await liar.acquainted();
    const [before, after] = [size + place - 1, size + place + 1];
    const later = (entry: Entry) => (entry.id > before ? { ...entry, id: entry.id + 1 } : entry);
    liar.proxy.lie = at(isPage, (page) => ({ ...page, entries: page.entries.map(later) }));
    const shown = (await liar.service.get(`/log/sth/${size + place}`)).body;
    const said = new RegExp(`^Entry ${after} comes after entry ${before}\\.$`);
    const evidence = await caught(monitor.round(), "broken-chain", said);
    expect(evidence).toMatchObject({ entry: { id: after }, other: { id: before }, shown });
    await liar.expectUnharmed(monitor, folder, size);
  });

  test("a timestamp that goes back", async () => {
    const { monitor, folder, size } = await liar.acquainted();
    const timestamp = "2001-01-01T00:00:00.000000Z";
    liar.proxy.lie = at(isPage, (page) => ({ ...page, entries: rechained(page.entries, size + 2, { timestamp }) }));
    expect(await caught(monitor.round(), "time-reversal")).toMatchObject({ entry: { id: size + 2, timestamp } });
    await liar.expectUnharmed(monitor, folder, size);
  });
});

describe("invalid answers raise no alarm, and use little memory", () => {
  test.each([
    ["garbage", (text: string) => `<html>${text}`],
    ["half of it", (text: string) => text.slice(0, -10)],
    ["duplicate members", (text: string) => text.replace("{", '{"page":1,')],
    ["another shape", () => "[]"],
    ["nothing", () => ""],
  ])("%s", async (_, spoil) => {
    const { monitor, folder, size } = await liar.acquainted();
    liar.proxy.lie = at(isPage, (page) => spoil(JSON.stringify(page)));
    await expect(monitor.round()).rejects.toMatchObject({ code: "malformed-answer" });
    await liar.expectUnharmed(monitor, folder, size);
  });

  test("a page with more entries than were asked for", async () => {
    const { monitor, folder, size } = await liar.acquainted();
    liar.proxy.lie = at(isPage, (page) => ({ ...page, entries: Array(201).fill(page.entries[0]) }));
    await expect(monitor.round()).rejects.toMatchObject({ code: "malformed-answer" });
    await liar.expectUnharmed(monitor, folder, size);
  });

  test.each<[string, (heads: TreeHead[], before: TreeHead) => TreeHead[]]>([
    ["each of them twice", (heads) => [...heads, ...heads]],
    ["the one of the size before, too", (heads, before) => [before, ...heads]],
    ["one of a size beyond", (heads, before) => [...heads, { ...before, tree_size: before.tree_size + 4 }]],
  ])("heads that were not asked for: %s", async (_, changed) => {
    const { monitor, folder, size, head } = await liar.acquainted(3);
    liar.proxy.lie = at(isHeads, ({ heads }) => ({ heads: changed(heads, head) }));
    await expect(monitor.round()).rejects.toMatchObject({ code: "malformed-answer" });
    await liar.expectUnharmed(monitor, folder, size);
  });

  test("an answer without end", async () => {
    const { monitor, folder, size } = await liar.acquainted();
    let sent = 0;
    liar.proxy.seize = (path, response) => {
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
    await expect(monitor.round()).rejects.toMatchObject({ code: "malformed-answer" });
    // Smaller pages were requested, and each was cut off when it became too long.
    expect(sent).toBeLessThan(4 * 32 * 2 ** 20);
    await liar.expectUnharmed(monitor, folder, size);
  });

  test("a page of somebody else's, or nothing, instead of the checkpoint", async () => {
    const { monitor, folder, size } = await liar.acquainted();
    liar.proxy.lie = at(
      (path) => path === "/log/checkpoint",
      () => "<h1>Maintenance</h1>",
    );
    await expect(monitor.round()).rejects.toMatchObject({ code: "malformed-answer" });
    liar.proxy.seize = (path, response) => path === "/log/checkpoint" && Boolean(response.destroy());
    await expect(monitor.round()).rejects.toMatchObject({ code: "no-answer" });
    await liar.expectUnharmed(monitor, folder, size);
  });

  test("an answer that stays away", async () => {
    const { monitor, folder, size } = await liar.acquainted();
    await monitor.close();
    liar.proxy.seize = (path) => path === "/log/sth";
    const hasty = newMonitor(liar.proxy.url, { folder, fetch: hastyFetch([], 300) });
    await expect(hasty.monitor.round()).rejects.toMatchObject({ code: "no-answer" });
    await liar.expectUnharmed(hasty.monitor, folder, size);
  });
});

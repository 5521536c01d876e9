/** Lies in the heads of sizes other than the newest, and in the checkpoint. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { OperatorKeys, type TreeHead } from "#cairnlog/engine/verify/index.js";
import { Mirror } from "#cairnlog/server/monitor/mirror.js";
import { checkpointPath } from "#cairnlog/server/settings/settings.js";
import { startTestService } from "../server/harness.js";
import { at, COMMON, grow, headAt, isPage, Liar, newestAt, noSignature, otherHash } from "./liar.js";
import { caught, expectFork, isSigned, older } from "./monitors.js";

const liar = Liar.forTests();

describe("heads of the sizes in between", () => {
  const lieAbout = (...about: Parameters<typeof headAt>): void => {
    liar.proxy.lie = headAt(...about);
  };

  test("another root, signed", async () => {
    const { monitor, folder, size } = await liar.acquainted();
    lieAbout(size + 2, (head) => liar.signed(head, { root_hash: otherHash(head.root_hash) }));
    const evidence = await caught(monitor.round(), "wrong-root");
    expect(evidence.shown!.tree_size).toBe(size + 2);
    expect(isSigned(evidence, evidence.shown)).toBe(true);
    await liar.expectUnharmed(monitor, folder, size);
  });

  test("another root, not signed", async () => {
    const { monitor, folder, size } = await liar.acquainted();
    lieAbout(size + 2, (head) => ({ ...head, root_hash: otherHash(head.root_hash) }));
    expect((await caught(monitor.round(), "bad-signature")).shown!.tree_size).toBe(size + 2);
    await liar.expectUnharmed(monitor, folder, size);
  });

  test("a signature that is none", async () => {
    const { monitor, folder, size } = await liar.acquainted();
    lieAbout(size + 1, (head) => ({ ...head, signature: noSignature() }));
    await caught(monitor.round(), "bad-signature");
    await liar.expectUnharmed(monitor, folder, size);
  });

  test.each([1, 2])("one that is missing, number %i of a round", async (place) => {
    const { monitor, folder, size } = await liar.acquainted();
    lieAbout(size + place, () => null);
    await caught(monitor.round(), "missing-head");
    await liar.expectUnharmed(monitor, folder, size);
  });

  test("one that is older than the one before it", async () => {
    const { monitor, folder, size } = await liar.acquainted();
    lieAbout(size + 2, (head) => liar.signed(head, { timestamp: "2001-01-01T00:00:00.000000Z" }));
    expect((await caught(monitor.round(), "time-reversal")).shown!.tree_size).toBe(size + 2);
    await liar.expectUnharmed(monitor, folder, size);
  });

  test("one that was mirrored, served again with a forged signature", async () => {
    const { monitor, folder, size } = await liar.acquainted(0);
    const known: TreeHead = (await liar.service.get(`/log/sth/${COMMON}`)).body;
    lieAbout(COMMON, (head) => ({ ...head, signature: noSignature() }));
    const said = new RegExp(`^The head of size ${COMMON} is not signed any more\\.$`);
    const evidence = await caught(monitor.round(), "bad-signature", said);
    expect(evidence).toMatchObject({ known, shown: { ...known, signature: noSignature() } });
    await liar.expectUnharmed(monitor, folder, size);
  });

  test("one that was mirrored, served again with another timestamp that nobody signed", async () => {
    const { monitor } = await liar.acquainted(0);
    lieAbout(COMMON, (head) => ({ ...head, timestamp: "2100-01-01T00:00:00.000000Z" }));
    await caught(monitor.round(), "bad-signature");
    await monitor.close();
  });

  test("a mirrored head, served again with another signature, is not a lie", async () => {
    const { monitor, folder, size } = await liar.acquainted(0);
    const known: TreeHead = (await liar.service.get(`/log/sth/${COMMON}`)).body;
    lieAbout(COMMON, (head) => liar.signed(head, { timestamp: "2100-01-01T00:00:00.000000Z" }));
    await monitor.round({ audit: true });
    await monitor.close();
    const mirror = await Mirror.open(folder.mirror, OperatorKeys.of(await liar.operatorKey()));
    expect(mirror.head(COMMON)).toEqual(known);
    await mirror.close();
    await liar.expectUnharmed(monitor, folder, size);
  });

  test("one that was mirrored, and is not served any more", async () => {
    const { monitor, folder, size } = await liar.acquainted(0);
    lieAbout(COMMON, () => null);
    const evidence = await caught(
      monitor.round(),
      "missing-head",
      new RegExp(`^The head of size ${COMMON} is gone\\.$`),
    );
    expect(evidence).toMatchObject({ known: { tree_size: COMMON }, shown: null });
    await liar.expectUnharmed(monitor, folder, size);
  });

  test("another one than was mirrored", async () => {
    const { monitor, folder, size } = await liar.acquainted(0);
    lieAbout(COMMON, (head) => liar.signed(head, { root_hash: otherHash(head.root_hash) }));
    expectFork(await caught(monitor.round(), "fork"));
    await liar.expectUnharmed(monitor, folder, size);
  });
});

test("an older head of the same log is no lie, whether the mirror has come so far or not", async () => {
  for (const isBehind of [false, true]) {
    const { monitor, folder, size } = await liar.acquainted();
    const [old, known]: TreeHead[] = await Promise.all(
      [size + 1, size + 3].map(async (treeSize) => (await liar.service.get(`/log/sth/${treeSize}`)).body),
    );
    if (isBehind) {
      // The newest head is known then, and its entries are not.
      liar.proxy.lie = at(isPage, () => "<html>");
      await expect(monitor.round()).rejects.toMatchObject({ code: "malformed-answer" });
    } else await monitor.round();
    liar.proxy.lie = newestAt(() => old);
    expect(await older(monitor.round()), `${isBehind}`).toMatchObject({ known, shown: old });
    expect(await monitor.newestHead()).toEqual(known);
    await liar.expectUnharmed(monitor, folder, isBehind ? size : size + 3);
  }
});

describe("heads from the future", () => {
  const ahead = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString().replace("Z", "000Z");

  test("the newest one, which would keep a silence from being noticed", async () => {
    const { monitor, folder, size, head } = await liar.acquainted();
    liar.proxy.lie = newestAt((shown) => liar.signed(shown, { timestamp: ahead(330) }));
    const evidence = await caught(monitor.round(), "future-head", /5 minutes ahead of this machine's clock\.$/);
    expect(evidence).toMatchObject({ known: head, shown: { tree_size: size + 3 } });
    expect(isSigned(evidence, evidence.shown)).toBe(true);
    expect(await monitor.newestHead()).toEqual(head);
    await liar.expectUnharmed(monitor, folder, size);
  });

  test("one of a size in between", async () => {
    const { monitor, folder, size } = await liar.acquainted();
    liar.proxy.lie = headAt(size + 2, (head) => liar.signed(head, { timestamp: "2100-01-01T00:00:00.000000Z" }));
    expect((await caught(monitor.round(), "future-head")).shown!.tree_size).toBe(size + 2);
    await liar.expectUnharmed(monitor, folder, size);
  });

  test("one of a clock that is four minutes ahead is taken", async () => {
    const { monitor, folder, size } = await liar.acquainted();
    liar.proxy.lie = newestAt((shown) => liar.signed(shown, { timestamp: ahead(240) }));
    await monitor.round();
    expect(monitor.size).toBe(size + 3);
    await liar.expectUnharmed(monitor, folder, size + 3);
  });
});

describe("the checkpoint", () => {
  const isCheckpoint = (path: string) => path === "/log/checkpoint";

  test("of another history", async () => {
    const { monitor, folder } = await liar.acquainted(0);
    const size = await liar.service.entryCount();
    await grow(liar.fork, size);
    const other = await startTestService({ SERVICE_OPERATOR_KEY: join(liar.service.server.dataDir, "operator.pem") });
    await grow(other, COMMON);
    const note = (await other.get("/log/checkpoint")).text;
    liar.proxy.lie = at(isCheckpoint, () => note);
    const { checkpoint, known } = await caught(monitor.round(), "fork");
    expect(checkpoint).toBe(note);
    expect(known).toEqual((await liar.service.get(`/log/sth/${COMMON}`)).body);
    await liar.expectUnharmed(monitor, folder, size);
  });

  test("of another history, and of a size that is mirrored by the same round", async () => {
    const { monitor, folder, size } = await liar.acquainted();
    const other = await startTestService({ SERVICE_OPERATOR_KEY: join(liar.service.server.dataDir, "operator.pem") });
    await grow(other, size + 2);
    const note = (await other.get("/log/checkpoint")).text;
    liar.proxy.lie = at(isCheckpoint, () => note);
    const { checkpoint, known } = await caught(monitor.round(), "fork");
    expect(checkpoint).toBe(note);
    expect(known).toEqual((await liar.service.get(`/log/sth/${size + 2}`)).body);
    expect(readFileSync(checkpointPath(folder.mirror), "utf8")).not.toBe(note);
    await liar.expectUnharmed(monitor, folder, size + 3);
  });

  test("not signed, or larger than the head that came after it", async () => {
    const { monitor, folder, size } = await liar.acquainted(0);
    const note = (await liar.service.get("/log/checkpoint")).text;
    liar.proxy.lie = at(isCheckpoint, () => note.replace(`\n${size}\n`, `\n${size + 1}\n`));
    expect((await caught(monitor.round(), "bad-signature")).checkpoint).toContain(`\n${size + 1}\n`);
    const old: TreeHead = (await liar.service.get("/log/sth")).body;
    await liar.growBy(1);
    liar.proxy.lie = newestAt(() => old);
    expect(await older(monitor.round())).toMatchObject({ shown: old });
    await liar.expectUnharmed(monitor, folder, size);
  });
});

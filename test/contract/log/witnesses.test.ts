/** A service whose checkpoints are cosigned by witnesses, as clients and operators see it. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  parsePolicy,
  parseTlogProof,
  rfc6962,
  verifyByPolicy,
  verifyTlogProof,
} from "#cairnlog/engine/verify/index.js";
import { createClient } from "#cairnlog/server/client/index.js";
import { anyEvent } from "../../anyevent.js";
import { expectProblem, startTestService, type TestService, temporaryFolder } from "../../server/harness.js";
import { newNoteSigner, unknownVkey } from "../../verify/note/notes.js";
import { newCosignedDirectory, ORIGIN, startCosigned } from "../../witness/cosigned.js";
import { startTestWitness } from "../../witness/harness.js";

/** Takes no connection. */
const NOWHERE = "http://127.0.0.1:9";

const append = (service: TestService, count: number) =>
  service.server.registry.log.append(Array.from({ length: count }, () => ({ event_type: "test.event", payload: {} })));
const checkpoint = (service: TestService) => service.send("GET", "/tlog/checkpoint");
const sizeShown = async (service: TestService) => Number((await checkpoint(service)).text.split("\n")[1]);

describe("with witnesses that answer", () => {
  test("the checkpoint has a quorum of cosignatures, at every size, and after a restart", async () => {
    const { dataDir, signer } = newCosignedDirectory();
    const [a, b] = await Promise.all(
      ["a.example", "b.example"].map((name) => startTestWitness([{ signer }], { name })),
    );
    const dead = newNoteSigner("dead.example", 4);
    const lines = [
      `log ${signer.vkey}`,
      `witness A ${a!.running.vkey} ${a!.url}`,
      `witness B ${b!.running.vkey} ${b!.url}/`,
      `witness C ${dead.vkey} ${NOWHERE}`,
      "group G 2 A B C",
      "quorum G\n",
    ].join("\n");
    const policy = parsePolicy(lines);
    const first = await startCosigned(dataDir, lines);
    let size = 0;
    for (const count of [1, 2, 300]) {
      await append(first, count);
      size += count;
      await first.checkpointed(size);
      const verdict = await verifyByPolicy((await checkpoint(first)).text, policy);
      expect(verdict).toMatchObject({ checkpoint: { origin: ORIGIN, treeSize: size }, hasQuorum: true });
      expect(verdict!.cosigned.map(({ witness }) => witness.name)).toEqual(["A", "B"]);
    }
    const { body } = await first.send("GET", "/readyz");
    const cosigned_at = expect.any(Number);
    expect(body.witnesses).toEqual([
      { name: "A", vkey: a!.running.vkey, tree_size: size, cosigned_at, late: false, trouble: null },
      { name: "B", vkey: b!.running.vkey, tree_size: size, cosigned_at, late: false, trouble: null },
      {
        name: "C",
        vkey: dead.vkey,
        tree_size: null,
        cosigned_at: null,
        late: expect.any(Boolean),
        trouble: "The witness C cannot be reached.",
      },
    ]);
    const { text } = await first.send("GET", "/metrics");
    expect(text).toContain(`\ncairnlog_cosigned_entries ${size}\n`);
    expect(text).toContain(`\ncairnlog_cosigner_entries{witness="A"} ${size}\n`);
    expect(text).toContain('\ncairnlog_cosigner_entries{witness="C"} 0\n');
    expect(text).toMatch(/^cairnlog_cosigner_failures_total\{witness="C"\} [1-9]\d*$/m);
    const { text: before } = await checkpoint(first);
    await first.close();
    await Promise.all([a!.running.close(), b!.running.close()]);
    // The witnesses are gone; what they signed is not.
    const second = await startCosigned(dataDir, lines);
    expect((await checkpoint(second)).text).toBe(before);
    await append(second, 1);
    expect(await sizeShown(second)).toBe(size);
  });
});

test("a witness of ML-DSA-44 cosigns, beside one whose key nobody knows; the client and the proof file have both lines", async () => {
  const { dataDir, signer } = newCosignedDirectory();
  const pq = await startTestWitness([{ signer }], { name: "pq.example", algorithm: "ml-dsa-44" });
  const lines = [
    `log ${signer.vkey}`,
    `witness PQ ${pq.running.vkey} ${pq.url}`,
    `witness U ${unknownVkey("u.example")} ${NOWHERE}`,
    "group G any PQ U",
    "quorum G\n",
  ].join("\n");
  const service = await startCosigned(dataDir, lines);
  await service.server.registry.log.append(Array.from({ length: 300 }, (_, i) => anyEvent({ i })));
  await service.checkpointed(300);
  const { body } = await service.send("GET", "/readyz");
  expect(body.witnesses).toEqual([expect.objectContaining({ name: "PQ", vkey: pq.running.vkey, tree_size: 300 })]);
  const { text } = await createClient({ server: service.url }).tlog.proofFile(7, { vkey: signer.vkey });
  const proof = parseTlogProof(text);
  const { entry_hash } = service.server.registry.log.entryAt(6)!;
  const leaf = rfc6962.leafHash(Buffer.from(entry_hash));
  const verdict = await verifyTlogProof(proof, leaf, parsePolicy(lines));
  expect(verdict).toMatchObject({ isValid: true, hasQuorum: true, checkpoint: { treeSize: 300 } });
});

describe("without enough witnesses", () => {
  test("nothing is shown at /tlog/checkpoint; appends, receipts and tiles go on", async () => {
    const { dataDir } = newCosignedDirectory();
    const service = await startCosigned(
      dataDir,
      `witness C ${newNoteSigner("c.example", 4).vkey} ${NOWHERE}\nquorum C\n`,
    );
    await append(service, 300);
    await expect.poll(async () => (await service.send("GET", "/readyz")).body.witnesses[0].trouble).not.toBeNull();
    const reply = await checkpoint(service);
    expectProblem(reply, 404, "not-found");
    expect(reply.body.detail).toContain("witnesses");
    expect((await service.get("/log/sth")).body.tree_size).toBe(300);
    expect((await service.send("GET", "/tlog/tile/0/000")).status).toBe(200);
    expect((await service.send("GET", "/metrics")).text).toContain("\ncairnlog_cosigned_entries 0\n");
  });
});

describe("a policy with which no checkpoint could be shown keeps the service from starting", () => {
  const witness = newNoteSigner("c.example", 4);
  test.each([
    ["is none", "hello\n", "Line 1 of the policy"],
    ["has no quorum line", `witness C ${witness.vkey} ${NOWHERE}\n`, "no quorum line"],
    ["has a quorum without a URL", `witness C ${witness.vkey}\nquorum C\n`, "are no quorum"],
    [
      "has a quorum of keys that nobody knows",
      `witness C ${unknownVkey("c.example")} ${NOWHERE}\nquorum C\n`,
      "cannot be reached",
    ],
    [
      "has a quorum that needs one without a URL, beside a key that nobody knows",
      `witness C ${witness.vkey}\nwitness U ${unknownVkey("u.example")} ${NOWHERE}\ngroup G any C U\nquorum G\n`,
      "are no quorum",
    ],
    ["has a URL that is none", `witness C ${witness.vkey} witness.example\nquorum C\n`, "http: or https:"],
    ["has a URL with a query", `witness C ${witness.vkey} ${NOWHERE}?a=b\nquorum C\n`, "http: or https:"],
  ])("when it %s", async (_, policy, sentence) => {
    await expect(startCosigned(temporaryFolder(), policy)).rejects.toThrow(
      expect.objectContaining({ code: "invalid-input", message: expect.stringContaining(sentence) }),
    );
  });

  test("when it is not there, or not UTF-8", async () => {
    const latin = join(temporaryFolder(), "policy");
    writeFileSync(latin, Buffer.from("quorum none # \xe9\n", "latin1"));
    for (const file of ["/nowhere/policy", latin])
      await expect(startTestService({ SERVICE_WITNESSES: file })).rejects.toThrow(
        expect.objectContaining({ code: "storage-failed" }),
      );
  });
});

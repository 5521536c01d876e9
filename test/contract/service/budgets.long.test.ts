/** Budgets of stored bytes: every write is counted, for its address and for strangers, and refused when a budget is spent. */
import { describe, expect, test } from "vitest";
import { expectProblem, type Reply, startTestService, type TestService } from "../../server/harness.js";
import { bearerOf } from "../../server/proofs.js";
import { newManifest, newSigner, registration, submission, type TestSigner } from "../../server/signers.js";
import { content, FREE, register, send, WRITES } from "../../server/writes.js";
import { accountOf, sealed } from "../signing/claimants.js";
import { operationsOf } from "../tour.js";

const ADDRESS = "198.51.100.7";
const DAY_S = 86_400;

/** A service whose requests are not limited, but their bytes. */
const start = (budgets: Record<string, string> = {}): Promise<TestService> =>
  startTestService({
    SERVICE_RATE_LIMITS: "on",
    ...Object.fromEntries(
      ["GENERAL", "KEY_REGISTRATION", "ATTESTATION", "ENDORSEMENT_OFFER"].map((name) => [
        `SERVICE_RATE_LIMIT_${name}`,
        "1000000",
      ]),
    ),
    SERVICE_TRUSTED_PROXIES: "127.0.0.1",
    ...budgets,
  });

const log = ({ server }: TestService) => server.registry.log;

/** Bytes that were counted: for strangers, and for addresses. */
function counted(service: TestService) {
  const sum = { strangers: 0, addresses: 0 };
  for (const { key, row } of log(service).rows("byteBudgets", -1, Number.MAX_SAFE_INTEGER))
    for (let i = 2; i < row.windows.length; i += 3) sum[key === -1 ? "strangers" : "addresses"] += row.windows[i]!;
  return sum;
}

function expectSpent(reply: Reply): void {
  expectProblem(reply, 429, "budget-spent");
  expect(Number(reply.headers.get("retry-after"))).toBeGreaterThan(DAY_S - 600);
  expect(Number(reply.headers.get("retry-after"))).toBeLessThanOrEqual(DAY_S);
  // These tell of the limit of requests, which has many left.
  expect(reply.headers.get("ratelimit-remaining")).not.toBe("0");
}

const attest = (service: TestService, signer: TestSigner, title: string, address: string) =>
  service.post("/attestations", submission(signer, newManifest(title)), { "x-forwarded-for": address });

test("every request of the API that may store something is among the writes", async () => {
  const service = await start();
  const operations = operationsOf(await service.openApi()).filter(({ method }) => method !== "GET");
  expect(
    operations
      .map(({ id }) => id)
      .filter((id) => !FREE.has(id))
      .sort(),
  ).toEqual(Object.keys(WRITES).sort());
});

describe("every write", () => {
  test("is counted for its address and for strangers", async () => {
    const service = await start();
    for (const [i, id] of Object.keys(WRITES).entries()) {
      const go = await send(service, id, `198.51.100.${i}`);
      const before = counted(service);
      const reply = await go();
      expect(reply.status, `${id}: ${reply.text}`).toBeLessThan(300);
      const after = counted(service);
      // The first bytes of an address are counted exactly; rows of later ones are written ahead.
      expect(after.addresses - before.addresses, id).toBeGreaterThan(20);
      expect(after.strangers, id).toBeGreaterThanOrEqual(after.addresses);
      expect(after.strangers, id).toBeLessThanOrEqual(2 * after.addresses);
    }
  });

  test.each([
    ["its address", { SERVICE_BYTES_PER_ADDRESS: "1" }],
    ["strangers", { SERVICE_BYTES_FROM_STRANGERS: "1" }],
  ])("is refused when the budget of %s is spent, and leaves nothing", async (_, budgets) => {
    const service = await start(budgets);
    for (const id of Object.keys(WRITES)) {
      const go = await send(service, id, ADDRESS);
      const before = content(service);
      const reply = await go();
      if (id === "post_attestations_batch") {
        expect(reply.body.results, id).toMatchObject([{ status: 429, problem: { code: "budget-spent" } }]);
        expect(reply.body.results[0].retry_after).toBeGreaterThan(DAY_S - 600);
      } else expectSpent(reply);
      expect(content(service), id).toEqual(before);
    }
  });
});

describe("a key that an anchor reaches", () => {
  test("writes when the budget of strangers is spent, in every way", async () => {
    const anchors = Object.keys(WRITES).map(() => newSigner());
    const service = await start({
      SERVICE_BYTES_FROM_STRANGERS: "1",
      SERVICE_TRUST_ANCHORS: anchors.map(({ fingerprint }) => fingerprint).join(),
    });
    for (const anchor of anchors) await register(service.server.registry, anchor);
    // Whoever sends these has not shown that the key is his.
    const unproven = ["post_keys_register", "post_users", "post_users_recover"];
    for (const [i, id] of Object.keys(WRITES).entries()) {
      const reply = await (await send(service, id, ADDRESS, anchors[i]!))();
      if (unproven.includes(id)) expectSpent(reply);
      else expect(reply.status, `${id}: ${reply.text}`).toBe(200);
      if (id === "post_attestations_batch") expect(reply.body.results[0].status).toBe(201);
    }
    expect(counted(service)).toMatchObject({ strangers: 0, addresses: expect.any(Number) });
  });

  test("is found when it has been endorsed since", async () => {
    const [anchor, friend] = [newSigner(), newSigner()];
    const service = await start({
      SERVICE_BYTES_FROM_STRANGERS: "1",
      SERVICE_TRUST_ANCHORS: anchor.fingerprint,
      SERVICE_ENDORSEMENT_ACTIVATION_DELAY_S: "0",
    });
    const { registry } = service.server;
    for (const key of [anchor, friend]) await register(registry, key);
    expectSpent(await attest(service, friend, "one", ADDRESS));
    const parties = { endorser_fingerprint: anchor.fingerprint, endorsed_fingerprint: friend.fingerprint };
    const offer = await registry.endorsements.offer({ ...parties, category: "x-service:human_attestation" });
    const { offer_entry_id } = offer.endorsement;
    await registry.endorsements.accept({ offer_entry_id, endorsed_fingerprint: friend.fingerprint });
    expect((await attest(service, friend, "one", ADDRESS)).status).toBe(200);
  });

  test("pays for nobody whom it lets in", async () => {
    const [anchor, key] = [newSigner(), newSigner()];
    const service = await start({
      SERVICE_BYTES_FROM_STRANGERS: "1",
      SERVICE_TRUST_ANCHORS: anchor.fingerprint,
      SERVICE_WRITERS: "registered",
    });
    const { registry } = service.server;
    await register(registry, anchor);
    const asked = registry.keys.register(registration(key).payload, { address: ADDRESS }, anchor.fingerprint);
    await expect(asked).rejects.toMatchObject({ code: "budget-spent" });
  });

  test("has no more than others from one address", async () => {
    const anchor = newSigner();
    const service = await start({ SERVICE_BYTES_PER_ADDRESS: "1", SERVICE_TRUST_ANCHORS: anchor.fingerprint });
    await register(service.server.registry, anchor);
    expectSpent(await attest(service, anchor, "one", ADDRESS));
  });
});

describe("addresses", () => {
  /** Attestations of one size from an address, until one is refused. @returns how many were recorded */
  async function most(service: TestService, address: (i: number) => string): Promise<number> {
    const signer = newSigner();
    await register(service.server.registry, signer);
    for (let i = 0; i < 200; i++) {
      const reply = await attest(service, signer, `title ${1000 + i}`, address(i));
      if (reply.status === 200) continue;
      expectSpent(reply);
      return i;
    }
    throw new Error("Nothing was refused.");
  }

  test("a /64 is one, and a /48 has eight times as much as one", async () => {
    const service = await start({ SERVICE_BYTES_PER_ADDRESS: "4000" });
    const ofOne = await most(service, () => ADDRESS);
    expect(ofOne).toBeGreaterThan(2);
    expect(await most(service, (i) => `2001:db8:1:2::${i.toString(16)}`)).toBe(ofOne);
    const ofNetwork = await most(service, (i) => `2001:db8:9:${i.toString(16)}::1`);
    expect(ofNetwork).toBeGreaterThanOrEqual(8 * ofOne);
    expect(ofNetwork).toBeLessThan(8 * (ofOne + 1));
    expect(await most(service, (i) => `2001:db8:a:${i.toString(16)}::1`)).toBe(ofNetwork);
  });

  test("are not stored as they are, and are counted on after a restart", async () => {
    const first = await start({ SERVICE_BYTES_PER_ADDRESS: "4000" });
    const { dataDir } = first.server;
    const ofOne = await most(first, () => ADDRESS);
    expect(JSON.stringify(content(first))).not.toContain(ADDRESS);
    const before = counted(first);
    await first.close();
    const second = await start({ SERVICE_BYTES_PER_ADDRESS: "4000", SERVICE_DATA_DIR: dataDir });
    expect(counted(second)).toEqual(before);
    expect(await most(second, () => ADDRESS)).toBe(0);
    expect(await most(second, () => "198.51.100.8")).toBe(ofOne);
  });

  test("are counted together by all front ends", async () => {
    const [alone, many] = await Promise.all(
      ["0", "3"].map((count) => start({ SERVICE_BYTES_PER_ADDRESS: "20000", SERVICE_FRONT_ENDS: count })),
    );
    const ofOne = await most(alone!, () => ADDRESS);
    const signer = newSigner();
    await register(many!.server.registry, signer);
    const sent = Array.from({ length: 3 * ofOne }, (_, i) => attest(many!, signer, `title ${1000 + i}`, ADDRESS));
    const replies = await Promise.all(sent);
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(ofOne);
    for (const reply of replies) if (reply.status !== 200) expectSpent(reply);
    expect(counted(many!).addresses).toBeLessThanOrEqual(20_000);
  });
});

describe("what was shown to cost too much", () => {
  const PER_ADDRESS = 256 * 1024;

  test("requests with 64 KiB of claims", async () => {
    const service = await start({ SERVICE_BYTES_PER_ADDRESS: `${PER_ADDRESS}` });
    const signer = newSigner();
    await register(service.server.registry, signer);
    const headers = { ...(await bearerOf(service, signer)), "x-forwarded-for": ADDRESS };
    const size = log(service).size;
    const replies = await Promise.all(
      Array.from({ length: 40 }, (_, i) => {
        const body = { attestation_type: "authorship", nonce: `${i}`, claims: { text: "x".repeat(65_000) } };
        return service.post("/log/attestation-requests", { target_fingerprint: signer.fingerprint, ...body }, headers);
      }),
    );
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(3);
    for (const reply of replies) if (reply.status !== 200) expectSpent(reply);
    expect(log(service).size).toBe(size + 3);
  });

  test("trust configurations in a row: an hour has twenty, and two of them are kept", async () => {
    const service = await start();
    const signer = newSigner();
    await register(service.server.registry, signer);
    const headers = await bearerOf(service, signer);
    const body = { fingerprint: signer.fingerprint, minimum_threshold: 0.5 };
    const statuses: number[] = [];
    for (let i = 0; i < 30; i++) statuses.push((await service.post("/trust-configs", body, headers)).status);
    expect(statuses).toEqual([...Array(20).fill(200), ...Array(10).fill(429)]);
    expectProblem(await service.post("/trust-configs", body, headers), 429, "rate-limited");
    const { trust_configs, total } = (await service.get("/trust-configs")).body;
    expect([trust_configs.map(({ id, status }: { id: number; status: string }) => [id, status]), total]).toEqual([
      [
        [19, "superseded"],
        [20, "active"],
      ],
      2,
    ]);
  });

  test("claims of many new keys", async () => {
    const service = await start({ SERVICE_BYTES_FROM_STRANGERS: `${PER_ADDRESS}` });
    const { registry } = service.server;
    const text = Buffer.alloc(60_000).toString("base64");
    let posted = 0;
    for (let i = 0; i < 10; i++) {
      const signer = newSigner();
      await register(registry, signer);
      await registry.accounts.create(accountOf(signer) as never);
      const headers = { ...(await bearerOf(service, signer)), "x-forwarded-for": `198.51.100.${i}` };
      const { payload } = sealed();
      const reply = await service.post("/claims", { payload: { ...payload, ciphertext: text } }, headers);
      if (reply.status === 200) posted++;
      else expectSpent(reply);
    }
    expect(posted).toBe(3);
  });

  test("requests of one requester: 200 an hour, whoever is asked", async () => {
    const service = await start();
    const { registry } = service.server;
    const [requester, ...targets] = Array.from({ length: 6 }, () => newSigner());
    for (const key of [requester!, ...targets]) await register(registry, key);
    const asked = Array.from({ length: 220 }, (_, i) =>
      registry.requests.create(requester!.fingerprint, {
        target_fingerprint: targets[i % 5]!.fingerprint,
        attestation_type: "authorship",
        nonce: `${i}`,
        intent_statement: "",
        claims: {},
      } as never),
    );
    const outcomes = await Promise.allSettled(asked);
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(200);
    for (const outcome of outcomes)
      if (outcome.status === "rejected") expect(outcome.reason).toMatchObject({ code: "rate-limited" });
  });
});

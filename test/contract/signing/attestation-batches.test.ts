/** Many attestations in one request: each is recorded or refused by itself, and all in the order of the list. */
import { beforeAll, describe, expect, test } from "vitest";
import { parsePublicKey, verifyBundle } from "#cairnlog/engine/verify/index.js";
import { expectProblem, type Reply, startTestService, type TestService } from "../../server/harness.js";
import { bearerOf, byOpenssl, proofOf, registeredSigner } from "../../server/proofs.js";
import {
  type Algorithm,
  canonical,
  newManifest,
  newSigner,
  sha256,
  submission,
  type TestSigner,
} from "../../server/signers.js";

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});

const send = (submissions: unknown, headers: Record<string, string> = {}) =>
  service.post("/attestations/batch", { submissions }, headers);
const statuses = ({ body }: Reply): number[] => body.results.map((one: { status: number }) => one.status);
const many = (count: number, signer: TestSigner) =>
  Array.from({ length: count }, (_, i) => submission(signer, newManifest(`Document ${i}`)));

/** What POST /attestations answers to the same. */
/** What a batch that was answered by `batch` must say of a submission that alone is refused. */
async function single(body: unknown, batch: Reply): Promise<{ status: number; problem: unknown }> {
  const reply = await service.post("/attestations", body);
  return { status: reply.status, problem: { ...reply.body, request_id: batch.headers.get("x-request-id") } };
}

describe("a batch of good submissions", () => {
  test("is recorded in its order, each with the receipt that a single one would get", async () => {
    const before = await service.entryCount();
    const signer = newSigner();
    const submissions = many(20, signer);
    const reply = await send(submissions);
    expect(reply.status, reply.text).toBe(200);
    // One entry registers the key, before all others.
    for (const [i, { status, receipt }] of reply.body.results.entries()) {
      const leaf_index = before + 1 + i;
      expect(status).toBe(201);
      expect(receipt).toMatchObject({ leaf_index, log_entry_id: leaf_index + 1, duplicate: false });
      expect(receipt.manifest_hash).toBe(sha256(canonical(submissions[i]!.manifest)));
      expect(receipt.sth.tree_size).toBe(leaf_index + 1);
    }
    expect(await service.entryCount()).toBe(before + 21);
    const again = await service.post("/attestations", submissions[7]);
    expect(again.body).toEqual({ ...reply.body.results[7].receipt, duplicate: true });
  });

  test("shares transactions: its commands are given to the log in one turn", async () => {
    const { log } = service.server.registry;
    const submissions = many(300, newSigner());
    const before = log.batches;
    expect(new Set(statuses(await send(submissions)))).toEqual(new Set([201]));
    expect(log.batches - before).toBe(1);
  });

  test.each(["ed25519", "ecdsa-p256", "rsa-2048"] as const)(
    "has receipts that verify offline (%s, signed by openssl)",
    async (algorithm: Algorithm) => {
      const signer = byOpenssl(newSigner(algorithm));
      const submissions = many(3, signer);
      const { body } = await send(submissions);
      const { public_key } = (await service.get("/log/operator-key")).body;
      for (const [i, { receipt }] of body.results.entries()) {
        const { ots_proof: _, ...entry } = (await service.get(`/log/${receipt.log_entry_id}`)).body;
        const proof = (await service.get(`/log/proof/${receipt.leaf_index}?tree_size=${receipt.sth.tree_size}`)).body;
        const { manifest } = submissions[i]!;
        const bundle = {
          format: "cairnlog-attestation/v1",
          ...{ manifest, attestation: receipt.attestation, public_key: signer.publicKey },
          ...{ entry, proof, tree_head: receipt.sth },
        };
        const trust = { fileHash: manifest.document.content_hash, operatorKey: parsePublicKey(public_key) };
        expect(await verifyBundle(bundle, trust)).toMatchObject({ valid: true });
      }
    },
  );

  test("of one is as good as any", async () => {
    expect(statuses(await send(many(1, newSigner())))).toEqual([201]);
  });

  test("holds at most 1000", async () => {
    const submissions = many(1001, newSigner());
    const before = await service.entryCount();
    const reply = await send(submissions);
    expectProblem(reply, 422, "invalid-input");
    expect(reply.body.errors).toEqual([{ path: "/submissions", message: "It can have at most 1000 items." }]);
    expect(await service.entryCount()).toBe(before);
    const { results } = (await send(submissions.slice(1))).body;
    const places = results.map(({ receipt }: { receipt: { leaf_index: number } }) => receipt.leaf_index);
    expect(places).toEqual(Array.from({ length: 1000 }, (_, i) => before + 1 + i));
  });

  test.each([[[]], [undefined], [null], ["x"], [{}]])("that is %j is no batch", async (submissions) => {
    expectProblem(await send(submissions), 422, "invalid-input");
  });
});

describe("what is wrong with one submission", () => {
  test("refuses that one, with the problem of a single one, and no other", async () => {
    const signer = newSigner();
    const good = () => submission(signer, newManifest());
    const bad = [
      { ...good(), signature: signer.sign("another text") },
      { ...good(), signature: "no base64" },
      { ...good(), public_key_pem: signer.privateKey },
      { ...good(), manifest: { document: {}, attestations: [] } },
      { ...good(), attestation_type: "https://x-service.example/predicates/vault-publication/v1" },
      {},
      [],
      null,
      17,
      { ...good(), signature: 17 },
    ];
    const before = await service.entryCount();
    const reply = await send(bad.flatMap((one) => [good(), one]));
    expect(reply.status).toBe(200);
    const { results } = reply.body;
    expect(await service.entryCount()).toBe(before + 1 + bad.length);
    for (const [i, one] of bad.entries()) {
      expect(results[2 * i]).toMatchObject({ status: 201, receipt: { leaf_index: before + 1 + i } });
      // A body that is no object is refused before a route reads it.
      if (typeof one === "object" && one !== null && !Array.isArray(one))
        expect(results[2 * i + 1]).toEqual(await single(one, reply));
      else expect(results[2 * i + 1]).toMatchObject({ status: 422, problem: { code: "invalid-input" } });
    }
  });

  test("is found among a hundred", async () => {
    const signer = newSigner();
    const submissions = many(100, signer);
    submissions[61] = { ...submissions[61]!, signature: submissions[60]!.signature };
    const reply = await send(submissions);
    expect(statuses(reply).flatMap((status, i) => (status === 201 ? [] : [i, status]))).toEqual([61, 422]);
    expect(reply.body.results[61].problem.code).toBe("invalid-signature");
  });

  test("counts as a refusal in the metrics", async () => {
    const own = await startTestService();
    await own.post("/attestations/batch", { submissions: [{}, {}, submission(newSigner())] });
    const { text } = await own.send("GET", "/metrics");
    expect(text).toContain('cairnlog_refusals_total{code="invalid-input"} 2');
  });
});

describe("submissions of one batch see each other", () => {
  test("one that is there twice gets the receipt of the first", async () => {
    const one = submission(newSigner("ecdsa-p256"), newManifest());
    const before = await service.entryCount();
    const { results } = (await send([one, submission(newSigner()), one])).body;
    expect(results.map(({ status }: { status: number }) => status)).toEqual([201, 201, 200]);
    expect(results[2].receipt).toEqual({ ...results[0].receipt, duplicate: true });
    expect(await service.entryCount()).toBe(before + 4);
  });

  test("a new key is registered once, under the name that came first", async () => {
    const signer = newSigner();
    const { results } = (
      await send([
        submission(signer, newManifest(), { pseudonym: "First" }),
        submission(signer, newManifest(), { pseudonym: "Second" }),
      ])
    ).body;
    expect(results.map(({ receipt }: { receipt: { pseudonym: string } }) => receipt.pseudonym)).toEqual([
      "First",
      "First",
    ]);
    const { entries } = (await service.get(`/log/by-fingerprint/${signer.fingerprint}`)).body;
    const registrations = entries.filter(({ event_type }: { event_type: string }) => event_type === "key_registration");
    expect(registrations).toHaveLength(1);
  });

  test("the same signature under another type needs a proof, also if the first entry is not on disk yet", async () => {
    const manifest = newManifest();
    const signer = newSigner();
    const { results } = (
      await send([submission(signer, manifest), submission(signer, manifest, { attestation_type: "publication" })])
    ).body;
    expect(results).toMatchObject([{ status: 201 }, { status: 403, problem: { code: "proof-required" } }]);
  });
});

describe("possession", () => {
  const twice = (signer: TestSigner, more: object = {}) => {
    const manifest = newManifest();
    return [submission(signer, manifest), submission(signer, manifest, { attestation_type: "publication", ...more })];
  };

  test("a session holds for all submissions of its key, and for no other's", async () => {
    const signer = await registeredSigner(service);
    const other = await registeredSigner(service);
    const submissions = [...twice(signer), ...twice(other), ...twice(signer)];
    const reply = await send(submissions, await bearerOf(service, signer));
    expect(statuses(reply)).toEqual([201, 201, 201, 403, 201, 201]);
  });

  test("an invalid session refuses the whole", async () => {
    const before = await service.entryCount();
    expectProblem(await send(many(2, newSigner()), { authorization: "Bearer a.b.c" }), 401, "unauthenticated");
    expect(await service.entryCount()).toBe(before);
  });

  test("an `auth` proof belongs to one submission", async () => {
    const signer = await registeredSigner(service);
    const auth = await proofOf(service, signer);
    const [first, second] = [twice(signer, { auth }), twice(signer)];
    const reply = await send([...first, ...second]);
    expect(statuses(reply)).toEqual([201, 201, 201, 403]);
    // Used up.
    expect(statuses(await send(twice(signer, { auth })))).toEqual([201, 409]);
  });

  test("a proof of its own counts before the session", async () => {
    const signer = await registeredSigner(service);
    const other = await registeredSigner(service);
    const auth = await proofOf(service, other);
    const reply = await send([submission(signer, newManifest(), { auth })], await bearerOf(service, signer));
    expect(reply.body.results).toMatchObject([{ status: 403, problem: { code: "forbidden" } }]);
  });

  test.each(["first", "last"])("a password is that of its key: the %s of two keys has it", async (place) => {
    const [holder, other] = await Promise.all([registeredSigner(service), registeredSigner(service)]);
    const password = "correct horse battery";
    for (const [signer, own] of [[holder, password] as const, [other, "another battery"] as const]) {
      const set = await service.post("/auth/password", { ...(await proofOf(service, signer)), password: own });
      expect(set.status, set.text).toBe(200);
    }
    const all = [holder, other].map((signer) => submission(signer, newManifest(), { password }));
    const { results } = (await send(place === "first" ? all : all.toReversed())).body;
    const refused = { status: 403, problem: { code: "forbidden" } };
    const taken = { status: 201, receipt: { fingerprint: holder.fingerprint } };
    expect(results).toMatchObject(place === "first" ? [taken, refused] : [refused, taken]);
  });

  test("what was found of one password counts for no other one of the key, and for no later batch", async () => {
    const signer = await registeredSigner(service);
    const set = async (passwords: object) => {
      const reply = await service.post("/auth/password", { ...(await proofOf(service, signer)), ...passwords });
      expect(reply.status, reply.text).toBe(200);
    };
    const sent = async (password: string) => statuses(await send([submission(signer, newManifest(), { password })]));
    const [old, next] = ["correct horse battery", "another battery"];
    await set({ password: old });
    const passwords = [old, next, undefined, old, next];
    const mixed = passwords.map((password) => submission(signer, newManifest(), { password }));
    expect(statuses(await send(mixed))).toEqual([201, 403, 403, 201, 403]);
    expect([await sent(old), await sent(next)]).toEqual([[201], [403]]);
    await set({ password: next, current_password: old });
    expect([await sent(old), await sent(next)]).toEqual([[403], [201]]);
  });

  test("a wrong password that all submissions carry is one try", async () => {
    const own = await startTestService();
    const signer = await registeredSigner(own);
    const password = "correct horse battery";
    const set = await own.post("/auth/password", { ...(await proofOf(own, signer)), password });
    expect(set.status, set.text).toBe(200);
    const all = (count: number, password: unknown) =>
      own.post("/attestations/batch", {
        submissions: Array.from({ length: count }, () => submission(signer, newManifest(), { password })),
      });
    for (let i = 0; i < 4; i++) expect(new Set(statuses(await all(20, "a wrong password")))).toEqual(new Set([403]));
    expect(new Set(statuses(await all(20, undefined)))).toEqual(new Set([403]));
    expect(new Set(statuses(await all(20, password)))).toEqual(new Set([201]));
  });
});

describe("the limit", () => {
  const limited = (attestations: number, general = 100) =>
    startTestService({
      SERVICE_RATE_LIMITS: "on",
      SERVICE_RATE_LIMIT_ATTESTATION: `${attestations}`,
      SERVICE_RATE_LIMIT_GENERAL: `${general}`,
    });
  const remaining = ({ headers }: Reply) => [headers.get("ratelimit-policy"), headers.get("ratelimit-remaining")];

  test("counts each submission, refused ones included", async () => {
    const own = await limited(50);
    const submissions = [...many(9, newSigner()), {}];
    const reply = await own.post("/attestations/batch", { submissions });
    expect(remaining(reply)).toEqual(['"attestation";q=50;w=3600', "40"]);
    expect(remaining(await own.post("/attestations", submissions[0]))).toEqual(['"attestation";q=50;w=3600', "39"]);
  });

  test("refuses the whole where fewer are left, and counts nothing then", async () => {
    const own = await limited(50);
    const submissions = many(51, newSigner());
    const batch = (from: number, to: number) =>
      own.post("/attestations/batch", { submissions: submissions.slice(from, to) });
    for (let i = 0; i < 2; i++) {
      const refused = await batch(0, 51);
      expectProblem(refused, 429, "rate-limited");
      expect(refused.headers.get("retry-after")).toBe(refused.headers.get("ratelimit-reset"));
      expect(remaining(refused)[1]).toBe("50");
      expect(refused.body.detail).toMatch(/^The limit "attestation" has 50 of 50 left, and this holds 51; nothing was/);
    }
    expect(await own.entryCount()).toBe(0);
    expect((await batch(0, 30)).status).toBe(200);
    expectProblem(await batch(30, 51), 429);
    expect(statuses(await batch(30, 50))).toEqual(Array(20).fill(201));
    expectProblem(await batch(50, 51), 429);
  });

  test("uses no challenge of a batch that it refuses", async () => {
    const own = await limited(1);
    const signer = await registeredSigner(own);
    const auth = await proofOf(own, signer);
    const one = submission(signer, newManifest(), { auth });
    expectProblem(await own.post("/attestations/batch", { submissions: [one, one] }), 429);
    expect(statuses(await own.post("/attestations/batch", { submissions: [one] }))).toEqual([201]);
  });

  test("counts each batch as a request, too, whatever its body is", async () => {
    const own = await limited(50, 3);
    // The harness reads the document from the service, which counts the request.
    await own.openApi();
    const { headers } = await own.post("/attestations/batch", "{");
    expect(headers.get("ratelimit")).toMatch(/^"general";r=1;/);
    expectProblem(await own.post("/attestations/batch", { submissions: [] }), 422);
    expectProblem(await own.post("/attestations/batch", { submissions: [{}] }), 429, "rate-limited");
  });
});

describe("the body", () => {
  const padded = (bytes: number) => {
    const frame = JSON.stringify({ submissions: [{ padding: "" }] });
    return JSON.stringify({ submissions: [{ padding: "x".repeat(bytes - frame.length) }] });
  };

  test("may be three times as large as others", async () => {
    const own = await startTestService({ SERVICE_MAX_BODY_BYTES: "2048", SERVICE_MAX_PENDING_BYTES: "1024" });
    expect((await own.post("/attestations/batch", padded(6144))).status).toBe(200);
    expectProblem(await own.post("/attestations/batch", padded(6145)), 413, "payload-too-large");
    expectProblem(await own.post("/attestations", padded(2049)), 413, "payload-too-large");
  });

  test("fits a thousand attestations of RSA keys with long titles", async () => {
    const signer = newSigner("rsa-2048");
    const one = submission(signer, newManifest("x".repeat(500)), { intent_statement: "I have read it. ".repeat(60) });
    expect(JSON.stringify({ submissions: Array(1000).fill(one) }).length).toBeLessThan(3 * 2 ** 20);
  });
});

/** Encrypted claims over HTTP: every row of the Errors table for these routes under its own name, and the caps. */
import { beforeAll, describe, expect, test } from "vitest";
import { verifyClaimCommitment } from "#cairnlog/engine/verify/claims/claims.js";
import { expectProblem, startTestService, type TestService } from "../../server/harness.js";
import { newSigner, registration } from "../../server/signers.js";
import { open } from "../../verify/claims/ecies.js";
import {
  accountOf,
  holder,
  newLookupKey,
  type Post,
  plaintext,
  preUpgrade,
  recipient,
  sealed,
  signIn,
} from "./claimants.js";

let service: TestService;
const post: Post = (...parts) => service.post(...parts);
/** The session of a hardware-backed key. */
let session: Record<string, string>;
beforeAll(async () => {
  service = await startTestService();
  session = await signIn(post, await holder(post, "hardware"));
});

const postClaim = (payload: unknown, headers = session) => service.post("/claims", { payload }, headers);

async function posted() {
  const { payload, commitmentKey } = sealed();
  const reply = await postClaim(payload);
  expect(reply.status, reply.text).toBe(200);
  return { entry_id: reply.body.entry_id as number, payload, commitmentKey };
}

const reveal = (id: unknown, body: unknown, headers = session) => service.post(`/claims/${id}/reveal`, body, headers);

describe("POST /claims", () => {
  test("answers entry_id, commitment, lookup_key, leaf_index and log_entry_id", async () => {
    const { payload } = sealed();
    const before = await service.entryCount();
    const reply = await postClaim(payload);
    expect(reply.status).toBe(200);
    expect(reply.body).toEqual({
      entry_id: before + 1,
      commitment: payload.commitment,
      lookup_key: payload.lookup_key,
      leaf_index: before,
      log_entry_id: before + 1,
    });
    const { body: entry } = await service.get(`/log/${before + 1}`);
    expect(entry).toMatchObject({ event_type: "encrypted_claim", payload });
    // The log adds the type of the event, which the poster's additional data do not cover.
    const { event_type, ...claim } = entry.payload;
    expect(event_type).toBe("encrypted_claim");
    expect(open(claim, recipient).plaintext).toEqual(plaintext);
  });

  test.each(["sha256", undefined, null, "hmac-sha256", 1])("400: commitment_alg is %j", async (commitment_alg) => {
    const { commitment_alg: _, ...others } = sealed().payload;
    const before = await service.entryCount();
    for (const members of [others, {}]) {
      const reply = await postClaim({ ...members, commitment_alg });
      expectProblem(reply, 400, "unsupported-commitment");
      expect(reply.body.errors[0].path).toBe("/payload/commitment_alg");
    }
    expect(await service.entryCount()).toBe(before);
  });

  test("401: no JWT, for any body", async () => {
    for (const body of [{ payload: sealed().payload }, {}, { payload: { commitment_alg: "sha256" } }])
      for (const headers of [{}, { authorization: "Bearer x.y.z" }, { authorization: "Basic YTpi" }])
        expectProblem(await service.post("/claims", body, headers as Record<string, string>), 401, "unauthenticated");
  });

  test("403: the signing key is not hardware-backed, for any body", async () => {
    const software = await signIn(post, await holder(post, "software"));
    const bare = newSigner();
    await service.post("/keys/register", registration(bare));
    for (const headers of [software, await signIn(post, bare)])
      for (const body of [{ payload: sealed().payload }, {}, { payload: {} }])
        expectProblem(await service.post("/claims", body, headers), 403, "forbidden");
  });

  test("403: the hardware credential was revoked", async () => {
    const signer = newSigner();
    await service.post("/keys/register", registration(signer));
    const account = accountOf(signer);
    const { body } = await service.post("/users", account);
    const headers = await signIn(post, signer);
    expect((await postClaim(sealed().payload, headers)).status).toBe(200);
    const other = newSigner();
    await service.post("/keys/register", registration(other));
    const { display_name, email: _, ...credential } = { ...account, key_fingerprint: other.fingerprint };
    const recovery = { pseudonym: display_name, recovery_key: body.recovery_key, ...credential };
    expect((await service.post("/users/recover", recovery)).status).toBe(200);
    expectProblem(await postClaim(sealed().payload, headers), 403, "forbidden");
  });

  test("422: a member is malformed, and every one is named", async () => {
    const { payload } = sealed();
    const malformed = { ...payload, nonce: "AAAA", lookup_key: "xyz", ephemeral_public_key: "BA==" };
    const reply = await postClaim(malformed);
    expectProblem(reply, 422, "invalid-input");
    expect(reply.body.errors.map(({ path }: { path: string }) => path)).toEqual([
      "/payload/ephemeral_public_key",
      "/payload/nonce",
      "/payload/lookup_key",
    ]);
    for (const body of [{}, { payload: null }, { payload: [] }, { payload: "x" }])
      expectProblem(await service.post("/claims", body, session), 422, "invalid-input");
  });

  test("422: the decoded ciphertext is over 262144 bytes; exactly as many are accepted", async () => {
    const room = 262_144 - 16 - '{"text":""}'.length;
    // Bytes, not characters: of the last text only half as many characters fit.
    for (const text of ["a".repeat(room), "é".repeat((room - 1) / 2).padEnd((room - 1) / 2 + 1, "a")]) {
      const { payload } = sealed(newLookupKey(), { text });
      expect(Buffer.from(payload.ciphertext, "base64")).toHaveLength(262_144);
      const reply = await postClaim(payload);
      expect(reply.status, reply.text).toBe(200);
      expect(open((await service.get(`/claims/${reply.body.entry_id}`)).body, recipient).plaintext).toEqual({ text });
      const over = await postClaim(sealed(newLookupKey(), { text: `${text}a` }).payload);
      expectProblem(over, 422, "invalid-input");
      expect(over.body.errors[0].path).toBe("/payload/ciphertext");
    }
  });
});

describe("GET /claims", () => {
  test("lists by lookup_key, ascending, to anybody who knows it; empty when there is none", async () => {
    const lookupKey = newLookupKey();
    const ids: number[] = [];
    for (let i = 0; i < 3; i++) {
      ids.push((await postClaim(sealed(lookupKey).payload)).body.entry_id);
      await posted();
    }
    const { body } = await service.get(`/claims?lookup_key=${lookupKey}`);
    expect(body).toMatchObject({ page: 1, per_page: 50, total: 3 });
    expect(body.entries.map(({ id }: { id: number }) => id)).toEqual(ids);
    for (const entry of body.entries) {
      const { body: stored } = await service.get(`/log/${entry.id}`);
      expect(entry).toEqual({
        id: stored.id,
        timestamp: stored.timestamp,
        event_type: "encrypted_claim",
        payload: stored.payload,
        previous_hashes: [{ algorithm: "sha2-256", digest_hex: stored.previous_hash }],
        entry_hashes: stored.entry_hashes,
      });
    }
    const second = (await service.get(`/claims?lookup_key=${lookupKey}&page=2&per_page=2`)).body;
    expect(second).toMatchObject({ entries: [{ id: ids[2] }], page: 2, per_page: 2, total: 3 });
    for (const unknown of [newLookupKey(), "deadbeef", "not hex"]) {
      const reply = await service.get(`/claims?lookup_key=${encodeURIComponent(unknown)}`);
      expect(reply.body).toEqual({ entries: [], page: 1, per_page: 50, total: 0 });
    }
  });

  test("422: without lookup_key, or a page that is none", async () => {
    for (const query of ["", "?lookup_key=", `?lookup_key=${"a".repeat(129)}`, "?lookup_key=a&lookup_key=b"])
      expectProblem(await service.get(`/claims${query}`), 422, "invalid-input");
    for (const query of ["page=0", "per_page=0", "per_page=201", "page=x"])
      expectProblem(await service.get(`/claims?lookup_key=${newLookupKey()}&${query}`), 422, "invalid-input");
  });
});

describe("GET /claims/{entry_id}", () => {
  test("gives the opaque payload and nothing else", async () => {
    const { entry_id, payload } = await posted();
    expect((await service.get(`/claims/${entry_id}`)).body).toEqual(payload);
  });

  test("404: no such entry, or another kind of entry", async () => {
    for (const id of [0, 1, 999_999]) expectProblem(await service.get(`/claims/${id}`), 404, "not-found");
    expectProblem(await service.get("/claims/x"), 422, "invalid-input");
  });
});

describe("POST /claims/{entry_id}/reveal", () => {
  const zeros = "0".repeat(64);

  test("200: verdict in valid", async () => {
    const { entry_id, commitmentKey } = await posted();
    const right = await reveal(entry_id, { plaintext, commitment_key: commitmentKey });
    expect(right.status).toBe(200);
    expect(right.body).toEqual({ valid: true });
    const reordered = { name: plaintext.name, salary: plaintext.salary };
    expect((await reveal(entry_id, { plaintext: reordered, commitment_key: commitmentKey })).body.valid).toBe(true);
    expect((await reveal(entry_id, { plaintext: {}, commitment_key: commitmentKey })).body).toEqual({ valid: false });
    expect((await reveal(entry_id, { plaintext, commitment_key: zeros })).body).toEqual({ valid: false });
  });

  test("200: any session may ask, hardware-backed or not", async () => {
    const { entry_id, commitmentKey } = await posted();
    const headers = await signIn(post, await holder(post, "software"));
    expect((await reveal(entry_id, { plaintext, commitment_key: commitmentKey }, headers)).body).toEqual({
      valid: true,
    });
  });

  test("400: blinded entry and no commitment_key", async () => {
    const { entry_id } = await posted();
    expectProblem(await reveal(entry_id, { plaintext }), 400, "commitment-key-missing");
    expectProblem(await reveal(entry_id, { plaintext, commitment_key: null }), 400, "commitment-key-missing");
  });

  test("401: no JWT, for any body and entry", async () => {
    const { entry_id } = await posted();
    for (const id of [entry_id, 999_999, "x"])
      for (const body of [{ plaintext, commitment_key: zeros }, {}])
        expectProblem(await reveal(id, body, {}), 401, "unauthenticated");
  });

  test("404: no such entry", async () => {
    for (const id of [0, 1, 999_999])
      expectProblem(await reveal(id, { plaintext, commitment_key: zeros }), 404, "not-found");
  });

  test("409: entry carries a pre-upgrade unsalted commitment, which verifies offline", async () => {
    const { log_entry_id } = await service.server.registry.log.append(preUpgrade());
    for (const body of [{ plaintext, commitment_key: zeros }, { plaintext }])
      expectProblem(await reveal(log_entry_id, body), 409, "precondition-failed");
    const { body: payload } = await service.get(`/claims/${log_entry_id}`);
    expect(verifyClaimCommitment(payload, plaintext)).toBe(true);
    expect(verifyClaimCommitment(payload, { ...plaintext, salary: 1 })).toBe(false);
  });

  test.each(["", "ab", "0".repeat(63), "0".repeat(65), "g".repeat(64), "é".repeat(64), 7, {}])(
    "422: commitment_key not 64 hexadecimal characters: %j",
    async (commitment_key) => {
      const { entry_id } = await posted();
      const reply = await reveal(entry_id, { plaintext, commitment_key });
      expectProblem(reply, 422, "invalid-input");
      expect(reply.body.errors[0].path).toBe("/commitment_key");
    },
  );

  test("422: plaintext missing or no object", async () => {
    const { entry_id } = await posted();
    for (const body of [{}, { plaintext: "x" }, { plaintext: [] }, { plaintext: null }])
      expectProblem(await reveal(entry_id, { commitment_key: zeros, ...body }), 422, "invalid-input");
  });
});

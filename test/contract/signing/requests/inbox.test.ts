/** The inbox over HTTP: which key gets which notifications, and who can read them. */
import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import { expectProblem, startTestService, type TestService } from "../../../server/harness.js";
import { bearerOf, proofOf, registeredSigner } from "../../../server/proofs.js";
import { submission, type TestSigner } from "../../../server/signers.js";

let service: TestService;
let asker: TestSigner;
let target: TestSigner;
let bearer: { authorization: string };
let targetBearer: { authorization: string };
beforeAll(async () => {
  service = await startTestService();
  [asker, target] = [await registeredSigner(service), await registeredSigner(service)];
  [bearer, targetBearer] = [await bearerOf(service, asker), await bearerOf(service, target)];
});

async function ask(): Promise<{ request_id: string; log_entry_id: number; created_at: string }> {
  const body = { target_fingerprint: target.fingerprint, attestation_type: "authorship", nonce: randomUUID() };
  const reply = await service.post("/log/attestation-requests", body, bearer);
  expect(reply.status, reply.text).toBe(200);
  return reply.body;
}
const respond = (id: string, body: object) =>
  service.post(`/log/attestation-requests/${id}/respond`, body, targetBearer);

test("a new request notifies the target, an answer the requester", async () => {
  const [declined, accepted] = [await ask(), await ask()];
  const [no, attested] = [
    await respond(declined.request_id, { decision: "decline" }),
    await service.post("/attestations", submission(target)),
  ];
  const yes = await respond(accepted.request_id, {
    decision: "accept",
    attestation_id: attested.body.attestation.id,
  });
  const notification = (kind: string, request_id: string, id: number, responder_fingerprint: string | null = null) => ({
    id,
    kind,
    request_id,
    responder_fingerprint,
    created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/),
    read: false,
  });
  expect((await service.get("/inbox", targetBearer)).body).toEqual({
    notifications: [accepted, declined].map(({ request_id, log_entry_id }) =>
      notification("attestation_request", request_id, log_entry_id),
    ),
    page: 1,
    per_page: 50,
    total: 2,
  });
  expect((await service.get("/inbox", bearer)).body.notifications).toEqual([
    notification("attestation_request_accepted", accepted.request_id, yes.body.log_entry_id, target.fingerprint),
    notification("attestation_request_declined", declined.request_id, no.body.log_entry_id, target.fingerprint),
  ]);
});

test("read and unread notifications are listed separately, page by page", async () => {
  const [signer, headers] = [target, targetBearer];
  const before = (await service.get("/inbox", headers)).body.total;
  const requests = [await ask(), await ask(), await ask()];
  const { log_entry_id: id } = requests[1]!;
  for (let i = 0; i < 2; i++) {
    const reply = await service.post(`/inbox/${id}/read`, undefined, headers);
    expect(reply.body).toMatchObject({ id, read: true, request_id: requests[1]!.request_id });
  }
  const ids = async (query: string) => {
    const { notifications, total } = (await service.get(`/inbox?${query}`, headers)).body;
    return [notifications.map((notification: { id: number }) => notification.id), total];
  };
  const [first, , third] = requests.map(({ log_entry_id }) => log_entry_id);
  expect(await ids("per_page=3")).toEqual([[third, id, first], before + 3]);
  expect(await ids("per_page=2&unread=true")).toEqual([[third, first], before + 2]);
  expect(await ids("unread=false")).toEqual([[id], 1]);
  expect(await ids("page=2&per_page=2&unread=true")).toMatchObject([expect.any(Array), before + 2]);
  expect(await ids("page=99")).toEqual([[], before + 3]);
  // The session decides which inbox it is. Any session of the key is accepted.
  const again = await bearerOf(service, signer);
  expect((await service.get("/inbox", again)).body.total).toBe(before + 3);
});

describe("refusals", () => {
  test("401: without a session; a proof does not serve", async () => {
    expectProblem(await service.get("/inbox"), 401, "unauthenticated");
    expectProblem(await service.get("/inbox?page=0"), 401, "unauthenticated");
    const { log_entry_id } = await ask();
    expectProblem(await service.post(`/inbox/${log_entry_id}/read`), 401, "unauthenticated");
    const auth = await proofOf(service, target);
    expectProblem(await service.post(`/inbox/${log_entry_id}/read`, { auth }), 401, "unauthenticated");
  });

  test("404: another key's notification, one that is not there", async () => {
    const { log_entry_id } = await ask();
    for (const id of [log_entry_id, 999_999, 0, Number.MAX_SAFE_INTEGER])
      expectProblem(await service.post(`/inbox/${id}/read`, undefined, bearer), 404, "not-found");
  });

  test.each(["page=0", "per_page=201", "unread=maybe", "unread="])("422: %s", async (query) => {
    expectProblem(await service.get(`/inbox?${query}`, bearer), 422, "invalid-input");
  });
});

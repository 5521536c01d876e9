/** Lists that an item leaves when its state changes: whoever changes each item as it comes meets all of them. */
import { beforeAll, expect, test } from "vitest";
import { eventOf } from "#cairnlog/engine/verify/events/kinds.js";
import { startTestService, type TestService } from "../server/harness.js";
import { sha256 } from "../server/signers.js";
import { newClient } from "./clients.js";

/** More than a page. */
const COUNT = 205;
let service: TestService;
let holder: ReturnType<typeof newClient>;

beforeAll(async () => {
  service = await startTestService();
  holder = newClient(service.url);
  const asker = newClient(service.url);
  for (const { client } of [holder, asker]) await client.keys.register({ pseudonym: "Ada" });
  const request = { target_fingerprint: holder.fingerprint, attestation_type: "authorship" };
  const { requests } = service.server.registry;
  await Promise.all(
    Array.from({ length: COUNT }, (_, n) => requests.create(asker.fingerprint, { ...request, nonce: `${n}` })),
  );
});

test("unread notifications, marked as read", async () => {
  const read = new Set<number>();
  for await (const { id } of holder.client.inbox.list({ unread: true })) {
    await holder.client.inbox.markRead(id);
    read.add(id);
  }
  expect(read.size).toBe(COUNT);
});

test("open requests, answered", async () => {
  const { requests } = service.server.registry;
  const answered = new Set<string>();
  for await (const { request_id } of holder.client.requests.list({ target: holder.fingerprint, status: "open" })) {
    await requests.respond(holder.fingerprint, request_id, { decision: "decline" });
    answered.add(request_id);
  }
  expect(answered.size).toBe(COUNT);
});

test("offers of endorsements, accepted", async () => {
  const { log } = service.server.registry;
  const { fingerprint: endorsed_key_fingerprint } = holder;
  const offer = { category: "x-service:human_attestation", valid_until: null } as const;
  const content = { ...offer, institutional_metadata: null, external_identifiers: null, endorsed_key_fingerprint };
  const endorsers = Array.from({ length: COUNT }, (_, n) => `sha256:${sha256(`${n}`)}`);
  const offered = (endorser_key_fingerprint: string) => ({ endorser_key_fingerprint, ...content });
  await log.append(endorsers.map((endorser) => eventOf("endorsement_offer", offered(endorser))));
  const accepted = new Set<number>();
  const { endorsements } = holder.client;
  for await (const one of endorsements.received(endorsed_key_fingerprint, { status: "offered" })) {
    const { offer_entry_id, endorser_fingerprint } = one;
    const acceptance = { ...offered(endorser_fingerprint), offer_entry_id, note: null };
    await log.append([eventOf("endorsement_acceptance", acceptance)]);
    accepted.add(offer_entry_id);
  }
  expect(accepted.size).toBe(COUNT);
});

/** Entries that are anchored between the answer to a write and the look at its entry: no hash covers that, and nobody is accused. */
import { beforeAll, expect, test } from "vitest";
import type { Entry } from "#cairnlog/engine/verify/index.js";
import { type Client, createClient } from "#cairnlog/server/client/index.js";
import { startCalendar } from "../anchoring/calendar.js";
import { startTestService, type TestService } from "../server/harness.js";
import { newManifest } from "../server/signers.js";
import { all, newClient, operatorSigner } from "./clients.js";

let service: TestService;
let operator: Client;
beforeAll(async () => {
  const calendar = await startCalendar();
  service = await startTestService({ SERVICE_OTS_CALENDARS: calendar.url });
  operator = createClient({ server: service.url, signer: operatorSigner(service.server.dataDir) });
});

/** The newest entry is anchored behind each write of the client. */
async function anchoredClient() {
  const anchored: number[] = [];
  const made = newClient(service.url, {
    fetch: async (input, init) => {
      const answer = await fetch(input, init);
      if (init?.method === "POST" && answer.ok && !String(input).includes("/auth/"))
        anchored.push((await operator.anchoring.anchor()).anchored_entry_id);
      return answer;
    },
  });
  await made.client.keys.register({ pseudonym: "Ada" });
  return { ...made, anchored };
}

test("every receipt of an endorsement is taken", async () => {
  const [ada, bob] = [await anchoredClient(), await anchoredClient()];
  const ids: number[] = [];
  const offer = async () => {
    const { entry } = await ada.client.endorsements.offer({
      endorsed_fingerprint: bob.fingerprint,
      category: "x-service:human_attestation",
    });
    const { id } = entry;
    ids.push(id, (await bob.client.endorsements.accept(id)).log_entry.id);
    return id;
  };
  const withdrawn = await offer();
  ids.push((await ada.client.endorsements.withdraw(withdrawn, bob.fingerprint, "over")).log_entry.id);
  const ended = await offer();
  ids.push((await ada.client.endorsements.alert(bob.fingerprint, "stolen")).log_entry.id);
  ids.push((await bob.client.endorsements.revokeAcceptance(ended, "over")).log_entry.id);
  expect([...ada.anchored, ...bob.anchored]).toEqual(expect.arrayContaining(ids));
});

test("the bundle of an attestation is the same before and afterwards", async () => {
  const { client } = newClient(service.url);
  const { document } = newManifest();
  const { bundle } = await client.attest(document, { pseudonym: "Ada" });
  const { anchored_entry_id } = await operator.anchoring.anchor();
  expect(anchored_entry_id).toBe((bundle.entry as Entry).id);
  expect((await client.attest(document)).bundle).toEqual(bundle);
  for (const outcome of await all(client.attestAll([document]))) expect(outcome.bundle).toEqual(bundle);
});

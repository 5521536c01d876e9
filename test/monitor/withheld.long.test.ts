/** Payloads that the operator withholds, under a monitor: no alarm where an entry says so, and one where the log only refuses. */
import { expect, test } from "vitest";
import { withhold } from "#cairnlog/engine/log/operator/entries.js";
import { eventOf } from "#cairnlog/engine/verify/events/kinds.js";
import { payloadHash, withoutName } from "#cairnlog/engine/verify/events/withheld.js";
import type { Entry } from "#cairnlog/engine/verify/index.js";
import { Misbehaviour } from "#cairnlog/server/monitor/alarm.js";
import { anyEvent } from "../anyevent.js";
import { newClient } from "../client/clients.js";
import { LyingProxy } from "../client/proxy.js";
import { startTestService } from "../server/harness.js";
import { newManifest } from "../server/signers.js";
import { at, isPage } from "./liar.js";
import { caught, newMonitor } from "./monitors.js";

const said = { reason: "An order.", basis: null };

/** A log with an attestation, and a proxy that can refuse its payload. */
async function attested() {
  const service = await startTestService();
  const { log } = service.server.registry;
  await log.append([anyEvent({ n: 1 })]);
  const document = { title: "A secret", content_hash: newManifest().document.content_hash };
  const { log_entry_id: id } = (await newClient(service.url).client.attest(document)).receipt;
  const proxy = await LyingProxy.before(service.url);
  const refuse = (more: object) =>
    at(isPage, (page) => ({
      ...page,
      entries: page.entries.map((entry: Entry) => (entry.id === id ? { ...entry, payload: null, ...more } : entry)),
    }));
  return { service, log, id, proxy, refuse };
}

test("what is withheld after it was mirrored is kept, and what was withheld before is mirrored without it", async () => {
  const { service, log, id } = await attested();
  const early = newMonitor(service.url);
  await early.monitor.round();
  await withhold({ log, writer: log }, id, said);
  // The attestation's key was registered with it.
  await withhold({ log, writer: log }, id - 1, { ...said, member: "pseudonym" });
  const late = newMonitor(service.url);
  for (const { monitor } of [early, late]) {
    await monitor.round({ audit: true });
    await monitor.round({ audit: true });
    expect(monitor.size).toBe(log.size);
    await monitor.close();
  }
});

test.each([{}, { withheld_by: 1 }, { withheld_by: 4 }, { withheld_by: 99 }])(
  "a log that refuses a payload, and has no entry that withholds it, is caught: %j",
  async (more) => {
    const { log, proxy, refuse } = await attested();
    await log.append([anyEvent({ n: 2 })]);
    const early = newMonitor(proxy.url);
    await early.monitor.round();
    proxy.lie = refuse(more);
    await caught(early.monitor.round({ audit: true }), "bad-entry", /is missing|denies/);
    await early.monitor.close();
    const late = newMonitor(proxy.url);
    await caught(late.monitor.round(), "bad-entry", /is missing|denies/);
    expect(late.monitor.size).toBe(0);
    await late.monitor.close();
  },
);

test("a log that withholds a name, and shows another thing of the entry than it was, is caught", async () => {
  const { log, proxy, id } = await attested();
  const early = newMonitor(proxy.url);
  await early.monitor.round();
  const registered = log.entry(id - 1)!;
  const payload = { ...withoutName(registered.payload), key_algorithm: "rsa-2048" };
  const shown = (withheld_by: number) =>
    at(isPage, (page) => ({
      ...page,
      entries: page.entries.map((entry: Entry) => (entry.id === id - 1 ? { ...entry, payload, withheld_by } : entry)),
    }));
  // Its entry has the hash of something else.
  const { log_entry_id: by } = await withhold({ log, writer: log }, id - 1, { ...said, member: "pseudonym" });
  proxy.lie = shown(by);
  for (const { monitor } of [early, newMonitor(proxy.url)]) {
    await caught(monitor.round({ audit: true }), "bad-entry", /does not withhold it/);
    await monitor.close();
  }
});

test("a log whose entry has the hash of another thing than there was is caught by whoever has mirrored that", async () => {
  const { log, proxy, id } = await attested();
  const early = newMonitor(proxy.url);
  await early.monitor.round();
  const { entry_hash, payload: was } = log.entry(id - 1)!;
  const payload = { ...withoutName(was), key_algorithm: "rsa-2048" };
  const lie = {
    ...{ entry_id: id - 1, entry_hash, payload_hash: payloadHash(was!), reason: "r", basis: null, member: "pseudonym" },
    ...{ fingerprint: String(was!.fingerprint), shown_hash: payloadHash(payload) },
  };
  const { log_entry_id: withheld_by } = await log.append(eventOf("payload_withheld", lie));
  // This log shows nothing that is not so.
  expect(log.entry(id - 1)).toMatchObject({ payload: was });
  proxy.lie = at(isPage, (page) => ({
    ...page,
    entries: page.entries.map((entry: Entry) => (entry.id === id - 1 ? { ...entry, payload, withheld_by } : entry)),
  }));
  await caught(early.monitor.round({ audit: true }), "changed-entry", /not served as it was mirrored/);
  await early.monitor.close();
});

test.each([{ event_type: "note" }, { timestamp: "2025-01-01T00:00:00.000000Z" }, { chain_version: 1 }])(
  "a log that withholds a payload, and shows %j in place of what there was, is caught by whoever has mirrored that",
  async (more) => {
    const { log, proxy, id, refuse } = await attested();
    const early = newMonitor(proxy.url);
    await early.monitor.round();
    const { log_entry_id: withheld_by } = await withhold({ log, writer: log }, id, said);
    proxy.lie = refuse({ ...more, withheld_by });
    await expect(early.monitor.round({ audit: true })).rejects.toBeInstanceOf(Misbehaviour);
    await early.monitor.close();
  },
);

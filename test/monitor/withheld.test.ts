/** Payloads that the operator withholds, under a monitor: no alarm where an entry says so, and one where the log only refuses. */
import { expect, test } from "vitest";
import { withhold } from "#cairnlog/engine/log/operator/withhold.js";
import type { Entry } from "#cairnlog/engine/verify/index.js";
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
  await withhold(log, id, said);
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

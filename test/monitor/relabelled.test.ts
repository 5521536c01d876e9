/**
 * No hash covers the type of an event. A log, or somebody on the way, that shows an event under another type is still
 * detected.
 */
import { expect, test } from "vitest";
import type { Entry } from "#cairnlog/engine/verify/index.js";
import { newClient } from "../client/clients.js";
import { LyingProxy } from "../client/proxy.js";
import { startTestService } from "../server/harness.js";
import { at, isPage } from "./liar.js";
import { caught, newMonitor } from "./monitors.js";

/** A service with a key's registration and revocation, and a proxy before it. */
async function revoked() {
  const service = await startTestService();
  const { client } = newClient(service.url);
  await client.keys.register({ pseudonym: "Ada" });
  await client.keys.revoke();
  const proxy = await LyingProxy.before(service.url);
  const relabel = (event_type: string) =>
    at(isPage, (page) => ({
      ...page,
      entries: page.entries.map((entry: Entry) =>
        entry.event_type === "key_revocation" ? { ...entry, event_type } : entry,
      ),
    }));
  return { service, proxy, relabel };
}

test.each(["note", "key_registration", "https://x-service.example/predicates/authorship/v1", "attestation"])(
  "a monitor refuses a revocation that is shown as %s, and mirrors nothing of it",
  async (type) => {
    const { service, proxy, relabel } = await revoked();
    proxy.lie = relabel(type);
    const { monitor, folder } = newMonitor(proxy.url);
    const evidence = await caught(monitor.round({ audit: true }), "bad-entry", /key_revocation/);
    expect(evidence.entry).toMatchObject({ event_type: type, payload: { event_type: "key_revocation" } });
    expect(monitor.size).toBe(0);
    await monitor.close();
    proxy.repent();
    const honest = newMonitor(proxy.url, { folder });
    await honest.monitor.round({ audit: true });
    expect(honest.monitor.size).toBe(await service.entryCount());
    await honest.monitor.close();
  },
);

/**
 * What the service's trust costs after an event: among 100,000 keys and 1,000,000 endorsements, within reach of 100 and of
 * 1,000 gates. CPU of the process and what was read, for events of several kinds, each followed by a question.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readSettings, startServer } from "cairnlog/server";
import { median, spread } from "../stats.js";
import type { Suite } from "../suite.js";
import { fill, keyOf, numbers, type Registry } from "./graph.js";

const ENDORSEMENTS_EACH = 10;
const GATES = [100, 1_000];
const ROUNDS = 9;
/** Events of keys that no anchor reaches, before one question. */
const STRANGERS = 1_000;
const CATEGORY = "x-service:human_attestation";

interface Cost {
  readonly cpu: number;
  readonly read: number;
}

/** What a question costs now: CPU in milliseconds, keys and endorsements that were read. */
async function ask({ trust }: Registry, fingerprint: string): Promise<Cost> {
  const [before, read] = [process.cpuUsage(), trust.read];
  await trust.level(fingerprint);
  const { user, system } = process.cpuUsage(before);
  return { cpu: (user + system) / 1000, read: trust.read - read };
}

/** Endorsements, offered and accepted: events as they are on the log, without what the service asks of a client. */
async function endorse({ writer: log }: Registry, pairs: readonly (readonly [string, string])[]): Promise<void> {
  const payload = ([from, to]: readonly [string, string]) => ({
    endorser_key_fingerprint: from,
    endorsed_key_fingerprint: to,
    category: CATEGORY,
    valid_until: null,
  });
  const offers = await Promise.all(
    pairs.map((pair) =>
      log.append({
        event_type: "endorsement_offer",
        payload: { ...payload(pair), institutional_metadata: null, external_identifiers: null },
      }),
    ),
  );
  await Promise.all(
    offers.map(({ log_entry_id }, i) =>
      log.append({
        event_type: "endorsement_acceptance",
        payload: { ...payload(pairs[i]!), offer_entry_id: log_entry_id, note: null },
      }),
    ),
  );
}

async function measure(gates: number) {
  const dataDir = mkdtempSync(join(tmpdir(), "cairnlog-bench-"));
  const settings = { PORT: "0", SERVICE_DATA_DIR: dataDir, SERVICE_RATE_LIMITS: "off", LOG_LEVEL: "silent" };
  const delay = { SERVICE_ENDORSEMENT_ACTIVATION_DELAY_S: "0" };
  const server = await startServer(readSettings({ ...settings, ...delay }));
  try {
    const { registry, operatorFingerprint: anchor } = server;
    await fill(registry, { each: ENDORSEMENTS_EACH, anchor, gates });
    const random = numbers();
    const gate = () => keyOf(random(gates));
    const any = () => keyOf(random(100_000));
    const first = await ask(registry, any());
    const events: Record<string, () => Promise<void>> = {
      nothing: async () => {},
      "a gate endorses a key": () => endorse(registry, [[gate(), any()]]),
      "a key among the 100,000 endorses another": () => endorse(registry, [[any(), any()]]),
      "the anchor endorses a key": () => endorse(registry, [[anchor, any()]]),
      "a gate is revoked": async () => {
        await registry.writer.append({ event_type: "key_revocation", payload: { fingerprint: gate() } });
      },
      [`${STRANGERS} keys out of reach endorse`]: () =>
        endorse(
          registry,
          Array.from({ length: STRANGERS }, () => [keyOf(100_000 + random(100_000)), any()] as const),
        ),
    };
    const costs = Object.fromEntries(Object.keys(events).map((name) => [name, [] as Cost[]]));
    for (let round = 0; round < ROUNDS; round++)
      for (const [name, event] of Object.entries(events)) {
        await event();
        costs[name]!.push(await ask(registry, any()));
      }
    const rows = Object.entries({ "the first question": [first], ...costs }).map(([event, all]) => ({
      gates,
      event,
      "CPU, ms": spread(
        all.map(({ cpu }) => cpu),
        2,
      ),
      "keys and endorsements read": median(all.map(({ read }) => read)),
    }));
    return { gates, rows, costs };
  } finally {
    await server.close();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

export const suite: Suite = {
  summary: "trust after an event, among 100,000 keys and 1,000,000 endorsements",
  async run() {
    const results = [];
    for (const gates of GATES) results.push(await measure(gates));
    console.table(results.flatMap(({ rows }) => rows));
    return results;
  },
};

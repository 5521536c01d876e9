/** Monitors in this process, and the required content of their alarms. */
import { createPublicKey, verify } from "node:crypto";
import { expect } from "vitest";
import type { Entry, TreeHead } from "#cairnlog/engine/verify/index.js";
import { Misbehaviour, type Misconduct, type MonitorEvidence, OlderHead } from "#cairnlog/server/monitor/alarm.js";
import { MonitorFolder } from "#cairnlog/server/monitor/folder.js";
import { Monitor, type MonitorOptions } from "#cairnlog/server/monitor/monitor.js";
import { persistentFetch } from "#cairnlog/server/outgoing/traced.js";
import { temporaryFolder } from "../server/harness.js";
import { failureOf } from "../thrown.js";

/** A `fetch` with short pauses between attempts, so that a lie which looks like an outage costs no time. */
export const hastyFetch = (said: string[] = [], requestMs = 20_000): typeof fetch =>
  persistentFetch({
    signal: new AbortController().signal,
    say: (sentence) => said.push(sentence),
    sleep: async () => {},
    requestMs,
  });

export function newMonitor(server: string, options: Partial<MonitorOptions> = {}) {
  const folder = options.folder ?? new MonitorFolder(temporaryFolder());
  return { folder, monitor: new Monitor({ server, folder, fetch: hastyFetch(), ...options }) };
}

const MEMBERS = [
  ...["checkpoint", "entry", "known", "operatorKey", "operators", "other", "proof", "shown", "shownKey"],
  "shownOperators",
];

/** The evidence of the alarm that `work` must raise. */
export async function caught(
  work: Promise<unknown>,
  kind: Misconduct,
  detail = /^.{8,}\.$/s,
): Promise<MonitorEvidence> {
  const { thrown: error } = await failureOf(work);
  if (!(error instanceof Misbehaviour)) throw error;
  expect({ kind: error.kind, detail: error.message }).toEqual({ kind, detail: expect.stringMatching(detail) });
  expect(error.name).toBe("Misbehaviour");
  // Members that do not matter are null, not absent, because others read the evidence.
  expect(Object.keys(error.evidence).sort()).toEqual(MEMBERS);
  expect(Object.values(error.evidence)).not.toContain(undefined);
  expect(error.evidence.operatorKey).toContain("BEGIN PUBLIC KEY");
  return error.evidence;
}

/** The evidence that is kept for the case that `work`, which must see an older head, goes on seeing it. */
export async function older(work: Promise<unknown>): Promise<MonitorEvidence> {
  const { thrown: error } = await failureOf(work);
  if (!(error instanceof OlderHead)) throw error;
  expect(error.code).toBe("stale-answer");
  return (await caught(Promise.reject(error.misbehaviour), "shrunken")) as MonitorEvidence;
}

/** Whether the evidence's key signed a head, checked by OpenSSL without the code under test. */
export function isSigned({ operatorKey }: MonitorEvidence, head: TreeHead | null): boolean {
  if (!head) return false;
  const message = Buffer.from(`${head.root_hash}:${head.tree_size}:${head.timestamp}`);
  return verify(null, message, createPublicKey(operatorKey), Buffer.from(head.signature, "base64"));
}

/**
 * Asserts that the evidence has two signed heads of one size with different roots, which alone convict the operator.
 */
export function expectFork(evidence: MonitorEvidence): void {
  const { known, shown } = evidence;
  expect([isSigned(evidence, known), isSigned(evidence, shown)]).toEqual([true, true]);
  expect(shown!.tree_size).toBe(known!.tree_size);
  expect(shown!.root_hash).not.toBe(known!.root_hash);
}

/** An entry with other content. */
export const forged = (entry: Entry): Entry => ({ ...entry, payload: { ...entry.payload, forged: true } });

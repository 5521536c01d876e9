/**
 * The alarm: the log contradicts itself, or contradicts data that this browser verified before. An alarm survives
 * reloads, and stays even if the service behaves again, until the reader dismisses it.
 */
import Type, { type Static } from "typebox";
import { ClientError } from "../../client/index.js";
import { announce } from "./announcements.js";
import { Cell } from "./cell.js";
import { forget, recall, remember } from "./memory.js";

const Alarm = Type.Object({
  detail: Type.String(),
  raised_at: Type.String(),
  /** Fingerprints, if the operator key of the service differs from the pinned one. */
  keys: Type.Union([Type.Object({ pinned: Type.String(), shown: Type.String() }), Type.Null()]),
  /** `Evidence` of the client: a file that proves the misbehaviour to others. */
  evidence: Type.Unknown(),
});
export type Alarm = Static<typeof Alarm>;

export const alarm = new Cell<Alarm | null>(recall("alarm", Alarm) ?? null);

/**
 * Keeps the first alarm, because later ones are judged with the same memory. But a change of keys replaces its effects.
 */
export function raise(detail: string, evidence: unknown, keys: Alarm["keys"] = null): void {
  if (alarm.value && (alarm.value.keys || !keys)) return;
  alarm.value = { detail, evidence, keys, raised_at: new Date().toISOString() };
  remember("alarm", alarm.value);
  announce(`Alarm: ${detail}`);
}

/** Raises the alarm if `error` says that the log misbehaves, or has another operator key. @returns whether it does */
export function raiseFor(error: unknown): boolean {
  if (!(error instanceof ClientError)) return false;
  if (error.code !== "log-misbehaved" && error.code !== "operator-key-mismatch") return false;
  raise(error.detail, error.evidence ?? null);
  return true;
}

/** Removes only the alarm. The memory of the log stays, so a log that still misbehaves raises the alarm again. */
export function putAway(): void {
  alarm.value = null;
  forget("alarm");
}

/** Forgets everything about the log: the next request is like a first visit. */
export function beginAnew(): void {
  for (const name of ["alarm", "state", "visit", "name"]) forget(name);
  window.location.reload();
}

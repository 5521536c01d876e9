/**
 * The log was caught: it contradicts itself or what this browser knew. An alarm stays, over reloads and over a service
 * that behaves again, until the reader puts it away.
 */
import Type, { type Static } from "typebox";
import { ClientError } from "../../client/index.js";
import { announce } from "./announcements.js";
import { Cell } from "./cell.js";
import { forget, recall, remember } from "./memory.js";

const Alarm = Type.Object({
  detail: Type.String(),
  raised_at: Type.String(),
  /** Fingerprints, where the service shows another operator key than the pinned one. */
  keys: Type.Union([Type.Object({ pinned: Type.String(), shown: Type.String() }), Type.Null()]),
  /** `Evidence` of the client: a file that convicts, for others to see. */
  evidence: Type.Unknown(),
});
export type Alarm = Static<typeof Alarm>;

export const alarm = new Cell<Alarm | null>(recall("alarm", Alarm) ?? null);

/** The first alarm stands: what comes after it is judged by the same memory. A change of keys says more than its effects. */
export function raise(detail: string, evidence: unknown, keys: Alarm["keys"] = null): void {
  if (alarm.value && (alarm.value.keys || !keys)) return;
  alarm.value = { detail, evidence, keys, raised_at: new Date().toISOString() };
  remember("alarm", alarm.value);
  announce(`Alarm: ${detail}`);
}

/** Raises the alarm if `error` says that the log was caught. @returns whether it does */
export function raiseFor(error: unknown): boolean {
  if (!(error instanceof ClientError) || error.code !== "log-misbehaved") return false;
  raise(error.detail, error.evidence);
  return true;
}

/** Forgets the alarm alone; what was known of the log stays, so that a log that still misbehaves raises it again. */
export function putAway(): void {
  alarm.value = null;
  forget("alarm");
}

/** Forgets the log altogether: the next look is the first. */
export function beginAnew(): void {
  for (const name of ["alarm", "state", "visit"]) forget(name);
  window.location.reload();
}

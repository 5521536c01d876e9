/**
 * Alarms: the log contradicts itself, or contradicts data that this browser verified before. An alarm survives
 * reloads, and stays even if the service behaves again, until the reader dismisses it.
 */
import Type, { type Static } from "typebox";
import { ClientError, type Evidence } from "../../client/index.js";
import { announce } from "./announcements.js";
import { Cell } from "./cell.js";
import { forget, recall, remember, watchOthers } from "./memory.js";

const ShownAlarm = Type.Object({
  detail: Type.String(),
  raised_at: Type.String(),
  /** The code of the error that it was raised for. */
  code: Type.Optional(Type.String()),
  /** Fingerprints, if the operator key of the service differs from the pinned one. */
  keys: Type.Union([Type.Object({ pinned: Type.String(), shown: Type.String() }), Type.Null()]),
  /** `Evidence` of the client: a file that proves the misbehaviour to others. */
  evidence: Type.Unknown(),
});
export type ShownAlarm = Static<typeof ShownAlarm>;

type Wrong = Pick<ShownAlarm, "detail" | "evidence" | "code"> & Partial<Pick<ShownAlarm, "keys">>;

/** A hostile log may misbehave in ever new ways: this many are shown, the first ones. */
const MAX_ALARMS = 8;
/** It also chooses most of the evidence. Larger alarms last without it: a browser takes some five million characters in all. */
const MAX_LASTING = 2 ** 19;
const MAX_DETAIL = 2_000;

const kept = (): readonly ShownAlarm[] =>
  [recall("alarm", Type.Union([ShownAlarm, Type.Array(ShownAlarm)])) ?? []].flat();

/** All that were raised and not dismissed, in this tab or another, oldest first. */
export const alarms = new Cell<readonly ShownAlarm[]>(kept());

const newestOf = (all: readonly ShownAlarm[]): number =>
  Math.max(0, ...all.map(({ raised_at }) => Date.parse(raised_at)));

/** When the log misbehaved last, in milliseconds since 1970; 0 if it has not. */
export const misbehavedAt = new Cell(newestOf(alarms.value));

watchOthers("alarm", () => {
  const own = new Map(alarms.value.map((alarm) => [alarmId(alarm), alarm]));
  // Its evidence may have been too large to be kept.
  alarms.value = kept().map((alarm) => own.get(alarmId(alarm)) ?? alarm);
  misbehavedAt.value = newestOf(alarms.value);
});

/** What identifies an alarm. */
export const alarmId = ({ raised_at, detail }: ShownAlarm): string => raised_at + detail;

/** Those of this tab, and those that another one has kept and of which this one was not told yet: no evidence may be lost. */
function known(): readonly ShownAlarm[] {
  const own = new Set(alarms.value.map(alarmId));
  return [...kept().filter((alarm) => !own.has(alarmId(alarm))), ...alarms.value];
}

/**
 * Raises an alarm, unless there is one of the same kind: a log that grows is wrong in the same way again with every head, and
 * the first evidence is the one to keep.
 */
export function raise({ keys = null, ...wrong }: Wrong): void {
  misbehavedAt.value = Date.now();
  const detail = wrong.detail.slice(0, MAX_DETAIL);
  const raised = { ...wrong, detail, keys, raised_at: new Date().toISOString() };
  const before = known();
  if (before.some((other) => kindOf(other) === kindOf(raised) || follows(raised, other))) return;
  const others = before.filter((other) => !follows(other, raised));
  if (others.length >= MAX_ALARMS) return;
  keep([...others, raised]);
  announce(`Alarm: ${raised.detail}`);
}

/** What is wrong, without the sizes, entries and hashes with which it is. */
const kindOf = ({ detail, keys }: ShownAlarm): string => keys?.shown ?? detail.replace(/[0-9a-f]{64}|\d+/g, "#");

/** Whether an alarm says only that another key is shown, or has signed, and `other` names that key. */
function follows({ evidence, keys, code }: ShownAlarm, other: ShownAlarm): boolean {
  if (keys || !other.keys) return false;
  const signer = (evidence as Partial<Evidence> | null)?.shown?.key_id;
  return code === "operator-key-mismatch" || signer === other.keys.shown;
}

/** Raises the alarm if `error` says that the log misbehaves, or has another operator key. @returns whether it does */
export function raiseFor(error: unknown): boolean {
  if (!(error instanceof ClientError)) return false;
  if (error.code !== "log-misbehaved" && error.code !== "operator-key-mismatch") return false;
  const { code, detail, evidence = null } = error;
  raise({ code, detail, evidence });
  return true;
}

/** Removes only this alarm. The memory of the log stays, so a log that still misbehaves raises it again. */
export function putAway(dismissed: ShownAlarm): void {
  keep(known().filter((alarm) => alarmId(alarm) !== alarmId(dismissed)));
  if (!alarms.value.length) misbehavedAt.value = 0;
}

function keep(all: readonly ShownAlarm[]): void {
  alarms.value = all;
  if (all.length) remember("alarm", all.map(lasting));
  else forget("alarm");
}

const lasting = (alarm: ShownAlarm): ShownAlarm =>
  JSON.stringify(alarm).length > MAX_LASTING ? { ...alarm, evidence: null } : alarm;

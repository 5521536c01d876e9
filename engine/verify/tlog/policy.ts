/**
 * Policies (c2sp.org/tlog-policy): which logs and witnesses somebody trusts, and how many of the witnesses must have
 * cosigned a checkpoint. A line each: `log VKEY [URL]`, `witness NAME VKEY [URL]`, `group NAME all|any|K MEMBER…`, and
 * one `quorum NAME`.
 */
import { inputError } from "../../base/error.js";
import { toHex } from "../bytes/encoding.js";
import { type NoteKey, type NoteKeyType, parseAnyVkey } from "../note/key.js";
import { type Checkpoint, parseCheckpointText, parseNote } from "../note/note.js";
import { type SignatureCheck, verifySignatures } from "../note/verify.js";

/** A log whose checkpoints are accepted. The name of its key is its origin. With a key of an unknown type it never signs. */
export interface PolicyLog {
  readonly key: NoteKey;
  /** What it is for depends on who reads the policy; null without one. */
  readonly url: string | null;
}

/** A witness. Its name means something in this policy only. */
export interface PolicyWitness extends PolicyLog {
  readonly name: string;
}

/** Witnesses and other groups. At least `threshold` of them must have cosigned. */
export interface PolicyGroup {
  readonly name: string;
  readonly threshold: number;
  /** Names of witnesses and of groups that stand before this one. */
  readonly members: readonly string[];
}

export interface Policy {
  readonly logs: readonly PolicyLog[];
  readonly witnesses: readonly PolicyWitness[];
  /** In the order of the file. */
  readonly groups: readonly PolicyGroup[];
  /** Name of the witness or group that must have cosigned; null where no cosignature is needed. */
  readonly quorum: string | null;
}

/** A checkpoint that was signed by a log of a policy. */
export interface PolicyVerdict {
  readonly checkpoint: Checkpoint;
  /** The key of the log. */
  readonly log: NoteKey;
  /** The witnesses that cosigned, each with the newest time of its cosignatures, in seconds since 1970. */
  readonly cosigned: readonly { readonly witness: PolicyWitness; readonly time: number }[];
  readonly hasQuorum: boolean;
}

const MAX_CHARACTERS = 1 << 20;
/** Logs, witnesses and groups, each. The specification asks for 32. */
const MAX_LINES = 1_024;
const NONE = "none";
const COUNT = /^[1-9]\d{0,4}$/;

interface Reading {
  readonly logs: PolicyLog[];
  readonly witnesses: PolicyWitness[];
  readonly groups: PolicyGroup[];
  /** Name of each witness and group → whether it is a member of a group. */
  readonly names: Map<string, boolean>;
  quorum: string | null | undefined;
}

/**
 * Reads a policy. The text is the operator's own or somebody else's; none of it is trusted to be well formed.
 * A log or witness whose key is of an unknown type is kept, as one that never signs.
 * @throws CairnlogError `invalid-input` with the number of the line that is wrong; also if no quorum can be reached without
 *   the witnesses whose keys are of unknown types
 */
export function parsePolicy(text: string): Policy {
  if (typeof text !== "string" || text.length > MAX_CHARACTERS)
    throw inputError("A policy is a text of at most 2^20 characters.");
  const reading: Reading = { logs: [], witnesses: [], groups: [], names: new Map(), quorum: undefined };
  for (const [at, line] of text.split("\n").entries())
    try {
      readLine(line, reading);
    } catch (cause) {
      throw inputError(`Line ${at + 1} of the policy: ${(cause as Error).message}`, { cause });
    }
  const { logs, witnesses, groups, quorum } = reading;
  if (quorum === undefined) throw inputError("The policy has no quorum line.");
  const policy = { logs, witnesses, groups, quorum };
  const able = witnesses.flatMap(({ name, key }) => (key.type === "unknown" ? [] : name));
  if (!isQuorum(policy, new Set(able)))
    throw inputError("The quorum of the policy cannot be reached: it needs keys of types that are not known here.");
  return policy;
}

/** Whether these witnesses, by their names in the policy, are a quorum. */
export function isQuorum({ groups, quorum }: Policy, cosigned: ReadonlySet<string>): boolean {
  if (quorum === null) return true;
  const witnessed = new Set(cosigned);
  // Members stand before their group, so one pass is enough.
  for (const { name, threshold, members } of groups)
    if (members.filter((member) => witnessed.has(member)).length >= threshold) witnessed.add(name);
  return witnessed.has(quorum);
}

/**
 * Checks a checkpoint against a policy. Null unless it is a checkpoint that a log of the policy signed under its own
 * name, and every line of a log or witness of the policy holds. Lines of others are passed over. Without a quorum it is
 * not null: who needs one looks at `hasQuorum`. Never throws: the note may be any text.
 * @param logs the keys of logs, if others are known than those of the policy
 */
export async function verifyByPolicy(
  note: unknown,
  policy: Policy,
  logs: readonly NoteKey[] = policy.logs.map(({ key }) => key),
  check?: SignatureCheck,
): Promise<PolicyVerdict | null> {
  const parsed = parseNote(note);
  const checkpoint = parsed && parseCheckpointText(parsed.text);
  if (!checkpoint) return null;
  const own = logs.filter(({ name }) => name === checkpoint.origin);
  const signatures = await verifySignatures(parsed, [...own, ...policy.witnesses.map(({ key }) => key)], check);
  const log = own.find((key) => signatures?.some((signature) => signature.key === key));
  if (!signatures || !log) return null;
  const cosigned = policy.witnesses.flatMap((witness) => {
    const times = signatures.flatMap(({ key, time }) => (key === witness.key && time !== null ? [time] : []));
    return times.length ? [{ witness, time: Math.max(...times) }] : [];
  });
  const names = new Set(cosigned.map(({ witness }) => witness.name));
  return { checkpoint, log, cosigned, hasQuorum: isQuorum(policy, names) };
}

/** How each line is read, by its first word. */
const LINES: ReadonlyMap<string, (rest: readonly string[], reading: Reading) => void> = new Map([
  ["log", readLog],
  ["witness", readWitness],
  ["group", readGroup],
  ["quorum", readQuorum],
]);

/** @throws Error or CairnlogError with a sentence */
function readLine(line: string, reading: Reading): void {
  for (const character of line)
    if ((character < " " && character !== "\t") || character === "\x7f")
      throw new Error("there is a control character; lines end with a line feed alone.");
  const [word, ...rest] = line.split(/[ \t]+/).filter((part) => part !== "");
  if (word === undefined || word.startsWith("#")) return;
  const read = LINES.get(word);
  if (!read) throw new Error(`${word} is not log, witness, group or quorum.`);
  read(rest, reading);
}

function readLog([vkey, url, ...more]: readonly string[], { logs }: Reading): void {
  if (vkey === undefined || more.length) throw new Error("a log has a verifier key and perhaps a URL.");
  addKey({ key: keyOf(vkey, "cosignature/v1", "this is the key of a witness, not of a log."), url: url ?? null }, logs);
}

function readWitness([name, vkey, url, ...more]: readonly string[], { witnesses, names }: Reading): void {
  if (name === undefined || vkey === undefined || more.length)
    throw new Error("a witness has a name, a verifier key and perhaps a URL.");
  addName(name, names);
  addKey({ name, key: keyOf(vkey, "ed25519", "this is not a witness's key."), url: url ?? null }, witnesses);
}

function readGroup([name, count, ...members]: readonly string[], { groups, names }: Reading): void {
  if (name === undefined || count === undefined || members.length === 0)
    throw new Error("a group has a name, a number (or any, or all) and members.");
  const threshold = thresholdOf(count, members.length);
  for (const member of members) {
    const isTaken = names.get(member);
    if (isTaken === undefined) throw notBefore(member);
    if (isTaken) throw new Error(`${member} is a member already: each may be one once.`);
    names.set(member, true);
  }
  addName(name, names);
  if (groups.push({ name, threshold, members }) > MAX_LINES) throw tooMany();
}

function readQuorum([name, ...more]: readonly string[], reading: Reading): void {
  if (name === undefined || more.length) throw new Error("a quorum is one name.");
  if (reading.quorum !== undefined) throw new Error("there is a quorum already.");
  if (name !== NONE && !reading.names.has(name)) throw notBefore(name);
  reading.quorum = name === NONE ? null : name;
}

function thresholdOf(count: string, members: number): number {
  if (count === "all") return members;
  if (count === "any") return 1;
  const threshold = COUNT.test(count) ? Number(count) : Number.NaN;
  if (!(threshold <= members)) throw new Error(`of ${members} members, any, all or a number from 1 to ${members}.`);
  return threshold;
}

/** @throws Error with this sentence for a key of the type that the line cannot have */
function keyOf(vkey: string, wrong: NoteKeyType, sentence: string): NoteKey {
  const key = parseAnyVkey(vkey);
  if (key.type === wrong) throw new Error(sentence);
  return key;
}

/** One key under two names would count twice. */
function addKey<T extends PolicyLog>(added: T, to: T[]): void {
  if (to.some(({ key }) => toHex(key.material) === toHex(added.key.material)))
    throw new Error("the same key stands before.");
  if (to.push(added) > MAX_LINES) throw tooMany();
}

function addName(name: string, names: Map<string, boolean>): void {
  if (name === NONE || names.has(name)) throw new Error(`the name ${name} is taken.`);
  names.set(name, false);
}

const tooMany = (): Error => new Error(`there are more than ${MAX_LINES} of these.`);
const notBefore = (name: string): Error => new Error(`no witness or group ${name} stands before.`);

/**
 * The checkpoint that tools of other logs read, and who has signed it. The page checks every signature whose key it is told;
 * the keys themselves are what the service says.
 */
import { fitsSchema } from "../../../../engine/contract/check.js";
import { Ready } from "../../../../engine/contract/service/health.js";
import {
  CairnlogError,
  type Checkpoint,
  type NoteKey,
  parseIJson,
  parseNote,
  parseVkey,
  verifyNote,
} from "../../../../engine/verify/index.js";
import { isAbsence } from "../../../client/base/error.js";
import { ClientError } from "../../../client/index.js";
import { client, http } from "../../state/service.js";

/** How it stands with a witness, as to the checkpoint that is shown. */
export interface Cosigner {
  readonly name: string;
  /**
   * `late`: it has not cosigned the newest checkpoint in its time, or not for long, whatever it signed before. `signed`: it is
   * not late, and its cosignature was verified here. `waiting`: it has not cosigned this one yet. `unknown`: a line in its
   * name, by a key that nobody told.
   */
  readonly state: "signed" | "unknown" | "late" | "waiting";
  /** Whether nobody but the clock of this browser says that it is late. */
  readonly isLateHere?: boolean;
  /** Whether its cosignature of this checkpoint was verified here. */
  readonly isVerified: boolean;
  /** Size of the newest checkpoint that it has cosigned; null if none is known. */
  readonly treeSize: number | null;
  /** When it cosigned that, ISO 8601. */
  readonly at: string | null;
}

/**
 * While nothing is added, a witness cosigns again every five minutes. One that has missed three turns is late, whatever the
 * service says of it.
 */
const SILENT_MS = 15 * 60_000;
/** Its clock may be this much ahead. A later time says nothing: until it came, the witness would never be late. */
const CLOCK_SKEW_MS = 5 * 60_000;

export interface ShownCheckpoint {
  readonly vkey: string;
  readonly checkpoint: Checkpoint;
  readonly note: string;
  readonly cosigners: readonly Cosigner[];
}

/** Number of entries in the checkpoint if a witness has signed it, as this page has verified; otherwise 0. */
export const witnessedSize = ({ checkpoint, cosigners }: ShownCheckpoint): number =>
  cosigners.some(({ isVerified }) => isVerified) ? checkpoint.treeSize : 0;

/**
 * The newest checkpoint, its signature by the key that the service shows verified; null if the service says that there is none.
 * @throws ClientError
 */
export async function shownCheckpoint(): Promise<ShownCheckpoint | null> {
  try {
    const vkey = await client.tlog.vkey();
    const { note, checkpoint } = await client.tlog.checkpoint(vkey);
    return { vkey, checkpoint, note, cosigners: await cosignersOf(note, checkpoint, parseVkey(vkey).id) };
  } catch (error) {
    if (isAbsence(error)) return null;
    throw error;
  }
}

/** @param own id of the log's key */
async function cosignersOf(note: string, { treeSize: size }: Checkpoint, own: string): Promise<Cosigner[]> {
  const told = await toldWitnesses();
  const keys = told.map(({ vkey }) => keyOf(vkey));
  const verified = await verifyNote(
    note,
    keys.filter((key) => key !== null),
  );
  const known = told.map(({ name, tree_size, cosigned_at, late }, i): Cosigner => {
    const signed = verified?.signatures.find(({ key }) => key === keys[i]);
    const time = signed?.time ?? cosigned_at;
    const age = time === null ? 0 : Date.now() - time * 1000;
    const isSilent = age > SILENT_MS || age < -CLOCK_SKEW_MS;
    return {
      name,
      state: late || isSilent ? "late" : signed ? "signed" : "waiting",
      isLateHere: isSilent && !late,
      isVerified: signed !== undefined,
      treeSize: signed ? Math.max(size, tree_size ?? 0) : tree_size,
      at: time === null || time < 0 || age < -CLOCK_SKEW_MS ? null : new Date(time * 1000).toISOString(),
    };
  });
  const ids = new Set([own, ...keys.map((key) => key?.id)]);
  const others = (parseNote(note)?.signatures ?? []).filter(({ keyId }) => !ids.has(keyId));
  const unknown = { state: "unknown", isVerified: false, treeSize: null, at: null } as const;
  return [...known, ...others.map(({ name }): Cosigner => ({ name, ...unknown }))];
}

/** Null for what is no key: the service may say anything. */
function keyOf(vkey: string): NoteKey | null {
  try {
    return parseVkey(vkey);
  } catch (error) {
    if (error instanceof CairnlogError) return null;
    throw error;
  }
}

/** The witnesses that `/readyz` tells; none where it has an address of its own, or is not ready. */
async function toldWitnesses() {
  try {
    const answer = parseIJson(new TextDecoder().decode(await http.rootBytes("/readyz")));
    return fitsSchema(Ready, answer) ? (answer.witnesses ?? []) : [];
  } catch (error) {
    if (error instanceof ClientError && error.status !== undefined) return [];
    throw error;
  }
}

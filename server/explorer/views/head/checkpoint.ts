/**
 * The checkpoint that tools of other logs read, and who has signed it. The page checks every signature whose key it is told;
 * the keys themselves are what the service says.
 */
import {
  CairnlogError,
  type Checkpoint,
  type NoteKey,
  parseIJson,
  parseNote,
  parseVkey,
  verifyNote,
} from "../../../../engine/verify/index.js";
import { isAbsence } from "../../../client/error.js";
import { ClientError } from "../../../client/index.js";
import { fitsSchema } from "../../../wire/check.js";
import { Ready } from "../../../wire/health.js";
import { client, http } from "../../state/service.js";

/** How it stands with a witness, as to the checkpoint that is shown. */
export interface Cosigner {
  readonly name: string;
  /**
   * `signed`: its cosignature was verified here. `unknown`: a line in its name, by a key that nobody told. `late`: it has
   * not cosigned the newest checkpoint in its time. `waiting`: it has not cosigned this one yet.
   */
  readonly state: "signed" | "unknown" | "late" | "waiting";
  /** Size of the newest checkpoint that it has cosigned; null if none is known. */
  readonly treeSize: number | null;
  /** When it cosigned that, ISO 8601. */
  readonly at: string | null;
}

export interface ShownCheckpoint {
  readonly vkey: string;
  readonly checkpoint: Checkpoint;
  readonly note: string;
  readonly cosigners: readonly Cosigner[];
}

/**
 * The newest checkpoint, its signature by the key that the service shows verified; null if the service says that there is none.
 * @throws ClientError
 */
export async function shownCheckpoint(): Promise<ShownCheckpoint | null> {
  try {
    const vkey = await client.tlog.vkey();
    const { note, checkpoint } = await client.tlog.checkpoint(vkey);
    return { vkey, checkpoint, note, cosigners: await cosignersOf(note, parseVkey(vkey).id) };
  } catch (error) {
    if (isAbsence(error)) return null;
    throw error;
  }
}

/** @param own id of the log's key */
async function cosignersOf(note: string, own: string): Promise<Cosigner[]> {
  const told = await toldWitnesses();
  const keys = told.map(({ vkey }) => keyOf(vkey));
  const verified = await verifyNote(
    note,
    keys.filter((key) => key !== null),
  );
  const known = told.map(({ name, tree_size, cosigned_at, late }, i): Cosigner => {
    const signed = verified?.signatures.find(({ key }) => key === keys[i]);
    const time = signed?.time ?? cosigned_at;
    return {
      name,
      state: signed ? "signed" : late ? "late" : "waiting",
      treeSize: tree_size,
      at: time === null ? null : new Date(time * 1000).toISOString(),
    };
  });
  const ids = new Set([own, ...keys.map((key) => key?.id)]);
  const others = (parseNote(note)?.signatures ?? []).filter(({ keyId }) => !ids.has(keyId));
  return [...known, ...others.map(({ name }): Cosigner => ({ name, state: "unknown", treeSize: null, at: null }))];
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

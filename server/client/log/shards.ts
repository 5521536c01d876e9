/** The end of a log, and where it goes on. */

import { LogHead } from "../../../engine/contract/log/log.js";
import * as wire from "../../../engine/contract/log/shards.js";
import type { PayloadOf } from "../../../engine/verify/events/kinds.js";
import {
  type PublicKey,
  parsePublicKey,
  parseVkey,
  type TreeHead,
  verifyTreeHead,
} from "../../../engine/verify/index.js";
import { ClientError } from "../base/error.js";
import type { FreezeLog, LogBeginning, LogEnd } from "../base/types.js";
import { Area } from "./area.js";
import type { Expected } from "./expected.js";
import type { ProvenEntry } from "./proven.js";

export class ShardsClient extends Area {
  /**
   * How the log ended; null for one that may grow. Proven by the newest entry, the last leaf of the newest head.
   * @throws ClientError `log-misbehaved`, also for a log that goes on behind its end
   */
  async end(): Promise<LogEnd | null> {
    const floor = await this.watch.floor();
    const { frozen } = await this.http.get(wire.Shards, "/log/shards");
    if (!frozen) {
      await this.#expectOpen(floor);
      return null;
    }
    const { entry_id, tree_size, reason, successor } = frozen;
    const proven = await this.#last(entry_id, tree_size - 1, Math.min(floor, tree_size - 1), { reason, successor });
    const end = await this.watch.agreed(frozen, { timestamp: proven.entry.timestamp }, proven);
    await this.watch.keepEnd({ entry_id, tree_size });
    return end;
  }

  /**
   * The frozen log from which this one goes on, as its first entry says; null for a log that began by itself, and an empty
   * one. What it names is of this operator: `createClient` with `url` and `operator_key` shows whether it holds.
   * @throws ClientError `log-misbehaved`, also if the last head there is not signed by the key that it names
   */
  async beginning(): Promise<LogBeginning | null> {
    const floor = await this.watch.floor();
    const { predecessor } = await this.http.get(wire.Shards, "/log/shards");
    if (!(await this.watch.newest())) return null;
    const proven = await this.watch.owed(this.watch.proven(1, 0, floor), {});
    const { entry, proof, head } = proven;
    const said =
      entry.event_type === "log_continues" ? (entry.payload as PayloadOf<"log_continues">).predecessor : null;
    await this.watch.agreed({ predecessor }, { predecessor: said && { entry_id: entry.id, ...said } }, proven);
    if (!said || (await isSigned(said))) return predecessor;
    const detail = `Entry ${entry.id} names a last head of the log at ${said.url} that the operator key there has not signed.`;
    throw await this.watch.misbehaved(detail, { shown: head, proof, entry });
  }

  /**
   * The log that goes on from this one, as its proven end names it: what `createClient` takes, so that nobody else is
   * believed there. Null if the log may grow, or names none.
   * @throws ClientError `unverifiable-successor` for a verifier key that is no Ed25519 key; as `end` does
   */
  async successor(): Promise<{ readonly server: string; readonly operatorKey: string } | null> {
    const { successor = null } = (await this.end()) ?? {};
    if (!successor) return null;
    const { url: server, vkey } = successor;
    const key = keyOf(vkey);
    if (key) return { server, operatorKey: key.pem };
    throw new ClientError(
      "unverifiable-successor",
      `The log goes on at ${server}, but its verifier key does not tell the operator key there. Get that from elsewhere.`,
    );
  }

  async #expectOpen(floor: number): Promise<void> {
    const { head, entry_count } = await this.http.get(LogHead, "/log/head");
    if (!head) return;
    const { entry, proof, head: shown } = await this.watch.owed(this.watch.proven(head.id, entry_count - 1, floor), {});
    if (entry.event_type !== "log_frozen") return;
    throw await this.watch.misbehaved("The log denies its end.", { shown, proof, entry });
  }

  /** Remembers the end of the log, if it can be proven now. @throws ClientError `log-misbehaved` */
  async noteEnd(): Promise<void> {
    await this.end().catch((error: unknown) => {
      if (error instanceof ClientError && error.code === "log-misbehaved") throw error;
    });
  }

  /**
   * Ends the log for ever. Needs the operator's session.
   * @returns the last head of the log
   * @throws ClientError `frozen` if it has ended; `log-misbehaved`
   */
  async freeze({ reason, successor = null }: FreezeLog): Promise<TreeHead> {
    const floor = await this.watch.sizeBefore();
    const frozen = await this.auth.withSession((headers) =>
      this.http.post(wire.LogFrozen, "/log/freeze", { reason, successor }, headers),
    );
    const proven = await this.#last(frozen.log_entry_id, frozen.leaf_index, floor, { reason, successor });
    const { tree_size, root_hash } = proven.head;
    const { entry_hash } = proven.entry;
    const { sth } = await this.watch.agreed(
      frozen,
      { entry_hash, sth: { ...frozen.sth, tree_size, root_hash } },
      proven,
    );
    await this.watch.accept(sth, tree_size);
    return sth;
  }

  /** The end of the log, at its place and behind all other entries. */
  async #last(
    entryId: number,
    leafIndex: number,
    floor: number,
    payload: Pick<LogEnd, "reason" | "successor">,
  ): Promise<ProvenEntry> {
    const expected: Expected = { event_type: "log_frozen", payload };
    const proven = await this.watch.recorded(entryId, leafIndex, floor, expected);
    const { entry, head, proof } = proven;
    if (head.tree_size === leafIndex + 1) return proven;
    const detail = `Entry ${entryId} froze the log, and a head of ${head.tree_size} leaves goes on behind it.`;
    throw await this.watch.misbehaved(detail, { shown: head, proof, entry });
  }
}

/** The key of a log whose checkpoints its operator key signs; null for every other verifier key. */
function keyOf(vkey: string): PublicKey | null {
  try {
    const { type, key } = parseVkey(vkey);
    return type === "ed25519" ? key : null;
  } catch {
    return null;
  }
}

async function isSigned({ operator_key, tree_head }: PayloadOf<"log_continues">["predecessor"]): Promise<boolean> {
  try {
    return await verifyTreeHead(tree_head as TreeHead, parsePublicKey(operator_key));
  } catch {
    return false;
  }
}

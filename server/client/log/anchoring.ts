/** Anchoring of the log in Bitcoin: its state and, for the operator, starting it. */
import * as wire from "../../../engine/contract/log/anchoring.js";
import { TreeHead as TreeHeadSchema } from "../../../engine/contract/log/log.js";
import { checkOtsProof, type TreeHead } from "../../../engine/verify/index.js";
import { ClientError } from "../base/error.js";
import type { Anchored, AnchorStatus } from "../base/types.js";
import { Area } from "./area.js";

export class AnchoringClient extends Area {
  /**
   * The newest anchored entry, the state of its proof, and whether anchoring is due. The answer cannot be verified.
   * @throws ClientError
   */
  status(): Promise<AnchorStatus> {
    return this.http.get(wire.AnchorStatus, "/log/anchor-status");
  }

  /**
   * Anchors the newest entry. Needs the operator's session.
   * @throws ClientError `malformed-answer` for a proof of another digest than the entry's
   */
  async anchor(): Promise<Anchored> {
    const floor = await this.watch.sizeBefore();
    const anchored = await this.auth.withSession((headers) =>
      this.http.post(wire.Anchored, "/log/anchor", {}, headers),
    );
    const newest = Math.max(0, floor - 1);
    const proven = await this.watch.owed(this.watch.proven(anchored.anchored_entry_id, null, newest), {});
    const { ok, detail } = checkOtsProof(anchored.ots_proof, proven.entry.entry_hash);
    if (!ok) throw new ClientError("malformed-answer", `The service gave no proof of the entry: ${detail}`);
    if (proven.proof.leaf_index < newest)
      throw await this.watch.misbehaved("The entry that was anchored is not the newest.", { entry: proven.entry });
    return this.watch.agreed(anchored, { entry_hashes: proven.entry.entry_hashes }, proven);
  }

  /**
   * A new head of the current size with the current time, verified. Needs the operator's session.
   * @throws ClientError
   */
  async signHead(): Promise<TreeHead> {
    const floor = await this.watch.sizeBefore();
    const head = await this.auth.withSession((headers) => this.http.post(TreeHeadSchema, "/log/sth/sign", {}, headers));
    await this.watch.accept(head, floor);
    return head;
  }
}

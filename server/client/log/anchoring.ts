/** Anchoring of the log in Bitcoin: how far it is, and, for the operator, having it done. */
import { checkOtsProof, type TreeHead } from "../../../engine/verify/index.js";
import * as wire from "../../wire/log/anchoring.js";
import { TreeHead as TreeHeadSchema } from "../../wire/log/log.js";
import { ClientError } from "../error.js";
import type { Http } from "../http.js";
import type { Authority } from "../session.js";
import type { Anchored, AnchorStatus } from "../types.js";
import type { Watch } from "./watch.js";

export class AnchoringClient {
  readonly #http: Http;
  readonly #watch: Watch;
  readonly #authority: Authority;

  constructor(http: Http, watch: Watch, authority: Authority) {
    this.#http = http;
    this.#watch = watch;
    this.#authority = authority;
  }

  /** The newest anchored entry, how far its proof is, and whether anchoring is due; the service's word. @throws ClientError */
  status(): Promise<AnchorStatus> {
    return this.#http.get(wire.AnchorStatus, "/log/anchor-status");
  }

  /**
   * Has the newest entry anchored. Takes the operator's session.
   * @throws ClientError `malformed-answer` for a proof that is of another digest than the entry's
   */
  async anchor(): Promise<Anchored> {
    const floor = await this.#watch.sizeBefore();
    const anchored = await this.#authority.withSession((headers) =>
      this.#http.post(wire.Anchored, "/log/anchor", {}, headers),
    );
    const newest = Math.max(0, floor - 1);
    const proven = await this.#watch.owed(this.#watch.proven(anchored.anchored_entry_id, null, newest), {});
    const { ok, detail } = checkOtsProof(anchored.ots_proof, proven.entry.entry_hash);
    if (!ok) throw new ClientError("malformed-answer", `The service gave no proof of the entry: ${detail}`);
    if (proven.proof.leaf_index < newest)
      throw await this.#watch.misbehaved("The entry that was anchored is not the newest.", { entry: proven.entry });
    return this.#watch.agreed(anchored, { entry_hashes: proven.entry.entry_hashes }, proven);
  }

  /** A head of the current size with a timestamp of now, checked. Takes the operator's session. @throws ClientError */
  async signHead(): Promise<TreeHead> {
    const floor = await this.#watch.sizeBefore();
    const head = await this.#authority.withSession((headers) =>
      this.#http.post(TreeHeadSchema, "/log/sth/sign", {}, headers),
    );
    await this.#watch.accept(head, floor);
    return head;
  }
}

/**
 * Encrypted claims as they travel: posting them, finding them by lookup key, revealing one. `cairnlog/verify/claims`
 * encrypts, decrypts and checks them; the client never sees a plaintext, but for one that is revealed to the service.
 */

import { checkEntry, type Entry } from "../../../engine/verify/index.js";
import type { PayloadOf } from "../../../engine/verify/kinds.js";
import * as wire from "../../wire/signing/claims.js";
import type { Http } from "../http.js";
import type { Expected, Watch } from "../log/watch.js";
import { pages } from "../pages.js";
import type { Authority } from "../session.js";
import type { ClaimEntry, ClaimPayload, ClaimReceipt, PostClaim } from "../types.js";

/** Claims of a page: so many always fit, however large they are. */
const PER_PAGE = 20;

export class ClaimsClient {
  readonly #http: Http;
  readonly #watch: Watch;
  readonly #authority: Authority;

  constructor(http: Http, watch: Watch, authority: Authority) {
    this.#http = http;
    this.#watch = watch;
    this.#authority = authority;
  }

  /** Posts a payload that `encryptClaim` made. Takes a session of a key held in hardware. @throws ClientError */
  async post(payload: PostClaim["payload"]): Promise<ClaimReceipt> {
    const floor = await this.#watch.floor();
    const receipt = await this.#authority.withSession((headers) =>
      this.#http.post(wire.ClaimReceipt, "/claims", { payload }, headers),
    );
    const expected: Expected = { event_type: "encrypted_claim", payload: payload as PayloadOf<"encrypted_claim"> };
    await this.#watch.recorded(receipt.log_entry_id, receipt.leaf_index, floor, expected);
    return receipt;
  }

  /**
   * Claims with a lookup key, oldest first. Their content is checked against their hashes; that the list is complete,
   * nothing shows. @throws ClientError
   */
  async *list(lookupKey: string): AsyncGenerator<ClaimEntry, void, undefined> {
    const query = { lookup_key: lookupKey };
    for await (const claim of pages(this.#http, {
      schema: wire.ClaimPage,
      path: "/claims",
      member: "entries",
      query,
      perPage: PER_PAGE,
    })) {
      await this.#checkContent(claim);
      yield claim;
    }
  }

  /**
   * The payload of one claim. This is the service's word: decrypting it shows whether it is the claim that was made, and
   * `log.entry` that it is on the log. @throws ClientError
   */
  payload(entryId: number): Promise<ClaimPayload> {
    return this.#http.get(wire.ClaimPayload, `/claims/${entryId}`);
  }

  /**
   * Whether the service finds that a claim commits to `plaintext`. That discloses plaintext and key to its operator;
   * `verifyClaimCommitment` finds the same and discloses nothing.
   * @param commitmentKey hex
   * @throws ClientError
   */
  async reveal(entryId: number, plaintext: object, commitmentKey: string): Promise<boolean> {
    const body = { plaintext, commitment_key: commitmentKey };
    const { valid } = await this.#authority.withSession((headers) =>
      this.#http.post(wire.Revealed, `/claims/${entryId}/reveal`, body, headers),
    );
    return valid;
  }

  /** The view of a claim has the digests of its entry and of the one before, but does not say under which version. */
  async #checkContent({ previous_hashes, ...claim }: ClaimEntry): Promise<void> {
    const digest = (digests: readonly { algorithm: string; digest_hex: string }[]) =>
      digests.find(({ algorithm }) => algorithm === "sha2-256")?.digest_hex;
    const hashes = { previous_hash: digest(previous_hashes) ?? null, entry_hash: digest(claim.entry_hashes) ?? "" };
    const [newer, older] = ([2, 1] as const).map((chain_version) => ({ ...claim, ...hashes, chain_version }) as Entry);
    await this.#watch.checkContent(checkEntry(older!).length === 0 ? older! : newer!);
  }
}

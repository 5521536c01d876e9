/**
 * Encrypted claims: posting them, finding them by lookup key, revealing them. `cairnlog/verify/claims` encrypts,
 * decrypts and checks them. The client sees a plaintext only when it is revealed to the service.
 */

import * as wire from "../../../engine/contract/signing/claims.js";
import { EVENT_KINDS, type PayloadOf } from "../../../engine/verify/events/kinds.js";
import { membersIn } from "../../../engine/verify/events/withheld.js";
import { checkEntry, type Entry } from "../../../engine/verify/index.js";
import { ClientError } from "../base/error.js";
import { pages } from "../base/pages.js";
import type { ClaimEntry, ClaimPayload, ClaimReceipt, SealedClaim } from "../base/types.js";
import { Area } from "../log/area.js";
import { receiptPlace } from "../log/proven.js";

/** Number of claims on a page. This number of claims always fits, whatever their size. */
const PER_PAGE = 20;

export class ClaimsClient extends Area {
  /**
   * Posts a payload that `encryptClaim` made: its members of a claim, and nothing else that is in it. Needs the session of a key
   * in hardware. @throws ClientError
   */
  async post(sealed: SealedClaim): Promise<ClaimReceipt> {
    const names = [
      ...Object.keys(EVENT_KINDS.encrypted_claim.payload),
      "recipient_fingerprint",
    ] as (keyof SealedClaim)[];
    const payload = Object.fromEntries(names.map((name) => [name, sealed[name]]));
    const floor = await this.watch.sizeBefore();
    const receipt = await this.auth.withSession((headers) =>
      this.http.post(wire.ClaimReceipt, "/claims", { payload }, headers),
    );
    const claim = payload as PayloadOf<"encrypted_claim">;
    const proven = await this.watch.recorded(receipt.log_entry_id, receipt.leaf_index, floor, {
      event_type: "encrypted_claim",
      payload: { ...claim },
    });
    const { entry_hash: _, ...place } = receiptPlace(proven);
    const { commitment, lookup_key } = claim;
    return this.watch.agreed(receipt, { entry_id: proven.entry.id, commitment, lookup_key, ...place }, proven);
  }

  /**
   * Claims with a lookup key, oldest first. Their content is checked against their hashes. Nothing proves that the list
   * is complete.
   * @throws ClientError
   */
  async *list(lookupKey: string): AsyncGenerator<ClaimEntry, void, undefined> {
    const query = { lookup_key: lookupKey };
    for await (const claim of pages(this.http, {
      schema: wire.ClaimPage,
      path: "/claims",
      member: "entries",
      query,
      place: ({ id }) => id,
      perPage: PER_PAGE,
    })) {
      await this.#checkContent(claim);
      const { lookup_key } = claim.payload as { readonly lookup_key?: unknown };
      const isFound = `${lookup_key}`.toLowerCase() === lookupKey.toLowerCase();
      if (!isFound || claim.event_type !== "encrypted_claim")
        throw new ClientError("malformed-answer", `Entry ${claim.id} is no claim with this lookup key.`);
      yield claim;
    }
  }

  /** One claim as it was posted. Its entry is proven to be in the log. @throws ClientError */
  async payload(entryId: number): Promise<ClaimPayload> {
    const payload = await this.http.get(wire.ClaimPayload, `/claims/${entryId}`);
    const proven = await this.watch.owed(this.watch.proven(entryId, null, await this.watch.floor()), {});
    const { event_type: _, ...logged } = membersIn(proven.entry);
    await this.watch.agreed<object>(payload, logged, proven);
    return logged;
  }

  /**
   * Whether the service finds that a claim commits to `plaintext`. This discloses plaintext and key to the operator.
   * `verifyClaimCommitment` checks the same and discloses nothing.
   * @param commitmentKey hex
   * @throws ClientError
   */
  async reveal(entryId: number, plaintext: object, commitmentKey: string): Promise<boolean> {
    const body = { plaintext, commitment_key: commitmentKey };
    const { valid } = await this.auth.withSession((headers) =>
      this.http.post(wire.Revealed, `/claims/${entryId}/reveal`, body, headers),
    );
    return valid;
  }

  /**
   * Checks a listed claim. It has the digests of its entry and of the entry before, but not the version of its entry.
   */
  async #checkContent({ previous_hashes, ...claim }: ClaimEntry): Promise<void> {
    const digest = (digests: readonly { algorithm: string; digest_hex: string }[]) =>
      digests.find(({ algorithm }) => algorithm === "sha2-256")?.digest_hex;
    if (new Set(previous_hashes.map(({ algorithm }) => algorithm)).size < previous_hashes.length)
      throw new ClientError("malformed-answer", `Entry ${claim.id} has two digests of one algorithm.`);
    const hashes = { previous_hash: digest(previous_hashes) ?? null, entry_hash: digest(claim.entry_hashes) ?? "" };
    const [newer, older] = ([2, 1] as const).map((chain_version) => ({ ...claim, ...hashes, chain_version }) as Entry);
    await this.watch.checkContent(checkEntry(older!).length === 0 ? older! : newer!);
  }
}

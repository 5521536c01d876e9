/** The command that posts a claim. */

import { CairnlogError } from "../../base/error.js";
import { define, type Transaction } from "../../log/state/commands.js";
import type { StateReader } from "../../log/state/projection.js";
import type { ClaimPayload } from "../../verify/claims/format.js";
import { eventOf } from "../../verify/events/kinds.js";
import { hasHardware } from "../accounts/commands.js";
import { requireActive } from "../events/keys.js";
import { takeFromQuota } from "../shared/quota.js";

/** Hours in which a key's claims count against one quota. */
const QUOTA_HOURS = 24;

/** @throws CairnlogError `key-not-active`; `forbidden` as `checkPoster`; `rate-limited` */
export const postClaim = define(
  "claim.post",
  (
    transaction: Transaction,
    {
      claim,
      poster_fingerprint,
      hardware_roots,
      quota,
    }: {
      readonly claim: ClaimPayload;
      readonly poster_fingerprint: string;
      /** The trusted roots, as `isHardwareBacked` takes them. */
      readonly hardware_roots: readonly string[];
      /** Maximum bytes that one key may post in a day. */
      readonly quota: number;
    },
  ): void => {
    requireActive(transaction, poster_fingerprint);
    checkPoster(transaction, poster_fingerprint, hardware_roots);
    // A claim is ASCII only, so its number of characters is its number of bytes in the log.
    const amount = JSON.stringify(claim).length;
    const use = { amount, hours: QUOTA_HOURS, unit: " bytes of claims" };
    takeFromQuota(transaction, ["claim-bytes", poster_fingerprint], quota, use);
    transaction.append(eventOf("encrypted_claim", { ...claim }));
  },
);

/**
 * Checks that a key may post claims. Called by the command, and before it with the state on disk.
 * @throws CairnlogError `forbidden`
 */
export function checkPoster(
  state: Pick<StateReader, "get">,
  fingerprint: string,
  hardwareRoots: readonly string[],
): void {
  if (!hasHardware(state, fingerprint, hardwareRoots))
    throw new CairnlogError("forbidden", "Only a key with an active, hardware-backed credential may post claims.");
}

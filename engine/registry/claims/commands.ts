/** How claims are posted. */

import { CairnlogError } from "../../error.js";
import { define, type Transaction } from "../../log/write/commands.js";
import type { StateReader } from "../../log/write/projection.js";
import type { ClaimPayload } from "../../verify/claims/format.js";
import { eventOf } from "../../verify/kinds.js";
import { hasHardware } from "../accounts/credential.js";
import { requireActive } from "../keys/status.js";
import { takeFromQuota } from "../quota.js";

/** Hours in which the bytes of a key's claims are counted together. */
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
      /** As `isHardwareBacked` takes them. */
      readonly hardware_roots: readonly string[];
      /** Bytes that one key may post in a day. */
      readonly quota: number;
    },
  ): void => {
    requireActive(transaction, poster_fingerprint);
    checkPoster(transaction, poster_fingerprint, hardware_roots);
    // All of a claim is ASCII: as many characters as bytes of the log.
    const amount = JSON.stringify(claim).length;
    const use = { amount, hours: QUOTA_HOURS, unit: " bytes of claims" };
    takeFromQuota(transaction, ["claim-bytes", poster_fingerprint], quota, use);
    transaction.append(eventOf("encrypted_claim", { ...claim }));
  },
);

/** That a key may post claims: part of the command, and asked of the disk before. @throws CairnlogError `forbidden` */
export function checkPoster(
  state: Pick<StateReader, "get">,
  fingerprint: string,
  hardwareRoots: readonly string[],
): void {
  if (!hasHardware(state, fingerprint, hardwareRoots))
    throw new CairnlogError("forbidden", "Only a key with an active, hardware-backed credential may post claims.");
}

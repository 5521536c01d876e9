/** How claims are posted. */

import { CairnlogError } from "../../error.js";
import { define, type Transaction } from "../../log/write/commands.js";
import type { StateReader } from "../../log/write/projection.js";
import type { ClaimPayload } from "../../verify/claims/format.js";
import { eventOf } from "../../verify/kinds.js";
import { hasHardware } from "../accounts/credential.js";
import { requireActive } from "../keys/status.js";

/** @throws CairnlogError `key-not-active`; `forbidden` as `checkPoster` */
export const postClaim = define(
  "claim.post",
  (
    transaction: Transaction,
    {
      claim,
      poster_fingerprint,
      hardware_roots,
    }: {
      readonly claim: ClaimPayload;
      readonly poster_fingerprint: string;
      /** As `isHardwareBacked` takes them. */
      readonly hardware_roots: readonly string[];
    },
  ): void => {
    requireActive(transaction, poster_fingerprint);
    checkPoster(transaction, poster_fingerprint, hardware_roots);
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

/** The status of a key as a badge. */

import { KeyStatus } from "../../../engine/contract/identity/keys.js";
import type { EndorsementStatus } from "../../../engine/verify/keys/contract.js";
import { Badge, type Tone } from "./Badge.js";

export const KEY_STATUSES = KeyStatus.enum;

const KEY_TONES: Readonly<Record<string, Tone>> = {
  active: "good",
  succeeded: "info",
  revoked: "bad",
  expired: "warning",
};

export const KeyStatusBadge = ({ status }: { readonly status: string }) => (
  <Badge tone={KEY_TONES[status] ?? "neutral"}>{status}</Badge>
);

/** Whose words name and expiration of a key are. */
export const whoseName = ({ named }: { readonly named: boolean }): string =>
  named ? "signed by this key" : "not signed by this key: anybody may have recorded them";

const ENDORSEMENT_TONES: Readonly<Record<EndorsementStatus, Tone>> = {
  offered: "neutral",
  pending_activation: "info",
  active: "good",
  expired: "warning",
  withdrawn: "bad",
  acceptance_revoked: "bad",
};

export const EndorsementBadge = ({ status }: { readonly status: EndorsementStatus }) => (
  <Badge tone={ENDORSEMENT_TONES[status]}>{spoken(status)}</Badge>
);

/** "human attestation". */
export const spoken = (name: string): string => name.replace(/^[^:]*:/, "").replaceAll("_", " ");

/**
 * Which events can change the trust that anchors pass on. An event that names a key within reach is not enough: anybody may
 * offer an endorsement to such a key, and each evaluation reads everything that anchors reach.
 */
import type { EventType, KindedEvent } from "../../verify/kinds.js";
import { type AskedKeys, GRAPH_EVENTS, type Touches } from "../graph/events.js";

/** The keys that an evaluation has read. */
export interface ReadKeys extends AskedKeys {
  /** Keys within reach whose endorsements pass trust on. */
  readonly readIssued: ReadonlySet<string>;
  /** Those of them about which somebody has filed an alert. */
  readonly readReceived: ReadonlySet<string>;
}

/** An offer is no endorsement before it is accepted. */
export const TRUST_EVENTS: readonly EventType[] = GRAPH_EVENTS.filter((type) => type !== "endorsement_offer");

const ENDORSEMENTS: readonly string[] = ["endorsement_acceptance", "endorsement_withdrawal", "acceptance_revocation"];
/** Members that name the keys whose status an event changes, and the key of an alert. */
const NAMING = ["fingerprint", "old_fingerprint", "compromised_key_fingerprint"] as const;

/**
 * Whether an event of `TRUST_EVENTS` may change an evaluation that has read these keys. An endorsement is read from its
 * endorser; and from the endorsed key if there is an alert about it, which counts only while its endorsement does.
 */
export const touchesTrust =
  ({ asked, readIssued, readReceived }: ReadKeys): Touches =>
  ({ event_type, payload }: KindedEvent) =>
    ENDORSEMENTS.includes(event_type)
      ? readIssued.has(payload.endorser_key_fingerprint as string) ||
        readReceived.has(payload.endorsed_key_fingerprint as string)
      : NAMING.some((member) => asked.has(payload[member] as string));

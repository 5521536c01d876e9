/** Endorsement graphs of any size, written as rows through the projection's own functions, without entries. */

import {
  applyAcceptance,
  applyAlert,
  applyOffer,
  applyWithdrawal,
} from "#cairnlog/engine/registry/events/endorsements.js";
import { type PlantingTransaction, runIn } from "../../log/inline.js";
import { HUMAN } from "../endorsements/endorsementcase.js";
import { at, sha256, type World } from "../world.js";

/** An open registry: a world's, or a service's. */
type Opened = Pick<World, "registry">;

/** Number of rows in one command. */
const CHUNK = 2_000;

/** The fingerprint of a key that exists as a row only. */
export const keyNamed = (name: string | number): string => `sha256:${sha256(`key ${name}`)}`;

export interface KeyShape {
  readonly fingerprint: string;
  readonly pseudonym?: string;
  readonly status?: "active" | "revoked" | "succeeded";
  readonly expires_at?: string | null;
}

export interface EndorsementShape {
  readonly id: number;
  readonly from: string;
  readonly to: string;
  readonly category?: string;
  readonly offeredAt?: string;
  /** Null: not accepted. */
  readonly acceptedAt?: string | null;
  readonly validUntil?: string | null;
  readonly withdrawnAt?: string | null;
  readonly institution?: string;
}

export async function putKeys(world: Opened, keys: readonly KeyShape[]): Promise<void> {
  await inChunks(
    world,
    keys,
    (transaction, { fingerprint, pseudonym = "someone", status = "active", expires_at = null }) =>
      transaction.put("keys", fingerprint, {
        fingerprint,
        public_key: "",
        pseudonym,
        algorithm: "ed25519",
        status,
        registered_at: "2024-01-01T00:00:00.000000Z",
        expires_at,
        log_entry_id: 0,
        successor_fingerprint: null,
        predecessor_fingerprint: null,
        ended_at: status === "active" ? null : "2024-06-01T00:00:00.000000Z",
        proven: true,
      }),
  );
}

/** Writes endorsements. They were accepted long ago unless their shape says otherwise. */
export async function putEndorsements(world: Opened, endorsements: readonly EndorsementShape[]): Promise<void> {
  await inChunks(world, endorsements, (transaction, shape) => {
    const { id, from, to, category = HUMAN, validUntil = null, institution } = shape;
    const { offeredAt = at(0), acceptedAt = at(1_000_000), withdrawnAt = null } = shape;
    const payload = {
      endorser_key_fingerprint: from,
      endorsed_key_fingerprint: to,
      category,
      valid_until: validUntil,
      institutional_metadata: institution === undefined ? null : { name: institution },
      offer_entry_id: id,
    };
    const event = { id, leafIndex: id - 1, event_type: "", payload };
    applyOffer({ ...event, timestamp: offeredAt }, transaction);
    if (acceptedAt !== null) applyAcceptance({ ...event, timestamp: acceptedAt }, transaction);
    if (withdrawnAt !== null) applyWithdrawal({ ...event, timestamp: withdrawnAt }, transaction);
  });
}

export async function putAlert(world: World, id: number, by: string, on: string): Promise<void> {
  await runIn(world.registry.log, (transaction) => {
    const payload = { endorser_key_fingerprint: by, compromised_key_fingerprint: on, reason: "stolen" };
    applyAlert({ id, leafIndex: id - 1, event_type: "", payload, timestamp: at(2_000_000) }, transaction);
  });
}

async function inChunks<T>(
  world: Opened,
  items: readonly T[],
  put: (transaction: PlantingTransaction, item: T) => void,
): Promise<void> {
  for (let from = 0; from < items.length; from += CHUNK)
    await runIn(world.registry.log, (transaction) => {
      for (const item of items.slice(from, from + CHUNK)) put(transaction, item);
    });
}

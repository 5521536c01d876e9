/** Endorsements between newly registered keys, for tests. */

import type { OfferBody } from "#cairnlog/engine/registry/endorsements/input.js";
import type { Entry } from "#cairnlog/engine/verify/tree/entry.js";
import { nodeSigner, registration, type World } from "../world.js";

export const HUMAN = "x-service:human_attestation";
export const INSTITUTIONAL = "x-service:institutional_endorsement";

/** Registers a new key and returns its fingerprint. */
export async function newKey(where: World): Promise<string> {
  return (await where.registry.keys.register(registration(nodeSigner()))).fingerprint;
}
export const offerOf = (endorser: string, endorsed: string, more: Partial<OfferBody> = {}): OfferBody => ({
  endorser_fingerprint: endorser,
  endorsed_fingerprint: endorsed,
  category: HUMAN,
  ...more,
});

/** The entry in the answer of a command. */
export const entryOf = ({ log_entry }: { readonly log_entry: Buffer }): Entry => JSON.parse(log_entry.toString());

/** An endorsement, and the commands of its two keys. */
export class Case {
  readonly world: World;
  readonly endorser: string;
  readonly endorsed: string;
  id = 0;

  constructor(world: World, endorser: string, endorsed: string) {
    this.world = world;
    this.endorser = endorser;
    this.endorsed = endorsed;
  }

  get #commands() {
    return this.world.registry.endorsements;
  }
  async offer(more: Partial<OfferBody> = {}) {
    const receipt = await this.#commands.offer(offerOf(this.endorser, this.endorsed, more));
    this.id = receipt.endorsement.offer_entry_id;
    return receipt;
  }
  accept(by = this.endorsed) {
    return this.#commands.accept({ offer_entry_id: this.id, endorsed_fingerprint: by });
  }
  withdraw(by = this.endorser, note = "withdrawn") {
    const keys = { endorser_fingerprint: by, endorsed_fingerprint: this.endorsed };
    return this.#commands.withdraw({ ...keys, original_offer_entry_id: this.id, note });
  }
  revoke(by = this.endorsed, note = "revoked") {
    return this.#commands.revokeAcceptance({ endorsed_fingerprint: by, original_offer_entry_id: this.id, note });
  }
  async record() {
    const { endorsements } = await this.world.registry.endorsementQueries.received(this.endorsed);
    return endorsements.find(({ offer_entry_id }) => offer_entry_id === this.id)!;
  }
}
export const newCase = async (where: World) => new Case(where, await newKey(where), await newKey(where));

/** Endorsements over HTTP between newly registered keys. */
import { expect } from "vitest";
import type { Reply, TestService } from "./harness.js";
import { proofOf, registeredSigner } from "./proofs.js";
import type { TestSigner } from "./signers.js";

export const HUMAN = "x-service:human_attestation";
export const INSTITUTIONAL = "x-service:institutional_endorsement";

export type Body = Readonly<Record<string, unknown>>;

/** POSTs with a new proof by `signer`. */
export async function write(service: TestService, path: string, signer: TestSigner, body: Body): Promise<Reply> {
  return service.post(`/endorsements/${path}`, { ...body, auth: await proofOf(service, signer) });
}

/** Two keys and the requests that they can make. */
export interface Pair {
  readonly service: TestService;
  readonly endorser: TestSigner;
  readonly endorsed: TestSigner;
  /** Entry of the newest offer. Before the first offer, it is an entry that is no offer. */
  id: number;
}
export async function newPair(service: TestService): Promise<Pair> {
  return { service, endorser: await registeredSigner(service), endorsed: await registeredSigner(service), id: 1 };
}
/** The body of each command. */
export const bodies = {
  offer: ({ endorser, endorsed }: Pair) => ({
    endorser_fingerprint: endorser.fingerprint,
    endorsed_fingerprint: endorsed.fingerprint,
    category: HUMAN,
  }),
  accept: ({ endorsed, id }: Pair) => ({ offer_entry_id: id, endorsed_fingerprint: endorsed.fingerprint }),
  withdraw: ({ endorser, endorsed, id }: Pair) => ({
    endorser_fingerprint: endorser.fingerprint,
    endorsed_fingerprint: endorsed.fingerprint,
    original_offer_entry_id: id,
    note: "we parted",
  }),
  "revoke-acceptance": ({ endorsed, id }: Pair) => ({
    endorsed_fingerprint: endorsed.fingerprint,
    original_offer_entry_id: id,
    note: "not wanted any more",
  }),
  "revocation-alert": ({ endorser, endorsed }: Pair) => ({
    endorser_fingerprint: endorser.fingerprint,
    compromised_fingerprint: endorsed.fingerprint,
    reason: "the laptop was stolen",
  }),
};
export type Command = keyof typeof bodies;
export const COMMANDS = Object.keys(bodies) as Command[];
/** The key that gives the command. */
export const actor = (command: Command, pair: Pair) =>
  command === "accept" || command === "revoke-acceptance" ? pair.endorsed : pair.endorser;

/** Sends a command with a new proof. */
export async function act(command: Command, pair: Pair, more: Body = {}): Promise<Reply> {
  const reply = await write(pair.service, command, actor(command, pair), { ...bodies[command](pair), ...more });
  if (command === "offer" && reply.status === 200) pair.id = reply.body.id;
  return reply;
}
/** Sends a command that must succeed. */
export async function done(command: Command, pair: Pair, more: Body = {}): Promise<Reply> {
  const reply = await act(command, pair, more);
  expect(reply.status, reply.text).toBe(200);
  return reply;
}
/** The endorsements that the endorsed key received. */
export const received = async ({ service, endorsed }: Pair) =>
  (await service.get(`/endorsements/${endorsed.fingerprint}`)).body;

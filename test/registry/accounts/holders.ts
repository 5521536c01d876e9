/** Holders of accounts: valid input for opening and recovering accounts, except for members that a test overrides. */
import { compact, nodeSigner, registration, type TestSigner, type World } from "../world.js";

type Registry = World["registry"];
export type Enrolment = Parameters<Registry["credentials"]["enroll"]>[0];
export type AccountInput = Parameters<Registry["accounts"]["create"]>[0];
type Recovery = Parameters<Registry["accounts"]["recover"]>[0];

export const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
export const RECOVERY_KEY = /^[0-9A-HJKMNP-TV-Z]{5}(-[0-9A-HJKMNP-TV-Z]{5}){7}$/;

let names = 0;
/** A name that is new in this file. */
export const newName = (): string => `Holder ${++names}`;

export type EnrolmentMembers = Partial<Record<keyof Enrolment, unknown>>;

/** The bytes that the issuing key signs. */
export const chainMessage = ({ challenge_id, issuing_fingerprint, key_fingerprint }: EnrolmentMembers) =>
  compact({ action: "service.credential.enroll.v1", challenge_id, issuing_fingerprint, key_fingerprint });

/** A valid request except for `more`. The issuing key signs the latter, too. */
export async function enrolment(
  world: World,
  issuing: TestSigner,
  key: TestSigner,
  more: EnrolmentMembers = {},
): Promise<Enrolment> {
  const { fingerprint } = key;
  const { challenge_id, nonce } = await world.registry.challenges.issue({ fingerprint, origin: "https://log.example" });
  const body: EnrolmentMembers = {
    issuing_fingerprint: issuing.fingerprint,
    key_fingerprint: key.fingerprint,
    device_label: "another token",
    credential_type: "hardware",
    challenge_id,
    challenge_signature: key.sign(nonce),
    ...more,
  };
  return { ...body, chain_signature: issuing.sign(chainMessage(body)), ...more } as unknown as Enrolment;
}

/** Acts on the current registry of `world`. */
export class Holders {
  readonly #world: () => World;

  constructor(world: () => World) {
    this.#world = world;
  }

  /** Registers a key. @returns its fingerprint */
  async newKey(): Promise<string> {
    const signer = nodeSigner();
    await this.#world().registry.keys.register(registration(signer));
    return signer.fingerprint;
  }

  /** Revokes a key. */
  end(fingerprint: string): Promise<void> {
    return this.#world().append({ event_type: "key_revocation", payload: { fingerprint } });
  }

  async input(more: Partial<Record<keyof AccountInput, unknown>> = {}): Promise<AccountInput> {
    return {
      display_name: newName(),
      email: "holder@example.org",
      credential_type: "software",
      key_fingerprint: "key_fingerprint" in more ? "" : await this.newKey(),
      device_label: "a laptop",
      ...more,
    } as AccountInput;
  }

  async recovery(pseudonym: string, recovery_key: string, more: object = {}): Promise<Recovery> {
    const key_fingerprint = "key_fingerprint" in more ? "" : await this.newKey();
    return { pseudonym, recovery_key, credential_type: "software", key_fingerprint, device_label: "a phone", ...more };
  }

  async create(more: Partial<Record<keyof AccountInput, unknown>> = {}) {
    return this.#world().registry.accounts.create(await this.input(more));
  }

  async recover(name: string, key: string, more: object = {}, address = "192.0.2.1") {
    return this.#world().registry.accounts.recover(await this.recovery(name, key, more), address);
  }
}

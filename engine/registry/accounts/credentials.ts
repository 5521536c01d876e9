/**
 * Credentials: which keys belong to an account, and which of them are held in hardware. They are private rows, written
 * by commands that append nothing: the public log does not contain who owns which keys.
 */

import { randomUUID } from "node:crypto";
import { CairnlogError } from "../../base/error.js";
import type * as contract from "../../contract/identity/accounts.js";
import type { Value } from "../../contract/types.js";
import type { HardwareRoots } from "../../crypto/hardware.js";
import { importPublicKey } from "../../crypto/keys/spki.js";
import type { SignatureVerifier } from "../../crypto/pool/pool.js";
import type { Clock } from "../../log/state/clock.js";
import { utf8 } from "../../verify/bytes/encoding.js";
import { canonicalJson } from "../../verify/json/canonical.js";
import type { JsonObject } from "../../verify/json/shape.js";
import {
  CREDENTIAL_TYPES,
  type CredentialType,
  DEVICE_LABEL,
  enrolmentStatement,
  NAMING,
} from "../../verify/keys/contract.js";
import type { ChallengeAnswer, Challenges } from "../access/challenges.js";
import { readName } from "../events/keys.js";
import type { KeyRecord, Keys } from "../keys/keys.js";
import { boundedText, decodeSignature, Faults, invalidInput, members } from "../shared/input.js";
import type { Caller, Writes } from "../writes/writes.js";
import { type Credential, type DraftCredential, enrollCredential } from "./commands.js";

type Enrolment = Value<typeof contract.EnrollCredential>;

/** Checked input that describes a credential. */
export interface CredentialForm {
  readonly type: CredentialType;
  readonly fingerprint: string;
  readonly label: string;
  readonly attestation: string | null;
}

/** Checks the members that describe a credential, and adds their faults to `faults`. */
export function readCredential(input: JsonObject, faults: Faults): CredentialForm {
  const { credential_type, hardware_attestation } = input;
  const type = CREDENTIAL_TYPES.find((name) => name === credential_type);
  if (!type) faults.add("/credential_type", `It must be one of ${CREDENTIAL_TYPES.join(", ")}.`);
  if (hardware_attestation != null && typeof hardware_attestation !== "string")
    faults.add("/hardware_attestation", "It must be a string.");
  return {
    type: type!,
    fingerprint: boundedText(input.key_fingerprint, "/key_fingerprint", NAMING, faults)!,
    label: readName(input.device_label, "/device_label", DEVICE_LABEL.max, faults)!,
    attestation: (hardware_attestation as string | null | undefined) ?? null,
  };
}

/** The canonical JSON that the issuing key signs: it accepts this key, for this challenge. */
function enrolmentMessage(challenge_id: string, issuing_fingerprint: string, key_fingerprint: string): Uint8Array {
  return utf8(canonicalJson(enrolmentStatement(challenge_id, issuing_fingerprint, key_fingerprint)));
}

interface Parts {
  readonly writes: Writes;
  readonly keys: Keys;
  readonly verifier: SignatureVerifier;
  readonly challenges: Pick<Challenges, "consume">;
  readonly roots: HardwareRoots;
  readonly clock: Clock;
}

export class Credentials {
  readonly #parts: Parts;

  /** Use `openRegistry`. */
  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Ids of the trusted roots, for commands. */
  get hardwareRoots(): readonly string[] {
    return this.#parts.roots.ids;
  }

  /** Whether the holder's declaration alone makes a credential hardware-backed, because no roots are set. */
  get believesDeclarations(): boolean {
    return this.#parts.roots.isEmpty;
  }

  /**
   * Binds a further key to the account of an enrolled one (`POST /credentials/enroll`). Both keys must sign, and both
   * must be hardware-backed (docs/spec §6.3). Both proofs are checked before any other state.
   * @param act of the request, for a challenge that names one
   * @throws CairnlogError `invalid-input`; `not-found` for a key that is not registered, an issuing key on no account,
   *   and an unknown challenge; `unauthenticated` for either signature; `gone` and `challenge-used` as
   *   `Challenges.consume` does; `wrong-key-status` when the new key is not active; `key-not-active` when the issuing
   *   one is not; `forbidden` when its credential is revoked or either side is not hardware-backed; `already-exists`
   *   when the new key is on an account to which its own signature has bound it, or on this one; and as `Log.execute`
   *   does
   */
  async enroll(
    enrolment: Enrolment,
    client: Caller | null = null,
    act?: () => string,
  ): Promise<{ readonly credential: Credential }> {
    const input = members(enrolment);
    const faults = new Faults();
    const form = readCredential(input, faults);
    const issuing = boundedText(input.issuing_fingerprint, "/issuing_fingerprint", NAMING, faults)!;
    const challenge_id = boundedText(input.challenge_id, "/challenge_id", NAMING, faults)!;
    const chainSignature = decodeSignature(input.chain_signature);
    if (!chainSignature) faults.add("/chain_signature", "It must be strict base64, padded and without spaces.");
    if (typeof input.challenge_signature !== "string") faults.add("/challenge_signature", "It must be a string.");
    faults.check();

    const issuer = this.#parts.keys.find(issuing);
    const key = this.#parts.keys.find(form.fingerprint);
    const message = enrolmentMessage(challenge_id, issuing, form.fingerprint);
    if (!(await this.#parts.verifier.verify(importPublicKey(issuer.public_key), message, chainSignature!)))
      throw new CairnlogError("unauthenticated", "The chain signature is not the issuing key's over this enrolment.");
    const answer = { challengeId: challenge_id, signature: input.challenge_signature as string, ...(act && { act }) };
    await this.#consume(answer, key.fingerprint);
    const credential = this.draft(form, key, true);

    const { value } = await this.#parts.writes.execute(
      enrollCredential,
      {
        issuing_fingerprint: issuer.fingerprint,
        credential,
        hardware_roots: this.hardwareRoots,
      },
      client,
      issuer.fingerprint,
    );
    return { credential: value };
  }

  /**
   * Consumes a challenge, which must be for the new key. A failed proof gives 401 here instead of 403, because it
   * leaves nobody authenticated.
   */
  async #consume(
    answer: Pick<ChallengeAnswer, "challengeId" | "signature" | "act">,
    fingerprint: string,
  ): Promise<void> {
    try {
      // The command checks whether the key is still active.
      await this.#parts.challenges.consume({ ...answer, fingerprint, purposes: ["general"], allowEnded: true });
    } catch (error) {
      if (error instanceof CairnlogError && error.code === "forbidden")
        throw new CairnlogError("unauthenticated", error.message, { cause: error });
      throw error;
    }
  }

  /**
   * A credential that is ready to be written. If an attestation was sent, it must be valid.
   * @param confirmed whether the key has signed that it is to be on this account
   * @throws CairnlogError `invalid-input`, `forbidden` as `HardwareRoots.verify` does
   */
  draft({ type, label, attestation }: CredentialForm, { fingerprint }: KeyRecord, confirmed: boolean): DraftCredential {
    const isAsked = type === "hardware" && attestation !== null && !this.#parts.roots.isEmpty;
    return {
      id: randomUUID(),
      key_fingerprint: fingerprint,
      credential_type: type,
      device_label: label,
      confirmed,
      hardware_root: isAsked ? this.#attest(attestation, fingerprint) : null,
    };
  }

  #attest(attestation: string, fingerprint: string): string {
    try {
      return this.#parts.roots.verify(attestation, { fingerprint }, this.#parts.clock() / 1000);
    } catch (error) {
      if (error instanceof CairnlogError && error.code === "invalid-input")
        throw invalidInput("/hardware_attestation", error.message);
      throw error;
    }
  }
}

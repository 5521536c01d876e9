/**
 * The signatures that an entry of the log holds, checked over the bytes that were signed. What no entry holds, such as the
 * session by which an endorsement was offered, only the log has seen.
 */

import { isEventType } from "../../../engine/verify/events/kinds.js";
import { isCut } from "../../../engine/verify/events/withheld.js";
import {
  canonicalJson,
  decodeBase64,
  type Entry,
  type PublicKey,
  parsePublicKey,
  rotationMessage,
  verifySignature,
} from "../../../engine/verify/index.js";
import { registrationStatement, successionMessage } from "../../../engine/verify/keys/contract.js";
import { type CheckedAttestation, checkAttestation, isAttestation } from "./attestation.js";
import type { Proven } from "./source.js";

interface SignatureCheck {
  /** Null if it can neither be confirmed nor refuted here. */
  readonly holds: boolean | null;
  readonly detail: string;
}

export interface CheckedSignatures {
  /** `none`: the entry holds no signature. `open`: one that cannot be checked here. */
  readonly standing: "holds" | "open" | "wrong" | "none";
  readonly checks: readonly SignatureCheck[];
  /** If it is an attestation. */
  readonly attestation: CheckedAttestation | null;
}

/** A signature by a key that is in the payload, too. */
interface Shown {
  readonly name: string;
  readonly pem: unknown;
  readonly fingerprint: unknown;
  readonly signature: unknown;
  /** The texts of which one was signed. */
  readonly messages: readonly Uint8Array[];
  /** Whether one of them must be it: the signer's own spelling may differ from the stored one. */
  readonly isExact: boolean;
}

/** @throws ClientError if what is needed for the check cannot be fetched */
export async function checkSignatures(proven: Proven): Promise<CheckedSignatures> {
  const { entry } = proven;
  // An older history may have another name for their type.
  if (entry.payload && !isEventType(entry.event_type) && isAttestation(entry.payload)) {
    const attestation = await checkAttestation(proven, entry.payload);
    const checks = attestation.checks
      .filter(({ name }) => OF_SIGNATURE.has(name))
      .map(({ ok, detail }) => ({ holds: ok || attestation.standing === "wrong" ? ok : null, detail }));
    return { standing: attestation.standing, checks, attestation };
  }
  const checks = await Promise.all(shownIn(entry).map(checkShown));
  const found = checks.map(({ holds }) => holds);
  const standing = found.includes(false) ? "wrong" : found.includes(null) ? "open" : found.length ? "holds" : "none";
  return { standing, checks, attestation: null };
}

/** The checks of an attestation that are not about its entry, whose proof is shown anyway. */
const OF_SIGNATURE: ReadonlySet<string> = new Set(["manifest", "signature", "attestation"]);

/** The signatures in the payload of an event that is no attestation; others chose its members. */
function shownIn(entry: Entry): readonly Shown[] {
  const { event_type, payload } = entry;
  if (!payload) return [];
  const utf8 = (text: string) => new TextEncoder().encode(text);
  const { fingerprint, public_key: pem, old_fingerprint } = payload;
  if (event_type === "key_registration" && payload.possession_signature != null) {
    const { pseudonym, expiration_date } = payload as Readonly<Record<string, string | null>>;
    // With an attestation, a key may be registered without a name, and has no expiration.
    const messages = [pseudonym ?? null, null].map((name) =>
      utf8(canonicalJson(registrationStatement(`${fingerprint}`, name, expiration_date ?? null))),
    );
    // ASCII has one spelling only. A name that is withheld is not the one that was signed.
    const isExact = !isCut(entry) && /^[ -~]*$/.test(pseudonym ?? "") && expiration_date == null;
    const signature = payload.possession_signature;
    return [{ name: "The registration", pem, fingerprint, signature, messages, isExact }];
  }
  if (event_type === "key_succession" && payload.new_key_signature != null) {
    const messages = [utf8(successionMessage(`${old_fingerprint}`, `${fingerprint}`))];
    const signature = payload.new_key_signature;
    return [{ name: "The succession", pem, fingerprint, signature, messages, isExact: true }];
  }
  if (event_type !== "operator_key_rotation") return [];
  const messages = [rotationMessage(payload as unknown as Parameters<typeof rotationMessage>[0])];
  const both = { messages, isExact: true };
  return [
    {
      ...{ name: "The change of the operator key", pem: payload.old_public_key, fingerprint: old_fingerprint },
      ...{ signature: payload.old_key_signature, ...both },
    },
    { name: "The change of the operator key", pem, fingerprint, signature: payload.new_key_signature, ...both },
  ];
}

async function checkShown({ name, pem, fingerprint, signature, messages, isExact }: Shown): Promise<SignatureCheck> {
  const key = keyOf(pem);
  if (key === null || key.fingerprint !== fingerprint)
    return { holds: false, detail: `${name} holds another public key than the one that it names.` };
  const bytes = typeof signature === "string" ? decodeBase64(signature) : undefined;
  for (const message of bytes ? messages : [])
    if (await verifySignature(key, message, bytes!))
      return { holds: true, detail: `${name} is signed by ${key.fingerprint} (${key.algorithm}).` };
  if (!bytes || isExact)
    return { holds: false, detail: `The signature in it does not fit: ${key.fingerprint} has not signed this.` };
  return { holds: null, detail: `${name} was signed in a spelling, or with a name, that the log does not show.` };
}

function keyOf(pem: unknown): PublicKey | null {
  try {
    return parsePublicKey(pem as string);
  } catch {
    return null;
  }
}

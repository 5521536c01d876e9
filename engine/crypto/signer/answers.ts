/** What a signer answers, checked for its form. The signer may be wrong or hostile. */
import { CairnlogError } from "../../base/error.js";
import { decodeBase64 } from "../../verify/bytes/encoding.js";
import { ecdsaCompact } from "../../verify/keys/signature.js";
import { importPublicKey, type ServerKey } from "../keys/spki.js";
import { unavailable } from "./connection.js";

/** The protocol's version, which both sides name in the first exchange. */
export const PROTOCOL = "cairnlog-signer/1";
/** Characters of a signer's own error text that are repeated. */
const SHOWN_CHARACTERS = 200;

/**
 * The key in the answer to `key`.
 * @throws CairnlogError `signer-unavailable` for an answer in another form; `invalid-key` for a key that cannot be used
 */
export function signerKeyIn(answer: unknown): ServerKey {
  checkRefusal(answer);
  const { protocol, public_key } = membersOf(answer);
  if (protocol !== PROTOCOL || typeof public_key !== "string")
    throw unavailable(`The signer does not speak ${PROTOCOL}: its answer to "key" has another form.`);
  try {
    return importPublicKey(public_key);
  } catch (cause) {
    throw new CairnlogError("invalid-key", "The signer's public key is not one that can be used.", { cause });
  }
}

/**
 * The signatures in the answer to `sign`, in order, in the form in which they are stored. They are not verified yet.
 * @throws CairnlogError `signer-unavailable`
 */
export function readSignatures(answer: unknown, count: number, key: ServerKey): Uint8Array[] {
  const { signatures } = membersOf(answer);
  if (!Array.isArray(signatures) || signatures.length !== count)
    throw unavailable(`The signer did not answer with ${count} signatures.`);
  return signatures.map((text) => {
    const bytes = decodeBase64(text);
    // Cards and libraries give a P-256 signature as DER or as 64 bytes. Tree heads and tokens hold 64 bytes.
    const signature = bytes && key.algorithm === "ecdsa-p256" ? ecdsaCompact(bytes) : bytes;
    if (!signature) throw unavailable("The signer answered something that is no signature.");
    return signature;
  });
}

/**
 * Passes over an answer that is no refusal.
 * @throws CairnlogError `signer-unavailable` with the signer's own words, in printable ASCII: they may reach a terminal
 */
export function checkRefusal(answer: unknown): void {
  const { error } = membersOf(answer);
  if (typeof error !== "string") return;
  throw unavailable(`The signer refused: ${error.slice(0, SHOWN_CHARACTERS).replace(/[^ -~]/g, "?")}`);
}

const membersOf = (answer: unknown): Readonly<Record<string, unknown>> =>
  typeof answer === "object" && answer !== null ? (answer as Readonly<Record<string, unknown>>) : {};

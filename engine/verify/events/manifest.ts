/**
 * Manifests: the documents that signers sign. The signed bytes are the RFC 8785 canonical JSON of the manifest as the
 * signer received it: with the attestations that it had, or with none.
 */
import { inputError } from "../../base/error.js";
import { isHexHash, isPrefixedHash, utf8 } from "../bytes/encoding.js";
import { canonicalJson } from "../json/canonical.js";
import type { JsonObject } from "../json/shape.js";
import { canonicalHash } from "./hashed.js";

/** One signature on a document, as it occurs in a manifest and in the answer to `POST /attestations`. */
export interface Attestation {
  readonly id: string;
  /** One of the four short types, or an `https:` predicate URL. */
  readonly type: string;
  readonly scope: { readonly content_hash: string };
  readonly signer_key_fingerprint: string;
  readonly signature_algorithm: string;
  /** Base64. */
  readonly signature: string;
  readonly timestamp: string;
  readonly intent_statement?: string | null;
}

/** A manifest. Unknown members are signed and hashed like the others. */
export interface Manifest extends JsonObject {
  readonly document: { readonly title: string; readonly content_hash: string } & JsonObject;
  readonly attestations: readonly object[];
}

/**
 * Whether the signer has signed each of two members that the log records besides the manifest. If not, only the log
 * says it.
 */
export interface SignedMembers {
  readonly attestation_type: boolean;
  readonly intent_statement: boolean;
}

/** The possible coverage of a signature: the document with all attestations before it, or the document alone. */
export type Coverage = "document-and-prior" | "document";

/** The bytes to sign for a new attestation of `manifest`. @throws CairnlogError `not-i-json`. */
export function signingPayload(manifest: Manifest): Uint8Array {
  return utf8(canonicalJson(manifest));
}

/** SHA-256 of the canonical manifest with its attestations; bare lower-case hex. @throws CairnlogError `not-i-json`. */
export function manifestHash(manifest: Manifest): string {
  return canonicalHash(manifest);
}

/**
 * The payloads that attestation number `position` of `manifest` may have signed, the one with the larger coverage
 * first. The first attestation has the same bytes in both cases, so they are returned once, as `document`. `position`
 * may be one past the last, for an attestation that is still to be added.
 * @throws CairnlogError `invalid-input` for a position outside the manifest; `not-i-json`.
 */
export function attestationPayloads(manifest: Manifest, position: number): { covers: Coverage; bytes: Uint8Array }[] {
  if (!Number.isInteger(position) || position < 0 || position > manifest.attestations.length) {
    throw inputError(`The manifest has no attestation number ${position}.`);
  }
  const alone = { covers: "document" as const, bytes: signingPayload({ ...manifest, attestations: [] }) };
  if (position === 0) return [alone];
  const prior = signingPayload({ ...manifest, attestations: manifest.attestations.slice(0, position) });
  return [{ covers: "document-and-prior", bytes: prior }, alone];
}

/**
 * Type and statement in the document of a manifest, which every signature over it covers. A member is undefined if the
 * document does not name it. The statement is null if the document says that there is none.
 */
export function signedTerms({ document }: Pick<Manifest, "document">): {
  readonly attestation_type: string | undefined;
  readonly intent_statement: string | null | undefined;
} {
  const own = (name: string) => (Object.hasOwn(document, name) ? document[name] : undefined);
  const [type, statement] = [own("attestation_type"), own("intent_statement")];
  return {
    attestation_type: typeof type === "string" ? type : undefined,
    intent_statement: typeof statement === "string" || statement === null ? statement : undefined,
  };
}

/** Whether a signature over the manifest covers type and statement. */
export function signedMembers(manifest: Pick<Manifest, "document">): SignedMembers {
  const { attestation_type, intent_statement } = signedTerms(manifest);
  return { attestation_type: attestation_type !== undefined, intent_statement: intent_statement !== undefined };
}

/** Says for people whether the signer signed type and statement, as a sentence. */
export function signedWords({ attestation_type: type, intent_statement: statement }: SignedMembers): string {
  if (type && statement) return "The signer signed the type and the statement.";
  if (type) return "The signer signed the type; the statement is the log's word.";
  if (statement) return "The signer signed the statement; the type is the log's word.";
  return "The signer signed neither type nor statement: both are the log's word.";
}

/**
 * A content hash as `sha256:` and lower-case hex. The input may be bare or have `sha256:`, in either case; `undefined`
 * for anything else.
 */
export function normaliseContentHash(hash: unknown): string | undefined {
  if (typeof hash !== "string") return undefined;
  const folded = hash.toLowerCase();
  if (isPrefixedHash(folded)) return folded;
  return isHexHash(folded) ? `sha256:${folded}` : undefined;
}

/**
 * The hash of a composite document as `sha256:` and hex. `hashes` are those of its parts in order, in the same form.
 */
export function compositeHash(title: string, hashes: readonly string[]): string {
  return `sha256:${canonicalHash({ parts: hashes, title })}`;
}

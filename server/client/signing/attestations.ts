/**
 * Attesting: the signed bytes, and the receipt. A signature only states what it covers, so type and statement of an
 * attestation are signed with the document.
 */
import {
  type AttestationBundle,
  BUNDLE_FORMAT,
  type Manifest,
  manifestHash,
  signedMembers,
  signingPayload,
  type TreeHead,
  verifyBundle,
} from "../../../engine/verify/index.js";
import { InclusionProof } from "../../wire/log/log.js";
import * as wire from "../../wire/signing/attestations.js";
import { differing } from "../compare.js";
import { ClientError } from "../error.js";
import type { Http } from "../http.js";
import type { Watch } from "../log/watch.js";
import type { Authority } from "../session.js";
import type { AttestationReceipt, SubmitAttestation } from "../types.js";

/** A document with its hash. The service gets nothing else of it. */
export type AttestedDocument = Manifest["document"];

export interface AttestOptions {
  /** authorship (default), editorial_review, peer_review, publication, or an `https:` predicate URL. */
  readonly type?: string | undefined;
  /** Used if the key is not registered yet. */
  readonly pseudonym?: string | undefined;
  readonly intent?: string | undefined;
  /** Required if the key has a password. */
  readonly password?: string | undefined;
}

/** A verified receipt, and everything that is needed to verify it again offline. */
export interface Attested {
  readonly receipt: AttestationReceipt;
  /** Contents of an `.attestation.json` file. */
  readonly bundle: AttestationBundle;
}

/** A submission that names its type and statement. */
type Submitted = Omit<SubmitAttestation, "manifest"> & {
  readonly manifest: Manifest;
  readonly attestation_type: string;
};

export class AttestationsClient {
  readonly #http: Http;
  readonly #watch: Watch;
  readonly #authority: Authority;

  constructor(http: Http, watch: Watch, authority: Authority) {
    this.#http = http;
    this.#watch = watch;
    this.#authority = authority;
  }

  /** Signs and submits. @throws ClientError `log-misbehaved` for an invalid receipt */
  async attest(subject: AttestedDocument | Manifest, options: AttestOptions): Promise<Attested> {
    const submitted = await this.#submission(subject, options);
    const size = await this.#watch.sizeBefore();
    const receipt = await this.#submit(submitted);
    const bundle = await this.#bundle(submitted.manifest, receipt, size);
    await this.#checkReceipt(receipt, submitted, bundle, size);
    return { receipt, bundle };
  }

  /**
   * Submits, with a proof if the service requires one. It does so if the key has signed the same bytes before, for
   * another type or statement.
   */
  async #submit(submitted: Submitted): Promise<AttestationReceipt> {
    const post = (body: object) => this.#http.post(wire.AttestationReceipt, "/attestations", body);
    try {
      return await post(submitted);
    } catch (error) {
      if (!(error instanceof ClientError) || error.code !== "proof-required") throw error;
      return post({ ...submitted, auth: await this.#authority.proof() });
    }
  }

  async #submission(subject: AttestedDocument | Manifest, options: AttestOptions): Promise<Submitted> {
    const { type = "authorship", pseudonym, intent, password } = options;
    const manifest = withMeaning(subject, type, intent ?? null);
    return {
      manifest,
      public_key_pem: this.#authority.key.pem,
      signature: await this.#authority.sign(signingPayload(manifest)),
      attestation_type: type,
      ...(pseudonym === undefined ? {} : { pseudonym }),
      ...(intent === undefined ? {} : { intent_statement: intent }),
      ...(password === undefined ? {} : { password }),
    };
  }

  async #bundle(manifest: Manifest, receipt: AttestationReceipt, size: number): Promise<AttestationBundle> {
    const { log_entry_id, leaf_index, attestation, duplicate } = receipt;
    // An attestation of an imported history may be older than the first head.
    const own = receipt.sth as TreeHead | null;
    if (own) await this.#watch.accept(own, duplicate ? 0 : size);
    const operators = await this.#watch.operators();
    const pinned = operators.indexOf((await this.#watch.operatorKey()).fingerprint);
    // A head of a key that was retired before the pinned one began proves nothing to those who are offline.
    const head = own && operators.indexAt(own.tree_size) >= pinned ? own : await this.#watch.newest();
    if (!head) throw await this.#watch.misbehaved("The log gave a receipt and has no tree head.", {});
    const query = { tree_size: head.tree_size };
    const [entry, proof] = await this.#watch.owed(
      Promise.all([this.#watch.entry(log_entry_id), this.#http.get(InclusionProof, `/log/proof/${leaf_index}`, query)]),
      { shown: head },
    );
    if (entry.chain_version !== 2)
      throw new ClientError(
        "unverifiable-receipt",
        `Entry ${entry.id} records the same attestation, in version 1, which no receipt covers.`,
      );
    // The anchoring proof is added to an entry later and is not part of the receipt.
    const { ots_proof: _, ...bare } = entry;
    return {
      format: BUNDLE_FORMAT,
      manifest,
      attestation: attestation as AttestationBundle["attestation"],
      public_key: this.#authority.key.pem,
      entry: bare,
      proof: proof as AttestationBundle["proof"],
      tree_head: head,
      ...(operators.chain.length > 1 && { operators: operators.upTo(head.tree_size) }),
    };
  }

  async #checkReceipt(
    receipt: AttestationReceipt,
    submitted: Submitted,
    bundle: AttestationBundle,
    size: number,
  ): Promise<void> {
    const { proof, entry, tree_head: shown } = bundle;
    const { duplicate, attestation, sth } = receipt;
    const operatorKey = await this.#watch.operatorKey();
    const { checks } = await verifyBundle(bundle, { fileHash: submitted.manifest.document.content_hash, operatorKey });
    const wrong = checks.filter((check) => !check.ok).map((check) => check.detail);
    const truth = {
      fingerprint: this.#authority.key.fingerprint,
      leaf_index: proof.leaf_index,
      entry_hash: entry.entry_hash,
      manifest_hash: manifestHash(submitted.manifest),
      signed: signedMembers(submitted.manifest),
    };
    const member = differing(receipt, truth);
    if (member !== undefined) wrong.push(`The receipt's ${member} is not that of the entry.`);
    // Also checked for an earlier attestation: somebody else may have recorded the signature with another type or
    // statement.
    if (attestation.type !== submitted.attestation_type) wrong.push("The attestation is of another type.");
    if ((attestation.intent_statement ?? null) !== (submitted.intent_statement ?? null))
      wrong.push("The statement of intent is not the one that was submitted.");
    if (
      sth ? sth.tree_size !== receipt.leaf_index + 1 : !duplicate || (await this.#watch.hasHead(receipt.leaf_index + 1))
    )
      wrong.push("The tree head is not the one that the entry made.");
    if (await this.#isMisnamed(receipt, submitted)) wrong.push("The key was registered under another name.");
    if (!duplicate) {
      if (attestation.signature !== submitted.signature) wrong.push("The signature is not the one that was submitted.");
      if (receipt.leaf_index < size) wrong.push("The entry is older than the receipt.");
    }
    if (wrong.length === 0) return;
    const detail = `The service gave a receipt that does not verify: ${wrong.join(" ")}`;
    throw await this.#watch.misbehaved(detail, { shown, proof, entry });
  }

  /**
   * Whether the key was registered under another name than the submitted one. The previous entry is then its
   * registration. A key that was registered earlier keeps its name.
   */
  async #isMisnamed({ pseudonym, log_entry_id }: AttestationReceipt, submitted: Submitted): Promise<boolean> {
    const asked = submitted.pseudonym?.normalize("NFC");
    if (asked === undefined || asked === pseudonym || log_entry_id === 1) return false;
    const { event_type, payload } = await this.#watch.owed(this.#watch.entry(log_entry_id - 1), {});
    return event_type === "key_registration" && payload.fingerprint === this.#authority.key.fingerprint;
  }
}

/** The manifest to sign. Attestations in a manifest already cover its document, which must then stay unchanged. */
function withMeaning(subject: AttestedDocument | Manifest, type: string, statement: string | null): Manifest {
  const manifest = isManifest(subject) ? subject : { document: subject, attestations: [] };
  if (manifest.attestations.length) return manifest;
  return { ...manifest, document: { ...manifest.document, attestation_type: type, intent_statement: statement } };
}

function isManifest(subject: AttestedDocument | Manifest): subject is Manifest {
  return Array.isArray(subject.attestations) && typeof subject.document === "object";
}

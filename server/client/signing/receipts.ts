/**
 * Receipts of attestations, verified on arrival: against their entries, the tree, the heads that were seen before, and what
 * was submitted.
 */
import { InclusionProof } from "../../../engine/contract/log/log.js";
import {
  type AttestationBundle,
  BUNDLE_FORMAT,
  type Entry,
  type Manifest,
  manifestHash,
  signedMembers,
  type TreeHead,
  verifyBundle,
} from "../../../engine/verify/index.js";
import { differingMember, same } from "../base/compare.js";
import { ClientError } from "../base/error.js";
import type { AttestationReceipt, SubmitAttestation } from "../base/types.js";
import { Area } from "../log/area.js";
import type { ProvenEntry } from "../log/proven.js";
import { ListedEntries } from "./listed-entries.js";

/** A verified receipt, and everything that is needed to verify it again offline. */
export interface Attested {
  readonly receipt: AttestationReceipt;
  /** Contents of an `.attestation.json` file. */
  readonly bundle: AttestationBundle;
  /** A sentence, if the log calls the key otherwise than was asked, or did until now. */
  readonly notice?: string;
}

/** A submission that names its type and statement. */
export type Submitted = Omit<SubmitAttestation, "manifest"> & {
  readonly manifest: Manifest;
  readonly attestation_type: string;
};

/** Receipts that are verified without a pause, each of which takes a few milliseconds. */
const IN_ONE_TURN = 8;

/** A submission and the service's answer to it. */
export interface Answered {
  readonly submitted: Submitted;
  /** The receipt, or why it was refused. */
  readonly answer: AttestationReceipt | ClientError;
}

export class Receipts extends Area {
  /**
   * Verifies the answers to a batch as `verified` does, with few requests for those receipts that come with a head.
   * @param size `Watch.sizeBefore()` before the batch was sent
   * @throws ClientError `log-misbehaved`
   */
  async verifiedAll(batch: readonly Answered[], size: number): Promise<(Attested | ClientError)[]> {
    const { indexAt, pinned } = await this.#terms();
    const places = batch.flatMap(({ answer }) => {
      const head = answer instanceof ClientError ? null : (answer.sth as TreeHead | null);
      return head && indexAt(head.tree_size) >= pinned ? [{ leafIndex: head.tree_size - 1, head }] : [];
    });
    const listed = await ListedEntries.of(places, this.http, this.watch);
    const outcomes: (Attested | ClientError)[] = [];
    for (const [i, { submitted, answer }] of batch.entries()) {
      if (i % IN_ONE_TURN === 0) await turn();
      if (answer instanceof ClientError) {
        outcomes.push(answer);
        continue;
      }
      const found = listed.at(answer.leaf_index);
      // Another receipt may name the same leaf with another head.
      const isOwn = found && same(found.head, answer.sth);
      const work = isOwn ? this.#checked(submitted, answer, found, size) : this.verified(submitted, answer, size);
      outcomes.push(await work.catch(ofThisAlone));
    }
    return outcomes;
  }

  /**
   * Fetches the entry of one receipt and its proof, and verifies the receipt.
   * @param size `Watch.sizeBefore()` before the submission: a new entry is not below it
   * @throws ClientError `log-misbehaved`, `unverifiable-receipt`
   */
  async verified(submitted: Submitted, receipt: AttestationReceipt, size: number): Promise<Attested> {
    const { log_entry_id, leaf_index } = receipt;
    // An attestation of an imported history may be older than the first head.
    const own = receipt.sth as TreeHead | null;
    if (own) await this.watch.accept(own);
    const { indexAt, pinned } = await this.#terms();
    // A head of a key that was retired before the pinned one began proves nothing to those who are offline.
    const head = own && indexAt(own.tree_size) >= pinned ? own : await this.watch.newest();
    if (!head) throw await this.watch.misbehaved("The log gave a receipt and has no tree head.", {});
    const query = { tree_size: head.tree_size };
    const [entry, proof] = await this.watch.owed(
      Promise.all([this.watch.entry(log_entry_id), this.http.get(InclusionProof, `/log/proof/${leaf_index}`, query)]),
      { shown: head },
    );
    return this.#checked(submitted, receipt, { entry, proof: proof as AttestationBundle["proof"], head }, size);
  }

  /** The numbers of the terms of operator keys: that of a size, and that of the pinned key. */
  async #terms(): Promise<{ readonly indexAt: (size: number) => number; readonly pinned: number }> {
    const operators = await this.watch.operators();
    const pinned = operators.indexOf((await this.watch.operatorKey()).fingerprint);
    return { indexAt: (size) => operators.indexAt(size), pinned };
  }

  /** Verifies a receipt against its entry. @param found nothing of it is believed, but for the head of a single receipt */
  async #checked(
    submitted: Submitted,
    receipt: AttestationReceipt,
    found: ProvenEntry & { readonly before?: Entry | null },
    size: number,
  ): Promise<Attested> {
    const { entry, proof, head } = found;
    if (entry.chain_version !== 2)
      throw new ClientError(
        "unverifiable-receipt",
        `Entry ${entry.id} records the same attestation, in version 1, which no receipt covers.`,
      );
    const operators = await this.watch.operators();
    // The anchoring proof is added to an entry later and is not part of the receipt.
    const { ots_proof: _, ...bare } = entry;
    const bundle: AttestationBundle = {
      format: BUNDLE_FORMAT,
      manifest: submitted.manifest,
      attestation: receipt.attestation as AttestationBundle["attestation"],
      public_key: this.auth.key.pem,
      entry: bare,
      proof,
      tree_head: head,
      ...(operators.chain.length > 1 && { operators: operators.upTo(head.tree_size) }),
    };
    await this.#checkReceipt(receipt, submitted, bundle, { size, before: found.before ?? null });
    return { receipt, bundle };
  }

  async #checkReceipt(
    receipt: AttestationReceipt,
    submitted: Submitted,
    bundle: AttestationBundle,
    { size, before }: { readonly size: number; readonly before: Entry | null },
  ): Promise<void> {
    const { proof, entry, tree_head: shown } = bundle;
    const { duplicate, attestation, sth } = receipt;
    const operatorKey = await this.watch.operatorKey();
    const { checks } = await verifyBundle(bundle, { fileHash: submitted.manifest.document.content_hash, operatorKey });
    const wrong = checks.filter((check) => !check.ok).map((check) => check.detail);
    const truth = {
      fingerprint: this.auth.key.fingerprint,
      log_entry_id: entry.id,
      leaf_index: proof.leaf_index,
      entry_hash: entry.entry_hash,
      manifest_hash: manifestHash(submitted.manifest),
      signed: signedMembers(submitted.manifest),
    };
    const member = differingMember(receipt, truth);
    if (member !== undefined) wrong.push(`The receipt's ${member} is not that of the entry.`);
    // Also checked for an earlier attestation: somebody else may have recorded the signature with another type or
    // statement.
    if (attestation.type !== submitted.attestation_type) wrong.push("The attestation is of another type.");
    if ((attestation.intent_statement ?? null) !== (submitted.intent_statement ?? null))
      wrong.push("The statement of intent is not the one that was submitted.");
    if (
      sth ? sth.tree_size !== receipt.leaf_index + 1 : !duplicate || (await this.watch.hasHead(receipt.leaf_index + 1))
    )
      wrong.push("The tree head is not the one that the entry made.");
    if (await this.#isMisnamed(receipt, submitted, before)) wrong.push("The key was registered under another name.");
    if (!duplicate) {
      if (attestation.signature !== submitted.signature) wrong.push("The signature is not the one that was submitted.");
      if (receipt.leaf_index < size) wrong.push("The entry is older than the receipt.");
    }
    if (wrong.length === 0) return;
    const detail = `The service gave a receipt that does not verify: ${wrong.join(" ")}`;
    throw await this.watch.misbehaved(detail, { shown, proof, entry });
  }

  /**
   * Whether this submission registered the key under another name than the submitted one. The previous entry is then a
   * registration with the submitted signature. Somebody else may have registered the key just before, and a key that has
   * named itself keeps its name: neither is a fault of the service.
   * @param before the previous entry, if it is known
   */
  async #isMisnamed(
    { pseudonym, log_entry_id }: AttestationReceipt,
    submitted: Submitted,
    before: Entry | null,
  ): Promise<boolean> {
    const asked = submitted.pseudonym?.normalize("NFC");
    const { possession_signature: signature } = submitted;
    if (asked === undefined || signature == null || asked === pseudonym || log_entry_id === 1) return false;
    if (before) await this.watch.checkContent(before);
    const { event_type, payload } = before ?? (await this.watch.owed(this.watch.entry(log_entry_id - 1), {}));
    return event_type === "key_registration" && payload?.possession_signature === signature;
  }
}

/**
 * Lets the thread do something else. A thousand receipts take seconds: a page would stand still, and a connection that the
 * service has closed meanwhile would be taken for the next request.
 */
const turn = () => new Promise<void>((resolve) => setTimeout(resolve));

/** An error that says nothing about other receipts. @throws any other */
function ofThisAlone(error: unknown): ClientError {
  if (error instanceof ClientError && error.code === "unverifiable-receipt") return error;
  throw error;
}

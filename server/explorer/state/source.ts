/**
 * Where this page reads the log: a service, or files that were published. Views ask this for what both have. What only a service
 * has they ask of `service.ts`, and the page of published files has no such view.
 */
import type {
  AttestationBundle,
  BundleCheck,
  Entry,
  InclusionProof,
  PublicKey,
  TreeHead,
  TreeVersion,
} from "../../../engine/verify/index.js";
import type { EntryFilter, KeyDetail } from "../../client/index.js";

/** An entry, and its way up to a root that this page has verified. A `ProvenEntry` of the client is one. */
export interface Proven {
  readonly entry: Entry;
  readonly proof: Way;
  readonly head: Rooted;
}

/** What leads from a leaf to the root. */
export type Way = Pick<InclusionProof, "leaf_index" | "entry_hash" | "audit_path">;

/** A root that was signed: that of a head, or of the tree of RFC 6962 in a checkpoint, which says no time. */
export type Rooted = Pick<TreeHead, "tree_size" | "root_hash"> & {
  readonly tree_version: TreeVersion | "rfc6962";
  readonly timestamp?: string;
};

/** A part of a list, newest first; each entry's content has been checked against its hashes. */
export interface EntrySlice {
  readonly entries: readonly Entry[];
  /** Number of entries in the whole list, as its source says. */
  readonly total: number;
}

export interface Source {
  readonly kind: "service" | "files";
  /** The newest head, verified; null if the log is empty. @throws ClientError */
  look(): Promise<TreeHead | null>;
  /** Called when the log was caught: finds out what else is wrong. */
  accused(): Promise<void>;
  /** Entries of leaves `[from, to)`, newest first, verified to be in the tree of `head`. @throws ClientError */
  entries(head: TreeHead, from: number, to: number): Promise<Entry[]>;
  /** The entries that a filter finds. A source may leave some out, and nothing would show it. @throws ClientError */
  matching(
    filter: EntryFilter,
    part: { readonly skip: number; readonly count: number; readonly total?: number },
  ): Promise<EntrySlice>;
  /** Entry `id`, verified. @throws ClientError with status 404; others */
  entry(id: number): Promise<Proven>;
  /** Entry `id` and, soon, its neighbours: for its page. A source that lists the entry and denies it is caught. @throws as `entry` */
  opened(id: number): Promise<Proven>;
  /** The entries before and after a verified one, compared with it. @throws ClientError */
  neighbours(proven: Proven): Promise<{ readonly previous: Entry | null; readonly next: Entry | null }>;
  /** The id of the newest entry. @throws ClientError */
  newestId(): Promise<number | undefined>;
  /** A page of the entries that name a document, oldest first, not verified yet. @throws ClientError */
  naming(documentHash: string, page: number, count: number): Promise<EntrySlice>;
  /** What is said of a key, and by which entry. @throws ClientError with status 404; others */
  key(fingerprint: string): Promise<KeyDetail>;
  /** The pinned operator key. @throws ClientError */
  operatorKey(): Promise<PublicKey>;
  /** What an `.attestation.json` holds of the log besides the entry. @throws ClientError */
  evidence(proven: Proven): Promise<Pick<AttestationBundle, "proof" | "tree_head" | "operators">>;
  /** The check of `evidence`, where it is not the whole proof. */
  judged(check: BundleCheck, proven: Proven): BundleCheck;
  /** A proof file for other tools (c2sp.org/tlog-proof). @throws ClientError */
  proofFile(proven: Proven): Promise<string>;
}

let chosen: Source | undefined;

/** Says where this page reads. Called once, before anything is shown. */
export function readFrom(source: Source): void {
  chosen = source;
}

/** Where this page reads the log. */
export function source(): Source {
  if (!chosen) throw new TypeError("The page has not said where it reads the log.");
  return chosen;
}

/** Whether there is a service, which can be asked for words, names and statuses. */
export const hasService = (): boolean => source().kind === "service";

/** What answers, at the beginning of a sentence. */
export const server = (): string => (hasService() ? "The service" : "This web server");

/** The subject of a sentence about what nothing proves: it names who says so. */
export const teller = (): string => (hasService() ? "The service" : "The index of these files");

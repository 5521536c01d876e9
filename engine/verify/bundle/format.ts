/**
 * The `.attestation.json` file: its types, and the shape that a file must have before its contents are judged.
 */
import { ATTESTED_FURTHER, ATTESTED_MEMBERS } from "../events/attested.js";
import type { PrivateTitle } from "../events/hashed.js";
import type { Attestation, Manifest, SignedMembers } from "../events/manifest.js";
import type { EntryVerdict } from "../events/withheld.js";
import {
  anyObject,
  anyText,
  arrayOf,
  type Fitting,
  hexHash,
  index,
  type MembersOf,
  objectOf,
  orNull,
  positiveInteger,
  where,
} from "../json/shape.js";
import { ENTRY_MEMBERS, type Entry } from "../tree/entry.js";
import type { TreeVersion } from "../tree/merkle.js";
import { OPERATOR_CHAIN, type OperatorTerm } from "../tree/operators.js";
import { TREE_HEAD_MEMBERS, type TreeHead } from "../tree/treehead.js";

/** The name of the format and its version. */
export const BUNDLE_FORMAT = "cairnlog-attestation/v1";

/** The answer of `GET /log/proof/{leaf_index}`. */
export interface InclusionProof {
  readonly leaf_index: number;
  readonly tree_size: number;
  readonly tree_version: TreeVersion;
  readonly leaf_hash: string;
  readonly root_hash: string;
  readonly audit_path: readonly string[];
  readonly entry_hash: string;
  readonly sth: TreeHead | null;
}

/** Payload of an attestation's log entry. */
export type AttestationEvent = MembersOf<typeof ATTESTED_MEMBERS> & {
  readonly [K in keyof typeof ATTESTED_FURTHER]?: Fitting<(typeof ATTESTED_FURTHER)[K]> | undefined;
};

/** Contents of an `.attestation.json` file. */
export interface AttestationBundle {
  readonly format: typeof BUNDLE_FORMAT;
  /** The manifest exactly as it was submitted with the signature. */
  readonly manifest: Manifest;
  readonly attestation: Attestation;
  /** The signer's key, in the spelling of `PublicKey.pem`. */
  readonly public_key: string;
  /**
   * The attestation's log entry. `cairnlog attest` leaves `ots_proof` out, but a bundle may contain it. Without its payload, if
   * `withholding` shows that the operator withholds that.
   */
  readonly entry: Entry;
  readonly proof: InclusionProof;
  /** Equal to `proof.sth`. */
  readonly tree_head: TreeHead;
  /** The chain of operator keys up to the one that signed the head; only of a log whose operator key was rotated. */
  readonly operators?: readonly OperatorTerm[];
  /** The title whose hash is the manifest's title, if that is private. Nothing signs the words but by that hash. */
  readonly private_title?: PrivateTitle;
  /** The entry that withholds the payload, and its place in the tree of the same head. */
  readonly withholding?: Withholder;
}

/** An entry by which the operator withholds a payload, and its way up to a root that is known. */
interface Withholder extends Pick<InclusionProof, "leaf_index" | "audit_path"> {
  readonly entry: Entry;
}

const treeHead = objectOf(TREE_HEAD_MEMBERS);
const entry = { ...ENTRY_MEMBERS, chain_version: where("2", (value) => value === 2) };
const place = { leaf_index: index, audit_path: arrayOf(hexHash) };

/** Exactly these members at every level, but for the manifest, all of which is signed whatever its members. */
export const BUNDLE = objectOf(
  {
    format: where(`"${BUNDLE_FORMAT}"`, (value) => value === BUNDLE_FORMAT),
    manifest: objectOf(
      {
        document: objectOf({ title: anyText, content_hash: anyText }, {}, "ignored"),
        attestations: arrayOf(anyObject),
      },
      {},
      "ignored",
    ),
    attestation: objectOf(
      {
        id: anyText,
        type: anyText,
        scope: objectOf({ content_hash: anyText }),
        signer_key_fingerprint: anyText,
        signature_algorithm: anyText,
        signature: anyText,
        timestamp: anyText,
      },
      { intent_statement: orNull(anyText) },
    ),
    public_key: anyText,
    entry: objectOf(
      {
        ...entry,
        payload: orNull(objectOf(ATTESTED_MEMBERS, ATTESTED_FURTHER)),
      },
      { ots_proof: anyText, withheld_by: positiveInteger },
    ),
    proof: objectOf({
      ...place,
      tree_size: positiveInteger,
      tree_version: TREE_HEAD_MEMBERS.tree_version,
      leaf_hash: hexHash,
      root_hash: hexHash,
      entry_hash: hexHash,
      sth: treeHead,
    }),
    tree_head: treeHead,
  },
  {
    operators: OPERATOR_CHAIN,
    private_title: objectOf({ title: anyText, salt: anyText }),
    withholding: objectOf({ ...place, entry: objectOf(entry) }),
  },
);

// What the checks of a bundle say together.

/** The result of one check. `detail` says in sentences what was verified, or lists everything that is wrong. */
export interface BundleCheck {
  readonly name:
    | "format"
    | "file"
    | "manifest"
    | "signature"
    | "attestation"
    | "entry"
    | "inclusion"
    | "tree-head"
    | "anchor"
    | "envelope"
    | "signer"
    | "witnesses"
    | "key"
    | "trust"
    | "withholding"
    | "withheld";
  readonly ok: boolean;
  readonly detail: string;
}

/** `valid` only if every check is `ok`. A bundle of the wrong form has only the check `format`. */
export interface BundleVerdict {
  readonly valid: boolean;
  /** `withheld` if nothing is wrong but that the operator withholds the entry's payload: then the check `withheld` is not `ok`. */
  readonly verdict: EntryVerdict;
  /** The entry by which the payload is withheld; null unless the verdict is `withheld`. */
  readonly withheld_by: number | null;
  readonly checks: readonly BundleCheck[];
  /**
   * Whether the signer has signed type and statement; otherwise only the log says them. Null if the signature is not
   * valid or the bundle has another form.
   */
  readonly signed: SignedMembers | null;
}

/** The verdict that follows from checks. @param by the entry that withholds the payload */
export function verdictOf(
  checks: readonly BundleCheck[],
  signed: SignedMembers | null = null,
  by: number | null = null,
): BundleVerdict {
  const valid = checks.every(({ ok }) => ok);
  const isHeld = checks.every(({ name, ok }) => ok || name === "withheld");
  const verdict = valid ? "valid" : isHeld ? "withheld" : "invalid";
  const withheld_by = verdict === "withheld" ? by : null;
  return { valid, verdict, withheld_by, checks, signed };
}

/** A condition, and the sentence that reports its failure. */
export type Condition = readonly [holds: boolean, otherwise: string];

export function bundleCheck(name: BundleCheck["name"], success: string, conditions: readonly Condition[]): BundleCheck {
  const failures = conditions.filter(([holds]) => !holds).map(([, otherwise]) => otherwise);
  return { name, ok: failures.length === 0, detail: failures.length === 0 ? success : failures.join(" ") };
}

/** The transparency log: entries, tree heads, proofs. */
import Type from "typebox";
import { MAX_TITLE_CHARACTERS } from "../../verify/keys/contract.js";
import {
  EntryId,
  Fingerprint,
  FingerprintInPath,
  freeForm,
  HexHash,
  LeafIndex,
  nullable,
  PAGE_QUERY,
  PERIOD,
  pageSchema,
  Timestamp,
  TreeSize,
  TreeVersion,
} from "../common.js";

export const EntryDigests = Type.Array(
  Type.Object({
    algorithm: Type.String({ description: "For example `sha2-256`." }),
    digest_hex: Type.String({ description: "Lower-case hexadecimal." }),
    is_primary: Type.Boolean({ description: "Whether it is the `entry_hash`." }),
  }),
  { description: "Every digest of the entry." },
);

const EventType = Type.String({ description: "Type of the event; for an attestation, its predicate URL." });

const EntryTime = Type.String({ description: "ISO 8601; hashed in version 2." });

export const Entry = Type.Object(
  {
    id: EntryId,
    timestamp: EntryTime,
    event_type: EventType,
    payload: nullable(
      freeForm("Content of the event; may have `tags`, an array of strings. Null if the operator withholds it."),
    ),
    withheld_by: Type.Optional(
      Type.Integer({
        minimum: 1,
        description: "The entry by which the payload is withheld, or the name in it: then `pseudonym` is `withheld`.",
      }),
    ),
    previous_hash: nullable(HexHash),
    entry_hash: HexHash,
    chain_version: Type.Optional(Type.Enum([1, 2], { description: "1 if absent." })),
    entry_hashes: EntryDigests,
    ots_proof: Type.Optional(Type.String({ description: "Base64; only on an anchored entry." })),
  },
  { title: "Entry" },
);

const Tags = Type.String({
  minLength: 1,
  description: "Comma-separated; the entry must have all of them, or one tag that is the whole text.",
});

/** Whether a list of entries says how the keys in them are called. */
const Names = Type.Optional(
  Type.Enum(["true", "false"], {
    description: "`true`: the answer has `names`, those of the keys that the entries name.",
  }),
);

export const LogQuery = Type.Object({
  ...PAGE_QUERY,
  names: Names,
  event_type: Type.Optional(
    Type.String({ minLength: 1, description: "One type, or several separated by commas. A type may contain commas." }),
  ),
  tags: Type.Optional(Tags),
  search: Type.Optional(
    Type.String({
      minLength: 1,
      description:
        "Beginning of a digest, document hash, manifest hash or fingerprint. After `sha256:` it needs at least four " +
        "digits. A complete hash matches exactly.",
    }),
  ),
  title: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: MAX_TITLE_CHARACTERS,
      description:
        "Words of a document's title or of a key's name, in any order and case; each may be only the beginning of one. " +
        "503 `indexing` for a while after an update: then the titles of older entries are being filed.",
    }),
  ),
});

export const FingerprintParams = Type.Object({ fingerprint: FingerprintInPath });

export const FingerprintQuery = Type.Object({ ...PAGE_QUERY, names: Names });

export const AuditTrailQuery = Type.Object({
  ...PAGE_QUERY,
  fingerprint: Type.Optional(Fingerprint),
  document_hash: Type.Optional(Type.String({ minLength: 1, description: "Bare, or with `sha256:`." })),
  ...PERIOD,
  tags: Type.Optional(Tags),
});

export const EntryPage = pageSchema(
  {
    entries: Type.Array(Entry, { description: "Oldest first." }),
    names: Type.Optional(
      Type.Record(Type.String(), Type.String(), {
        description: "Name by fingerprint, as each key's holder chose it; only if it was asked for.",
      }),
    ),
  },
  "EntryPage",
);

export const LogHeadQuery = Type.Object({
  periods: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 100,
      description: "The answer has `activity`: the entries in each of so many equal periods since the first entry.",
    }),
  ),
});

export const LogHead = Type.Object(
  {
    head: nullable(
      Type.Object(
        { id: EntryId, entry_hash: HexHash, event_type: EventType, timestamp: EntryTime },
        { description: "The newest entry; null if there is none." },
      ),
    ),
    entry_count: Type.Integer({ minimum: 0, description: "Entries in the log." }),
    activity: Type.Optional(
      Type.Object(
        {
          start: Timestamp,
          end: Timestamp,
          counts: Type.Array(Type.Integer({ minimum: 0 }), { description: "Entries in each period, oldest first." }),
        },
        { description: "Only if it was asked for, and the log has entries." },
      ),
    ),
  },
  { title: "LogHead" },
);

export const TreeHead = Type.Object(
  {
    tree_size: TreeSize,
    root_hash: HexHash,
    signature: Type.String({ description: "Base64: signature over `root_hash:tree_size:timestamp` in UTF-8." }),
    timestamp: Timestamp,
    key_id: Fingerprint,
    tree_version: TreeVersion,
  },
  { title: "TreeHead" },
);

/** `limit` sizes, beginning with `from`. The log has no heads for imported sizes, except the last. */
export const TreeHeadsQuery = Type.Object({
  from: Type.Integer({ minimum: 1, default: 1, description: "The first size." }),
  limit: Type.Integer({
    minimum: 1,
    maximum: 1000,
    default: 100,
    description: "Number of tree sizes, which may exceed the number of heads.",
  }),
});

export const TreeHeads = Type.Object(
  { heads: Type.Array(TreeHead, { description: "Ascending by size; sizes without a head are omitted." }) },
  { title: "TreeHeads", description: "The heads of a range of sizes: for each size, the first head that was signed." },
);

export const InclusionProof = Type.Object(
  {
    leaf_index: LeafIndex,
    tree_size: TreeSize,
    tree_version: TreeVersion,
    leaf_hash: HexHash,
    root_hash: HexHash,
    audit_path: Type.Array(HexHash, { description: "Sibling hashes from leaf to root, without padding." }),
    entry_hash: HexHash,
    sth: nullable(TreeHead),
  },
  { title: "InclusionProof" },
);

export const ConsistencyProof = Type.Object(
  {
    from_size: TreeSize,
    to_size: TreeSize,
    tree_version: TreeVersion,
    from_root: HexHash,
    to_root: HexHash,
    peaks: Type.Array(HexHash, { description: "The largest full subtrees of the earlier tree, left to right." }),
    extension: Type.Array(HexHash, { description: "The full subtrees of the leaves added since, left to right." }),
    from_sth: nullable(TreeHead),
    to_sth: nullable(TreeHead),
  },
  { title: "ConsistencyProof" },
);

const Finding = Type.Object({
  id: nullable(EntryId),
  tree_size: nullable(TreeSize),
  code: Type.String({ description: "Stable, for programs." }),
  message: Type.String({ description: "The fault, in one sentence." }),
});

export const VerifyReport = Type.Object(
  {
    valid: Type.Boolean({ description: "Whether there is no error." }),
    entry_count: Type.Integer({ minimum: 0, description: "Number of verified entries." }),
    errors: Type.Array(Finding, { description: "Findings that make the log invalid." }),
    warnings: Type.Array(Finding, { description: "Unusual findings that do not make the log invalid." }),
  },
  { title: "VerifyReport" },
);

const OperatorRotation = Type.Object(
  {
    entry_id: EntryId,
    root_hash: HexHash,
    old_key_signature: Type.String({ description: "Base64, by the key before, over the statement of the rotation." }),
    new_key_signature: Type.String({ description: "Base64, by this key, over the same statement." }),
  },
  { description: "How the term began; null for the first key." },
);

export const OperatorTerm = Type.Object(
  {
    key_id: Fingerprint,
    algorithm: Type.String({ description: "ed25519, ecdsa-p256 or rsa-2048." }),
    public_key: Type.String({ description: "PEM." }),
    from_size: Type.Integer({ minimum: 1, description: "The first tree size whose head the key signs." }),
    until_size: nullable(Type.Integer({ minimum: 1, description: "The last one; null for the key that signs now." })),
    rotation: nullable(OperatorRotation),
  },
  { title: "OperatorTerm" },
);

export const OperatorPublicKey = Type.Object(
  {
    fingerprint: Fingerprint,
    algorithm: Type.String({ description: "ed25519, ecdsa-p256 or rsa-2048." }),
    public_key: Type.String({ description: "PEM." }),
    operators: Type.Array(OperatorTerm, {
      description: "Every operator key of the log, oldest first; each was handed the log by the one before it.",
    }),
  },
  { title: "OperatorPublicKey" },
);

export const EntryParams = Type.Object({ entry_id: EntryId });

export const TreeHeadParams = Type.Object({ tree_size: TreeSize });

/** Bounds as in c2sp.org/tlog-tiles; a tree of 2^53 leaves has tiles on 7 levels. */
const TILE = {
  version: Type.Integer({ minimum: 1, maximum: 2, description: "Tree version." }),
  level: Type.Integer({ minimum: 0, maximum: 63, description: "0, 1, 2, … for tree levels 0, 8, 16, …" }),
};

export const TileParams = Type.Object({
  ...TILE,
  index: Type.Integer({ minimum: 0, description: "Position of the tile on its level, counted from 0." }),
});

export const PartialTileParams = Type.Object({
  ...TILE,
  index_p: Type.String({ pattern: "^(?:0|[1-9][0-9]{0,14})\\.p$", description: "The index, and `.p`." }),
  width: Type.Integer({ minimum: 1, maximum: 255, description: "Number of hashes." }),
});

/** Bytes; JSON Schema has no type for them. */
export const Tile = Type.String({
  contentMediaType: "application/octet-stream",
  description: "Hashes of 32 bytes each, one after the other, left to right.",
});

export const CheckpointNote = Type.String({
  description: "A signed note: name of the log, tree size, root in base64, an empty line, the signature line.",
});

export const ProofParams = Type.Object({ leaf_index: LeafIndex });

export const ProofQuery = Type.Object({
  tree_size: Type.Optional(Type.Integer({ minimum: 1, description: "Default: the current size." })),
  tree_version: Type.Optional(Type.Integer({ minimum: 1, maximum: 2, description: "Default: 2." })),
});

export const ConsistencyQuery = Type.Object({
  from: Type.Integer({ minimum: 1, description: "Size of the earlier tree." }),
  to: Type.Optional(Type.Integer({ minimum: 1, description: "Default: the current size." })),
  tree_version: Type.Optional(Type.Integer({ minimum: 1, maximum: 2, description: "Default: 2." })),
});

/** Endorsements between keys, alerts on keys, and the types of external identifiers. */
import Type, { type TProperties } from "typebox";
import {
  ENDORSEMENT_CATEGORIES,
  ENDORSEMENT_STATUSES,
  EVIDENCE,
  IDENTIFIER,
  MAX_METADATA_BYTES,
  NOTE,
} from "../../verify/keys/contract.js";
import {
  bounded,
  EntryId,
  Fingerprint,
  freeForm,
  nullable,
  optional,
  PAGE_QUERY,
  pageSchema,
  Timestamp,
  TRUNCATED,
} from "../common.js";
import { AuthProof } from "../identity/auth.js";
import { Entry } from "../log/log.js";

export const Category = Type.Enum(ENDORSEMENT_CATEGORIES, {
  description: "Personal knowledge of an identity, or verification by an organisation.",
});

export const EndorsementStatus = Type.Enum(ENDORSEMENT_STATUSES, {
  description: "`pending_activation`: accepted, but the activation delay is not over yet.",
});

const ValidUntil = Type.String({ description: "ISO 8601: a date, including that day in UTC, or a date-time." });

const Metadata = freeForm(
  `At most ${MAX_METADATA_BYTES} bytes as canonical JSON; \`name\` is the name of the institution.`,
);

const Identifiers = Type.Array(
  Type.Object({
    type: Type.String({ description: "One of GET /identifier-types." }),
    value: bounded(IDENTIFIER, "Must have the form of its type, with correct check digits."),
  }),
  { maxItems: 256, description: `At most ${MAX_METADATA_BYTES} bytes as canonical JSON.` },
);

const Note = bounded(NOTE, "Why; on the log.");

/** A body with a proof of the key that acts; a session is not enough. */
const proven = <T extends TProperties>(properties: T, title: string, description: string) =>
  Type.Object({ ...properties, auth: AuthProof }, { title, description });

export const OfferEndorsement = proven(
  {
    endorser_fingerprint: Fingerprint,
    endorsed_fingerprint: Fingerprint,
    category: Category,
    valid_until: optional(ValidUntil),
    institutional_metadata: optional(Metadata),
    external_identifiers: optional(Identifiers),
  },
  "OfferEndorsement",
  "The two keys, the category, and a proof of the endorser.",
);

export const AcceptEndorsement = proven(
  { offer_entry_id: EntryId, endorsed_fingerprint: Fingerprint, note: optional(Note) },
  "AcceptEndorsement",
  "The offer, and a proof of the endorsed key.",
);

export const WithdrawEndorsement = proven(
  {
    endorser_fingerprint: Fingerprint,
    endorsed_fingerprint: Fingerprint,
    original_offer_entry_id: EntryId,
    note: Note,
  },
  "WithdrawEndorsement",
  "The offer or endorsement, the reason, and a proof of the endorser.",
);

export const RevokeAcceptance = proven(
  { endorsed_fingerprint: Fingerprint, original_offer_entry_id: EntryId, note: Note },
  "RevokeAcceptance",
  "The endorsement, the reason, and a proof of the endorsed key.",
);

export const FileAlert = proven(
  {
    endorser_fingerprint: Fingerprint,
    compromised_fingerprint: Fingerprint,
    reason: bounded(NOTE, "Why the key is thought to be compromised; on the log."),
    evidence: optional(bounded(EVIDENCE, "What shows it; on the log.")),
  },
  "FileAlert",
  "The compromised key, the reason, and a proof of a key that it endorsed or that endorsed it.",
);

export const Endorsement = Type.Object(
  {
    offer_entry_id: EntryId,
    endorser_fingerprint: Fingerprint,
    endorsed_fingerprint: Fingerprint,
    category: Category,
    status: EndorsementStatus,
    offered_at: Timestamp,
    accepted_at: nullable(Timestamp),
    activates_at: nullable(Timestamp),
    valid_until: nullable(ValidUntil),
    ended_at: nullable(Timestamp),
    end_note: nullable(Type.String({ description: "Why it ended." })),
    discount: Type.Number({ minimum: 0, maximum: 1, description: "Below 1 if its endorser is over capacity." }),
    institutional_metadata: nullable(Metadata),
    external_identifiers: nullable(Identifiers),
  },
  { title: "Endorsement" },
);

export const EndorsementReceipt = Type.Object(
  { endorsement: Endorsement, log_entry: Entry },
  { title: "EndorsementReceipt" },
);

export const EndorsementPage = pageSchema(
  { endorsements: Type.Array(Endorsement, { description: "Oldest offer first." }), ...TRUNCATED },
  "EndorsementPage",
);

export const EndorsementQuery = Type.Object({
  status: Type.Optional(EndorsementStatus),
  category: Type.Optional(Category),
  ...PAGE_QUERY,
});

export const RevocationAlert = Type.Object(
  {
    alert_entry_id: EntryId,
    endorser_fingerprint: Fingerprint,
    compromised_fingerprint: Fingerprint,
    reason: Type.String({ description: "As given." }),
    evidence: nullable(Type.String({ description: "As given." })),
    filed_at: Timestamp,
  },
  { title: "RevocationAlert" },
);

export const AlertReceipt = Type.Object({ alert: RevocationAlert, log_entry: Entry }, { title: "AlertReceipt" });

export const AlertPage = pageSchema(
  { alerts: Type.Array(RevocationAlert, { description: "Oldest first." }), ...TRUNCATED },
  "AlertPage",
);

export const IdentifierTypes = Type.Object(
  {
    identifier_types: Type.Array(
      Type.Object({
        type: Type.String({ description: "The `type` of an external identifier." }),
        label: Type.String({ description: "For people." }),
        pattern: Type.String({ description: "ECMAScript regular expression over the whole value." }),
        example: Type.String({ description: "A value that fits." }),
        url_template: nullable(Type.String({ description: "`{value}` stands for the value." })),
      }),
      { description: "All known identifier types." },
    ),
  },
  { title: "IdentifierTypes" },
);

/** Anchoring of the log in Bitcoin, through OpenTimestamps. */
import Type from "typebox";
import { EntryId, nullable, Timestamp } from "../common.js";
import { EntryDigests } from "./log.js";

export const Anchored = Type.Object(
  {
    anchored_entry_id: EntryId,
    entry_hashes: EntryDigests,
    ots_proof: Type.String({ description: "A detached `.ots` file over the primary digest, base64." }),
  },
  { title: "Anchored" },
);

export const AnchorStatus = Type.Object(
  {
    anchored_entry_id: nullable(EntryId),
    anchored_at: nullable(Timestamp),
    proof_status: Type.Enum(["none", "pending", "confirmed"], {
      description: "Status of the newest anchored entry; `confirmed`: its proof names a Bitcoin block.",
    }),
    entries_since_anchor: Type.Integer({ minimum: 0, description: "Number of entries after the newest anchored one." }),
    anchor_due: Type.Boolean({
      description: "Advice: true if 1000 entries or 24 hours have passed since the last anchor.",
    }),
  },
  { title: "AnchorStatus" },
);

/** Payloads that the operator withholds. */
import Type from "typebox";
import { BASIS, OPERATOR_REASON } from "../../verify/keys/contract.js";
import { optional, PLACE } from "../common.js";
import { TreeHead } from "./log.js";

const Reason = Type.String({
  minLength: OPERATOR_REASON.min,
  maxLength: OPERATOR_REASON.max,
  description: "Why the payload is withheld; on the log.",
});
const Basis = Type.String({
  maxLength: BASIS.max,
  description: "What obliges the operator: a law, an order; on the log.",
});

export const WithholdPayload = Type.Object(
  {
    reason: Reason,
    basis: optional(Basis),
    member: Type.Optional(
      Type.Enum(["pseudonym"], {
        description:
          "Of a registration or succession of a key, its name alone: `withheld` is shown instead. Absent for the whole payload, which only attestations and encrypted claims can lose.",
      }),
    ),
  },
  { title: "WithholdPayload", description: "What the log says of it. Do not repeat what the payload says." },
);

export const PayloadWithheld = Type.Object(
  { ...PLACE, sth: TreeHead },
  { title: "PayloadWithheld", description: "The entry by which the payload is withheld, and the head over it." },
);

/** Composite documents. */
import Type from "typebox";
import { MAX_PARTS, ROLE, TITLE } from "../../verify/keys/limits.js";
import { bounded, DOCUMENTED } from "../common.js";
import { Manifest } from "./attestations.js";

const CompositePart = Type.Object(
  {
    title: bounded(TITLE, "Title of the part."),
    content_hash: Type.String({
      description: "SHA-256 in hexadecimal, bare or with `sha256:`; unique among the parts.",
    }),
    role: Type.Optional(bounded(ROLE, "What the part is in the whole.")),
    manifest: Type.Optional(Manifest),
  },
  { title: "CompositePart" },
);

const Title = bounded(TITLE, "Title of the whole.");
const Parts = Type.Array(CompositePart, {
  maxItems: MAX_PARTS,
  [DOCUMENTED]: { minItems: 1 },
  description: "In order.",
});

export const AssembleComposite = Type.Object(
  { title: Title, parts: Parts },
  { title: "AssembleComposite", description: "The parts, in order." },
);

export const Composite = Type.Object(
  {
    title: Title,
    parts: Parts,
    composite_hash: Type.String({
      description: "SHA-256 over the canonical JSON of `{parts: [content_hash…], title}`.",
    }),
  },
  { title: "Composite" },
);

export const AssembledComposite = Type.Object(
  { composite: Composite },
  { title: "AssembledComposite", description: "A composite document, as it was assembled." },
);

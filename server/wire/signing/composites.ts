/** Composite documents. */
import Type from "typebox";
import { Manifest } from "./attestations.js";

const CompositePart = Type.Object(
  {
    title: Type.String({ description: "1 to 500 characters." }),
    content_hash: Type.String({
      description: "SHA-256 in hexadecimal, bare or with `sha256:`; unique among the parts.",
    }),
    role: Type.Optional(Type.String({ description: "1 to 100 characters." })),
    manifest: Type.Optional(Manifest),
  },
  { title: "CompositePart" },
);

const TITLE = Type.String({ description: "Title of the whole; 1 to 500 characters." });
const PARTS = Type.Array(CompositePart, { maxItems: 1000, description: "1 to 1000, in order." });

export const AssembleComposite = Type.Object(
  { title: TITLE, parts: PARTS },
  { title: "AssembleComposite", description: "The parts, in order." },
);

export const Composite = Type.Object(
  {
    title: TITLE,
    parts: PARTS,
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

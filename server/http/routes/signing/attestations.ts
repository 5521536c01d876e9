/** Signing: a manifest and a signature become an entry of the log. */
import Type from "typebox";
import { signDocument } from "../../../../engine/registry/attestations/documents.js";
import type { Registry } from "../../../../engine/registry/registry.js";
import {
  AttestationReceipt,
  PreparedDocument,
  SignDocument,
  SubmitAttestation,
} from "../../../wire/signing/attestations.js";
import { type Route, route } from "../../route.js";

export function attestationRoutes({ attestations }: Pick<Registry, "attestations">): Route[] {
  return [
    route({
      method: "POST",
      path: "/api/v1/attestations",
      summary: "Record a signed attestation, registering its key when that is new",
      body: SubmitAttestation,
      answer: AttestationReceipt,
      refusals: [403],
      limit: "attestation",
      handle: ({ body }) => attestations.submit(body),
    }),
    route({
      method: "POST",
      path: "/api/v1/documents/sign",
      summary: "Make the manifest of a document and, given the signature over it, record the attestation",
      body: SignDocument,
      answer: Type.Union([PreparedDocument, AttestationReceipt]),
      refusals: [403],
      limit: "attestation",
      handle: ({ body }) => signDocument(attestations, body),
    }),
  ];
}

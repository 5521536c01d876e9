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
import type { Gate } from "../../gate.js";
import { type Route, route } from "../../route.js";

const REFUSALS = [401, 403, 404, 409, 410];

export function attestationRoutes({ attestations }: Pick<Registry, "attestations">, gate: Gate): Route[] {
  return [
    route({
      method: "POST",
      path: "/api/v1/attestations",
      summary: "Record a signed attestation, registering its key when that is new",
      proving: "optional",
      authorize: (asking) => gate.shownKey(asking, asking.body),
      body: SubmitAttestation,
      answer: AttestationReceipt,
      refusals: REFUSALS,
      limit: "attestation",
      handle: ({ body, proof }) => attestations.submit(body, proof),
    }),
    route({
      method: "POST",
      path: "/api/v1/documents/sign",
      summary: "Make the manifest of a document and, given the signature over it, record the attestation",
      proving: "optional",
      authorize: (asking) => gate.shownKey(asking, asking.body),
      body: SignDocument,
      answer: Type.Union([PreparedDocument, AttestationReceipt]),
      refusals: REFUSALS,
      limit: "attestation",
      handle: ({ body: { auth: _, ...body }, proof }) => signDocument(attestations, body, proof),
    }),
  ];
}

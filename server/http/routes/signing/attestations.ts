/** Signing: a manifest and a signature become an entry of the log. */
import Type from "typebox";
import {
  AttestationBatch,
  AttestationReceipt,
  BatchFrame,
  PreparedDocument,
  SignDocument,
  SubmitAttestation,
  SubmitAttestations,
} from "../../../../engine/contract/signing/attestations.js";
import type { Possession } from "../../../../engine/registry/attestations/attestations.js";
import { signDocument } from "../../../../engine/registry/attestations/documents.js";
import type { Served } from "../../../../engine/registry/registry.js";
import type { Gate } from "../../gate.js";
import { checker } from "../../input.js";
import { type Route, route } from "../../route/route.js";

const REFUSALS = [401, 403, 404, 409, 410];
const ATTESTATIONS = "/api/v1/attestations";
/**
 * A submission in a batch as a request of its own: that is its act. The batch's own header is read once, for all of them.
 */
const ALONE = { request: { authorization: "", method: "POST", params: [] }, path: ATTESTATIONS };

const checkSubmission = checker(SubmitAttestation);

export function attestationRoutes({ attestations }: Pick<Served, "attestations">, gate: Gate): Route[] {
  return [
    route({
      method: "POST",
      path: ATTESTATIONS,
      summary: "Record a signed attestation, registering its key when that is new",
      proving: "optional",
      authorize: (asking) => gate.shownKey(asking, asking.body),
      body: SubmitAttestation,
      answer: AttestationReceipt,
      refusals: REFUSALS,
      limit: "attestation",
      handle: ({ body, proof, request }) => attestations.submit(body, proof, request.client),
    }),
    route({
      method: "POST",
      path: "/api/v1/attestations/batch",
      summary: "Record up to 1000 signed attestations; each is recorded or refused by itself",
      proving: "optional",
      authorize: (asking): Promise<Possession | null> | Possession | null => gate.shownKey(asking, null),
      body: SubmitAttestations,
      bulk: { frame: BatchFrame, count: ({ submissions }) => submissions.length },
      answer: AttestationBatch,
      refusals: [401, 403],
      limit: "attestation",
      async handle({ body, proof, request }, refusal) {
        // As with a single submission, a proof of its own counts before the session, and is checked before its form.
        const settled = await attestations.submitAll(
          body.submissions,
          (submission) => {
            const checked = (possession: Possession | null) => {
              checkSubmission(submission);
              return { submission, possession };
            };
            return gate.shownKey(ALONE, submission)?.then(checked) ?? checked(proof);
          },
          request.client,
        );
        const results = settled.map((one) =>
          one.status === "fulfilled"
            ? { status: one.value.duplicate ? (200 as const) : (201 as const), receipt: one.value }
            : refusal(one.reason),
        );
        return { results };
      },
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
      handle: ({ body: { auth: _, ...body }, proof, request }) =>
        signDocument(attestations, body, proof, request.client),
    }),
  ];
}

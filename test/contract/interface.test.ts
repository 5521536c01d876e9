/**
 * The whole API in one table, one operation on each line: query parameters, body and answer, authentication, the limit
 * that counts the request, and the statuses of its answers. A line that changes is a change of the contract.
 */
import { beforeAll, expect, test } from "vitest";
import type { Contract, Document } from "../server/contract.js";
import { startTestService, type TestService } from "../server/harness.js";
import { operationsOf } from "./tour.js";

/**
 * By area. `!` marks a required parameter, `?` a body that may be left out. Every operation can also answer 500 and 503,
 * and 429 by its limit, and one that writes 421 and, to the body of a page, 415; its path answers 405 to other methods. Every
 * GET answers HEAD.
 */
const INTERFACE = `
Service
  GET /api/v1/health ; - ; Health ; anybody ; general ; 200
  GET /api/v1/writers ; - ; Writers ; anybody ; general ; 200
  GET /livez ; - ; Alive ; anybody ; none ; 200
  GET /leader ; - ; Node ; anybody ; none ; 200
  GET /follower ; - ; Node ; anybody ; none ; 200
  GET /readyz ; - ; Ready ; anybody ; none ; 200
  GET /metrics ; - ; text/plain ; anybody ; none ; 200
  GET /api/v1/openapi.json ; - ; object ; anybody ; general ; 200 304
Authentication
  POST /api/v1/auth/challenge ; - ; ChallengeRequest → Challenge ; anybody ; general ; 200 400 403 404 408 409 413 422
  POST /api/v1/auth/login ; - ; Login → LoginResult ; challenge ; general ; 200 400 403 404 408 409 410 413 422
  POST /api/v1/auth/renew ; - ; object? → LoginResult ; session ; general ; 200 401 403
  POST /api/v1/auth/password ; - ; SetPassword → PasswordSet ; challenge ; general ; 200 400 403 404 408 409 410 413 422
Keys
  GET /api/v1/keys ; page per_page ; KeyPage ; anybody ; general ; 200 422
  GET /api/v1/keys/search ; pseudonym! page per_page ; KeyPage ; anybody ; general ; 200 422
  GET /api/v1/keys/{fingerprint} ; - ; KeyDetail ; anybody ; general ; 200 404
  GET /api/v1/keys/{fingerprint}/status ; - ; KeyStatus ; anybody ; general ; 200 404
  POST /api/v1/keys/register ; - ; RegisterKey → KeyRegistered ; anybody, at times proven ; key-registration ; 200 400 401 403 408 409 410 413 422
  POST /api/v1/keys/succeed ; - ; SucceedKey → KeySucceeded ; fresh session or proof ; general ; 200 400 401 403 404 408 409 410 413 422
  POST /api/v1/keys/revoke ; - ; RevokeKey → KeyRevoked ; fresh session or proof ; general ; 200 400 401 403 404 408 409 410 413 422
Signing
  POST /api/v1/attestations ; - ; SubmitAttestation → AttestationReceipt ; anybody, at times proven ; attestation ; 200 400 401 403 404 408 409 410 413 422
  POST /api/v1/attestations/batch ; - ; SubmitAttestations → AttestationBatch ; anybody, at times proven ; attestation ; 200 400 401 403 408 410 413 422
  POST /api/v1/documents/sign ; - ; SignDocument → PreparedDocument|AttestationReceipt ; anybody, at times proven ; attestation ; 200 400 401 403 404 408 409 410 413 422
  POST /api/v1/composite/assemble ; - ; AssembleComposite → AssembledComposite ; anybody ; general ; 200 400 403 408 413 422
  POST /api/v1/composite/compile ; - ; AssembledComposite → PreparedDocument ; anybody ; general ; 200 400 403 408 413 422
Verification
  POST /api/v1/verify ; - ; VerifyManifest → VerificationResult ; anybody ; general ; 200 400 403 404 408 413 422
Log
  GET /api/v1/log/head ; periods ; LogHead ; anybody ; general ; 200 422
  GET /api/v1/log/{entry_id} ; - ; Entry ; anybody ; general ; 200 304 404 422
  GET /api/v1/log/sth ; - ; TreeHead ; anybody ; general ; 200 304 404
  GET /api/v1/log/sth/{tree_size} ; - ; TreeHead ; anybody ; general ; 200 304 404 422
  GET /api/v1/log/heads ; from limit ; TreeHeads ; anybody ; general ; 200 422
  GET /api/v1/log/proof/{leaf_index} ; tree_size tree_version ; InclusionProof ; anybody ; general ; 200 304 404 422
  GET /api/v1/log/{entry_id}/proof ; tree_size tree_version ; InclusionProof ; anybody ; general ; 200 304 404 422
  GET /api/v1/log/consistency ; from! to tree_version ; ConsistencyProof ; anybody ; general ; 200 304 422
  POST /api/v1/log/verify ; - ; object? → VerifyReport ; anybody ; log-verification ; 200 403
  GET /api/v1/log/operator-key ; - ; OperatorPublicKey ; anybody ; general ; 200
  GET /api/v1/log/checkpoint ; - ; text/plain; charset=utf-8 ; anybody ; general ; 200 304 404
  GET /api/v1/log/tile/{version}/{level}/{index} ; - ; application/octet-stream ; anybody ; general ; 200 304 404 422
  GET /api/v1/log/tile/{version}/{level}/{index_p}/{width} ; - ; application/octet-stream ; anybody ; general ; 200 304 404 422
  POST /api/v1/log/anchor ; - ; object? → Anchored ; operator ; anchoring ; 200 401 403 409 502
  GET /api/v1/log/anchor-status ; - ; AnchorStatus ; anybody ; general ; 200
  POST /api/v1/log/sth/sign ; - ; object? → TreeHead ; operator ; general ; 200 401 403 409
  GET /api/v1/log/shards ; - ; Shards ; anybody ; general ; 200
  POST /api/v1/log/freeze ; - ; FreezeLog → LogFrozen ; operator ; general ; 200 400 401 403 408 410 413 422
  POST /api/v1/log/{entry_id}/withhold ; - ; WithholdPayload → PayloadWithheld ; operator ; general ; 200 400 401 403 404 408 409 410 413 422
  GET /api/v1/log ; page per_page names event_type tags search title ; EntryPage ; anybody ; general ; 200 422
  GET /api/v1/log/by-fingerprint/{fingerprint} ; page per_page names ; EntryPage ; anybody ; general ; 200 404 422
  GET /api/v1/log/audit-trail ; page per_page fingerprint document_hash start_date end_date tags ; EntryPage ; anybody ; general ; 200 422
  GET /api/v1/audit/export ; format scope fingerprint document_hash start_date end_date after_id page page_size ; AuditExport, text/csv; charset=utf-8 ; anybody ; general ; 200 422
Endorsements
  POST /api/v1/endorsements/offer ; - ; OfferEndorsement → Entry ; proof ; endorsement-offer ; 200 400 401 403 404 408 409 410 413 422
  POST /api/v1/endorsements/accept ; - ; AcceptEndorsement → EndorsementReceipt ; proof ; general ; 200 400 401 403 404 408 409 410 413 422
  POST /api/v1/endorsements/withdraw ; - ; WithdrawEndorsement → EndorsementReceipt ; proof ; general ; 200 400 401 403 404 408 409 410 413 422
  POST /api/v1/endorsements/revoke-acceptance ; - ; RevokeAcceptance → EndorsementReceipt ; proof ; general ; 200 400 401 403 404 408 409 410 413 422
  POST /api/v1/endorsements/revocation-alert ; - ; FileAlert → AlertReceipt ; proof ; general ; 200 400 401 403 404 408 409 410 413 422
  GET /api/v1/endorsements/{fingerprint} ; status category page per_page ; EndorsementPage ; anybody ; general ; 200 404 422
  GET /api/v1/endorsements/{fingerprint}/issued ; status category page per_page ; EndorsementPage ; anybody ; general ; 200 404 422
  GET /api/v1/endorsements/revocation-alerts/{fingerprint} ; page per_page ; AlertPage ; anybody ; general ; 200 404 422
  GET /api/v1/identifier-types ; - ; IdentifierTypes ; anybody ; general ; 200
  GET /api/v1/endorsements/{fingerprint}/status ; - ; TrustStatus ; anybody ; general ; 200 404
Trust
  GET /api/v1/graph/{fingerprint} ; max_depth type status institution since until ; Graph ; anybody ; general ; 200 404 422
  GET /api/v1/trust-configs ; page per_page ; TrustConfigPage ; anybody ; general ; 200 422
  POST /api/v1/trust-configs ; - ; CreateTrustConfig → TrustConfig ; session or proof ; general ; 200 400 401 403 404 408 409 410 413 422
  GET /api/v1/trust-configs/{fingerprint} ; - ; TrustConfig ; anybody ; general ; 200 404
  POST /api/v1/trust-configs/revoke ; - ; RevokeTrustConfig → TrustConfig ; session or proof ; general ; 200 400 401 403 404 408 409 410 413 422
Attestation requests
  GET /api/v1/log/attestation-requests ; target requester status page per_page ; AttestationRequestPage ; anybody ; general ; 200 404 422
  POST /api/v1/log/attestation-requests ; - ; CreateAttestationRequest → AttestationRequest ; session or proof ; general ; 200 400 401 403 404 408 409 410 413 422
  GET /api/v1/log/attestation-requests/{request_id} ; - ; AttestationRequest ; anybody ; general ; 200 404
  GET /api/v1/log/request-policies/{fingerprint} ; - ; RequestPolicyView ; anybody ; general ; 200 404
  POST /api/v1/log/attestation-requests/{request_id}/respond ; - ; RespondToAttestationRequest → AttestationRequestResponse ; session or proof ; general ; 200 400 401 403 404 408 409 410 413 422
  POST /api/v1/log/request-policies ; - ; PublishRequestPolicy → RequestPolicyPublished ; session or proof ; general ; 200 400 401 403 404 408 409 410 413 422
  GET /api/v1/inbox ; unread page per_page ; NotificationPage ; session ; general ; 200 401 403 422
  POST /api/v1/inbox/{id}/read ; - ; object? → Notification ; session ; general ; 200 401 403 404 410 422
Encrypted claims
  POST /api/v1/claims ; - ; PostClaim → ClaimReceipt ; session ; general ; 200 400 401 403 408 410 413 422
  GET /api/v1/claims ; lookup_key! page per_page ; ClaimPage ; anybody ; general ; 200 422
  GET /api/v1/claims/{entry_id} ; - ; ClaimPayload ; anybody ; general ; 200 404 410 422
  POST /api/v1/claims/{entry_id}/reveal ; - ; RevealClaim → Revealed ; session ; claim-reveal ; 200 400 401 403 404 408 409 410 413 422
Accounts
  POST /api/v1/users ; - ; OpenAccount → OpenedAccount ; anybody ; general ; 201 400 403 404 408 409 410 413 422
  POST /api/v1/users/recover ; - ; RecoverAccount → RecoveredAccount ; anybody ; general ; 200 400 401 403 404 408 409 410 413 422
  POST /api/v1/credentials/enroll ; - ; EnrollCredential → Enrolled ; challenge ; general ; 200 400 401 403 404 408 409 410 413 422
C2SP log
  GET /tlog/checkpoint ; - ; text/plain; charset=utf-8 ; anybody ; tlog ; 200 304 404
  GET /tlog/vkey ; - ; text/plain; charset=utf-8 ; anybody ; tlog ; 200 304 404
  GET /tlog/tile/{level}/{n1} ; - ; application/octet-stream ; anybody ; tlog ; 200 304 404
  GET /tlog/tile/{level}/{n1}/{n2} ; - ; application/octet-stream ; anybody ; tlog ; 200 304 404
Webhooks
  POST /api/v1/webhooks ; - ; Subscribe → Webhook ; session ; general ; 200 400 401 403 408 409 410 413 422
  GET /api/v1/webhooks ; - ; array ; session ; general ; 200 401 403
  DELETE /api/v1/webhooks/{webhook_id} ; - ; Webhook ; session ; general ; 200 401 403 404 422
`;

/** Requests and seconds of each limit (docs/spec §15.1). */
const LIMITS: Readonly<Record<string, string>> = {
  general: "q=100;w=60",
  "key-registration": "q=10;w=3600",
  "endorsement-offer": "q=20;w=86400",
  attestation: "q=50;w=3600",
  anchoring: "q=12;w=3600",
  "claim-reveal": "q=30;w=3600",
  "log-verification": "q=12;w=3600",
  tlog: "q=6000;w=60",
};

const WHO: Readonly<Record<string, string>> = {
  "Needs a session.": "session",
  "Needs a session of the operator key.": "operator",
  "Needs a session, or a proof in the member `auth`.": "session or proof",
  "Needs a session that began at most 300 seconds ago, or a proof in the member `auth`.": "fresh session or proof",
  "Needs a proof in the member `auth`; a session does not serve.": "proof",
  "Needs a signed challenge in the body.": "challenge",
  "A session, or a proof in the member `auth`, is needed in some cases only": "anybody, at times proven",
};
/** For tools. OpenAPI cannot describe a proof in the body. */
const SECURITY: Readonly<Record<string, readonly object[]>> = {
  session: [{ session: [] }],
  operator: [{ session: [] }],
  "fresh session or proof": [{ session: [] }, {}],
  "session or proof": [{ session: [] }, {}],
  proof: [],
  challenge: [],
  anybody: [],
  "anybody, at times proven": [{}, { session: [] }],
};

interface Line {
  readonly area: string;
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly content: string;
  readonly who: string;
  readonly limit: string;
  readonly statuses: string;
}

function readLines(): Line[] {
  let area = "";
  return INTERFACE.trim()
    .split("\n")
    .flatMap((line) => {
      const [operation, query, content, who, limit, statuses] = line.trim().split(" ; ");
      if (query === undefined) area = line;
      const [method, path] = operation!.split(" ");
      if (query === undefined) return [];
      return [
        { area, method: method!, path: path!, query, content: content!, who: who!, limit: limit!, statuses: statuses! },
      ];
    });
}
const lines = readLines();

let service: TestService;
let contract: Contract;
beforeAll(async () => {
  service = await startTestService({ SERVICE_RATE_LIMITS: "on" });
  contract = await service.contract();
});

const nameOf = (schema: Document): string =>
  schema.$ref?.split("/").at(-1) ?? schema.anyOf?.map(nameOf).join("|") ?? schema.type;

/** A line of the document. */
function lineOf({ method, path, definition }: ReturnType<typeof operationsOf>[number]): Line {
  const { tags, parameters = [], requestBody, responses, description } = definition;
  const query = parameters
    .filter((parameter: Document) => parameter.in === "query")
    .map(({ name, required }: Document) => name + (required ? "!" : ""));
  const statuses = Object.keys(responses);
  const { content } = responses[statuses.find((status) => status.startsWith("2"))!];
  const answers = Object.entries<Document>(content).map(([type, { schema }]) =>
    type === "application/json" ? nameOf(schema) : type,
  );
  const body = requestBody
    ? `${nameOf(requestBody.content["application/json"].schema)}${requestBody.required ? "" : "?"} → `
    : "";
  const sentence = Object.keys(WHO).find((words) => description.startsWith(words));
  const limit = /Limit `([^`]+)`/.exec(description)?.[1] ?? "none";
  const ofWrites = method === "GET" ? [] : method === "POST" ? ["415", "421"] : ["421"];
  const always = ["405", ...ofWrites, ...(limit === "none" ? [] : ["429"]), "500", "503"];
  expect(statuses, `${method} ${path}`).toEqual(expect.arrayContaining(always));
  return {
    area: tags.join(),
    method,
    path,
    query: query.join(" ") || "-",
    content: body + answers.join(", "),
    who: sentence ? WHO[sentence]! : "anybody",
    limit,
    statuses: statuses.filter((status) => !always.includes(status)).join(" "),
  };
}

test("the document says all of it, and nothing else", () => {
  const told = operationsOf(contract.document).map(lineOf);
  const key = ({ method, path }: Line) => `${path} ${method}`;
  const sorted = (all: readonly Line[]) => [...all].sort((a, b) => (key(a) < key(b) ? -1 : 1));
  expect(sorted(told)).toEqual(sorted(lines));
});

test.each(lines.map((line) => [`${line.method} ${line.path}`, line] as const))("%s", async (_, line) => {
  const { method, path, who, limit, content } = line;
  const definition = contract.document.paths[path][method.toLowerCase()];
  expect(definition.security).toEqual(SECURITY[who]);
  const [, requests, seconds] = /q=(\d+);w=(\d+)/.exec(LIMITS[limit] ?? "") ?? [];
  if (requests) expect(definition.description).toContain(` ${requests} requests in ${seconds} seconds `);
  // A body of many requests counts against its limit once they are known.
  const body = content.startsWith("SubmitAttestations ") ? '{"submissions":[{}]}' : "{}";
  const init = content.includes("→") ? { body } : {};
  const reply = await service.send(method, path.replace(/\{\w+\}/g, "1"), init);
  const name = limit === "none" ? "general" : limit;
  expect(reply.headers.get("ratelimit-policy")).toBe(`"${name}";${LIMITS[name]}`);
  // A missing session or proof is reported before any other error.
  if (["session", "operator", "proof", "session or proof", "fresh session or proof"].includes(who))
    expect(reply.status).toBe(401);
  else expect(reply.status).not.toBe(401);
});

/** Accounts: opening, recovery, and further keys. */
import {
  EnrollCredential,
  Enrolled,
  OpenAccount,
  OpenedAccount,
  RecoverAccount,
  RecoveredAccount,
} from "../../../../engine/contract/identity/accounts.js";
import type { Served } from "../../../../engine/registry/registry.js";
import { requestAct } from "../../../../engine/verify/events/possession.js";
import { type Route, route } from "../../route/route.js";

const ENROLMENT = "/api/v1/credentials/enroll";

export function accountRoutes({ accounts, credentials }: Pick<Served, "accounts" | "credentials">): Route[] {
  return [
    route({
      method: "POST",
      path: "/api/v1/users",
      summary: "Open an account with its first credential",
      body: OpenAccount,
      answer: OpenedAccount,
      status: 201,
      refusals: [403, 404, 409],
      limit: "general",
      handle: ({ body, request }) => accounts.create(body, request.client),
    }),
    route({
      method: "POST",
      path: "/api/v1/users/recover",
      summary: "Get an account back with its recovery key, replacing every credential",
      body: RecoverAccount,
      answer: RecoveredAccount,
      refusals: [401, 403, 404, 409],
      asksAddress: true,
      limit: "general",
      handle: ({ body, request }) => accounts.recover(body, request.client.address, request.client),
    }),
    route({
      method: "POST",
      path: ENROLMENT,
      summary: "Bind a further hardware-backed key to an account, vouched for by an enrolled one",
      proving: "challenge",
      body: EnrollCredential,
      answer: Enrolled,
      refusals: [401, 403, 404, 409, 410],
      limit: "general",
      handle: ({ body, request }) =>
        credentials.enroll(body, request.client, () => requestAct("POST", ENROLMENT, body)),
    }),
  ];
}

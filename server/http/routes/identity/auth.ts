/** Authentication: challenges, sessions, passwords. */
import {
  Challenge,
  ChallengeRequest,
  Login,
  LoginResult,
  PasswordSet,
  SetPassword,
} from "../../../../engine/contract/identity/auth.js";
import type { Served } from "../../../../engine/registry/registry.js";
import type { Gate } from "../../gate.js";
import type { Origins } from "../../origins.js";
import { type Route, route } from "../../route/route.js";
import type { Sessions } from "../../sessions.js";

export function authRoutes(
  { challenges, passwords }: Pick<Served, "challenges" | "passwords">,
  { origins, sessions, gate }: { readonly origins: Origins; readonly sessions: Sessions; readonly gate: Gate },
): Route[] {
  return [
    route({
      method: "POST",
      path: "/api/v1/auth/challenge",
      summary: "Ask for a nonce to sign",
      body: ChallengeRequest,
      answer: Challenge,
      refusals: [403, 404, 409],
      limit: "general",
      handle: ({ body, request }) => challenges.issue({ ...body, origin: origins.of(request.host) }),
    }),
    route({
      method: "POST",
      path: "/api/v1/auth/login",
      summary: "Exchange a signed challenge for a session token",
      proving: "challenge",
      body: Login,
      answer: LoginResult,
      refusals: [403, 404, 409, 410],
      limit: "general",
      async handle({ body: { challenge_id, challenge_signature, password } }) {
        const answer = { challengeId: challenge_id, signature: challenge_signature };
        const proven = await challenges.consume({ ...answer, purposes: ["login", "general", "recovery"] });
        const version = passwords.version(proven.fingerprint);
        await passwords.check(proven.fingerprint, password);
        return sessions.open(proven.fingerprint, proven.recovery, version);
      },
    }),
    route({
      method: "POST",
      path: "/api/v1/auth/renew",
      summary: "Exchange a session token for a fresh one",
      proving: "session",
      answer: LoginResult,
      refusals: [401, 403],
      limit: "general",
      handle: ({ request }) => sessions.renew(request.authorization),
    }),
    route({
      method: "POST",
      path: "/api/v1/auth/password",
      summary: "Set or change the password of a key",
      proving: "challenge",
      authorize: (asking) => gate.challengedKey(asking, asking.body),
      body: SetPassword,
      answer: PasswordSet,
      refusals: [403, 404, 409, 410],
      limit: "general",
      async handle({ body, proof: { fingerprint }, request }) {
        await passwords.set(fingerprint, body, request.client);
        return { fingerprint, password_set: true } as const;
      },
    }),
  ];
}

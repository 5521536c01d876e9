/** A log that shows another log's challenges as its own gets no signature that the other one would take. */
import { beforeAll, describe, expect, test } from "vitest";
import { challengeNonce } from "#cairnlog/engine/verify/events/possession.js";
import { createClient } from "#cairnlog/server/client/index.js";
import { startTestService, type TestService } from "../server/harness.js";
import { newManifest, newSigner, registration } from "../server/signers.js";
import { asSigner, failure } from "./clients.js";
import { LyingProxy } from "./proxy.js";

let honest: TestService;
let hostile: LyingProxy;
let own: TestService;
beforeAll(async () => {
  honest = await startTestService();
  own = await startTestService();
  // The hostile log is a real one but for its challenges, which it has the honest one make.
  hostile = await LyingProxy.before(own.url);
});

/** A client of the hostile log, whose holder uses the same key at the honest one. */
async function victim() {
  const signer = newSigner();
  for (const service of [honest, own])
    expect((await service.post("/keys/register", registration(signer))).status).toBe(200);
  const signed: string[] = [];
  const { publicKeyPem, algorithm, sign } = asSigner(signer);
  const noting = async (bytes: Uint8Array) => {
    signed.push(new TextDecoder().decode(bytes));
    return sign(bytes);
  };
  const client = createClient({ server: hostile.url, signer: { publicKeyPem, algorithm, sign: noting } });
  return { client, signer, signed: () => signed.filter((text) => text.startsWith("service.auth.v1:")) };
}

/** How a hostile log may answer, from what the honest one answers to its own request. */
const RELAYS = {
  "as it is": (answer: object) => answer,
  "with its own origin": (answer: object) => ({ ...answer, origin: hostile.url }),
  "without an origin, as an older version": ({ origin: _, ...answer }: { origin?: string }) => answer,
} as const;

describe.each(Object.entries(RELAYS))("a relayed challenge, %s", (_, shown) => {
  test.each([
    ["signing in", "login", (client: Client) => client.login()],
    ["revoking the key", "general", (client: Client) => client.keys.revoke()],
    ["replacing the key", "general", (client: Client) => client.keys.succeed(asSigner(newSigner()))],
    ["setting a password", "general", (client: Client) => client.setPassword("a password of mine")],
    ["a trust configuration", "general", (client: Client) => client.trust.configure({ minimum_threshold: 0.5 })],
  ] as const)("is not signed for %s", async (_what, purpose, act) => {
    const { client, signer, signed } = await victim();
    for (const named of [true, false]) {
      hostile.seize = (path, response) => {
        if (path !== "/auth/challenge") return false;
        void relayed(named).then((answer) => response.setHeader("content-type", "application/json").end(answer));
        return true;
      };
      const relayed = async (isBound: boolean) => {
        // The honest log may be asked for any act: what the hostile one wants done there, or none at all.
        const asked = {
          fingerprint: signer.fingerprint,
          purpose,
          ...(isBound && purpose === "general" ? { act: "a".repeat(64) } : {}),
        };
        return JSON.stringify(shown((await honest.post("/auth/challenge", asked)).body));
      };
      const error = await failure(act(client));
      expect(error).toMatchObject({
        code: "unsafe-challenge",
        message: expect.stringMatching(/Nothing was signed\.$/),
      });
    }
    expect(signed()).toEqual([]);
  });
});
type Client = ReturnType<typeof createClient>;

test("the refusal names both origins, and how to say that a tunnel changes the address", async () => {
  const { client } = await victim();
  hostile.repent();
  // Before a tunnel, which is the same to the client: the service answers with its own name.
  const { message } = await failure(client.login());
  for (const part of [own.url, hostile.url, `--as ${own.url}`, "publicOrigin"]) expect(message).toContain(part);
  const { signer } = await victim();
  const told = createClient({ server: hostile.url, publicOrigin: own.url, signer: asSigner(signer) });
  expect((await told.login()).fingerprint).toBe(signer.fingerprint);
  // Whoever says so means no other one: not that of the address, either.
  const elsewhere = createClient({ server: own.url, publicOrigin: honest.url, signer: asSigner(signer) });
  expect(await failure(elsewhere.login())).toMatchObject({ code: "unsafe-challenge" });
  expect(() => createClient({ server: own.url, publicOrigin: `${own.url}/` })).toThrow(TypeError);
});

test("a challenge of the service itself is signed for no other request than the client meant", async () => {
  const signer = newSigner();
  await own.post("/keys/register", registration(signer));
  const client = createClient({
    server: own.url,
    signer: asSigner(signer),
    fetch: (input, init) => lying(input, init),
  });
  const another = {
    origin: own.url,
    purpose: "general",
    fingerprint: signer.fingerprint,
    act: "a".repeat(64),
  } as const;
  const nonces = [
    challengeNonce(another, new Uint8Array(16)),
    challengeNonce({ ...another, act: null }, new Uint8Array(16)),
  ];
  let nonce: string;
  const lying: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    if (!String(input).endsWith("/auth/challenge")) return response;
    return new Response(JSON.stringify({ ...(await response.json()), nonce }), { status: 200 });
  };
  for (nonce of nonces) expect(await failure(client.keys.revoke())).toMatchObject({ code: "unsafe-challenge" });
  await client.attest(newManifest().document);
});

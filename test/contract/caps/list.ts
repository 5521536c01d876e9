/**
 * Every limit of the contract (docs/spec §15.3) in one list, each with the request that it is
 * about. A character is a code point. A size in bytes is that of the canonical JSON in UTF-8.
 */
import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import { act, type Command, done, newPair } from "../../server/endorsements.js";
import { type Reply, startTestService, type TestService } from "../../server/harness.js";
import { bearerOf, proofOf, registeredSigner } from "../../server/proofs.js";
import { newManifest, newSigner, registration, submission } from "../../server/signers.js";
import { accountOf, holder, type Post, sealed, signIn } from "../signing/claimants.js";
import { type Body, bytes, type Cap, capsOf, items, type Route, refused, reusing, taken, texts } from "./cap.js";

const KIB = 1024;
const hashNumber = (i: number): string => `sha256:${i.toString(16).padStart(64, "0")}`;

/** A service, and a key with a session. */
export class CapScene {
  service!: TestService;
  fingerprint!: string;
  /** Headers of the session. */
  bearer!: { authorization: string };
  /** Headers with the session of a key that may post claims. */
  poster!: { authorization: string };

  async start(): Promise<void> {
    this.service = await startTestService();
    const signer = await registeredSigner(this.service);
    this.fingerprint = signer.fingerprint;
    this.bearer = await bearerOf(this.service, signer);
    const post: Post = (...parts) => this.service.post(...parts);
    this.poster = await signIn(post, await holder(post, "hardware"));
  }
}

/** The whole list; `scene` has to be started before anything is sent. */
export const allCaps = (scene: CapScene): Cap[] => [
  ...requestCaps(scene),
  ...endorsementCaps(scene),
  ...attestationCaps(scene),
  ...accountCaps(scene),
  ...claimCaps(scene),
  ...otherCaps(scene),
];

function requestCaps(scene: CapScene): Cap[] {
  const ask = (more: Body) => {
    const request = { target_fingerprint: scene.fingerprint, attestation_type: "authorship", nonce: randomUUID() };
    return scene.service.post("/log/attestation-requests", { ...request, ...more }, scene.bearer);
  };
  const respond = reusing(
    async () => `/log/attestation-requests/${(await ask({})).body.request_id}/respond`,
    (path, more) => scene.service.post(path, { decision: "decline", ...more }, scene.bearer),
  );
  let published = 0;
  const publish = (more: Body) => {
    // Each policy replaces the scheduled one before it.
    const effective_from = new Date(Date.parse("2999-01-01T00:00:00Z") + published++).toISOString();
    const policy = { predicates: { all: [] }, default_action_on_failure: "hold", effective_from };
    return scene.service.post("/log/request-policies", { ...policy, ...more }, scene.bearer);
  };
  const anothersKey = refused(403, "forbidden");
  const request = { name: "request", send: ask };
  const answer = { name: "answer", send: respond };
  const policy = { name: "policy", send: publish };
  const condition = { field: "attestation_type", op: "eq", value: "authorship" };
  const nested = (levels: number): unknown => ({ all: levels > 1 ? [nested(levels - 1)] : [condition] });
  return [
    ...texts(
      request,
      ["requester_fingerprint", 0, 256, anothersKey],
      ["target_fingerprint", 1, 256, refused(404, "not-found")],
      ["attestation_type", 1, 512],
      ["nonce", 1, 128],
      ["intent_statement", 0, 4096],
    ),
    ...bytes(request, (text) => ({ a: [1, { b: text }] }), ["claims", 0, 64 * KIB]),
    ...texts(
      answer,
      ["responder_fingerprint", 0, 256, anothersKey],
      ["attestation_id", 0, 128, refused(422, "invalid-input", /holds no attestation/)],
      ["reason", 0, 4096],
    ),
    ...texts(
      policy,
      ["target_fingerprint", 0, 256, anothersKey],
      // No action has that length, so both are refused; the sentence gives the reason.
      ["default_action_on_failure", 1, 64, refused(422, "invalid-input", /allow, decline, hold/)],
    ),
    ...bytes(policy, (value) => ({ field: "claims.a", op: "ne", value }), ["predicates", 0, 64 * KIB]),
    ...capsOf("items", (size) => ({ all: Array(size).fill(condition) }), policy, [
      ["predicates", 0, 256, { path: "/predicates/all/256" }],
    ]),
    ...capsOf("levels", nested, policy, [["predicates", 0, 8, { path: `/predicates${"/all/0".repeat(8)}/all` }]]),
  ];
}

function endorsementCaps(scene: CapScene): Cap[] {
  /** Gives one command between two new keys, after the commands that it needs. */
  const command = (name: Command, ...before: Command[]): Route => {
    const ready = async () => {
      const pair = await newPair(scene.service);
      for (const step of before) await done(step, pair);
      return pair;
    };
    return { name, send: reusing(ready, (pair, more) => act(name, pair, more)) };
  };
  const offer = command("offer");
  const alert = command("revocation-alert", "offer", "accept");
  const url = (text: string) => ({ type: "url", value: `https://example.org/${text}` });
  return [
    ...bytes(offer, (name) => ({ name }), ["institutional_metadata", 0, 16 * KIB]),
    // No address has more than 2048 characters.
    ...bytes(offer, (text) => [...Array(8).fill(url("x".repeat(1900))), url(text)], [
      "external_identifiers",
      0,
      16 * KIB,
      { asciiOnly: true },
    ]),
    ...texts(command("accept", "offer"), ["note", 1, 1000]),
    ...texts(command("withdraw", "offer"), ["note", 1, 1000]),
    ...texts(command("revoke-acceptance", "offer", "accept"), ["note", 1, 1000]),
    ...texts(alert, ["reason", 1, 1000], ["evidence", 0, 5000]),
  ];
}

function attestationCaps(scene: CapScene): Cap[] {
  const logged = {
    taken(reply: Reply, value: unknown) {
      taken(reply);
      const { payload } = scene.service.server.registry.log.head()!;
      expect(Object.values(payload!).map((member) => JSON.stringify(member))).toContain(JSON.stringify(value));
    },
  };
  const attest = {
    name: "attestation",
    send: (more: Body) => scene.service.post("/attestations", submission(newSigner(), newManifest(), more)),
  };
  const document = {
    name: "manifest",
    below: "/manifest/document",
    send(more: Body) {
      const { document, attestations } = newManifest();
      const manifest = { document: { ...document, ...more }, attestations };
      return scene.service.post("/attestations", submission(newSigner(), manifest));
    },
  };
  const signing = {
    name: "document to sign",
    send(more: Body) {
      const { document } = newManifest();
      return scene.service.post("/documents/sign", { ...document, public_key_pem: newSigner().publicKey, ...more });
    },
  };
  const oneTag = { make: (size: number, character: string) => ["a", character.repeat(size)] };
  const predicate = { make: (size: number) => "https://example.org/".padEnd(size, "x"), asciiOnly: true };
  const tag = (i: number) => `tag ${i}`;
  return [
    ...texts(attest, ["attestation_type", 0, 512, predicate], ["intent_statement", 0, 4096], ["pseudonym", 1, 200]),
    ...texts(
      document,
      ["title", 1, 500, logged],
      ["tags", 0, 64, { ...oneTag, ...logged, path: "/manifest/document/tags/1" }],
    ),
    ...items(document, tag, ["tags", 0, 32, logged]),
    ...texts(signing, ["title", 1, 500], ["tags", 0, 64, { ...oneTag, path: "/tags/1" }]),
    ...items(signing, tag, ["tags", 0, 32]),
  ];
}

function accountCaps(scene: CapScene): Cap[] {
  const newKey = () => registeredSigner(scene.service);
  const register: Route = {
    name: "registration",
    below: "/payload",
    send: (more) => scene.service.post("/keys/register", registration(newSigner(), "Alice", more)),
  };
  const succeed: Route = {
    name: "succession",
    below: "/payload",
    send: reusing(newKey, async (old, more) => {
      const next = newSigner();
      const keys = { old_fingerprint: old.fingerprint, new_public_key: next.publicKey, new_algorithm: next.algorithm };
      const auth = await proofOf(scene.service, old);
      return scene.service.post("/keys/succeed", { payload: { ...keys, ...more }, auth });
    }),
  };
  const open: Route = {
    name: "account",
    send: reusing(newKey, (signer, more) => scene.service.post("/users", { ...accountOf(signer), ...more })),
  };
  const recover: Route = {
    name: "recovery",
    send: reusing(newKey, (signer, more) => {
      const { display_name: pseudonym, email: _, ...credential } = accountOf(signer);
      return scene.service.post("/users/recover", { pseudonym, recovery_key: "0", ...credential, ...more });
    }),
  };
  const password: Route = {
    name: "password",
    send: reusing(newKey, async (signer, more) =>
      scene.service.post("/auth/password", { ...(await proofOf(scene.service, signer)), ...more }),
    ),
  };
  const unknown = {
    taken({ status }: Reply) {
      // After five unknown names the client has used up its tries.
      expect([401, 429]).toContain(status);
    },
  };
  return [
    ...texts(register, ["pseudonym", 1, 200]),
    ...texts(succeed, ["pseudonym", 1, 200, { taken }]),
    ...texts(open, ["display_name", 1, 100], ["device_label", 1, 100]),
    ...texts(recover, ["pseudonym", 1, 100, unknown]),
    ...texts(password, ["password", 8, 1024, { taken }]),
  ];
}

function claimCaps(scene: CapScene): Cap[] {
  const claim: Route = {
    name: "claim",
    below: "/payload",
    send: (more) => scene.service.post("/claims", { payload: { ...sealed().payload, ...more } }, scene.poster),
  };
  const hex = { make: (size: number) => "a".repeat(size), asciiOnly: true };
  const base64 = (size: number) => Buffer.alloc(size, 7).toString("base64");
  return [
    ...texts(claim, ["commitment", 64, 64, hex], ["lookup_key", 32, 128, hex]),
    // 16 bytes of the ciphertext are its tag.
    ...capsOf("bytes", base64, claim, [["ciphertext", 17, 256 * KIB, { asciiOnly: true, taken }]]),
  ];
}

function otherCaps(scene: CapScene): Cap[] {
  const part = (i: number) => ({ title: "A part", content_hash: hashNumber(i) });
  const composite: Route = {
    name: "composite",
    send: (more) => scene.service.post("/composite/assemble", { title: "The whole", parts: [part(0)], ...more }),
  };
  const partOf: Route = {
    name: "part",
    below: "/parts/1",
    send: (more) => composite.send({ parts: [part(0), { ...part(1), ...more }] }),
  };
  const subscribe: Route = {
    name: "webhook",
    send: (more) => scene.service.post("/webhooks", { url: "https://receiver.example/", ...more }, scene.bearer),
  };
  const trust: Route = {
    name: "trust configuration",
    send: (more) =>
      scene.service.post(
        "/trust-configs",
        { fingerprint: scene.fingerprint, minimum_threshold: 0.5, ...more },
        scene.bearer,
      ),
  };
  const anchor = (i: number) => ({ fingerprint: hashNumber(i), weight: 1 });
  const category = { make: (size: number, character: string) => ({ [character.repeat(size)]: 1 }) };
  const categories = (size: number) =>
    Object.fromEntries(Array.from({ length: size }, (_, i) => [`category ${i + 100}`, 1]));
  const address = "https://receiver.example/";
  const padded = (size: number, character: string) => address + character.repeat(Math.max(0, size - address.length));
  return [
    ...texts(composite, ["title", 1, 500]),
    ...texts(partOf, ["title", 1, 500], ["role", 1, 100]),
    ...items(composite, part, ["parts", 1, 1000]),
    ...texts(subscribe, ["secret", 16, 256, { taken }], ["url", 0, 2048, { make: padded }]),
    ...texts(trust, ["category_weights", 1, 128, category]),
    ...items(trust, anchor, ["direct_signer_anchors", 0, 100], ["endorser_anchors", 0, 100]),
    ...items(trust, anchor, ["category_weights", 0, 32, { make: categories }]),
  ];
}

/** What commands send for each of their options, and that they send nothing for an option that is not given. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { encryptPrivateKey } from "#cairnlog/engine/crypto/keys/encrypted-key.js";
import { LyingProxy } from "../client/proxy.js";
import { startTestService, type TestService, temporaryFolder } from "../server/harness.js";
import { newSigner } from "../server/signers.js";
import { cairnlog, pin } from "./harness.js";

const folder = temporaryFolder();
const at = (name: string) => join(folder, name);
const file = (name: string, content: string | object) => {
  writeFileSync(at(name), typeof content === "string" ? content : JSON.stringify(content));
  return at(name);
};
let service: TestService;
let proxy: LyingProxy;
const [ada, bob, carol] = ["Ada", "Bob", "Carol"].map((name) => {
  const { fingerprint, privateKey } = newSigner();
  return { name, fingerprint, key: file(`${name}.pem`, privateKey) };
}) as [Party, Party, Party];
interface Party {
  readonly name: string;
  readonly fingerprint: string;
  readonly key: string;
}

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Body = any;
/** The bodies that were sent, by path. */
let sent: Map<string, Body>;
beforeAll(async () => {
  service = await startTestService({ SERVICE_ENDORSEMENT_ACTIVATION_DELAY_S: "0" });
  proxy = await LyingProxy.before(service.url);
  await pin(proxy.url, at("state"));
  proxy.twist = (path, body) => {
    sent.set(path, body);
    return body;
  };
  for (const { key, name } of [ada, bob, carol]) await run("register", "--key", key, "--pseudonym", name);
});
afterAll(() => proxy.repent());

/** Runs a command that must succeed. Returns its output. */
async function run(...args: string[]): Promise<string> {
  sent = new Map();
  proxy.asked.length = 0;
  // A command that signs must be told that a proxy stands before the service.
  const as = args.includes("--key") ? ["--as", service.url] : [];
  const { code, stdout, stderr } = await cairnlog([...args, ...as, "--server", proxy.url, "--state", at("state")]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return stdout.replace(/\n$/, "");
}
const answer = async (...args: string[]) => JSON.parse(await run(...args, "--json"));
/** The query of the last request to a path. */
const asked = (path: string) => {
  const found = proxy.asked.findLast((request) => request.startsWith(`GET ${path}`))!;
  return Object.fromEntries(new URL(found.replace("GET ", "http://x")).searchParams);
};
/** The body that was sent to a path, without the proof of the key. */
const bodyOf = (path: string) => {
  const { auth: _, ...body } = sent.get(path);
  return body;
};

describe("request", () => {
  const path = "/log/attestation-requests";
  const parties = { target_fingerprint: bob.fingerprint, requester_fingerprint: ada.fingerprint };
  const asks = { ...parties, attestation_type: "peer_review", nonce: expect.any(String) };
  const ask = (...more: string[]) =>
    answer("request", bob.fingerprint, "--type", "peer_review", "--key", ada.key, ...more);

  test("with nothing but the type", async () => {
    await ask();
    expect(bodyOf(path)).toEqual(asks);
  });

  test("with intent, claims and deadline", async () => {
    const deadline = new Date(Date.now() + 86_400_000).toISOString();
    const claims = file("claims.json", { pages: 12 });
    await ask("--intent", "for the journal", "--claims", claims, "--deadline", deadline);
    expect(bodyOf(path)).toEqual({ ...asks, intent_statement: "for the journal", claims: { pages: 12 }, deadline });
  });

  test("says until when it is open", async () => {
    const told = await run("request", bob.fingerprint, "--type", "peer_review", "--key", ada.key);
    expect(told).toMatch(/^[0-9a-f-]{36} is open until \d{4}-\d\d-\d\dT\S+Z: entry \d+$/);
  });
});

test("respond sends the decision, and a reason or an attestation only if there is one", async () => {
  const ask = async () =>
    (await answer("request", ada.fingerprint, "--type", "authorship", "--key", bob.key)).request_id;
  const pathOf = (id: string) => `/log/attestation-requests/${id}/respond`;
  const mine = { responder_fingerprint: ada.fingerprint };
  const declined = await ask();
  await run("respond", declined, "decline", "--key", ada.key);
  expect(bodyOf(pathOf(declined))).toEqual({ ...mine, decision: "decline" });
  const accepted = await ask();
  await run("attest", file("asked.txt", "Asked for"), "--key", ada.key);
  const { attestation } = JSON.parse(readFileSync(at("asked.txt.attestation.json"), "utf8"));
  await run("respond", accepted, "accept", "--attestation", attestation.id, "--reason", "gladly", "--key", ada.key);
  expect(bodyOf(pathOf(accepted))).toEqual({
    ...mine,
    decision: "accept",
    attestation_id: attestation.id,
    reason: "gladly",
  });
});

test("attest sends type, pseudonym and statement", async () => {
  const { name, key } = ada;
  const more = ["--type", "editorial_review", "--intent", "for the journal", "--pseudonym", name];
  const made = await answer("attest", file("paper.txt", "A paper"), "--key", key, ...more);
  expect(made).toEqual({
    file: at("paper.txt"),
    bundle: `${at("paper.txt")}.attestation.json`,
    log_entry_id: expect.any(Number),
    attestation_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    duplicate: false,
    signed: { attestation_type: true, intent_statement: true },
  });
  const { payload } = await answer("log", "show", `${made.log_entry_id}`);
  expect(payload).toMatchObject({ attestation_type: "editorial_review", intent_statement: "for the journal" });
});

describe("endorse", () => {
  const offer = (to: Party, ...more: string[]) =>
    answer("endorse", "offer", to.fingerprint, "--category", "human", "--key", ada.key, ...more);
  const offered = { endorser_fingerprint: ada.fingerprint, category: "x-service:human_attestation" };

  test("offer with no options, and with all", async () => {
    await offer(carol);
    expect(bodyOf("/endorsements/offer")).toEqual({ ...offered, endorsed_fingerprint: carol.fingerprint });
    await offer(bob, "--valid-until", "2099-12-31", "--institution", "The Academy");
    expect(bodyOf("/endorsements/offer")).toEqual({
      ...offered,
      endorsed_fingerprint: bob.fingerprint,
      valid_until: "2099-12-31",
      institutional_metadata: { name: "The Academy" },
    });
  });

  test("the notes of those who accept, withdraw and revoke, and the evidence of an alert", async () => {
    const offers = await answer("endorse", "issued", ada.fingerprint);
    const [first, second] = [carol, bob].map(
      ({ fingerprint }) => offers.find((made: Body) => made.endorsed_fingerprint === fingerprint).offer_entry_id,
    );
    await run("endorse", "accept", `${second}`, "--note", "thanks", "--key", bob.key);
    expect(bodyOf("/endorsements/accept")).toMatchObject({ offer_entry_id: second, note: "thanks" });
    const lost = ["--reason", "lost", "--evidence", "https://example.org", "--key", ada.key];
    await run("endorse", "alert", bob.fingerprint, ...lost);
    expect(bodyOf("/endorsements/revocation-alert")).toMatchObject({ reason: "lost", evidence: "https://example.org" });
    await run("endorse", "revoke-acceptance", `${second}`, "--note", "no longer", "--key", bob.key);
    expect(bodyOf("/endorsements/revoke-acceptance")).toMatchObject({
      original_offer_entry_id: second,
      note: "no longer",
    });
    await run("endorse", "withdraw", `${first}`, "--note", "we parted", "--key", ada.key);
    expect(bodyOf("/endorsements/withdraw")).toMatchObject({ original_offer_entry_id: first, note: "we parted" });
  });
});

test("trust graph sends depth, status and institution, each if it is given", async () => {
  const graph = (...more: string[]) => answer("trust", "graph", bob.fingerprint, ...more);
  const path = `/graph/${encodeURIComponent(bob.fingerprint)}`;
  await graph();
  expect(asked(path)).toEqual({});
  await graph("--max-depth", "2", "--status", "active", "--institution", "The Academy");
  expect(asked(path)).toEqual({ max_depth: "2", status: "active", institution: "The Academy" });
});

test("policy publish sends when it comes into force", async () => {
  const predicates = { field: "attestation_type", op: "eq", value: "authorship" };
  const publish = (...more: string[]) =>
    answer("policy", "publish", file("p.json", predicates), "--otherwise", "decline", "--key", bob.key, ...more);
  const path = "/log/request-policies";
  await publish("--from", "2099-01-01T00:00:00Z");
  const policy = { predicates, default_action_on_failure: "decline" };
  expect(bodyOf(path)).toMatchObject({ ...policy, effective_from: "2099-01-01T00:00:00Z" });
  await publish();
  expect(bodyOf(path)).toMatchObject(policy);
  expect(bodyOf(path)).not.toHaveProperty("effective_from");
});

test("inbox list sends --unread, and nothing without it", async () => {
  await run("inbox", "list", "--key", bob.key);
  expect(asked("/inbox")).not.toHaveProperty("unread");
  await run("inbox", "list", "--unread", "--key", bob.key);
  expect(asked("/inbox")).toMatchObject({ unread: "true" });
});

test("webhook add sends each filter and the secret, from the command line or a file", async () => {
  const url = "https://example.org/hook";
  const add = (...more: string[]) => answer("webhook", "add", "--url", url, "--key", ada.key, ...more);
  await add();
  expect(bodyOf("/webhooks")).toEqual({ url });
  await add("--secret", "sixteen letters!", "--events", "key.revoked");
  expect(bodyOf("/webhooks")).toEqual({ url, secret: "sixteen letters!", events: ["key.revoked"] });
  const filters = { key_fingerprint: ada.fingerprint, document_hash: `sha256:${"b".repeat(64)}` };
  await add(
    ...["--secret-file", file("secret", "whsec_AAAAAAAAAAAAAAAAAAAAAA==\n")],
    ...["--key-fingerprint", filters.key_fingerprint, "--document-hash", filters.document_hash],
  );
  expect(bodyOf("/webhooks")).toEqual({ url, ...filters, secret: "whsec_AAAAAAAAAAAAAAAAAAAAAA==" });
});

test("log search sends each filter", async () => {
  await run("log", "search");
  expect(Object.keys(asked("/log?"))).toEqual(["page", "per_page"]);
  const filters = ["--tags", "a,b", "--event-type", "key_registration,key_revocation"];
  const server = ["--server", proxy.url, "--state", at("state")];
  const none = await cairnlog(["log", "search", ada.fingerprint, ...filters, ...server]);
  expect(none).toMatchObject({ code: 0, stdout: "", stderr: `No entry fits ${ada.fingerprint}.\n` });
  expect(asked("/log?")).toMatchObject({
    search: ada.fingerprint,
    tags: "a,b",
    event_type: "key_registration,key_revocation",
  });
});

describe("succeed", () => {
  const passphrase = file("passphrase", "hunter2");
  /** A new key, registered or not; a new one is encrypted. */
  async function newKey(isRegistered: boolean): Promise<Party> {
    const { fingerprint, privateKey } = newSigner();
    const pem = isRegistered ? privateKey : encryptPrivateKey(privateKey, "hunter2");
    const key = file(`${fingerprint.slice(7, 20)}.pem`, pem);
    if (isRegistered) await run("register", "--key", key, "--pseudonym", "Grace");
    return { name: "Grace", fingerprint, key };
  }
  const succeed = (old: Party, next: Party, ...more: string[]) =>
    cairnlog([
      ...["succeed", "--key", old.key, "--passphrase-file", passphrase],
      ...["--new-key", next.key, "--new-passphrase-file", passphrase],
      ...[...more, "--as", service.url, "--server", proxy.url, "--state", at("state")],
    ]);

  test("sends the name and the end of the new key, if they are given", async () => {
    const [old, next, third] = [await newKey(true), await newKey(false), await newKey(false)];
    const first = await succeed(old, next);
    expect(first).toMatchObject({ code: 0, stderr: "" });
    expect(first.stdout).toMatch(new RegExp(`^${old.fingerprint} is succeeded by ${next.fingerprint}: entry \\d+\n$`));
    expect(sent.get("/keys/succeed").payload).not.toHaveProperty("pseudonym");
    expect(sent.get("/keys/succeed").payload).not.toHaveProperty("expiration_date");
    expect(sent.get("/auth/challenge")).not.toHaveProperty("recovery");
    const until = "2099-12-31T00:00:00Z";
    expect(await succeed(next, third, "--pseudonym", "Hopper", "--expires", until)).toMatchObject({ code: 0 });
    expect(sent.get("/keys/succeed").payload).toMatchObject({ pseudonym: "Hopper", expiration_date: until });
  });

  test("asks for a challenge of an expired key with --recovery", async () => {
    const [old, next] = [await newKey(true), await newKey(false)];
    // This key has not expired.
    expect(await succeed(old, next, "--recovery")).toMatchObject({ code: 1, stdout: "" });
    expect(sent.get("/auth/challenge")).toMatchObject({ recovery: true });
  });
});

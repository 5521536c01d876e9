/**
 * The commands for accounts, trust, policies, composites, webhooks, claims and the rest, against a service. For the
 * common behaviour of commands see `client.test.ts`.
 */
import { existsSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { encryptClaim } from "#cairnlog/engine/verify/claims/claims.js";
import { parsePublicKey } from "#cairnlog/engine/verify/index.js";
import { LyingProxy } from "../client/proxy.js";
import { newRoot } from "../crypto/chains.js";
import { startTestService, type TestService, temporaryFolder } from "../server/harness.js";
import { newSigner } from "../server/signers.js";
import { cairnlog, pin } from "./harness.js";

const folder = temporaryFolder();
const at = (name: string) => join(folder, name);
let service: TestService;
let keys = 0;
beforeAll(async () => {
  service = await startTestService({
    SERVICE_DATA_DIR: at("data"),
    SERVICE_ENDORSEMENT_ACTIVATION_DELAY_S: "0",
    SERVICE_ENDORSEMENT_MIN_TRUST: "0",
  });
  await pin(service.url, at("state"));
});

/** The output of a command that must succeed. */
async function run(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await command(...args);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return stdout.replace(/\n$/, "");
}

const command = (...args: string[]) => cairnlog([...args, "--server", service.url, "--state", at("state")]);

/** The output of a command as JSON. */
const answer = async (...args: string[]) => JSON.parse(await run(...args, "--json"));

/** Registers a key. Returns its file and its fingerprint. */
async function registered(pseudonym = "Ada") {
  const signer = newSigner();
  const key = at(`key-${keys++}.pem`);
  writeFileSync(key, signer.privateKey);
  await run("register", "--key", key, "--pseudonym", pseudonym);
  return { key, fingerprint: signer.fingerprint };
}

test("account create, enroll and recover", async () => {
  const [first, second, third] = [await registered(), await registered(), await registered()];
  const name = ["--name", "Ada Lovelace"];
  const made = await run(
    ...["account", "create", "--key", first.key, ...name, "--email", "ada@example.org", "--label", "a token"],
    ...["--hardware", "--recovery-key-out", at("recovery")],
  );
  expect(made).toBe(`Ada Lovelace: ${first.fingerprint}\nrecovery key in ${at("recovery")}`);
  expect(statSync(at("recovery")).mode & 0o777).toBe(0o600);
  const enrolled = await answer("account", "enroll", "--key", first.key, "--new-key", second.key, "--label", "another");
  expect(enrolled.credential).toMatchObject({ key_fingerprint: second.fingerprint, credential_type: "hardware" });
  const recover = [
    "recover",
    "--key",
    third.key,
    ...name,
    "--recovery-key-file",
    at("recovery"),
    "--label",
    "a laptop",
  ];
  const recovered = await answer("account", ...recover);
  expect(recovered).toMatchObject({ revoked_credentials: 2, credential: { credential_type: "software" } });
  expect(recovered.recovery_key).toMatch(/^[0-9A-Z-]{47}$/);
});

test("account create sends what shows that a key is in hardware", async () => {
  const root = newRoot("Root");
  writeFileSync(at("roots.pem"), root.certificate);
  const { url } = await startTestService({ SERVICE_HARDWARE_ROOTS: at("roots.pem") });
  const signer = newSigner();
  writeFileSync(at("held.pem"), signer.privateKey);
  writeFileSync(at("chain.pem"), root.certify(signer.publicKey));
  const there = ["--key", at("held.pem"), "--server", url, "--state", at("attested"), "--json"];
  expect(await cairnlog(["register", "--pseudonym", "Ada", ...there])).toMatchObject({ code: 0 });
  const account = ["account", "create", "--name", "Ada", "--email", "ada@example.org", "--label", "a token"];
  const { stdout } = await cairnlog([...account, "--hardware-attestation", at("chain.pem"), ...there]);
  expect(JSON.parse(stdout).credential).toMatchObject({ credential_type: "hardware", hardware_backed: true });
});

test("a recovery key that its file does not take is shown, and the command fails", async () => {
  const proxy = await LyingProxy.before(service.url);
  await pin(proxy.url, at("full"));
  const asked = at("recovery-of-full");
  const made = () => readdirSync(at("full")).filter((name) => name.includes("recovery-key"));
  proxy.lie = (path, truth) => {
    if (path === "/users")
      for (const file of [asked, ...made().map((name) => join(at("full"), name))].filter((name) => existsSync(name))) {
        rmSync(file);
        symlinkSync("/dev/full", file);
      }
    return truth;
  };
  for (const out of [[], ["--recovery-key-out", asked]]) {
    const { key, fingerprint } = await registered();
    const account = [
      "create",
      "--name",
      `Ada ${out.length}`,
      "--email",
      "ada@example.org",
      "--label",
      "x",
      "--key",
      key,
    ];
    const { code, stdout, stderr } = await cairnlog([
      ...["account", ...account, ...out, "--server", proxy.url, "--state", at("full")],
    ]);
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(/^cairnlog: The recovery key is on standard output alone: .*\(ENOSPC\)\.\n$/),
    });
    expect(stdout).toMatch(/^Ada \d: .*\nrecovery key, shown this once: (?:[0-9A-Z]{5}-){7}[0-9A-Z]{5}\n$/);
    expect(stdout).toContain(fingerprint);
    expect([existsSync(asked), made()]).toEqual([false, []]);
  }
});

const short = ({ fingerprint }: { readonly fingerprint: string }) => `${fingerprint.slice(0, 19)}…`;

test("trust create, show, list, revoke, standing and graph", async () => {
  const [ada, bob] = [await registered(), await registered("Bob")];
  writeFileSync(at("trust.json"), JSON.stringify({ minimum_threshold: 0.5 }));
  const made = await run("trust", "create", at("trust.json"), "--key", ada.key);
  expect(made).toMatch(new RegExp(`^configuration \\d+ of ${ada.fingerprint} is active$`));
  expect(await answer("trust", "show", ada.fingerprint)).toMatchObject({ minimum_threshold: 0.5, status: "active" });
  expect(await run("trust", "list")).toContain(`active  ${ada.fingerprint}  “Ada”`);
  expect(await answer("trust", "revoke", "--key", ada.key)).toMatchObject({ status: "revoked" });
  const { id } = await answer("endorse", "offer", bob.fingerprint, "--category", "human", "--key", ada.key);
  await run("endorse", "accept", `${id}`, "--key", bob.key);
  expect(await run("trust", "graph", bob.fingerprint, "--max-depth", "1")).toBe(
    `“Bob” ${short(bob)}\n└─ is endorsed by “Ada” ${short(ada)}, human, active`,
  );
  expect(await run("trust", "standing", bob.fingerprint)).toMatch(
    new RegExp(
      `^key +“Bob” ${bob.fingerprint} \\(active\\)\ntrust +\\[##-{18}\\] 0.1\nendorses +\\[-{20}\\] 0 of 9\nreceived +1 active\nissued +none\nalerts +none$`,
    ),
  );
  expect(await answer("trust", "standing", bob.fingerprint)).toMatchObject({ received: { active: 1 } });
  const line = (other: typeof ada, name: string) =>
    new RegExp(`^OFFER .*\n${id} +active  x-service:human_attestation  ${other.fingerprint}  “${name}”$`);
  expect(await run("endorse", "received", bob.fingerprint)).toMatch(line(ada, "Ada"));
  expect(await run("endorse", "issued", ada.fingerprint)).toMatch(line(bob, "Bob"));
  await run("endorse", "alert", bob.fingerprint, "--reason", "the laptop was stolen", "--key", ada.key);
  expect(await run("endorse", "alerts", bob.fingerprint)).toMatch(
    new RegExp(`  ${ada.fingerprint}  “Ada”  the laptop was stolen$`),
  );
});

test("policy publish and show, request, inbox list and read", async () => {
  const [ada, bob, eve] = [await registered(), await registered("Bob"), await registered("Eve")];
  const predicates = { field: "attestation_type", op: "eq", value: "authorship" };
  writeFileSync(at("predicates.json"), JSON.stringify(predicates));
  const published = await run("policy", "publish", at("predicates.json"), "--otherwise", "hold", "--key", bob.key);
  expect(published).toMatch(new RegExp(`^policy of ${bob.fingerprint}, active, from .*: entry \\d+$`));
  expect((await answer("policy", "show", bob.fingerprint)).active).toMatchObject({ predicates });
  const asked = await answer(
    "request",
    bob.fingerprint,
    "--type",
    "peer_review",
    "--intent",
    "For the journal”: x",
    "--key",
    ada.key,
  );
  expect(asked.status).toBe("held");
  const told = await run("inbox", "list", "--key", bob.key);
  const [heading, row] = told.split("\n") as [string, string];
  expect(heading).toMatch(/^ID +TIME +READ +REQUEST +WHAT$/);
  expect(row).toMatch(new RegExp(`^\\d+ +\\S+  no +${asked.request_id}  `));
  // No text of others can end its quotes.
  expect(row.split("  ").at(-1)).toBe(
    `“Ada” ${short(ada)} asks for peer_review until ${asked.deadline} (held back by your policy): “For the journal": x”`,
  );
  await run("inbox", "read", row.split(" ")[0]!, "--key", bob.key);
  expect(await run("inbox", "list", "--key", bob.key)).toBe(told.replace(/ {2}no {2}/, "  yes "));
  const declines = ["respond", asked.request_id, "decline"];
  expect(await answer(...declines, "--reason", "Spam", "--key", eve.key)).toMatchObject({ decision: "decline" });
  expect(await answer(...declines, "--reason", "No time", "--key", bob.key)).toMatchObject({ decision: "decline" });
  const [, mine, before] = (await run("inbox", "list", "--key", ada.key)).split("\n");
  expect(mine).toMatch(/“Bob” \S+ has declined your request for peer_review: “No time”$/);
  expect(before).toMatch(/“Eve” \S+ has declined your request for peer_review: “Spam”$/);
  expect(await run("inbox", "list", "--unread", "--key", bob.key)).toBe("none");
});

test("webhook add, list and remove", async () => {
  const { key, fingerprint } = await registered();
  const added = await answer(
    ...["webhook", "add", "--url", "https://example.org/hook", "--events", "key.revoked,key.registered"],
    ...["--key-fingerprint", fingerprint, "--secret", "0123456789abcdef", "--key", key],
  );
  expect(added).toMatchObject({ events: ["key.revoked", "key.registered"], key_fingerprint: fingerprint });
  expect(await run("webhook", "list", "--key", key)).toBe(
    `${added.id} https://example.org/hook key.revoked,key.registered healthy`,
  );
  const filters = { key_fingerprint: `sha256:${"a".repeat(64)}`, document_hash: `sha256:${"b".repeat(64)}` };
  const narrow = await answer(
    ...["webhook", "add", "--url", "https://example.org/narrow", "--key", key],
    ...["--key-fingerprint", filters.key_fingerprint, "--document-hash", filters.document_hash],
  );
  expect(narrow).toMatchObject({ ...filters, events: [] });
  expect(await answer("webhook", "remove", `${narrow.id}`, "--key", key)).toMatchObject({ id: narrow.id });
  expect(await run("webhook", "remove", `${added.id}`, "--key", key)).toBe(`${added.id} gets no more deliveries`);
  expect(await answer("webhook", "list", "--key", key)).toEqual([]);
  expect(await run("webhook", "list", "--key", key)).toBe("none");
});

test("composite assemble and compile, and its manifest attested", async () => {
  const { key } = await registered();
  for (const name of ["one.txt", "two.txt"]) writeFileSync(at(name), `This is ${name}.`);
  const assemble = ["assemble", at("one.txt"), at("two.txt"), "--title", "Both", "--out", at("both.json")];
  expect(await run("composite", ...assemble)).toBe(at("both.json"));
  await run("composite", "compile", at("both.json"), "--out", at("manifest.json"));
  const composite = JSON.parse(readFileSync(at("both.json"), "utf8"));
  // Without a file it is printed.
  const printed = JSON.parse(await run("composite", ...assemble.slice(0, -2)));
  expect(printed).toEqual(composite);
  const manifest = JSON.parse(readFileSync(at("manifest.json"), "utf8"));
  expect(manifest.document).toMatchObject({ title: "Both", content_hash: composite.composite_hash });
  const { log_entry_id } = await answer("attest", at("manifest.json"), "--manifest", "--key", key);
  const entry = await answer("log", "show", `${log_entry_id}`);
  expect(entry.payload).toMatchObject({ document_hash: composite.composite_hash, document_title: "Both" });
  const bundle = JSON.parse(readFileSync(at("manifest.json.attestation.json"), "utf8"));
  expect(bundle).toMatchObject({ manifest, entry: { id: log_entry_id } });
});

test("verify --composite accepts the parts only in their order", async () => {
  const { key } = await registered();
  const parts = ["first.txt", "second.txt"].map(at);
  for (const part of parts) writeFileSync(part, `This is ${part}.`);
  writeFileSync(at("changed.txt"), "This is another.");
  await run("composite", "assemble", ...parts, "--title", "Two of them", "--out", at("two.json"));
  await run("composite", "compile", at("two.json"), "--out", at("two"));
  await run("attest", at("two"), "--manifest", "--key", key);

  const operatorKey = at("data/operator.pub.pem");
  const verify = (files: readonly string[], bundle = at("two.attestation.json"), ...options: string[]) =>
    cairnlog(["verify", ...files, "--composite", "--attestation", bundle, "--operator-key", operatorKey, ...options]);
  const good = await verify(parts);
  expect(good.stdout).toContain(`${at("two.attestation.json")}: verified`);
  expect(good.stdout).toContain("ok     file: The files are the parts of the document, in their order.");
  expect(good.code).toBe(0);
  expect(JSON.parse((await verify(parts, undefined, "--json")).stdout)).toMatchObject({ files: parts, valid: true });

  for (const wrong of [parts.toReversed(), parts.slice(1), [...parts, ...parts], [parts[0]!, at("changed.txt")]]) {
    const { code, stdout } = await verify(wrong);
    expect([code, stdout.match(/WRONG.*/g)]).toEqual([
      1,
      ["WRONG  file: The files are not the parts that were attested, or not in their order."],
    ]);
  }

  const bundle = JSON.parse(readFileSync(at("two.attestation.json"), "utf8"));
  for (const document of [{ ...bundle.manifest.document, title: "Three" }, {}, null]) {
    writeFileSync(at("spoilt.json"), JSON.stringify({ ...bundle, manifest: { ...bundle.manifest, document } }));
    expect((await verify(parts, at("spoilt.json"))).code).toBe(1);
  }
  for (const text of ["null", "[]", '{"manifest":1}', "{"]) {
    writeFileSync(at("spoilt.json"), text);
    expect((await verify(parts, at("spoilt.json"))).stdout).toContain("NOT verified");
  }
  expect(await cairnlog(["verify", ...parts, "--composite", "--operator-key", operatorKey])).toMatchObject({ code: 2 });
});

test("claim post and list", async () => {
  const { key } = await registered();
  const account = ["create", "--key", key, "--name", "Grace", "--email", "g@example.org", "--label", "x", "--hardware"];
  await run("account", ...account);
  const recipient = parsePublicKey(newSigner("ecdsa-p256").publicKey);
  const lookupKey = "ab".repeat(16);
  const { payload } = encryptClaim({ salary: 52_000 }, { recipient, lookupKey });
  writeFileSync(at("claim.json"), JSON.stringify(payload));
  const posted = await run("claim", "post", at("claim.json"), "--key", key);
  expect(posted).toMatch(new RegExp(`^entry \\d+, to be found under ${lookupKey}$`));
  expect(await answer("claim", "list", lookupKey)).toMatchObject([{ payload }]);
});

test("keys list and show", async () => {
  const { fingerprint } = await registered("Hypatia");
  const day = "\\d{4}-\\d\\d-\\d\\d";
  expect(await run("keys", "list", "hypat")).toMatch(
    new RegExp(
      `^FINGERPRINT {62}ALGORITHM {2}STATUS {2}REGISTERED {2}NAMED {2}NAME\\n${fingerprint} {2}ed25519 {4}active {2}${day} {2}yes {4}Hypatia$`,
    ),
  );
  expect(await run("keys", "show", fingerprint)).toMatch(
    new RegExp(
      `^name {9}Hypatia \\(self-declared\\)\\nfingerprint {2}${fingerprint}\\n[^]*^-----END PUBLIC KEY-----$`,
      "m",
    ),
  );
  expect((await answer("keys", "list")).length).toBeGreaterThan(1);
  expect(await answer("keys", "show", fingerprint)).toMatchObject({ fingerprint, pseudonym: "Hypatia" });
});

test("log head, consistency, checkpoint and verify", async () => {
  await registered();
  const head = await answer("log", "head");
  expect(await answer("log", "head", "--tree-size", "1")).toMatchObject({ tree_size: 1 });
  expect(await answer("log", "consistency", "1", `${head.tree_size}`)).toMatchObject({ to_root: head.root_hash });
  expect(await answer("log", "checkpoint")).toMatchObject({ treeSize: head.tree_size, rootHash: head.root_hash });
  expect(await run("log", "checkpoint")).toContain(`\n${head.tree_size}\n`);
  expect(await run("log", "verify")).toBe(`${head.tree_size} entries, valid`);
});

test("anchor status, and now for the operator alone", async () => {
  expect(await answer("anchor", "status")).toMatchObject({ proof_status: "none" });
  const { key } = await registered();
  expect(await command("anchor", "now", "--key", key)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/operator/),
  });
  // This service has no calendars.
  expect(await command("anchor", "now", "--key", at("data/operator.pem"))).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("SERVICE_OTS_CALENDARS"),
  });
});

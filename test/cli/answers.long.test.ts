/** What commands print, with --json and without. For the options that they send see `options.long.test.ts`. */
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { encryptPrivateKey } from "#cairnlog/engine/crypto/keys/encrypted-key.js";
import { encryptClaim } from "#cairnlog/engine/verify/claims/claims.js";
import { parsePublicKey } from "#cairnlog/engine/verify/index.js";
import { startCalendar } from "../anchoring/calendar.js";
import { anyEvent } from "../anyevent.js";
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
let keys = 0;
beforeAll(async () => {
  const calendar = await startCalendar();
  service = await startTestService({
    SERVICE_DATA_DIR: at("data"),
    SERVICE_ENDORSEMENT_ACTIVATION_DELAY_S: "0",
    SERVICE_OTS_CALENDARS: calendar.url,
  });
  await pin(service.url, at("state"));
});

const command = (url: string, ...args: string[]) => cairnlog([...args, "--server", url, "--state", at("state")]);

/** The output of a command that must succeed. */
async function run(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await command(service.url, ...args);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return stdout.replace(/\n$/, "");
}
const answer = async (...args: string[]) => JSON.parse(await run(...args, "--json"));

/** Registers a key. Returns its file and its fingerprint. */
async function registered(passphrase?: string) {
  const { privateKey, fingerprint } = newSigner();
  const key = file(`key-${keys++}.pem`, passphrase ? encryptPrivateKey(privateKey, passphrase) : privateKey);
  const opened = passphrase ? ["--passphrase-file", file("passphrase", passphrase)] : [];
  await run("register", "--key", key, ...opened, "--pseudonym", `Holder ${keys}`);
  return { key, fingerprint };
}

describe("account", () => {
  test("create, enroll and recover: the recovery key is printed, or written to a file and not printed", async () => {
    const [first, second, third, fourth] = [
      ...[await registered(), await registered("hunter2"), await registered(), await registered()],
    ] as const;
    const name = ["--name", "Ada Lovelace"];
    const made = await answer(
      ...["account", "create", "--key", first!.key, ...name, "--email", "ada@example.org", "--label", "a token"],
      ...["--hardware", "--recovery-key-out", at("recovery")],
    );
    expect(made).toEqual({
      user: { id: expect.any(String), display_name: "Ada Lovelace", created_at: expect.any(String) },
      credential: expect.objectContaining({ key_fingerprint: first!.fingerprint, credential_type: "hardware" }),
      recovery_key_file: at("recovery"),
    });
    const enroll = ["account", "enroll", "--key", first!.key, "--new-key", second!.key, "--label", "another"];
    expect(await run(...enroll, "--new-passphrase-file", at("passphrase"))).toBe(
      `${second!.fingerprint} is enrolled as another`,
    );
    const recover = (key: string, ...more: string[]) =>
      run("account", "recover", "--key", key, ...name, "--label", "a laptop", "--recovery-key-file", ...more);
    const told = await recover(third!.key, at("recovery"));
    expect(told).toMatch(
      new RegExp(`^Ada Lovelace: ${third!.fingerprint}\nrecovery key, shown this once: [0-9A-Z-]{47}$`),
    );
    const shown = file("shown", told.split(": ").at(-1)!);
    expect(await recover(fourth!.key, shown, "--recovery-key-out", at("next"))).toBe(
      `Ada Lovelace: ${fourth!.fingerprint}\nrecovery key in ${at("next")}`,
    );
    expect(readFileSync(at("next"), "utf8")).toMatch(/^[0-9A-Z-]{47}\n$/);
    expect(statSync(at("next")).mode & 0o777).toBe(0o600);
  });

  test("create shows all of the answer where no file takes the recovery key", async () => {
    const { key, fingerprint } = await registered();
    const account = ["create", "--key", key, "--name", "Grace", "--email", "g@example.org", "--label", "x"];
    expect(await answer("account", ...account)).toEqual({
      user: expect.objectContaining({ display_name: "Grace" }),
      credential: expect.objectContaining({ key_fingerprint: fingerprint, credential_type: "software" }),
      recovery_key: expect.stringMatching(/^[0-9A-Z-]{47}$/),
    });
  });
});

describe("the text of an answer that is shown as it is", () => {
  test("is its JSON, indented", async () => {
    const { key, fingerprint } = await registered();
    await run("trust", "create", file("trust.json", { minimum_threshold: 0.5 }), "--key", key);
    await run("policy", "publish", file("p.json", { any: [] }), "--otherwise", "hold", "--key", key);
    const size = (await service.get("/log/sth")).body.tree_size;
    for (const args of [
      ["trust", "show", fingerprint],
      ["policy", "show", fingerprint],
      ["anchor", "status"],
      ["log", "proof", "0"],
      ["log", "head"],
      ["log", "head", "--tree-size", "1"],
      ["log", "consistency", "1", `${size}`],
    ])
      expect(await run(...args), args.join(" ")).toBe(JSON.stringify(await answer(...args), null, 2));
    expect(await answer("log", "consistency", "1", `${size}`)).toMatchObject({ from_size: 1, to_size: size });
  });

  test("but an entry and a key are shown as facts, with everything that is in them", async () => {
    const { fingerprint } = await registered();
    const entry = await answer("log", "show", "1");
    const shown = await run("log", "show", "1");
    for (const value of [...Object.values(entry.payload), entry.entry_hash, entry.timestamp, entry.event_type])
      expect(shown).toContain(typeof value === "string" ? value.replaceAll("\n", "\\u{a}") : JSON.stringify(value));
    expect(shown).toContain("number 1; leaf 0 of the tree, counted from 0");
    const key = await answer("keys", "show", fingerprint);
    const told = await run("keys", "show", fingerprint);
    for (const value of [key.public_key.trimEnd(), key.pseudonym, key.status, key.algorithm, key.registered_at])
      expect(told).toContain(value);
  });
});

describe("an answer is all of it with --json, and a line without", () => {
  test("trust create and revoke", async () => {
    const { key, fingerprint } = await registered();
    const create = ["trust", "create", file("trust.json", { minimum_threshold: 0.5 }), "--key", key];
    const { id, ...made } = await answer(...create);
    expect(made).toMatchObject({ fingerprint, status: "active", minimum_threshold: 0.5 });
    expect(await run("trust", "revoke", "--key", key)).toBe(`configuration ${id} of ${fingerprint} is revoked`);
  });

  test("trust graph, also of one that is cut short", async () => {
    const [ada, bob] = [await registered(), await registered()];
    const { id } = await answer("endorse", "offer", bob.fingerprint, "--category", "human", "--key", ada.key);
    await run("endorse", "accept", `${id}`, "--key", bob.key);
    const graph = await answer("trust", "graph", bob.fingerprint);
    expect(graph).toMatchObject({ root: bob.fingerprint, truncated: false, edges: [{ from: ada.fingerprint }] });
    const proxy = await LyingProxy.before(service.url);
    await pin(proxy.url, at("state"));
    proxy.lie = (path, told) => (path.startsWith("/graph/") ? { ...told, truncated: true } : told);
    const { stdout } = await command(proxy.url, "trust", "graph", bob.fingerprint);
    expect(stdout).toMatch(/^“.*”.*\n└─ is endorsed by “.*” \S+, human, active\nThere is more than that\.\n$/);
  });

  test("policy publish, request, inbox read", async () => {
    const { key, fingerprint } = await registered();
    const publish = ["policy", "publish", file("p.json", { any: [] }), "--otherwise", "hold", "--key", key];
    expect(await answer(...publish)).toMatchObject({ target_fingerprint: fingerprint, status: "active" });
    await run("request", fingerprint, "--type", "authorship", "--key", key);
    const [notification] = await answer("inbox", "list", "--key", key);
    const read = ["inbox", "read", `${notification.id}`, "--key", key];
    expect(await run(...read)).toBe(`${notification.id} is read`);
    expect(await answer(...read)).toMatchObject({ id: notification.id, read: true });
  });

  test("endorse offer, withdraw, alert", async () => {
    const [ada, bob] = [await registered(), await registered()];
    const offer = ["endorse", "offer", bob.fingerprint, "--category", "human", "--key", ada.key];
    const told = await run(...offer);
    expect(told).toMatch(new RegExp(`^offered to ${bob.fingerprint}: entry \\d+$`));
    const id = told.split(" ").at(-1)!;
    const { endorsement, log_entry } = await answer("endorse", "accept", id, "--key", bob.key);
    expect({ endorsement, log_entry }).toMatchObject({ endorsement: { status: "active" }, log_entry: { id: +id + 1 } });
    const warned = await answer("endorse", "alert", bob.fingerprint, "--reason", "lost", "--key", ada.key);
    expect(warned.log_entry.payload).toMatchObject({ reason: "lost" });
    const [alert] = await answer("endorse", "alerts", bob.fingerprint);
    expect(await run("endorse", "alerts", bob.fingerprint)).toMatch(
      new RegExp(`\n${warned.log_entry.id} +${alert.filed_at}  ${ada.fingerprint}  “.*”  lost$`),
    );
    expect(await run("endorse", "alert", bob.fingerprint, "--reason", "gone", "--key", ada.key)).toMatch(
      new RegExp(`^warned of ${bob.fingerprint}: entry \\d+$`),
    );
  });

  test("webhook add and list, of one that fails, and of one for all events", async () => {
    const { key } = await registered();
    const add = ["webhook", "add", "--url", "https://example.org/hook", "--key", key];
    const told = await run(...add);
    expect(told).toMatch(/^\d+ https:\/\/example\.org\/hook all events healthy$/);
    const proxy = await LyingProxy.before(service.url);
    await pin(proxy.url, at("state"));
    const failing = { healthy: false, retry_count: 11, events: ["key.revoked", "key.registered"] };
    proxy.lie = (path, hooks) => (path === "/webhooks" ? [hooks[0], { ...hooks[0], ...failing, id: 99 }] : hooks);
    const list = await command(proxy.url, "webhook", "list", "--key", key, "--as", service.url);
    expect(list).toEqual({
      code: 0,
      stdout: `${told}\n99 https://example.org/hook key.revoked,key.registered failing (11 in a row)\n`,
      stderr: "",
    });
  });

  test("claim post and list", async () => {
    const { key } = await registered();
    const account = ["--name", "Lise", "--email", "l@example.org", "--label", "x", "--hardware"];
    await run("account", "create", "--key", key, ...account);
    const recipient = parsePublicKey(newSigner("ecdsa-p256").publicKey);
    const lookupKey = "cd".repeat(16);
    const claims = [1, 2].map((n) => encryptClaim({ n }, { recipient, lookupKey }).payload);
    const posted = await answer("claim", "post", file("claim.json", claims[0]!), "--key", key);
    expect(posted).toMatchObject({ lookup_key: lookupKey, log_entry_id: expect.any(Number) });
    await run("claim", "post", file("claim.json", { id: 1, payload: claims[1] }), "--key", key);
    const listed = await answer("claim", "list", lookupKey);
    expect(listed).toMatchObject(claims.map((payload) => ({ payload })));
    const lines = (await run("claim", "list", lookupKey)).split("\n").map((line) => /^(\d+) (\S+) (.*)$/.exec(line)!);
    expect(lines.map(([, id, timestamp, payload]) => [Number(id), timestamp, JSON.parse(payload!)])).toEqual(
      listed.map(({ id, timestamp, payload }: { id: number; timestamp: string; payload: object }) => [
        ...[id, timestamp, payload],
      ]),
    );
    expect(await run("claim", "list", "ef".repeat(16))).toBe("none");
  });

  test("anchor now", async () => {
    await registered();
    const now = ["anchor", "now", "--key", at("data/operator.pem")];
    const promised = await answer(...now);
    expect(promised).toMatchObject({ anchored_entry_id: expect.any(Number), ots_proof: expect.any(String) });
    await registered();
    expect(await run(...now)).toBe(`entry ${promised.anchored_entry_id + 1} is promised to be anchored`);
  });
});

test("composite writes to a new file, and over none", async () => {
  const part = file("part.txt", "A part");
  const assemble = ["composite", "assemble", part, "--title", "One", "--out", at("one.json")];
  const printed = await answer(...assemble);
  const text = readFileSync(at("one.json"), "utf8");
  expect(text).toBe(`${JSON.stringify(printed, null, 2)}\n`);
  writeFileSync(at("one.json"), "kept");
  expect(await command(service.url, ...assemble)).toMatchObject({
    code: 1,
    stdout: "",
    stderr: expect.stringMatching(/^cairnlog: .* exists already \(EEXIST\)/),
  });
  expect(readFileSync(at("one.json"), "utf8")).toBe("kept");
  const compile = ["composite", "compile", file("one.json", text)];
  expect(await run(...compile)).toBe(JSON.stringify(await answer(...compile), null, 2));
});

test("log checkpoint prints the note as it is signed, and with --json what is in it, too", async () => {
  await registered();
  const note = (await service.get("/log/checkpoint")).text;
  expect(`${await run("log", "checkpoint")}\n`).toBe(note);
  const { tree_size: treeSize, root_hash: rootHash } = (await service.get("/log/sth")).body;
  expect(await answer("log", "checkpoint")).toMatchObject({ note, treeSize, rootHash });
});

test("log tail shows an empty log, a short one and the end of a long one", async () => {
  const fresh = await startTestService();
  const tail = async (...more: string[]) => {
    const { code, stdout, stderr } = await command(fresh.url, "log", "tail", "--json", ...more);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    return stdout
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line).id);
  };
  expect(await tail()).toEqual([]);
  await fresh.server.registry.log.append(anyEvent());
  expect(await tail()).toEqual([1]);
  await fresh.server.registry.log.append(Array(11).fill(anyEvent()));
  expect(await tail()).toEqual([3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
  expect(await tail("-n", "100")).toHaveLength(12);
  expect(await tail("-n", "1")).toEqual([12]);
  expect(await tail("-n", "0")).toEqual([]);
});

describe("the session", () => {
  const session = () => answer("login", "--key", ada.key, "--print-token");
  let ada: { key: string; fingerprint: string };
  beforeAll(async () => {
    ada = await registered();
  });

  test("is not used by a command with a key, which leaves it alone", async () => {
    const { file: kept } = await session();
    const before = readFileSync(kept, "utf8");
    const bob = await registered();
    const config = file("trust.json", { minimum_threshold: 0.5 });
    expect(await answer("trust", "create", config, "--key", bob.key)).toMatchObject({ fingerprint: bob.fingerprint });
    await run("inbox", "list", "--key", bob.key);
    expect(readFileSync(kept, "utf8")).toBe(before);
    expect(await answer("trust", "create", config)).toMatchObject({ fingerprint: ada.fingerprint });
    rmSync(kept);
    await run("inbox", "list", "--key", bob.key);
    expect(existsSync(kept)).toBe(false);
  });

  test("is written again when it was renewed, and only then", async () => {
    const { file: kept, token } = await session();
    const { ino } = statSync(kept);
    await run("inbox", "list");
    expect(statSync(kept).ino).toBe(ino);
    const soon = new Date(Date.now() + 120_000).toISOString();
    const { expires_at, ...rest } = JSON.parse(readFileSync(kept, "utf8"));
    writeFileSync(kept, JSON.stringify({ ...rest, token, expires_at: soon.replace("Z", "000Z") }));
    await run("inbox", "list");
    const renewed = JSON.parse(readFileSync(kept, "utf8"));
    expect(renewed).toMatchObject({ fingerprint: ada.fingerprint, token: expect.any(String) });
    expect(renewed.expires_at >= expires_at).toBe(true);
    expect(await answer("inbox", "list")).toEqual([]);
  });

  test("that has expired counts as none", async () => {
    const { file: kept } = await session();
    const text = readFileSync(kept, "utf8");
    writeFileSync(kept, text.replace(/"expires_at": "\d{4}/, '"expires_at": "2020'));
    expect(await command(service.url, "inbox", "list")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("there is no session (cairnlog login)"),
    });
  });
});

test("an operator key that is not the pinned one is told without evidence, and how the known one is forgotten", async () => {
  await run("log", "head");
  const stranger = file("stranger.pem", newSigner().publicKey);
  const { code, stdout, stderr } = await command(service.url, "log", "head", "--operator-key", stranger);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toMatch(
    /^cairnlog: The pinned operator key is sha256:[^\n]*\. Ask the operator elsewhere which key is right\. [^\n]*"cairnlog config forget \S+[^\n"]*" forgets the old one; [^\n]*\.\n$/,
  );
  expect(stderr).not.toContain("evidence");
  expect(readdirSync(at("state")).filter((name) => name.includes("evidence"))).toEqual([]);
});

test("faults of a request are told with their places in it", async () => {
  const { key } = await registered();
  const bad = ["webhook", "add", "--url", "ftp://example.org", "--secret", "short", "--key", key];
  const { code, stdout, stderr } = await command(service.url, ...bad);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toMatch(/^cairnlog: \S.*\n {2}\/url: \S.*\n {2}\/secret: \S.*\n$/);
});

/** The commands that talk to a service through the client, run as users run them: round trips and errors. */
import { spawn } from "node:child_process";
import { createPublicKey, sign } from "node:crypto";
import { once } from "node:events";
import fs, { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { LyingProxy } from "../client/proxy.js";
import { startTestService, type TestService, temporaryFolder } from "../server/harness.js";
import { type Finished, MAIN } from "../service.js";
import { cairnlog, pin } from "./harness.js";

const folder = temporaryFolder();
const at = (name: string) => join(folder, name);
let service: TestService;
let keys = 0;
beforeAll(async () => {
  service = await startTestService({ SERVICE_ENDORSEMENT_ACTIVATION_DELAY_S: "0" });
  await pin(service.url, at("state"));
});

/** Runs a command against the service, with the state folder of this test file. */
const run = (...args: string[]) => cairnlog([...args, "--server", service.url, "--state", at("state")]);

/** Runs a command that must succeed; returns its answer. */
async function answer(...args: string[]) {
  const { code, stdout, stderr } = await run(...args, "--json");
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(stdout);
}

async function newKey(): Promise<string> {
  const file = at(`key-${keys++}.pem`);
  expect(await cairnlog(["keygen", "--out", file])).toMatchObject({ code: 0 });
  return file;
}

/** Registers a key. Returns its file and its fingerprint. */
async function registered(pseudonym = "Ada") {
  const key = await newKey();
  const { fingerprint } = await answer("register", "--key", key, "--pseudonym", pseudonym);
  return { key, fingerprint: fingerprint as string };
}

/** Asserts that stderr is one sentence, without a stack trace, and that stdout is empty. */
function expectFailure({ code, stderr, stdout }: Finished, exitCode: number, sentence: RegExp): void {
  expect({ code, stdout }).toEqual({ code: exitCode, stdout: "" });
  expect(stderr).toMatch(sentence);
  expect(stderr).toMatch(/^cairnlog: /);
  expect(stderr).not.toMatch(/\n\s+at /);
}

test("register, succeed, revoke", async () => {
  const key = await newKey();
  const told = await run("register", "--key", key, "--pseudonym", "Ada");
  expect(told).toMatchObject({ code: 0, stderr: "" });
  expect(told.stdout).toMatch(/^sha256:[0-9a-f]{64} \(Ada\): entry \d+\n$/);
  expectFailure(await run("register", "--key", key, "--pseudonym", "Ada"), 1, /registered already|exists/);
  const next = await newKey();
  const succeeded = await answer("succeed", "--key", key, "--new-key", next, "--pseudonym", "Ada the second");
  expect(told.stdout).toContain(succeeded.old_fingerprint);
  expectFailure(await run("revoke", "--key", next), 2, /say --yes/);
  const revoked = await answer("revoke", "--yes", "--key", next);
  expect(revoked).toMatchObject({ fingerprint: succeeded.new_fingerprint, status: "revoked" });
  expectFailure(await run("revoke", "--yes", "--key", next), 1, /revoked/);
});

test("a registration by a stranger directly before attest is replaced, and told", async () => {
  const key = await newKey();
  const pem = createPublicKey(readFileSync(key)).export({ type: "spki", format: "pem" }).toString();
  const payload = { public_key: pem, pseudonym: "Mallory", key_algorithm: "ed25519" };
  const { fingerprint } = (await service.post("/keys/register", { payload })).body;
  const file = at("squatted.txt");
  writeFileSync(file, "squatted");
  const { code, stderr } = await run("attest", file, "--key", key, "--pseudonym", "Ada");
  expect(code).toBe(0);
  expect(stderr).toMatch(/“Mallory”.*had not signed.*“Ada”/);
  expect(await answer("keys", "show", fingerprint)).toMatchObject({ pseudonym: "Ada", named: true });
  expect((await run("keys", "show", fingerprint)).stdout).toContain("Ada (self-declared)");
});

test("a key may be registered for a time", async () => {
  const key = await newKey();
  const until = "2099-12-31T00:00:00.000000Z";
  const { fingerprint } = await answer("register", "--key", key, "--pseudonym", "Ada", "--expires", until);
  expect(await answer("keys", "show", fingerprint)).toMatchObject({ fingerprint, expires_at: until });
  const always = await registered();
  expect(await answer("keys", "show", always.fingerprint)).toMatchObject({ expires_at: null });
});

test("a session that is damaged is named, and believed by nobody", async () => {
  const { key } = await registered();
  const { file } = await answer("login", "--key", key);
  writeFileSync(file, "{}");
  const { code, stdout, stderr } = await run("inbox", "list");
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toContain(`${file} is damaged`);
  rmSync(file);
  mkdirSync(file);
  expectFailure(await run("inbox", "list"), 1, /EISDIR/);
  rmSync(file, { recursive: true });
});

test("a session is its owner's alone before its mode is set, too", async () => {
  const { key } = await registered();
  const modes: number[] = [];
  const { chmodSync } = fs;
  fs.chmodSync = (path, mode) => {
    modes.push(statSync(path).mode & 0o777);
    chmodSync(path, mode);
  };
  syncBuiltinESMExports();
  try {
    await answer("login", "--key", key);
  } finally {
    fs.chmodSync = chmodSync;
    syncBuiltinESMExports();
  }
  expect([...new Set(modes)]).toEqual([0o600]);
});

test("login keeps a session that only its owner can read, and other commands go by it", async () => {
  const { key, fingerprint } = await registered();
  // Whoever looks over a shoulder, or reads the log of a build, could act for the key.
  const token = /[\w-]{20,}\.[\w-]{20,}\.[\w-]{20,}/;
  const told = await run("login", "--key", key);
  expect(told.stdout).toMatch(/^Signed in as Ada \(sha256:\w+\) until \S+\. The session is in \S+\.session\.json\.\n$/);
  const kept = await answer("login", "--key", key);
  expect(told.stdout + JSON.stringify(kept)).not.toMatch(token);
  expect((await run("login", "--key", key, "--print-token")).stdout).toMatch(new RegExp(`^${token.source}\n$`));
  expect(kept).toMatchObject({ fingerprint, pseudonym: "Ada" });
  expect(statSync(kept.file).mode & 0o777).toBe(0o600);
  expect(statSync(at("state")).mode & 0o777).toBe(0o700);
  const asked = await answer("request", fingerprint, "--type", "authorship");
  expect(asked).toMatchObject({ requester_fingerprint: fingerprint, status: "open" });
  const declined = await answer("respond", asked.request_id, "decline", "--reason", "Not my field");
  expect(declined).toMatchObject({ responder_fingerprint: fingerprint });
  const { payload } = await answer("log", "show", `${declined.log_entry_id}`);
  expect(payload).toMatchObject({ decision: "decline", reason: "Not my field" });
  expect(await answer("revoke", "--yes")).toMatchObject({ fingerprint });
  rmSync(kept.file);
  expectFailure(await run("revoke", "--yes"), 2, /--key is missing, and there is no session/);
});

test("login reads a password from a file, and is refused without it", async () => {
  const { key, fingerprint } = await registered();
  await setPassword(key, fingerprint, "correct horse battery");
  expectFailure(await run("login", "--key", key), 1, /password.* --password-file FILE gives it/);
  writeFileSync(at("password"), "correct horse battery\n");
  expect(await answer("login", "--key", key, "--password-file", at("password"), "--print-token")).toHaveProperty(
    "token",
  );
});

test("a key with a password does all that a key does: by the password, or by its session", async () => {
  const { key, fingerprint } = await registered();
  const others = await registered("Bob");
  await setPassword(key, fingerprint, "correct horse battery");
  const password = ["--password-file", at("its-password")];
  writeFileSync(at("its-password"), "correct horse battery\n");
  await answer("login", "--key", others.key);
  expectFailure(await run("inbox", "list", "--key", key), 1, /password.* the session of cairnlog login/);
  const { file } = await answer("login", "--key", key, ...password);
  const kept = readFileSync(file, "utf8");
  expect(await answer("inbox", "list", "--key", key)).toEqual([]);
  expect(await answer("webhook", "list", "--key", key)).toEqual([]);
  expect(readFileSync(file, "utf8")).toBe(kept);
  const next = await newKey();
  const succeed = ["succeed", "--key", key, "--new-key", next];
  expectFailure(await run(...succeed), 1, /password.* --password-file FILE gives it/);
  expect(await answer(...succeed, ...password)).toMatchObject({ old_fingerprint: fingerprint });
});

async function setPassword(key: string, fingerprint: string, password: string): Promise<void> {
  const post = async (path: string, body: object) => {
    const response = await fetch(`${service.url}/api/v1${path}`, { method: "POST", body: JSON.stringify(body) });
    expect(response.status).toBe(200);
    return response.json();
  };
  const { challenge_id, nonce } = await post("/auth/challenge", { fingerprint });
  const challenge_signature = sign(null, Buffer.from(nonce), readFileSync(key)).toString("base64");
  await post("/auth/password", { challenge_id, challenge_signature, password });
}

test("endorse: offer, accept, withdraw, revoke-acceptance", async () => {
  const [ada, bob] = [await registered(), await registered("Bob")];
  const offer = (...more: string[]) =>
    answer("endorse", "offer", bob.fingerprint, "--category", "institutional", "--key", ada.key, ...more);
  const offered = await offer("--institution", "The Academy", "--valid-until", "2099-12-31");
  expect(offered.payload).toMatchObject({ institutional_metadata: { name: "The Academy" } });
  const accepted = await answer("endorse", "accept", `${offered.id}`, "--key", bob.key, "--note", "thanks");
  expect(accepted.endorsement).toMatchObject({ offer_entry_id: offered.id });
  const ended = await run("endorse", "revoke-acceptance", `${offered.id}`, "--note", "no longer", "--key", bob.key);
  expect(ended.stdout).toMatch(new RegExp(`^offer ${offered.id} is now acceptance_revoked: entry \\d+\\n$`));
  const again = await offer();
  const withdrawn = await answer("endorse", "withdraw", `${again.id}`, "--note", "we parted", "--key", ada.key);
  expect(withdrawn.endorsement.status).toBe("withdrawn");
  expectFailure(await run("endorse", "withdraw", "1", "--note", "x", "--key", ada.key), 2, /entry 1 is no offer/);
});

test("request and respond, with an attestation made in between", async () => {
  const [ada, bob] = [await registered(), await registered("Bob")];
  writeFileSync(at("claims.json"), '{"pages": 12}');
  const asked = await answer(
    ...["request", bob.fingerprint, "--type", "peer_review", "--intent", "for the journal"],
    ...["--claims", at("claims.json"), "--key", ada.key],
  );
  expect(asked).toMatchObject({ claims: { pages: 12 }, target_fingerprint: bob.fingerprint });
  writeFileSync(at("paper.txt"), "A paper");
  await answer("attest", at("paper.txt"), "--key", bob.key, "--type", "peer_review");
  const { attestation } = JSON.parse(readFileSync(at("paper.txt.attestation.json"), "utf8"));
  const told = await run("respond", asked.request_id, "accept", "--attestation", attestation.id, "--key", bob.key);
  expect(told.stdout).toMatch(new RegExp(`^${asked.request_id} is accepted: entry \\d+\\n$`));
  expectFailure(await run("respond", asked.request_id, "decline", "--key", bob.key), 1, /answered in entry/);
});

test("a time that is none is answered with the option, before anything is sent", async () => {
  const { key, fingerprint } = await registered();
  for (const [option, ...args] of [
    ["--deadline", "request", fingerprint, "--type", "authorship"],
    ["--expires", "register", "--pseudonym", "Ada"],
    ["--valid-until", "endorse", "offer", fingerprint, "--category", "human"],
    ["--expires", "succeed", "--new-key", key],
  ] as const)
    expectFailure(
      await run(...args, "--key", key, option, "tomorrow"),
      2,
      new RegExp(`${option} must be a time such as \\S+, not tomorrow`),
    );
  const day = new Date(Date.now() + 3 * 86_400_000).toISOString().slice(0, 10);
  const asked = await answer("request", fingerprint, "--type", "authorship", "--key", key, "--deadline", day);
  expect(asked.deadline).toBe(`${day}T23:59:59.000000Z`);
});

describe("log", () => {
  test("show, search, proof and tail", async () => {
    const { fingerprint } = await registered("Grace");
    const [line] = (await run("log", "search", fingerprint, "--json")).stdout.split("\n");
    const entry = JSON.parse(line!);
    expect(entry.payload).toMatchObject({ fingerprint, pseudonym: "Grace" });
    expect(await answer("log", "show", `${entry.id}`)).toEqual(entry);
    expect((await run("log", "show", `${entry.id}`)).stdout).toMatch(
      new RegExp(
        `^entry +number ${entry.id}; leaf ${entry.id - 1} of the tree, counted from 0\\n[^]*^proven +in the tree of \\d+ leaves, [0-9a-f]{64}$`,
        "m",
      ),
    );
    expect(await answer("log", "search", "--fingerprint", fingerprint)).toEqual(entry);
    const found = await run("log", "search", "--event-type", "key_registration", "--limit", "1");
    expect(found).toMatchObject({ code: 0, stderr: "There are more than 1 (--limit).\n" });
    expect(await answer("log", "proof", "0")).toMatchObject({ leaf_index: 0 });
    expect(await answer("log", "proof", "0", "--tree-size", "1")).toMatchObject({ tree_size: 1, audit_path: [] });
    const tail = await run("log", "tail", "-n", "2");
    const [heading, ...rows] = tail.stdout.trimEnd().split("\n");
    expect(heading).toMatch(/^ENTRY +TIME +EVENT +BY KEY +NAME +ABOUT$/);
    expect(rows).toHaveLength(2);
    const [day, time] = entry.timestamp.split("T");
    expect(rows[1]).toMatch(
      new RegExp(`^${entry.id} +${day} ${time.slice(0, "00:00:00".length)}Z +Key registered +- +Grace$`),
    );
    expectFailure(await run("log", "show", "999999"), 1, /no entry 999999/);
  });

  test("search takes a hash in either spelling, a key, and words, and says when there is nothing", async () => {
    const { key, fingerprint } = await registered("Hedy Lamarr");
    writeFileSync(at("searched"), "A paper on frequencies");
    const made = await answer("attest", at("searched"), "--key", key, "--title", "Frequencies");
    const { payload } = await answer("log", "show", `${made.log_entry_id}`);
    const [hash, bare] = [payload.document_hash, payload.document_hash.slice("sha256:".length)];
    const rows = async (...args: string[]) =>
      (await run("log", "search", ...args)).stdout.trimEnd().split("\n").slice(1);
    for (const term of [hash, bare, bare.slice(0, 12), hash.slice(0, 19), bare.toUpperCase(), "frequenc"])
      expect(await rows(term), term).toEqual([
        expect.stringMatching(new RegExp(`^${made.log_entry_id} .*Attestation .* “Hedy Lamarr” +Frequencies$`)),
      ]);
    // All that the key did, and what was done to it.
    expect(await rows(fingerprint.slice("sha256:".length))).toHaveLength(2);
    expect(await rows("lamarr")).toHaveLength(1);
    expect(await run("log", "search", "ffffffffffff")).toEqual({
      code: 0,
      stdout: "",
      stderr: "No entry fits ffffffffffff.\n",
    });
    expect(await run("log", "search", "--title", "nonsense")).toMatchObject({ stderr: "No entry fits.\n" });
  });

  test("tail --follow shows new entries until it is interrupted", async () => {
    const args = ["log", "tail", "--follow", "-n", "0", "--interval", "1", "--json"];
    const child = spawn(process.execPath, [MAIN, ...args, "--server", service.url, "--state", at("follow")], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    try {
      const lines = createInterface({ input: child.stdout });
      const first = once(lines, "line");
      // The state is written when the command has seen the head from which it continues.
      await expect.poll(() => stateFile("follow")).toMatch(/"tree_size"/);
      const { fingerprint } = await registered("Late");
      const [line] = (await first) as [string];
      expect(JSON.parse(line).payload).toMatchObject({ fingerprint });
      const ended = once(child, "exit");
      child.kill("SIGINT");
      expect((await ended)[0]).toBe(0);
    } finally {
      child.kill("SIGKILL");
    }
  });

  test("texts of others cannot control the terminal", async () => {
    const { fingerprint } = await registered("Ada \u202egrace");
    const { stdout } = await run("log", "search", fingerprint);
    expect(stdout).toContain("Ada \\u{202e}grace");
  });
});

function stateFile(name: string): string {
  try {
    const file = readdirSync(at(name)).find((entry) => entry.endsWith(".log.json"));
    return file ? readFileSync(join(at(name), file), "utf8") : "";
  } catch {
    return "";
  }
}

describe("a log that lies", () => {
  test("is exit code 1, a sentence, and a file with the evidence", async () => {
    const proxy = await LyingProxy.before(service.url);
    const lied = (...args: string[]) => cairnlog([...args, "--server", proxy.url, "--state", at("lied")]);
    expect(await lied("log", "tail")).toMatchObject({ code: 0 });
    proxy.lie = (path, told) => (path === "/log/sth" ? { ...told, root_hash: "0".repeat(64) } : told);
    const caught = await lied("log", "tail");
    expectFailure(
      caught,
      1,
      /not signed by the pinned operator key\. The evidence is in \S+; keep it\. Only if you know that a new log was started at this address: "cairnlog config forget \S+ --state \S+" begins anew\./,
    );
    const [, path] = /evidence is in (\S+);/.exec(caught.stderr)!;
    expect(JSON.parse(readFileSync(path!, "utf8"))).toMatchObject({
      known: { tree_size: expect.any(Number) },
      shown: { root_hash: "0".repeat(64) },
      operatorKey: expect.stringContaining("PUBLIC KEY"),
    });
    expect(statSync(path!).mode & 0o777).toBe(0o600);
  });

  test("is told, with the evidence, also where no file takes that", async () => {
    const proxy = await LyingProxy.before(service.url);
    const lied = () => cairnlog(["log", "tail", "--server", proxy.url, "--state", at("taken")]);
    expect(await lied()).toMatchObject({ code: 0 });
    proxy.lie = (path, told) => (path === "/log/sth" ? { ...told, root_hash: "0".repeat(64) } : told);
    const full = Object.assign(new Error("ENOSPC"), { code: "ENOSPC", syscall: "write" });
    const writing = vi.spyOn(fs, "writeFileSync").mockImplementation(() => {
      throw full;
    });
    syncBuiltinESMExports();
    const { code, stderr } = await lied().finally(() => {
      writing.mockRestore();
      syncBuiltinESMExports();
    });
    expect(code).toBe(1);
    expect(stderr).toContain("not signed by the pinned operator key. The evidence was not written: ");
    const [, shown] = /Keep it yourself: (\{.*\}) Only if you know/.exec(stderr)!;
    expect(JSON.parse(shown!)).toMatchObject({ shown: { root_hash: "0".repeat(64) } });
  });

  test("is exit code 1 if its own verification fails", async () => {
    const proxy = await LyingProxy.before(service.url);
    const finding = { id: 1, tree_size: null, code: "hash-mismatch", message: "The entry does not hash to that." };
    proxy.lie = (path, told) => (path === "/log/verify" ? { ...told, valid: false, errors: [finding] } : told);
    const { code, stdout } = await cairnlog(["log", "verify", "--server", proxy.url, "--state", at("invalid")]);
    expect(code).toBe(1);
    expect(stdout).toMatch(/^\d+ entries, NOT valid\nhash-mismatch: The entry does not hash to that\.\n$/);
  });

  test("is not followed when its operator key was pinned, or its state was damaged", async () => {
    writeFileSync(at("stranger.pem"), await publicPem());
    expect(await run("log", "tail")).toMatchObject({ code: 0 });
    const pinned = await run("log", "tail", "--operator-key", at("stranger.pem"));
    expectFailure(pinned, 1, /The pinned operator key is sha256:/);
    const fresh = ["log", "tail", "--server", service.url, "--state", at("damaged")];
    expect(await cairnlog(fresh)).toMatchObject({ code: 0 });
    const [name] = readdirSync(at("damaged"));
    writeFileSync(join(at("damaged"), name!), '{"operator_key": 1}');
    expectFailure(await cairnlog(fresh), 1, /is damaged/);
  });

  test("state is kept below XDG_CONFIG_HOME where no folder is named", async () => {
    const env = { XDG_CONFIG_HOME: at("config") };
    expect(await cairnlog(["log", "tail", "--server", service.url], env)).toMatchObject({ code: 0 });
    expect(readdirSync(at("config/cairnlog"))).toEqual([
      expect.stringMatching(/^127\.0\.0\.1_\d+-[0-9a-f]{12}\.log\.json$/),
    ]);
  });
});

/** The public key of another log. */
async function publicPem(): Promise<string> {
  const other = await startTestService();
  return (await other.get("/log/operator-key")).body.public_key;
}

describe("wrong usage is exit code 2 with a message", () => {
  const server = ["--server", "http://127.0.0.1:10"];
  test.each([
    [["register", ...server], /--key is missing/],
    [["register", "--key", "k.pem", ...server], /--pseudonym is missing/],
    [["login", ...server], /--key is missing/],
    [["succeed", "--key", "k.pem", ...server], /--new-key is missing/],
    [["revoke", ...server], /say --yes/],
    [["endorse", ...server], /say what to do: offer, accept/],
    [["endorse", "offer", ...server, "--key", "k.pem"], /FINGERPRINT to endorse is missing/],
    [["endorse", "offer", "x", "--category", "both", "--key", "k.pem", ...server], /--category must be human or/],
    [["endorse", "accept", "first", "--key", "k.pem", ...server], /OFFER must be a whole number/],
    [["request", ...server], /name one FINGERPRINT/],
    [["request", "x", ...server], /--type is missing/],
    [["respond", "x", "perhaps", ...server], /accept or decline/],
    [["respond", "x", "accept", ...server], /--attestation is missing/],
    [["log", ...server], /say what to do: show, search, proof, tail/],
    [["log", "show", ...server], /at least one ENTRY/],
    [["log", "proof", "-1", ...server], /./],
    [["log", "search", "x", "--fingerprint", "y", ...server], /goes with no other filter/],
    [["log", "tail", "--lines", "many", ...server], /--lines must be a whole number/],
    [["log", "tail", "--server", "nowhere"], /--server must be an address/],
    [["log", "tail"], /--server is missing/],
  ])("%j", async (args, sentence) => {
    expectFailure(await cairnlog(args), 2, sentence);
  });

  test("no service is exit code 1", async () => {
    expectFailure(await cairnlog(["log", "tail", ...server]), 1, /No service answers/);
  });

  test.each(["register", "login", "succeed", "revoke", "endorse", "request", "respond", "log"])(
    "%s --help has an example",
    async (command) => {
      const { code, stdout } = await cairnlog([command, "--help"]);
      expect(code).toBe(0);
      expect(stdout).toMatch(new RegExp(`Examples?:\\n.*cairnlog ${command}`));
    },
  );
});

/** What `cairnlog attest DIR` makes public, and what it leaves out: a name in a log cannot be taken back. */
import { execFileSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { PassThrough } from "node:stream";
import fc from "fast-check";
import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { encryptPrivateKey } from "#cairnlog/engine/crypto/keys/encrypted-key.js";
import { namedFiles } from "#cairnlog/server/cli/files/files.js";
import { holdsPrivateKey } from "#cairnlog/server/cli/files/private-key-file.js";
import { startTestService, type TestService, temporaryFolder } from "../server/harness.js";
import { newSigner } from "../server/signers.js";
import { begin, cairnlog, pin } from "./harness.js";

const data = temporaryFolder();
const keyFile = join(temporaryFolder(), "me.pem");
let service: TestService;
beforeAll(async () => {
  service = await startTestService({ SERVICE_DATA_DIR: data });
  await pin(service.url);
  writeFileSync(keyFile, newSigner().privateKey);
});

/** A directory with files of these names and contents. */
function folderOf(files: Readonly<Record<string, string>>): string {
  const folder = temporaryFolder();
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), content);
  }
  return folder;
}

const attest = (...args: readonly string[]) => cairnlog(["attest", ...args, "--key", keyFile, "--server", service.url]);
const attested = (stdout: string, folder: string) =>
  stdout.split("\n").flatMap((line) => (line === "" ? [] : [relative(folder, line.split(": ")[0]!)]));
const named = (paths: readonly string[], options: { all?: boolean; exclude?: readonly string[] } = {}) =>
  namedFiles(paths, { all: false, exclude: [], ...options });

/** What a working directory holds beside the documents. */
const WORKING = {
  "paper.txt": "A paper",
  "data/table.csv": "1,2",
  "data/notes.txt": "not for others",
  "data/draft.txt~": "a backup",
  ".env": "PASSWORD=hunter2",
  ".git/config": "[core]",
  ".gitignore": "notes.txt\nbuild/\n",
  "build/out.txt": "made",
  "node_modules/a/index.js": "code",
  ".paper.txt.swp": "swap",
  "me.pem": newSigner().privateKey,
};

describe("of a directory", () => {
  test("secrets, what git ignores and what tools keep there are left out, and the command says so", async () => {
    const folder = folderOf(WORKING);
    const run = await attest(folder);
    expect(run.code).toBe(0);
    expect(attested(run.stdout, folder)).toEqual(["data/table.csv", "paper.txt"]);
    const [hidden, keys] = run.stderr.split("\n");
    expect(hidden).toBe(
      `Left out: ${[".env", ".git", ".gitignore", ".paper.txt.swp", "build"].map((name) => join(folder, name)).join(", ")} and 3 more. With --all they are attested, too.`,
    );
    expect(keys).toBe(`Left out for the private keys in them: ${join(folder, "me.pem")}.`);
  });

  test("--all takes them, but never a private key; --exclude leaves out more", async () => {
    const folder = folderOf(WORKING);
    const run = await attest(folder, "--all", "--exclude", "node_modules", "--exclude", "/data/*.csv");
    expect(attested(run.stdout, folder)).toEqual([
      ".env",
      ".git/config",
      ".gitignore",
      ".paper.txt.swp",
      "build/out.txt",
      "data/draft.txt~",
      "data/notes.txt",
      "paper.txt",
    ]);
    expect(run.stderr).toContain(`Left out for the private keys in them: ${join(folder, "me.pem")}.`);
  });

  test("verify checks the same files, and those left out that have a receipt", async () => {
    const folder = folderOf(WORKING);
    await attest(folder);
    const verify = (...more: string[]) =>
      cairnlog(["verify", folder, "--operator-key", join(data, "operator.pub.pem"), ...more]);
    expect(await verify()).toMatchObject({ code: 0, stdout: expect.stringMatching(/^2 /m) });
    await attest(join(folder, ".env"));
    writeFileSync(join(folder, ".env"), "changed");
    const again = await verify();
    expect(again.code).toBe(1);
    expect(again.stdout).toContain(join(folder, ".env"));
    // Without a receipt they are not verified.
    expect((await verify("--all")).stdout).toContain("notes.txt");
  });

  test("a path that is named itself is taken, whatever it is called; a private key is refused", async () => {
    const folder = folderOf(WORKING);
    expect(named([join(folder, ".git"), join(folder, "build")]).files).toEqual([
      join(folder, ".git/config"),
      join(folder, "build/out.txt"),
    ]);
    const run = await attest(join(folder, ".env"), join(folder, "me.pem"));
    expect(run.code).toBe(1);
    expect(attested(run.stdout, folder)).toEqual([".env"]);
    expect(run.stderr).toContain("me.pem holds a private key. Nothing of it is made public.");
    expect(await attest(join(folder, "me.pem"))).toMatchObject({ code: 1, stdout: "" });
    const composite = ["composite", "assemble", join(folder, "me.pem"), "--title", "x", "--server", service.url];
    expect(await cairnlog(composite)).toMatchObject({ code: 1, stderr: expect.stringContaining("private key") });
  });

  test("--dry-run lists what would be public, without a key, and sends nothing", async () => {
    const folder = folderOf(WORKING);
    const before = await (await fetch(`${service.url}/api/v1/log/head`)).text();
    const run = await cairnlog(["attest", folder, "--dry-run"]);
    expect(run).toMatchObject({ code: 0, stdout: `${folder}/data/table.csv\n${folder}/paper.txt\n` });
    expect(run.stderr).toMatch(
      /\nNothing was sent\. The names and hashes of these 2 files would become public for ever\.\n$/,
    );
    const json = await cairnlog(["attest", folder, "--dry-run", "--json"]);
    expect(JSON.parse(json.stdout.split("\n")[0]!)).toEqual({ file: join(folder, "data/table.csv") });
    expect(await (await fetch(`${service.url}/api/v1/log/head`)).text()).toBe(before);
  });
});

describe(".gitignore", () => {
  test("leaves out what it does for git: any patterns at any depth", () => {
    const name = fc.constantFrom("a", "b", "c", "ab", "x.log", "[a]", "a b", "#a", "!b");
    const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((names) => names.join("/"));
    const part = fc.constantFrom(
      "a",
      "b",
      "*",
      "**",
      "?",
      "a*",
      "*.log",
      "[ab]",
      "[!a]",
      "\\#a",
      "\\!b",
      "\\[a\\]",
      "a b",
    );
    const pattern = fc
      .tuple(
        fc.constantFrom("", "", "", "!", "/", "!/"),
        fc.array(part, { minLength: 1, maxLength: 3 }),
        fc.constantFrom("", "", "/", " ", "/**"),
      )
      .map(([before, parts, after]) => before + parts.join("/") + after);
    const rules = fc.array(fc.oneof({ weight: 8, arbitrary: pattern }, fc.constantFrom("", "# a", "!", "/")), {
      maxLength: 5,
    });
    fc.assert(
      fc.property(
        fc.array(path, { minLength: 1, maxLength: 12 }),
        fc.array(fc.tuple(fc.constantFrom("", "a", "b", "a/b", "[a]"), rules), { maxLength: 3 }),
        (paths, files) => {
          const folder = temporaryFolder();
          execFileSync("git", ["init", "-q"], { cwd: folder, env: GIT });
          for (const one of paths) place(join(folder, one), "x");
          for (const [where, lines] of files) place(join(folder, where, ".gitignore"), lines.join("\n"));
          const listed = execFileSync("git", ["ls-files", "-z", "--others", "--exclude-standard"], {
            cwd: folder,
            env: GIT,
          });
          const kept = listed
            .toString()
            .split("\0")
            .filter((file) => file !== "" && !file.endsWith(".gitignore"));
          expect(
            named([folder])
              .files.map((file) => relative(folder, file))
              .sort(),
          ).toEqual(kept.filter((file) => !/(?:^|\/)#.*#$/.test(file)).sort());
        },
      ),
      { numRuns: 60 },
    );
  });

  test("counts in a directory below the one that it is in, up to the top of the repository", () => {
    const folder = folderOf({
      ".gitignore": "a/secret/x\nout/\n*.log",
      "a/.gitignore": "y",
      "a/secret/x": "",
      "a/secret/y": "",
      "a/secret/z": "",
      "a/out/1.log": "",
    });
    const files = (path: string) => named([join(folder, path)]).files.map((file) => relative(folder, file));
    // Without a repository, nothing above the directory counts.
    expect(files("a/secret")).toEqual(["a/secret/x", "a/secret/y", "a/secret/z"]);
    mkdirSync(join(folder, ".git"));
    expect(files("a/secret")).toEqual(["a/secret/z"]);
    // A directory that is ignored itself was meant.
    expect(files("a/out")).toEqual(["a/out/1.log"]);
  });
});

/** Nothing that the user of this machine has told git counts. */
const GIT = { PATH: process.env.PATH, HOME: "/nowhere", GIT_CONFIG_NOSYSTEM: "1", GIT_CONFIG_GLOBAL: "/dev/null" };

/** Writes a file, unless something of that name is there already. */
function place(path: string, content: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content, { flag: "wx" });
  } catch {}
}

describe("a private key is told by its content", () => {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
  const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
  const pem = privateKey.export({ type: "pkcs8", format: "pem" }) as string;
  const secret = { cipher: "aes-256-cbc", passphrase: "x" };
  test.each<[string, string | Buffer]>([
    ["PKCS#8", pem],
    ["PKCS#8 with CRLF and text before", `Bag Attributes\r\n${pem.replaceAll("\n", "\r\n")}`],
    ["encrypted PKCS#8", encryptPrivateKey(newSigner().privateKey, "x")],
    ["SEC1", privateKey.export({ type: "sec1", format: "pem" })],
    ["PKCS#1", rsa.export({ type: "pkcs1", format: "pem" })],
    ["encrypted PKCS#1", rsa.export({ type: "pkcs1", format: "pem", ...secret })],
    [
      "OpenSSH",
      `-----BEGIN OPENSSH PRIVATE KEY-----\n${"b3BlbnNzaC1rZXk".repeat(5)}\n-----END OPENSSH PRIVATE KEY-----\n`,
    ],
    ["a service account in JSON", JSON.stringify({ private_key: pem })],
    ["UTF-16, as PowerShell writes it", Buffer.from(`\uFEFF${pem}`, "utf16le")],
    ["PKCS#8 in DER", privateKey.export({ type: "pkcs8", format: "der" })],
    ["encrypted PKCS#8 in DER", privateKey.export({ type: "pkcs8", format: "der", ...secret })],
    ["SEC1 in DER", privateKey.export({ type: "sec1", format: "der" })],
    ["PKCS#1 in DER", rsa.export({ type: "pkcs1", format: "der" })],
    ["PKCS#12", Buffer.from("308203660201033082031c06092a864886f70d010701a082030d", "hex")],
    ["a JSON Web Key", JSON.stringify(privateKey.export({ format: "jwk" }))],
    ["PuTTY", "PuTTY-User-Key-File-3: ssh-ed25519\n"],
    ["age", `# created\nAGE-SECRET-KEY-1${"Q".repeat(58)}\n`],
    ["a recovery key", "N0J9Y-J4H4H-2BF9K-WPSDF-60HGB-GW6CY-3XJJ0-0JPH8\n"],
  ])("%s", (_, content) => {
    expect(holdsPrivateKey(Buffer.from(content as string))).toBe(true);
  });

  test.each<[string, string | Buffer]>([
    ["a public key", publicKey.export({ type: "spki", format: "pem" })],
    ["a public key in DER", publicKey.export({ type: "spki", format: "der" })],
    ["a public JSON Web Key", JSON.stringify(publicKey.export({ format: "jwk" }))],
    ["text about keys", "It begins with -----BEGIN PRIVATE KEY----- and ends with -----END PRIVATE KEY-----."],
    ["code about keys", "const PEM = /-----BEGIN (RSA )?PRIVATE KEY-----/;\n"],
    ["nothing", ""],
    ["what begins like DER", "0\x82\x01"],
  ])("%s is none", (_, content) => {
    expect(holdsPrivateKey(Buffer.from(content as string))).toBe(false);
  });
});

describe("on a terminal", () => {
  let keyboard: PassThrough;
  afterEach(() => vi.restoreAllMocks());

  async function answered(answer: string, ...args: readonly string[]) {
    keyboard = Object.assign(new PassThrough(), { isTTY: true });
    vi.spyOn(process, "stdin", "get").mockReturnValue(keyboard as never);
    const wasTerminal = process.stderr.isTTY;
    process.stderr.isTTY = true;
    const run = begin(["attest", ...args, "--key", keyFile, "--server", service.url]);
    try {
      if (answer !== "") {
        await run.prints(/\[y\/N\] /, "stderr");
        keyboard.end(answer);
      }
      return await run.ended;
    } finally {
      process.stderr.isTTY = wasTerminal;
    }
  }

  test("a directory is shown and asked about before anything is public", async () => {
    const folder = folderOf({ one: "1", two: "2" });
    for (const answer of ["n\n", "\n", "never"]) {
      const refused = await answered(answer, folder);
      expect(refused).toMatchObject({ code: 1, stdout: "" });
      expect(refused.stderr).toContain(
        `  ${folder}/one\n  ${folder}/two\nThe names and hashes of these 2 files would become public for ever. Attest them? [y/N] `,
      );
      expect(refused.stderr).toMatch(/Nothing was sent\.\n$/);
    }
    expect((await answered("y\n", folder)).stdout.match(/: entry \d+/g)).toHaveLength(2);
  });

  test("neither --yes nor a file that was named is asked about", async () => {
    const folder = folderOf({ one: "1" });
    expect(await answered("", folder, "--yes")).toMatchObject({ code: 0 });
    expect(await answered("", join(folder, "one"))).toMatchObject({ code: 0 });
  });

  test("a hundred named files are asked about, too; more are counted", async () => {
    const folder = folderOf(Object.fromEntries(Array.from({ length: 102 }, (_, i) => [`${i}`, `${i}`])));
    const files = Array.from({ length: 102 }, (_, i) => join(folder, `${i}`));
    const refused = await answered("n\n", ...files);
    expect(refused.stderr).toContain(`${files[99]}\n  and 2 more, which --dry-run lists\n`);
  });
});

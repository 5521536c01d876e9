/**
 * From a signed file to an offline proof, with the command alone; and the messages after any byte of it has changed.
 */
import { copyFileSync, existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { privateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { scratchFolder, startService } from "../service.js";
import { cairnlog, pin } from "./harness.js";

const folder = scratchFolder();
const at = (name: string) => join(folder.path, name);
const root = fileURLToPath(new URL("../..", import.meta.url));
const sources = ["README.md", "package.json", "LICENSE", "engine/log/log.ts", "wasm/index.ts"];
const operatorPem = at("data/operator.pub.pem");
const attested = at("README.md");

beforeAll(async () => {
  const service = await startService(at("data"));
  await pin(service.url);
  try {
    expect(await cairnlog(["keygen", "--out", at("me.pem")])).toMatchObject({ code: 0 });
    const files = sources.map((source) => {
      const copy = at(source.replaceAll("/", "-"));
      copyFileSync(join(root, source), copy);
      return copy;
    });
    const run = await cairnlog([
      "attest",
      ...files,
      "--key",
      at("me.pem"),
      "--server",
      service.url,
      "--pseudonym",
      "Ada",
    ]);
    expect(run).toMatchObject({ code: 0, stderr: "" });
    // The key's registration is entry 1, so the files are entries 2 to 6.
    expect(run.stdout).toContain(`${attested}: entry 2, ${attested}.attestation.json`);
    const again = await cairnlog(["attest", attested, "--key", at("me.pem"), "--server", service.url, "--json"]);
    expect(JSON.parse(again.stdout)).toMatchObject({ log_entry_id: 2, duplicate: true });
  } finally {
    // From here on there is no server.
    expect(await service.stop()).toBe(0);
  }
});
afterAll(() => folder.remove());

const verify = (...args: string[]) => cairnlog(["verify", ...args, "--operator-key", operatorPem]);

describe("verify", () => {
  test("accepts every file that was attested, offline", async () => {
    const files = sources.map((source) => at(source.replaceAll("/", "-")));
    const run = await verify(...files);
    expect(run.code).toBe(0);
    expect(run.stdout.match(/: verified/g)).toHaveLength(sources.length);
    expect(run.stdout).not.toContain("WRONG");
  });

  test("says that the file is another one when a byte of it changed", async () => {
    const bytes = readFileSync(attested);
    bytes[100]! ^= 1;
    writeFileSync(at("changed.md"), bytes);
    const run = await verify(at("changed.md"), "--attestation", `${attested}.attestation.json`);
    expect(run.code).toBe(1);
    expect(run.stdout).toMatch(/WRONG {2}file: The file is not the one that was attested/);
    expect(run.stdout.match(/WRONG/g)).toHaveLength(1);
  });

  test("exits 1 for every hash, signature, key and number in the receipt, changed one at a time", async () => {
    const bundle = JSON.parse(readFileSync(`${attested}.attestation.json`, "utf8"));
    const paths: (string | number)[][] = [];
    const walk = (value: unknown, path: (string | number)[]) => {
      if (typeof value === "object" && value !== null)
        for (const [name, member] of Object.entries(value)) walk(member, [...path, name]);
      else if (value !== null) paths.push(path);
    };
    walk(bundle, []);
    const changed = at("changed.json");
    const accepted: string[] = [];
    for (const path of paths) {
      const copy = structuredClone(bundle);
      const name = path.at(-1)!;
      const holder = path.slice(0, -1).reduce((value, step) => value[step], copy);
      const value = holder[name];
      if (typeof value === "string") {
        const middle = Math.floor(value.length / 2);
        holder[name] = value.slice(0, middle) + (value[middle] === "a" ? "b" : "a") + value.slice(middle + 1);
      } else holder[name] = typeof value === "number" ? value + 1 : !value;
      writeFileSync(changed, JSON.stringify(copy));
      const run = await verify(attested, "--attestation", changed, "--json");
      if (run.code !== 1) accepted.push(path.join("."));
      else
        expect(
          JSON.parse(run.stdout).checks.some(
            (check: { ok: boolean; detail: string }) => !check.ok && check.detail.length > 10,
          ),
        ).toBe(true);
    }
    // The two members that no hash of the log's format covers (docs/attestation-file.md). Ids of an imported history
    // may have gaps. Offline, only the end of an event type is known.
    expect(accepted).toEqual(["entry.id", "entry.event_type"]);
    expect(paths.length).toBeGreaterThan(40);
  });

  test("refuses the head under another operator key, and a receipt that is not JSON", async () => {
    const other = await cairnlog(["verify", attested, "--operator-key", at("other.pem")]);
    expect(other).toMatchObject({ code: 1 });
    expect(other.stderr).toMatch(/other\.pem/);
    writeFileSync(at("broken.json"), '{"format": "cairnlog-attestation/v1", "format": "twice"}');
    const run = await verify(attested, "--attestation", at("broken.json"));
    expect(run.code).toBe(1);
    expect(run.stdout).toContain("NOT verified");
  });

  test("says how it is used when it is not understood", async () => {
    expect(await cairnlog(["verify"])).toMatchObject({ code: 2 });
    expect(await cairnlog(["verify", attested])).toMatchObject({ code: 2 });
    expect(await cairnlog(["verify", attested, "--wrong"])).toMatchObject({ code: 2 });
    expect((await cairnlog(["verify", "--help"])).stdout).toContain("--operator-key");
  });
});

describe("keygen", () => {
  test("makes keys that openssl reads, for the owner alone, and overwrites none", async () => {
    for (const algorithm of ["ed25519", "ecdsa-p256", "rsa-2048"]) {
      const out = at(`${algorithm}.pem`);
      const made = await cairnlog(["keygen", "--out", out, "--algorithm", algorithm, "--json"]);
      expect(JSON.parse(made.stdout)).toMatchObject({ file: out, algorithm });
      expect(statSync(out).mode & 0o777).toBe(0o600);
      const before = readFileSync(out, "utf8");
      expect(await cairnlog(["keygen", "--out", out])).toMatchObject({ code: 2 });
      expect(readFileSync(out, "utf8")).toBe(before);
    }
  });

  test("tells people the fingerprint and the file, a line each", async () => {
    const out = at("told.pem");
    const made = await cairnlog(["keygen", "--out", out]);
    const { fingerprint } = privateKey(readFileSync(out, "utf8")).public;
    expect(made).toEqual({ code: 0, stdout: `${fingerprint}\n${out}\n`, stderr: "" });
  });
});

describe("attest", () => {
  test("without a service says so, writes nothing, exits 1", async () => {
    writeFileSync(at("lonely.txt"), "x");
    const run = await cairnlog(["attest", at("lonely.txt"), "--key", at("me.pem"), "--server", "http://127.0.0.1:10"]);
    expect(run).toMatchObject({ code: 1, stdout: "" });
    expect(run.stderr).toMatch(/No service answers at/);
    expect(run.stderr).not.toMatch(/\n\s+at /);
    expect(existsSync(at("lonely.txt.attestation.json"))).toBe(false);
  });
});

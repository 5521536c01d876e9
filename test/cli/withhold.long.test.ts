/** `cairnlog operator withhold`, on a data directory and through the service that writes it. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { createClient } from "#cairnlog/server/client/index.js";
import { formsOf, holding } from "../backup/bytes.js";
import { asSigner } from "../client/clients.js";
import { newManifest, newSigner, sha256 } from "../server/signers.js";
import { scratchFolder, startService } from "../service.js";
import { cairnlog } from "./harness.js";

const scratch = scratchFolder();
afterAll(() => scratch.remove());

test("withholds a payload of a service that runs, and of one that has stopped; the command shows it as withheld", async () => {
  const data = join(scratch.path, "data");
  let service = await startService(data);
  const client = createClient({ server: service.url, signer: asSigner(newSigner()) });
  const { log_entry_id: named, fingerprint } = await client.keys.register({ pseudonym: "Holundergelee" });
  const attest = async (title: string) =>
    (await client.attest({ title, content_hash: newManifest().document.content_hash })).receipt.log_entry_id;
  const [first, second] = [await attest("Zwetschgenkuchen"), await attest("Quittengelee")];
  const withhold = (...more: string[]) => cairnlog(["operator", "withhold", "--data", data, ...more]);
  const said = ["--reason", "An order.", "--basis", "Case 12/26"];
  expect(await withhold(`${first}`)).toMatchObject({ code: 2, stderr: expect.stringContaining("--reason is missing") });
  expect(await withhold(...said)).toMatchObject({ code: 2, stderr: expect.stringContaining("ENTRY is missing") });
  expect(await withhold(`${first}`, ...said)).toMatchObject({ code: 1, stderr: expect.stringContaining("in use by") });
  const there = await withhold(`${first}`, ...said, "--server", service.url, "--json");
  expect(there, there.stderr).toMatchObject({ code: 0 });
  expect(JSON.parse(there.stdout)).toEqual({
    entry_id: first,
    withheld_by: second + 1,
    reason: "An order.",
    basis: "Case 12/26",
  });
  const again = await withhold(`${first}`, ...said, "--server", service.url);
  expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining(`withheld by entry ${second + 1}`) });
  const name = ["--member", "pseudonym", "--reason", "Asked by its holder."];
  expect(await withhold(`${named}`, ...said, "--member", "fingerprint")).toMatchObject({ code: 2 });
  expect(await withhold(`${second}`, ...name, "--server", service.url)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("Only registrations and successions"),
  });
  await service.stop();

  expect(await withhold("1", ...said)).toMatchObject({ code: 1, stderr: expect.stringContaining("Only attestations") });
  expect(await withhold(`${named}`, ...name)).toMatchObject({
    code: 0,
    stdout: `Entry ${second + 2} withholds the name in entry ${named}.\n`,
  });
  expect(await withhold(`${second}`, "--reason", "x".repeat(501))).toMatchObject({ code: 1 });
  expect(await withhold(`${second}`, ...said)).toMatchObject({
    code: 0,
    stdout: `Entry ${second + 3} withholds what entry ${second} says.\n`,
  });
  expect(holding(data, formsOf({ first: "Zwetschgenkuchen", second: "Quittengelee", name: "Holundergelee" }))).toEqual(
    [],
  );
  service = await startService(data);
  const state = ["--server", service.url, "--state", join(scratch.path, "state")];
  const shown = await cairnlog(["log", "show", `${named}`, `${first}`, `${second}`, ...state]);
  expect(shown, shown.stderr).toMatchObject({ code: 0 });
  expect(shown.stdout).toContain(`withheld by the operator, entry ${second + 1}`);
  expect(shown.stdout).toContain(`withheld by the operator, entry ${second + 3}`);
  expect(shown.stdout).toContain(`the operator withholds the name, entry ${second + 2}`);
  const key = await cairnlog(["keys", "show", fingerprint, ...state]);
  expect(key, key.stderr).toMatchObject({ code: 0, stdout: expect.stringContaining("withheld") });
  const listed = await cairnlog(["log", "tail", "--lines", "10", ...state]);
  expect(listed.stdout).toContain(`withheld by entry ${second + 1}`);
  for (const text of [shown.stdout, key.stdout, listed.stdout, listed.stderr]) expect(text).not.toMatch(/kuchen|gelee/);
  expect(await cairnlog(["fsck", "--data", data])).toMatchObject({ code: 1 });
  await service.stop();
  expect(await cairnlog(["fsck", "--data", data])).toMatchObject({ code: 0 });
});

test("a proof file and a receipt of a withheld entry are withheld, with an exit code of their own, and name the entry", async () => {
  const data = join(scratch.path, "proofs");
  const papers = join(scratch.path, "papers");
  mkdirSync(papers);
  const service = await startService(data, { SERVICE_CHECKPOINT_INTERVAL_S: "1" });
  const [vkey, operatorKey] = [
    (await cairnlog(["operator", "vkey", "--data", data])).stdout.trim(),
    join(data, "operator.pub.pem"),
  ];
  const client = createClient({ server: service.url, signer: asSigner(newSigner()) });
  const attest = async (text: string) => {
    const file = join(papers, `${text}.txt`);
    writeFileSync(file, text);
    const { bundle, receipt } = await client.attest({ title: text, content_hash: `sha256:${sha256(text)}` });
    writeFileSync(`${file}.attestation.json`, JSON.stringify(bundle));
    return { file, bundle, id: receipt.log_entry_id };
  };
  const [held, shown] = [await attest("Quittengelee"), await attest("Hefezopf")];
  const proof = join(scratch.path, "kept.tlog-proof");
  const state = ["--server", service.url, "--state", join(scratch.path, "state")];
  const receipt = (id: number, out: string) => cairnlog(["receipt", `${id}`, "--vkey", vkey, "--out", out, ...state]);
  expect(await receipt(held.id, proof)).toMatchObject({ code: 0 });
  const said = ["--reason", "An order."];
  const taken = await cairnlog([
    "operator",
    "withhold",
    `${held.id}`,
    ...said,
    "--data",
    data,
    "--server",
    service.url,
  ]);
  expect(taken, taken.stderr).toMatchObject({
    code: 0,
    stdout: expect.stringContaining(
      "restart each of them. With a journal in PostgreSQL, run cairnlog replicate erase.",
    ),
  });
  const by = (await client.log.head())!.tree_size;
  const [gone, other] = ["gone", "other"].map((name) => join(scratch.path, `${name}.tlog-proof`)) as [string, string];
  for (const [id, out] of [
    [held.id, gone],
    [shown.id, other],
  ] as const) {
    const written = await receipt(id, out);
    expect(written, written.stderr).toMatchObject({ code: 0 });
  }

  const verify = (...args: string[]) => cairnlog(["verify", ...args]);
  const sentence = `The operator withholds this, as entry ${by} says: An order.`;
  expect(await verify(gone, "--vkey", vkey)).toMatchObject({ code: 3, stdout: `${gone}: withheld\n  ${sentence}\n` });
  const { code, stdout } = await verify(gone, "--vkey", vkey, "--json");
  expect({ code, ...JSON.parse(stdout) }).toMatchObject({
    ...{ code: 3, valid: false, verdict: "withheld", withheld_by: by, reason: sentence, leaf_index: held.id - 1 },
    entry: { id: held.id, payload: null, withheld_by: by },
  });
  expect(stdout).not.toContain("gelee");
  // Whoever has kept the payload proves it as before; what is wrong outweighs what is withheld.
  expect(await verify(proof, other, "--vkey", vkey)).toMatchObject({ code: 0 });
  expect(await verify(other, gone, "--vkey", vkey)).toMatchObject({ code: 3 });
  expect(await verify(gone, join(scratch.path, "none"), "--vkey", vkey)).toMatchObject({ code: 1 });
  expect(await verify(held.file, "--proof", gone, "--vkey", vkey, "--operator-key", operatorKey)).toMatchObject({
    code: 0,
  });
  const lines = readFileSync(gone, "utf8").split("\n");
  const { withholding, ...bare } = JSON.parse(Buffer.from(lines[1]!.slice("extra ".length), "base64").toString());
  const changed = (extra: object) => {
    const path = join(scratch.path, "changed.tlog-proof");
    const text = `extra ${Buffer.from(JSON.stringify(extra)).toString("base64")}`;
    writeFileSync(path, lines.map((line, i) => (i === 1 ? text : line)).join("\n"));
    return path;
  };
  const lies = [bare, { ...bare, withholding: readFileSync(other, "utf8") }, { ...bare, withholding: "" }];
  lies.push(
    { ...bare, withheld_by: by + 1, withholding },
    { ...bare, withholding: withholding.replace("index", "index 1") },
  );
  for (const lie of lies) expect(await verify(changed(lie), "--vkey", vkey)).toMatchObject({ code: 1 });
  expect(await verify(changed({ ...bare, withholding }), "--vkey", vkey)).toMatchObject({ code: 3 });

  // The file proves it as before, and the service says what holds now.
  const online = await verify(held.file, "--operator-key", operatorKey, "--online", ...state);
  expect(online).toMatchObject({
    code: 0,
    stdout: expect.stringContaining(`The operator withholds this now, as entry ${by}`),
  });

  const { operators: _, ...kept } = held.bundle;
  const proven = await client.log.entry(held.id);
  const holder = await client.log.entry(by);
  const withoutPayload = {
    ...{ ...kept, entry: proven.entry, proof: proven.proof, tree_head: proven.head },
    withholding: { entry: holder.entry, leaf_index: holder.proof.leaf_index, audit_path: holder.proof.audit_path },
  };
  const { file } = held;
  writeFileSync(`${file}.attestation.json`, JSON.stringify(withoutPayload));
  const one = await verify(file, "--operator-key", operatorKey);
  expect(one).toMatchObject({ code: 3, stdout: expect.stringContaining(`${file}: withheld\n  ok     format`) });
  expect(one.stdout).toContain(`\n  --     withheld: ${sentence}`);
  expect(one.stdout).not.toContain("WRONG");
  const line = JSON.parse((await verify(file, "--operator-key", operatorKey, "--json")).stdout);
  expect(line).toMatchObject({ valid: false, verdict: "withheld", withheld_by: by, who: null });
  expect(await verify(papers, "--operator-key", operatorKey)).toMatchObject({
    code: 3,
    stdout: expect.stringContaining("1 withheld of 2 files."),
  });
  writeFileSync(`${file}.attestation.2.json`, JSON.stringify(held.bundle));
  const both = await verify(file, "--operator-key", operatorKey);
  expect(both).toMatchObject({ code: 0, stdout: expect.stringContaining(`passed over: ${sentence}`) });
  await service.stop();
});

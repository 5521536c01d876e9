/**
 * The command and an anchored entry: a receipt omits the proof, or includes it on request so that it can be checked.
 */
import { createPrivateKey, sign } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startCalendar } from "../anchoring/calendar.js";
import { startTestService, temporaryFolder } from "../server/harness.js";
import { cairnlog } from "./harness.js";

const folder = temporaryFolder();
const at = (name: string) => join(folder, name);

test("an anchored entry's proof is checked and told by `cairnlog verify`", async () => {
  const calendar = await startCalendar();
  const service = await startTestService({ SERVICE_DATA_DIR: at("data"), SERVICE_OTS_CALENDARS: calendar.url });
  const send = async (path: string, body: unknown, headers: Record<string, string> = {}) => {
    const response = await fetch(`${service.url}/api/v1${path}`, {
      method: "POST",
      body: JSON.stringify(body),
      headers,
    });
    expect(response.status).toBe(200);
    return response.json();
  };
  writeFileSync(at("report.txt"), "a report");
  await cairnlog(["keygen", "--out", at("me.pem")]);
  const attest = ["attest", at("report.txt"), "--key", at("me.pem"), "--server", service.url];
  expect(await cairnlog(attest)).toMatchObject({ code: 0 });

  const { fingerprint } = await (await fetch(`${service.url}/api/v1/log/operator-key`)).json();
  const { challenge_id, nonce } = await send("/auth/challenge", { fingerprint });
  const key = createPrivateKey(readFileSync(at("data/operator.pem")));
  const challenge_signature = sign(null, Buffer.from(nonce), key).toString("base64");
  const { token } = await send("/auth/login", { challenge_id, challenge_signature });
  const { ots_proof } = await send("/log/anchor", {}, { authorization: `Bearer ${token}` });
  expect(await cairnlog(attest)).toMatchObject({ code: 0, stderr: "" });
  await service.close();

  const path = `${at("report.txt")}.attestation.json`;
  const bundle = JSON.parse(readFileSync(path, "utf8"));
  expect(bundle.entry).not.toHaveProperty("ots_proof");
  const verify = async (proof: string) => {
    writeFileSync(path, JSON.stringify({ ...bundle, entry: { ...bundle.entry, ots_proof: proof } }));
    return cairnlog(["verify", at("report.txt"), "--operator-key", at("data/operator.pub.pem")]);
  };
  const verified = await verify(ots_proof);
  expect(verified.code).toBe(0);
  expect(verified.stdout).toContain(`Promised by calendars: ${calendar.url}.`);
  const refused = await verify(Buffer.from(ots_proof, "base64").subarray(0, -1).toString("base64"));
  expect(refused.code).toBe(1);
  expect(refused.stdout).toMatch(/WRONG {2}anchor: The OpenTimestamps proof ends too early/);
});

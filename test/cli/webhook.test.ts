/** `cairnlog webhook listen`, run as users run it, with a service that delivers to it. */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { startTestService } from "../server/harness.js";
import { bearerOf, registeredSigner } from "../server/proofs.js";
import { newSigner, registration } from "../server/signers.js";
import { MAIN, scratchFolder } from "../service.js";
import { cairnlog } from "./harness.js";

const SECRET = `whsec_${randomBytes(24).toString("base64")}`;
const folder = scratchFolder();
afterAll(() => folder.remove());
const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

async function listen(...options: string[]) {
  const child = spawn(process.execPath, [MAIN, "webhook", "listen", "--port", "0", ...options], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  stops.push(() => child.kill("SIGKILL"));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const line = async () => (await lines.next()).value as string;
  const stop = async () => {
    const ended = once(child, "exit");
    child.kill("SIGTERM");
    return (await ended)[0] as number;
  };
  return { line, stop };
}

test("it shows deliveries of a service, and says that they hold", async () => {
  const file = join(folder.path, "secret");
  writeFileSync(file, `${SECRET}\n`);
  const receiver = await listen("--secret-file", file, "--json");
  const { url } = JSON.parse(await receiver.line());
  const service = await startTestService({ SERVICE_WEBHOOK_ALLOW_PRIVATE: "on" });
  const session = await bearerOf(service, await registeredSigner(service));
  expect((await service.post("/webhooks", { url, secret: SECRET }, session)).status).toBe(200);
  const key = newSigner();
  await service.post("/keys/register", registration(key, "Bob"));
  expect(JSON.parse(await receiver.line())).toEqual({
    valid: true,
    fault: null,
    id: "msg_1_2",
    timestamp: expect.stringMatching(/^\d+$/),
    body: expect.objectContaining({ type: "key.registered", id: "msg_1_2" }),
  });
  // The delivery was answered with a success.
  await expect.poll(async () => (await service.send("GET", "/metrics")).text).toMatch(/^cairnlog_webhook_outbox 0$/m);
  expect(await receiver.stop()).toBe(0);
});

test("it refuses deliveries that are not signed with the secret, and prints no control characters", async () => {
  const receiver = await listen("--secret", "sixteen letters!");
  const url = (await receiver.line()).replace("listening on ", "");
  const headers = { "webhook-id": "msg_1", "webhook-timestamp": `${Math.floor(Date.now() / 1000)}` };
  const body = '"\u009b31m"';
  const unsigned = await fetch(url, { method: "POST", headers, body });
  expect(unsigned.status).toBe(401);
  expect(await receiver.line()).toMatch(/^INVALID msg_1 The delivery is not signed/);
  expect(await receiver.line()).toBe('"\\u009b31m"');
  const forged = { ...headers, "webhook-signature": `v1,${"A".repeat(43)}=` };
  expect((await fetch(url, { method: "POST", headers: forged, body: "no JSON" })).status).toBe(401);
  expect(await receiver.line()).toMatch(/^INVALID msg_1 The signature does not fit/);
  expect(await receiver.line()).toBe('"no JSON"');
  expect(await receiver.stop()).toBe(0);
});

test("it takes 1 MiB, and refuses a byte more without showing it", async () => {
  const receiver = await listen("--secret", "sixteen letters!", "--json");
  const { url } = JSON.parse(await receiver.line());
  const post = async (length: number) => (await fetch(url, { method: "POST", body: "x".repeat(length) })).status;
  expect(await post(1_048_577)).toBe(413);
  expect(await post(1_048_576)).toBe(401);
  expect(JSON.parse(await receiver.line())).toMatchObject({ valid: false, body: "x".repeat(1_048_576) });
  expect(await receiver.stop()).toBe(0);
});

describe("wrong usage is exit code 2 with a message", () => {
  test.each([
    [[], "say what to do: add, list, remove, listen"],
    [["send"], "say what to do: add, list, remove, listen"],
    [["listen", "--port", "9000"], "give either --secret or --secret-file"],
    [["listen", "--secret", "x".repeat(16)], "--port is missing"],
    [["listen", "--secret", "x".repeat(16), "--port", "70000"], "--port must be a number from 0 to 65535, not 70000"],
    [["listen", "--secret", "whsec_***", "--port", "0"], "whsec_ goes on in base64"],
  ])("webhook %j", async (args, sentence) => {
    const { code, stderr } = await cairnlog(["webhook", ...args]);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(sentence) });
  });
});

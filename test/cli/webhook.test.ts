/** `cairnlog webhook listen`, run as users run it, with a service that delivers to it. */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, afterEach, describe, expect, test, vi } from "vitest";
import { webhook } from "#cairnlog/server/cli/log/webhook.js";
import { deliverySignature } from "#cairnlog/server/webhooks/signature.js";
import { startTestService } from "../server/harness.js";
import { bearerOf, registeredSigner } from "../server/proofs.js";
import { newSigner, registration } from "../server/signers.js";
import { MAIN, scratchFolder } from "../service.js";
import { begin, cairnlog, interrupt } from "./harness.js";

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

describe("in this process", () => {
  const secret = "sixteen letters!";
  const listening = async (...options: string[]) => {
    const receiver = begin(["webhook", "listen", "--port", "0", "--secret", secret, ...options]);
    await receiver.prints(/\n/);
    const url = /http:[^\s"]+/.exec(receiver.stdout)![0];
    return { receiver, url, first: receiver.stdout };
  };
  const signed = (id: string, timestamp: number, body: string) => ({
    "webhook-id": id,
    "webhook-timestamp": `${timestamp}`,
    "webhook-signature": deliverySignature(secret, id, timestamp, body),
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test("a delivery that holds is shown as text, and answered with 204", async () => {
    const { receiver, url, first } = await listening();
    const body = '{"type":"key.registered"}';
    const headers = signed("msg_7", Math.floor(Date.now() / 1000), body);
    expect((await fetch(url, { method: "POST", headers, body })).status).toBe(204);
    await interrupt();
    expect(await receiver.ended).toEqual({
      code: 0,
      stdout: `${first}valid   msg_7\n{\n  "type": "key.registered"\n}\n`,
      stderr: "",
    });
  });

  test("one without headers has no id and no time", async () => {
    for (const asJson of [true, false]) {
      const { receiver, url, first } = await listening(...(asJson ? ["--json"] : []));
      expect((await fetch(url, { method: "POST", body: "[1]" })).status).toBe(401);
      await interrupt();
      const shown = (await receiver.ended).stdout.slice(first.length);
      const fault = "The header webhook-id or webhook-timestamp is missing.";
      if (asJson) expect(JSON.parse(shown)).toEqual({ valid: false, fault, id: null, timestamp: null, body: [1] });
      else expect(shown).toBe(`INVALID (no id) ${fault}\n[\n  1\n]\n`);
    }
  });

  test("a time is right for five minutes, by whole seconds of the clock", async () => {
    const { receiver, url } = await listening();
    const now = 1_900_000_000;
    vi.useFakeTimers({ toFake: ["Date"], now: now * 1000 + 999 });
    const post = async (timestamp: number) =>
      (await fetch(url, { method: "POST", headers: signed("msg_1", timestamp, "{}"), body: "{}" })).status;
    expect(await Promise.all([-301, -300, 0, 300, 301].map((after) => post(now + after)))).toEqual([
      401, 204, 204, 204, 401,
    ]);
    await interrupt();
    await receiver.ended;
  });

  test("a sender that goes away is no delivery, and one that stays does not keep it running", async () => {
    const { receiver, url, first } = await listening();
    const { port } = new URL(url);
    const begun = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nhalf";
    const connected = async () => {
      const socket = connect(Number(port), "127.0.0.1").on("error", () => {});
      await once(socket, "connect");
      socket.write(begun);
      return socket;
    };
    (await connected()).destroy();
    const staying = await connected();
    const closed = once(staying, "close");
    expect((await fetch(url, { method: "POST", body: "{}" })).status).toBe(401);
    await interrupt();
    expect(await receiver.ended).toMatchObject({ code: 0, stderr: "" });
    expect(receiver.stdout.slice(first.length)).toMatch(/^INVALID \(no id\) [^\n]*\n\{\}\n$/);
    await closed;
    await expect(fetch(url)).rejects.toThrow();
  });

  test("an IPv6 address is in brackets", async () => {
    const { receiver, url, first } = await listening("--host", "::1");
    expect(first).toMatch(/^listening on http:\/\/\[::1\]:\d+\n$/);
    expect((await fetch(url, { method: "POST", body: "{}" })).status).toBe(401);
    await interrupt();
    await receiver.ended;
  });

  test("every port up to the last can be asked for", async () => {
    // Nobody has this address, so nothing listens.
    const there = ["--host", "192.0.2.1", "--secret", secret];
    for (const port of ["1", "65535"]) {
      const { code, stderr } = await cairnlog(["webhook", "listen", "--port", port, ...there]);
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: `cairnlog: Cannot listen on 192.0.2.1 port ${port}: the port is in use, or the address is not this machine's.\n`,
      });
    }
    await expect(
      (async () => webhook.run([], { port: "1", host: "192.0.2.1", secret }, "listen"))(),
    ).rejects.toMatchObject({
      code: "precondition-failed",
      cause: { code: "EADDRNOTAVAIL" },
    });
  });
});

describe("wrong usage is exit code 2 with a message", () => {
  test.each([
    ...["65536", "-1", "1e3", "x1", "1x", "", "100000"].map((port): [string[], string] => [
      ["listen", "--secret", "x".repeat(16), `--port=${port}`],
      `--port must be a number from 0 to 65535, not ${port}`,
    ]),
    [["listen", "--port", "0", "--secret", "x", "--secret-file", "y"], "give either --secret or --secret-file"],
    [["add", "surplus"], "surplus is one argument too many"],
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

/**
 * The memory of a service that strangers use: 100,000 distinct addresses, then 100,000 challenges, then 15,000
 * attestations by unknown keys, each wave twice. All data kept about them is limited, so the second wave of a kind adds
 * nothing to the first.
 */
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { generatePrivateKey, operatorKey } from "cairnlog";
import { readSettings, startServer } from "cairnlog/server";
import type { Suite } from "../suite.js";

const REQUESTS = 100_000;
const CONNECTIONS = 32;
const KEYS = 2_000;
/** Unknown keys in a wave: half as many again as the service keeps. */
const STRANGERS = 15_000;
const WAVES = 2;

const address = (n: number) => `10.${(n >> 16) & 255}.${(n >> 8) & 255}.${n & 255}`;

/** Sends requests over several connections, one at a time on each, and waits for all the answers. */
async function send(port: number, count: number, request: (n: number) => string): Promise<void> {
  let next = 0;
  const work = async () => {
    const socket = connect(port, "127.0.0.1");
    await once(socket, "connect");
    let received = "";
    let wake = () => {};
    socket.on("data", (data) => {
      received += data.toString("latin1");
      const end = received.indexOf("\r\n\r\n") + 4;
      const length = /content-length: (\d+)/i.exec(received.slice(0, end))?.[1];
      if (end > 3 && received.length >= end + Number(length)) wake();
    });
    while (next < count) {
      received = "";
      const answered = new Promise<void>((resolve) => {
        wake = resolve;
      });
      socket.write(request(next++));
      await answered;
    }
    socket.destroy();
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, work));
}

const get = (path: string, from: string) =>
  `GET ${path} HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: ${from}\r\n\r\n`;
const post = (path: string, from: string, body: object) => {
  const text = JSON.stringify(body);
  return `POST ${path} HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: ${from}\r\nContent-Length: ${text.length}\r\n\r\n${text}`;
};

/** An attestation by a new key with an invalid signature: the key is still parsed. */
function unsigned(): object {
  const public_key_pem = generateKeyPairSync("ed25519").publicKey.export({ type: "spki", format: "pem" });
  const document = { title: "A contract", content_hash: `sha256:${"0".repeat(64)}` };
  return { manifest: { document, attestations: [] }, public_key_pem, signature: Buffer.alloc(64).toString("base64") };
}

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** Memory held after a collection; resident memory would mostly show when the last collection was. */
function heldMiB(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return (heapUsed + external) / 2 ** 20;
}

export const suite: Suite = {
  summary: `memory after ${REQUESTS.toLocaleString("en")} strangers' addresses, fingerprints and challenges, and keys`,
  async run() {
    const dataDir = mkdtempSync(join(tmpdir(), "cairnlog-bench-"));
    const server = await startServer(
      readSettings({ PORT: "0", SERVICE_DATA_DIR: dataDir, SERVICE_TRUSTED_PROXIES: "127.0.0.1", LOG_LEVEL: "silent" }),
    );
    const { port } = server.address;
    const results: Record<string, Record<string, string>> = {};
    try {
      const fingerprints: string[] = [];
      for (let i = 0; i < KEYS; i++) {
        const { public: key } = operatorKey(generatePrivateKey("ed25519"));
        const registration = { public_key: key.pem, pseudonym: `key ${i}`, key_algorithm: "ed25519" as const };
        fingerprints.push((await server.registry.keys.register(registration)).fingerprint);
      }
      const challenge = "/api/v1/auth/challenge";
      const stranger = (n: number) => `sha256:${n.toString(16).padStart(64, "0")}`;
      const waves: [string, number, (n: number) => string][] = [
        ["addresses", REQUESTS, (n) => get("/api/v1/log/head", address(n))],
        ["challenges of unknown keys", REQUESTS, (n) => post(challenge, address(n), { fingerprint: stranger(n) })],
        [
          "challenges of known keys",
          REQUESTS,
          (n) => post(challenge, address(n), { fingerprint: fingerprints[n % KEYS] }),
        ],
        ["attestations by unknown keys", STRANGERS, (n) => post("/api/v1/attestations", address(n), unsigned())],
      ];
      const start = heldMiB();
      for (const [name, requests, request] of waves) {
        const held: number[] = [];
        for (let wave = 0; wave < WAVES; wave++) {
          await send(port, requests, request);
          held.push(heldMiB() - start);
        }
        const [first, second] = [held[0]!, held[1]!];
        results[name] = {
          "wave 1": `+${first.toFixed(1)} MiB`,
          "wave 2": `+${second.toFixed(1)} MiB`,
          "wave 2 to wave 1": (second / first).toFixed(2),
        };
      }
    } finally {
      await server.close();
      rmSync(dataDir, { recursive: true, force: true });
    }
    console.log("\nMemory held after a collection, above that of the idle service");
    console.table(results);
    return results;
  },
};

/**
 * The least that any service of this kind does for a request, in a process of its own: uWebSockets reads the body, JSON
 * is parsed, libsodium verifies the client's signature and signs one tree head, and as many bytes as the service
 * answers go back. There is no log: nothing is checked, ordered or stored.
 */

import uWS from "uWebSockets.js";
import { generateKeyPairSync } from "node:crypto";
import { closeSync, fdatasyncSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import sodium from "sodium-native";
import { cpuOf, signOne, verifyOne } from "../floors.js";
import type { Submission } from "../load/submissions.js";
import { answerOrders, type Child, startChild } from "./child.js";

const HOST = "127.0.0.1";
const TYPE = "application/json; charset=utf-8";
const RAW_KEY_BYTES = 32;
/** A page, as a log writes it. */
const PAGE_BYTES = 4096;
/** Pages of the file that are written in turn; all of them exist before the first measured write. */
const PAGES = 256;

/** A POST to `durable` also waits until a page is on disk. */
interface Ports {
  readonly plain: number;
  readonly durable: number;
}

interface Listen {
  readonly kind: "listen";
  readonly folder: string;
}

/** Answers have this length from now on. */
interface AnswerWith {
  readonly kind: "answer";
  readonly bytes: number;
}

/** Measures the two signatures alone. */
interface Signatures {
  readonly kind: "signatures";
  readonly count: number;
}

type Order = Listen | AnswerWith | Signatures;

const secret = Buffer.alloc(sodium.crypto_sign_SECRETKEYBYTES);
const seed = generateKeyPairSync("ed25519").privateKey.export({ format: "jwk" }).d!;
sodium.crypto_sign_seed_keypair(
  Buffer.alloc(sodium.crypto_sign_PUBLICKEYBYTES),
  secret,
  Buffer.from(seed, "base64url"),
);
const headSignature = Buffer.alloc(sodium.crypto_sign_BYTES);
let heads = 0;
let answer = Buffer.from('""');

/** The key of the last request: a service keeps recent keys, too. */
let lastKey = { pem: "", raw: Buffer.alloc(0) };

function rawKey(pem: string): Buffer {
  if (lastKey.pem !== pem) {
    const der = Buffer.from(pem.replace(/-----[^-]+-----/g, ""), "base64");
    lastKey = { pem, raw: der.subarray(-RAW_KEY_BYTES) };
  }
  return lastKey.raw;
}

/** Whether the signature holds; the head of the new size is signed then. */
function verifyAndSign(body: string): boolean {
  const { manifest, public_key_pem, signature } = JSON.parse(body) as Submission;
  const message = Buffer.from(JSON.stringify(manifest));
  if (!sodium.crypto_sign_verify_detached(Buffer.from(signature, "base64"), message, rawKey(public_key_pem)))
    return false;
  const head = `{"root_hash":"${"0".repeat(64)}","timestamp":"2026-01-01T00:00:00.000Z","tree_size":${++heads}}`;
  sodium.crypto_sign_detached(headSignature, Buffer.from(head), secret);
  return true;
}

function listen(after: () => void): Promise<number> {
  const app = uWS.App();
  app.post("/*", (response) => {
    response.onAborted(() => {});
    let body = "";
    response.onData((chunk, isLast) => {
      body += Buffer.from(chunk).toString("latin1");
      if (!isLast) return;
      const holds = verifyAndSign(body);
      if (holds) after();
      response.cork(() => {
        if (!holds) response.writeStatus("422 Unprocessable Content");
        response.writeHeader("content-type", TYPE).end(answer);
      });
    });
  });
  app.get("/*", (response) => {
    response.cork(() => response.writeHeader("content-type", TYPE).end(answer));
  });
  return new Promise((resolve, reject) => {
    app.listen(HOST, 0, (socket) => {
      if (socket) resolve(uWS.us_socket_local_port(socket as unknown as uWS.us_socket));
      else reject(new Error("uWebSockets cannot listen"));
    });
  });
}

/** Overwrites one page of a file after the other; each is on disk when the function returns. */
function pageWriter(path: string): () => void {
  const file = openSync(path, "w");
  process.once("exit", () => closeSync(file));
  const page = Buffer.alloc(PAGE_BYTES, 1);
  let written = 0;
  const write = () => writeSync(file, page, 0, PAGE_BYTES, (written++ % PAGES) * PAGE_BYTES);
  while (written < PAGES) write();
  fdatasyncSync(file);
  return () => {
    write();
    fdatasyncSync(file);
  };
}

async function handle(order: Order): Promise<unknown> {
  switch (order.kind) {
    case "listen": {
      const durable = pageWriter(join(order.folder, "pages"));
      return { plain: await listen(() => {}), durable: await listen(durable) } satisfies Ports;
    }
    case "answer":
      answer = Buffer.from(`"${"x".repeat(Math.round(order.bytes) - 2)}"`);
      return null;
    case "signatures":
      return cpuOf(verifyOne, order.count) + cpuOf(signOne, order.count);
  }
}

/** The parent's side. */
export class Bare {
  readonly #child: Child;
  /** Verifies, signs and answers; a GET is only answered. */
  readonly port: number;
  /** Also writes a page of 4 KiB to the disk of `folder` before it answers a POST. */
  readonly durablePort: number;

  private constructor(child: Child, { plain, durable }: Ports) {
    this.#child = child;
    this.port = plain;
    this.durablePort = durable;
  }

  static async start(folder: string): Promise<Bare> {
    const child = startChild(new URL(import.meta.url));
    return new Bare(child, await child.ask<Ports>({ kind: "listen", folder } satisfies Order));
  }

  get pid(): number {
    return this.#child.pid;
  }

  answerWith(bytes: number): Promise<void> {
    return this.#child.ask({ kind: "answer", bytes } satisfies Order);
  }

  /** Microseconds of CPU for verifying one client's signature and signing one tree head. */
  signatures(count: number): Promise<number> {
    return this.#child.ask({ kind: "signatures", count } satisfies Order);
  }

  close(): Promise<void> {
    return this.#child.close();
  }
}

if (process.argv[1] === import.meta.filename) answerOrders(handle);

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
import { answerOrders, startChild } from "./child.js";
const HOST = "127.0.0.1";
const TYPE = "application/json; charset=utf-8";
const RAW_KEY_BYTES = 32;
/** A page, as a log writes it. */
const PAGE_BYTES = 4096;
/** Pages of the file that are written in turn; all of them exist before the first measured write. */
const PAGES = 256;
const secret = Buffer.alloc(sodium.crypto_sign_SECRETKEYBYTES);
const seed = generateKeyPairSync("ed25519").privateKey.export({ format: "jwk" }).d;
sodium.crypto_sign_seed_keypair(Buffer.alloc(sodium.crypto_sign_PUBLICKEYBYTES), secret, Buffer.from(seed, "base64url"));
const headSignature = Buffer.alloc(sodium.crypto_sign_BYTES);
let heads = 0;
let answer = Buffer.from('""');
/** The key of the last request: a service keeps recent keys, too. */
let lastKey = { pem: "", raw: Buffer.alloc(0) };
function rawKey(pem) {
    if (lastKey.pem !== pem) {
        const der = Buffer.from(pem.replace(/-----[^-]+-----/g, ""), "base64");
        lastKey = { pem, raw: der.subarray(-RAW_KEY_BYTES) };
    }
    return lastKey.raw;
}
/** Whether the signature holds; the head of the new size is signed then. */
function verifyAndSign(body) {
    const { manifest, public_key_pem, signature } = JSON.parse(body);
    const message = Buffer.from(JSON.stringify(manifest));
    if (!sodium.crypto_sign_verify_detached(Buffer.from(signature, "base64"), message, rawKey(public_key_pem)))
        return false;
    const head = `{"root_hash":"${"0".repeat(64)}","timestamp":"2026-01-01T00:00:00.000Z","tree_size":${++heads}}`;
    sodium.crypto_sign_detached(headSignature, Buffer.from(head), secret);
    return true;
}
function listen(after) {
    const app = uWS.App();
    app.post("/*", (response) => {
        response.onAborted(() => { });
        let body = "";
        response.onData((chunk, isLast) => {
            body += Buffer.from(chunk).toString("latin1");
            if (!isLast)
                return;
            const holds = verifyAndSign(body);
            if (holds)
                after();
            response.cork(() => {
                if (!holds)
                    response.writeStatus("422 Unprocessable Content");
                response.writeHeader("content-type", TYPE).end(answer);
            });
        });
    });
    app.get("/*", (response) => {
        response.cork(() => response.writeHeader("content-type", TYPE).end(answer));
    });
    return new Promise((resolve, reject) => {
        app.listen(HOST, 0, (socket) => {
            if (socket)
                resolve(uWS.us_socket_local_port(socket));
            else
                reject(new Error("uWebSockets cannot listen"));
        });
    });
}
/** Overwrites one page of a file after the other; each is on disk when the function returns. */
function pageWriter(path) {
    const file = openSync(path, "w");
    process.once("exit", () => closeSync(file));
    const page = Buffer.alloc(PAGE_BYTES, 1);
    let written = 0;
    const write = () => writeSync(file, page, 0, PAGE_BYTES, (written++ % PAGES) * PAGE_BYTES);
    while (written < PAGES)
        write();
    fdatasyncSync(file);
    return () => {
        write();
        fdatasyncSync(file);
    };
}
async function handle(order) {
    switch (order.kind) {
        case "listen": {
            const durable = pageWriter(join(order.folder, "pages"));
            return { plain: await listen(() => { }), durable: await listen(durable) };
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
    #child;
    /** Verifies, signs and answers; a GET is only answered. */
    port;
    /** Also writes a page of 4 KiB to the disk of `folder` before it answers a POST. */
    durablePort;
    constructor(child, { plain, durable }) {
        this.#child = child;
        this.port = plain;
        this.durablePort = durable;
    }
    static async start(folder) {
        const child = startChild(new URL(import.meta.url));
        return new Bare(child, await child.ask({ kind: "listen", folder }));
    }
    get pid() {
        return this.#child.pid;
    }
    answerWith(bytes) {
        return this.#child.ask({ kind: "answer", bytes });
    }
    /** Microseconds of CPU for verifying one client's signature and signing one tree head. */
    signatures(count) {
        return this.#child.ask({ kind: "signatures", count });
    }
    close() {
        return this.#child.close();
    }
}
if (process.argv[1] === import.meta.filename)
    answerOrders(handle);
//# sourceMappingURL=bare.js.map
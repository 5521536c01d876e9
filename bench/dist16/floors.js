/**
 * The lower limits of every implementation: one Ed25519 operation by libsodium, and one flushed LMDB put. Suites
 * measure them in the same run as the results that they compare with them.
 */
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { open } from "lmdb";
import sodium from "sodium-native";
import { cpuMicros } from "./stats.js";
/** About the number of bytes in a manifest, which a client signs, and in a tree head, which the service signs. */
const MANIFEST_BYTES = 220;
const HEAD_BYTES = 110;
const secret = Buffer.alloc(sodium.crypto_sign_SECRETKEYBYTES);
const publicKey = Buffer.alloc(sodium.crypto_sign_PUBLICKEYBYTES);
const { privateKey } = generateKeyPairSync("ed25519");
sodium.crypto_sign_seed_keypair(publicKey, secret, Buffer.from(privateKey.export({ format: "jwk" }).d, "base64url"));
const [manifest, head] = [randomBytes(MANIFEST_BYTES), randomBytes(HEAD_BYTES)];
const [manifestSignature, headSignature] = [Buffer.alloc(64), Buffer.alloc(64)];
sodium.crypto_sign_detached(manifestSignature, manifest, secret);
sodium.crypto_sign_detached(headSignature, head, secret);
/** Signs one tree head. */
export function signOne() {
    sodium.crypto_sign_detached(headSignature, head, secret);
}
/** Verifies one client's signature. */
export function verifyOne() {
    if (!sodium.crypto_sign_verify_detached(manifestSignature, manifest, publicKey))
        throw new Error("a good signature was refused");
}
/** Verifies the signature of one tree head. */
export function verifyHead() {
    if (!sodium.crypto_sign_verify_detached(headSignature, head, publicKey))
        throw new Error("a good signature was refused");
}
/** Microseconds of CPU for one of `count` calls. */
export function cpuOf(work, count) {
    const before = process.cpuUsage();
    for (let i = 0; i < count; i++)
        work();
    return cpuMicros(before) / count;
}
/** A bare LMDB environment, opened as the log opens its own: data is visible only when it is on disk. */
export function openRawStore(path) {
    return open({ path, encoding: "binary", overlappingSync: false });
}
//# sourceMappingURL=floors.js.map
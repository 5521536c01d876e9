/** Notes and cosignatures made from their definitions, with node:crypto and, for ML-DSA-44, noble. */
import { createHash, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { ml_dsa44 } from "@noble/post-quantum/ml-dsa.js";

/** A key that signs notes, computed from the definition of signed-note. */
export interface NoteSigner {
  readonly name: string;
  readonly type: 1 | 4;
  readonly point: Buffer;
  readonly keyId: Buffer;
  readonly vkey: string;
  readonly privateKey: KeyObject;
  /** A signature line over `text`, with its line feed; of type 4 with the time in seconds. */
  line(text: string, time?: number | bigint): string;
  /** `text` with one such line. */
  note(text: string, time?: number | bigint): string;
}

export function newNoteSigner(name: string, type: 1 | 4 = 1, pair = generateKeyPairSync("ed25519")): NoteSigner {
  const point = pair.publicKey.export({ type: "spki", format: "der" }).subarray(-32);
  const material = Buffer.concat([Buffer.of(type), point]);
  const keyId = createHash("sha256").update(`${name}\n`).update(material).digest().subarray(0, 4);
  const line = (text: string, time: number | bigint = 1_700_000_000): string => {
    const stamp = Buffer.alloc(8);
    stamp.writeBigUInt64BE(BigInt(time));
    const signed =
      type === 1
        ? sign(null, Buffer.from(text), pair.privateKey)
        : Buffer.concat([stamp, sign(null, Buffer.from(`cosignature/v1\ntime ${time}\n${text}`), pair.privateKey)]);
    return `\u2014 ${name} ${Buffer.concat([keyId, signed]).toString("base64")}\n`;
  };
  return {
    name,
    type,
    point,
    keyId,
    vkey: `${name}+${keyId.toString("hex")}+${material.toString("base64")}`,
    privateKey: pair.privateKey,
    line,
    note: (text, time) => `${text}\n${line(text, time)}`,
  };
}

/** A signer of ML-DSA-44 cosignatures, type 0x06: of a witness, or of a log. */
export function newMlDsaSigner(name: string): Pick<NoteSigner, "name" | "keyId" | "vkey" | "line" | "note"> {
  const { publicKey, secretKey } = ml_dsa44.keygen();
  const material = Buffer.concat([Buffer.of(6), publicKey]);
  const keyId = createHash("sha256").update(`${name}\n`).update(material).digest().subarray(0, 4);
  const line = (text: string, time: number | bigint = 1_700_000_000): string => {
    const [origin = "", size = "", root = ""] = text.split("\n");
    const stamp = uint64(time);
    const message = [
      Buffer.from("subtree/v1\n\0"),
      opaque(name),
      stamp,
      opaque(origin),
      uint64(0),
      uint64(BigInt(size)),
    ];
    const signed = ml_dsa44.sign(Buffer.concat([...message, Buffer.from(root, "base64")]), secretKey);
    return `\u2014 ${name} ${Buffer.concat([keyId, stamp, signed]).toString("base64")}\n`;
  };
  return {
    name,
    keyId,
    vkey: `${name}+${keyId.toString("hex")}+${material.toString("base64")}`,
    line,
    note: (text, time) => `${text}\n${line(text, time)}`,
  };
}

/** A key of a type that nobody here knows. Its id is not computed as recommended. */
export function unknownVkey(name: string, type = 0x2a): string {
  return `${name}+01234567+${Buffer.of(type, ...createHash("sha256").update(name).digest()).toString("base64")}`;
}

const opaque = (text: string): Buffer => Buffer.concat([Buffer.of(Buffer.byteLength(text)), Buffer.from(text)]);

function uint64(value: number | bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(value));
  return bytes;
}

/** The text of a checkpoint by its definition. */
export function checkpointOf(origin: string, size: number | bigint, root: Uint8Array): string {
  return `${origin}\n${size}\n${Buffer.from(root).toString("base64")}\n`;
}

/** Notes and cosignatures made from their definitions, with node:crypto. */
import { createHash, generateKeyPairSync, type KeyObject, sign } from "node:crypto";

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

/** The text of a checkpoint by its definition. */
export function checkpointOf(origin: string, size: number | bigint, root: Uint8Array): string {
  return `${origin}\n${size}\n${Buffer.from(root).toString("base64")}\n`;
}

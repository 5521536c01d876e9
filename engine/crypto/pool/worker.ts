/** The key functions of the pool's threads: sign a batch, verify a batch. They keep no state except parsed keys. */
import { type PrivateKey, privateKey, signEach, verifySync } from "../keys/signatures.js";
import { keyFromBytes } from "../keys/spki.js";

/**
 * Packs lists of byte strings into one buffer, so that a batch is moved to a worker once instead of copied item by
 * item: u32 count · u32 length of each · the bytes.
 */
export function pack(items: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const header = 4 + 4 * items.length;
  const packed = new Uint8Array(items.reduce((sum, item) => sum + item.length, header));
  const view = new DataView(packed.buffer);
  view.setUint32(0, items.length, true);
  let at = header;
  items.forEach((item, i) => {
    view.setUint32(4 + 4 * i, item.length, true);
    packed.set(item, at);
    at += item.length;
  });
  return packed;
}

/** The items of `pack`, as views of `packed`. */
export function unpack(packed: Uint8Array): Uint8Array[] {
  const view = new DataView(packed.buffer, packed.byteOffset, packed.byteLength);
  const count = view.getUint32(0, true);
  let at = 4 + 4 * count;
  return Array.from({ length: count }, (_, i) => {
    const length = view.getUint32(4 + 4 * i, true);
    at += length;
    return packed.subarray(at - length, at);
  });
}

let parsed: { readonly pem: string; readonly key: PrivateKey } | null = null;

/** Packed signatures of packed messages, in order. */
export function signBatch({ pem, messages }: { pem: string; messages: Uint8Array }): Uint8Array {
  if (parsed?.pem !== pem) parsed = { pem, key: privateKey(pem) };
  const { key } = parsed;
  return pack(signEach(key, unpack(messages)));
}

/**
 * One byte for each check, 1 if the signature is valid. `checks` packs key (`keyToBytes`), message and signature of
 * each check in turn.
 */
export function verifyBatch({ checks }: { checks: Uint8Array }): Uint8Array {
  const items = unpack(checks);
  const verdicts = new Uint8Array(items.length / 3);
  for (let i = 0; i < verdicts.length; i++) {
    verdicts[i] = verifySync(keyFromBytes(items[3 * i]!), items[3 * i + 1]!, items[3 * i + 2]!) ? 1 : 0;
  }
  return verdicts;
}

/** The key functions of the pool's threads: sign a batch, verify a batch. They keep no state except parsed keys. */

import { type PrivateKey, privateKey, signEach, verifySync } from "../keys/signatures.js";
import { keyFromBytes } from "../keys/spki.js";
import { pack, unpack } from "./packing.js";

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

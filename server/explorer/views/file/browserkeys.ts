/**
 * Keys that live in this browser: made by WebCrypto, stored in IndexedDB as the browser's own objects. Unless the
 * reader asks for an exportable key, not even this page can read the private part.
 */
import { encodeBase64, parsePublicKey } from "../../../../engine/verify/index.js";
import { type Signer, webCryptoSigner } from "../../../client/index.js";

const DATABASE = "cairnlog";
const STORE = "keys";
const ED25519 = { name: "Ed25519" };
const P256 = { name: "ECDSA", namedCurve: "P-256" };

interface Kept {
  readonly fingerprint: string;
  readonly made_at: string;
  readonly pair: CryptoKeyPair;
}

export interface BrowserKey extends Kept {
  readonly signer: Signer;
  readonly isExportable: boolean;
}

/** Browsers offer WebCrypto only to pages from HTTPS or from this machine. */
export const canSign = (): boolean => globalThis.crypto?.subtle !== undefined && globalThis.indexedDB !== undefined;

/** Makes an Ed25519 key, or ECDSA on P-256 if the browser has no Ed25519. It is stored when this resolves. */
export async function makeKey(isExportable: boolean): Promise<BrowserKey> {
  const pair = await generate(isExportable);
  const signer = await webCryptoSigner(pair);
  const { fingerprint } = parsePublicKey(signer.publicKeyPem);
  const kept: Kept = { fingerprint, made_at: new Date().toISOString(), pair };
  await inStore("readwrite", (store) => store.put(kept));
  // Where there is little room, a browser removes what it was not asked to keep: a key that cannot leave it would be lost.
  void navigator.storage?.persist?.().catch(() => {});
  return { ...kept, signer, isExportable };
}

/** All keys, the newest first. */
export async function keptKeys(): Promise<BrowserKey[]> {
  const all = await inStore<Kept[]>("readonly", (store) => store.getAll());
  all.sort((a, b) => (a.made_at < b.made_at ? 1 : -1));
  return Promise.all(
    all.map(async (kept) => ({
      ...kept,
      signer: await webCryptoSigner(kept.pair),
      isExportable: kept.pair.privateKey.extractable,
    })),
  );
}

export function forgetKey(fingerprint: string): Promise<unknown> {
  return inStore("readwrite", (store) => store.delete(fingerprint));
}

/** PEM block PRIVATE KEY (PKCS #8), not encrypted. @throws DOMException for a key that cannot be exported */
export async function exportKey({ pair }: BrowserKey): Promise<string> {
  const der = new Uint8Array(await crypto.subtle.exportKey("pkcs8", pair.privateKey));
  const lines = encodeBase64(der).match(/.{1,64}/g)!;
  return `-----BEGIN PRIVATE KEY-----\n${lines.join("\n")}\n-----END PRIVATE KEY-----\n`;
}

async function generate(isExportable: boolean): Promise<CryptoKeyPair> {
  try {
    return (await crypto.subtle.generateKey(ED25519, isExportable, ["sign", "verify"])) as CryptoKeyPair;
  } catch (error) {
    if (!(error instanceof DOMException) || error.name !== "NotSupportedError") throw error;
    return await crypto.subtle.generateKey(P256, isExportable, ["sign", "verify"]);
  }
}

async function inStore<T>(mode: IDBTransactionMode, work: (store: IDBObjectStore) => IDBRequest): Promise<T> {
  const database = await openDatabase();
  try {
    return await new Promise<T>((resolve, reject) => {
      const transaction = database.transaction(STORE, mode);
      const request = work(transaction.objectStore(STORE));
      // Only a stored key may sign: wait for the transaction, not only for the request.
      transaction.oncomplete = () => resolve(request.result as T);
      transaction.onabort = () => reject(transaction.error ?? new Error("The browser did not store the key."));
    });
  } finally {
    database.close();
  }
}

function openDatabase(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: "fingerprint" });
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

// A page that signs: bundled and run in a browser by client.browser.test.ts, which calls `signing`.
import { createClient, webCryptoSigner } from "cairnlog/client";
import { parsePublicKey, verifyBundle } from "cairnlog/verify";
import { decryptClaim, encryptClaim } from "cairnlog/verify/claims";

/** An Ed25519 key if the browser supports it. The private key cannot be exported. */
async function newKeyPair(algorithm) {
  const how = algorithm === "ed25519" ? { name: "Ed25519" } : { name: "ECDSA", namedCurve: "P-256" };
  return crypto.subtle.generateKey(how, false, ["sign", "verify"]);
}

const hex = (bytes) => [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, "0")).join("");

/** One hash of the proof with its first digit changed. */
function tampered(bundle) {
  const [first, ...rest] = bundle.proof.audit_path;
  const changed = (first.startsWith("0") ? "1" : "0") + first.slice(1);
  return { ...bundle, proof: { ...bundle.proof, audit_path: [changed, ...rest] } };
}

globalThis.signing = async (algorithm, server = location.origin) => {
  const signer = await webCryptoSigner(await newKeyPair(algorithm));
  const client = createClient({ server, signer });
  const fileHash = hex(await crypto.subtle.digest("SHA-256", crypto.getRandomValues(new Uint8Array(100))));
  const document = { title: "Written in a browser", content_hash: `sha256:${fileHash}` };
  const { bundle, receipt } = await client.attest(document, { pseudonym: "Ada" });
  const operatorKey = await client.log.operatorKey();
  const verdict = await verifyBundle(bundle, { fileHash, operatorKey });
  const refused = await verifyBundle(tampered(bundle), { fileHash, operatorKey });
  const session = await client.login();
  const entries = [];
  for await (const entry of client.log.since(0)) entries.push(entry.id);
  return { bundle, receipt, verdict, refused, fingerprint: session.fingerprint, entries };
};

/** The error of a client whose answers are changed. */
globalThis.beingLiedTo = async () => {
  const lying = async (input, init) => {
    const response = await fetch(input, init);
    if (!String(input).includes("/log/proof/")) return response;
    return Response.json(tampered({ proof: await response.json() }).proof);
  };
  const signer = await webCryptoSigner(await newKeyPair("ecdsa-p256"));
  const client = createClient({ server: location.origin, signer, fetch: lying });
  return client
    .attest({ title: "A", content_hash: "0".repeat(64) })
    .catch(({ code, evidence }) => ({ code, evidence }));
};

/** The answers that a page of another origin can read, and the result of a write. */
globalThis.fromElsewhere = async (server) => {
  const signer = await webCryptoSigner(await newKeyPair("ecdsa-p256"));
  const client = createClient({ server, signer });
  const head = await client.log.head();
  const refusal = await client.keys.register({ pseudonym: "Ada" }).catch(({ code }) => code);
  return { head, refusal };
};

globalThis.claiming = (recipientPem, secretHex) => {
  const recipient = parsePublicKey(recipientPem);
  const { payload } = encryptClaim({ salary: 52000 }, { recipient, lookupKey: "0".repeat(64) });
  const secret = Uint8Array.from(secretHex.match(/../g), (pair) => Number.parseInt(pair, 16));
  return decryptClaim(payload, secret).plaintext;
};

globalThis.ready = true;

/** Attestations that are prepared and signed before a load, so that signing them costs nothing while it runs. */
import { createHash, generateKeyPairSync, sign } from "node:crypto";
/**
 * This many attestations by one new key, of documents that no other `name` has. Members of the manifest are in
 * canonical order, so the sent bytes are the signed bytes.
 */
export function signedSubmissions(count, name) {
    const { publicKey, privateKey } = generateKeyPairSync("ed25519");
    const public_key_pem = publicKey.export({ type: "spki", format: "pem" }).toString();
    return Array.from({ length: count }, (_, n) => {
        const title = `${name} document ${n}`;
        const content_hash = `sha256:${createHash("sha256").update(title).digest("hex")}`;
        const manifest = { attestations: [], document: { content_hash, tags: ["load"], title } };
        const signature = sign(null, Buffer.from(JSON.stringify(manifest)), privateKey).toString("base64");
        return { manifest, public_key_pem, signature, attestation_type: "authorship" };
    });
}
//# sourceMappingURL=submissions.js.map
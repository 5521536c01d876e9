/** Envelopes made from the definitions of DSSE and in-toto, with node:crypto. */
import { type KeyObject, sign } from "node:crypto";

export const PAYLOAD_TYPE = "application/vnd.in-toto+json";

export const STATEMENT = {
  _type: "https://in-toto.io/Statement/v1",
  subject: [{ name: "app-1.0.tar.gz", digest: { sha256: "ab".repeat(32) } }],
  predicateType: "https://slsa.dev/provenance/v1",
  predicate: { buildDefinition: { buildType: "https://example.com/build/ü" }, runDetails: { builder: { id: "b" } } },
};

/** The bytes that are signed. */
export const encodingOf = (payload: Buffer, type = PAYLOAD_TYPE): Buffer =>
  Buffer.concat([Buffer.from(`DSSEv1 ${Buffer.byteLength(type)} ${type} ${payload.length} `), payload]);

export function envelopeOf(statement: unknown, key: KeyObject) {
  const payload = Buffer.from(JSON.stringify(statement));
  const signature = sign(key.asymmetricKeyType === "ed25519" ? null : "sha256", encodingOf(payload), key);
  return {
    payloadType: PAYLOAD_TYPE,
    payload: payload.toString("base64"),
    signatures: [{ keyid: "builder", sig: signature.toString("base64") }],
  };
}

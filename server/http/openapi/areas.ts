/** The areas that the interface falls into, the tags of the OpenAPI document. */

interface Area {
  readonly name: string;
  readonly description: string;
  /** Beginnings of the paths of its routes; of two that fit, the longer counts. */
  readonly paths: readonly string[];
}

/** In the order in which one reads them. */
export const AREAS: readonly Area[] = [
  {
    name: "Service",
    description: "Whether the service is there, can do its work, and what it offers.",
    paths: ["/"],
  },
  {
    name: "Authentication",
    description: "Challenges to sign, sessions, and the optional password of a key.",
    paths: ["/api/v1/auth/"],
  },
  {
    name: "Keys",
    description: "Public keys, by fingerprint: registering, finding, replacing, disabling.",
    paths: ["/api/v1/keys"],
  },
  {
    name: "Signing",
    description: "From a manifest and a signature to an attestation in the log.",
    paths: ["/api/v1/attestations", "/api/v1/documents/", "/api/v1/composite/"],
  },
  {
    name: "Verification",
    description: "Whether a manifest holds: its signatures, the state of its keys, and whom the verifier trusts.",
    paths: ["/api/v1/verify"],
  },
  {
    name: "Log",
    description: "Entries, signed tree heads, proofs, tiles, anchors and exports.",
    paths: ["/api/v1/log", "/api/v1/audit/"],
  },
  {
    name: "Endorsements",
    description: "What one key says of another, alerts on keys, and the identifiers that an endorsement may name.",
    paths: ["/api/v1/endorsements/", "/api/v1/identifier-types"],
  },
  {
    name: "Trust",
    description: "The graph of endorsements, and the configurations by which verifiers judge.",
    paths: ["/api/v1/graph/", "/api/v1/trust-configs"],
  },
  {
    name: "Attestation requests",
    description: "Asking another key for an attestation, answering, policies that filter, and the inbox.",
    paths: ["/api/v1/log/attestation-requests", "/api/v1/log/request-policies", "/api/v1/inbox"],
  },
  {
    name: "Encrypted claims",
    description: "Opaque payloads on the public log, each with a keyed commitment.",
    paths: ["/api/v1/claims"],
  },
  {
    name: "Accounts",
    description: "Accounts, their credentials and recovery. They are private: nothing of them is on the log.",
    paths: ["/api/v1/users", "/api/v1/credentials/"],
  },
  {
    name: "Webhooks",
    description: "Subscriptions to events of the log (docs/webhooks.md).",
    paths: ["/api/v1/webhooks"],
  },
];

/** The name of the area of a path. */
export function areaOf(path: string): string {
  const fitting = AREAS.flatMap(({ name, paths }) =>
    paths.filter((start) => path.startsWith(start)).map((start) => ({ name, length: start.length })),
  );
  return fitting.sort((a, b) => b.length - a.length)[0]!.name;
}

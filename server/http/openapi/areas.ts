/** The areas of the API, which are the tags of the OpenAPI document. */

interface Area {
  readonly name: string;
  readonly description: string;
  /** Prefixes of the paths of its routes. If two areas match, the longer prefix decides. */
  readonly paths: readonly string[];
}

/** In the order of the documentation. */
export const AREAS: readonly Area[] = [
  {
    name: "Service",
    description: "Health of the service, and the description of its API.",
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
    description: "Checking a manifest: its signatures, the status of its keys, and the verifier's trust in them.",
    paths: ["/api/v1/verify"],
  },
  {
    name: "Log",
    description: "Entries, signed tree heads, proofs, tiles, anchors and exports.",
    paths: ["/api/v1/log", "/api/v1/audit/"],
  },
  {
    name: "C2SP log",
    description:
      "The log as tools of other transparency logs read it (c2sp.org/tlog-tiles): an RFC 6962 tree with checkpoints, tiles and entry bundles.",
    paths: ["/tlog/"],
  },
  {
    name: "Endorsements",
    description:
      "Endorsements of one key by another, alerts about keys, and the identifiers that an endorsement may name.",
    paths: ["/api/v1/endorsements/", "/api/v1/identifier-types"],
  },
  {
    name: "Trust",
    description: "The graph of endorsements, and the trust configurations of verifiers.",
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
    description: "Accounts, their credentials and recovery. They are private: nothing of them is in the log.",
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

/**
 * A request that was granted, and its answer, for every operation. Written by test/contract/writeexamples.ts, of what a
 * service with a fixed clock answered to keys that were made for it.
 */

export interface Example {
  readonly params?: Readonly<Record<string, unknown>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  /** Absent where the answer is bytes. */
  readonly answer?: unknown;
}

/** By operationId. */
export const EXAMPLES: Readonly<Record<string, Example>> = {
  get_health: { answer: { status: "ok", version: "0.1.0" } },
  get_livez: { answer: { status: "ok" } },
  get_readyz: {
    answer: {
      status: "ok",
      warnings: [
        "SERVICE_HARDWARE_ROOTS is not set: a credential of the type hardware is taken for hardware-backed on its holder's word.",
      ],
    },
  },
  get_metrics: {
    answer:
      '# HELP cairnlog_http_requests_total Requests answered.\n# TYPE cairnlog_http_requests_total counter\ncairnlog_http_requests_total{method="GET",route="/api/v1/openapi.json",status="200"} 1\ncairnlog_http_requests_total{method="GET",route="/api/v1/log/sth",status="404"} 1\ncairnlog_http_requests_total{method="GET",route="/api/v1/log/checkpoint",status="404"} 1\ncairnlog_http_requests_total{method="POST",route="/api/v1/auth/challenge",status="200"} 2',
  },
  post_users: {
    body: {
      display_name: "Ada Lovelace",
      email: "ada@example.org",
      credential_type: "hardware",
      key_fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
      device_label: "Security key",
    },
    answer: {
      user: {
        id: "09cb32ed-0703-463b-9fbc-6d96332c7e38",
        display_name: "Ada Lovelace",
        created_at: "2025-01-01T00:00:00.000000Z",
      },
      credential: {
        id: "be9711c4-6c9a-4bb9-8ffb-a57c1c26fa09",
        key_fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
        credential_type: "hardware",
        device_label: "Security key",
        status: "active",
        created_at: "2025-01-01T00:00:00.000000Z",
        revoked_at: null,
        hardware_backed: true,
      },
      recovery_key: "7101S-KJ5C7-ZREJC-YR6PQ-4ZZ0D-X5023-E0ZFM-CV5XN",
    },
  },
  post_users_recover: {
    body: {
      pseudonym: "Ada Lovelace",
      recovery_key: "7101S-KJ5C7-ZREJC-YR6PQ-4ZZ0D-X5023-E0ZFM-CV5XN",
      credential_type: "hardware",
      key_fingerprint: "sha256:3deccd983458d2d1860ac4013c8842dd0ebb76035fafc844709e65b75682e505",
      device_label: "Security key",
    },
    answer: {
      user: {
        id: "09cb32ed-0703-463b-9fbc-6d96332c7e38",
        display_name: "Ada Lovelace",
        created_at: "2025-01-01T00:00:00.000000Z",
      },
      credential: {
        id: "c1e25797-b9a9-4573-ab19-a098dd5c24c0",
        key_fingerprint: "sha256:3deccd983458d2d1860ac4013c8842dd0ebb76035fafc844709e65b75682e505",
        credential_type: "hardware",
        device_label: "Security key",
        status: "active",
        created_at: "2025-01-01T00:06:00.000000Z",
        revoked_at: null,
        hardware_backed: true,
      },
      recovery_key: "3DWHE-RKX1P-Z22R9-WE9QH-5QSXQ-BN6SA-8BN5T-5KA9C",
      revoked_credentials: 2,
    },
  },
  post_credentials_enroll: {
    body: {
      challenge_id: "011de365-d033-4e83-829b-4b71c9637a1b",
      issuing_fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
      key_fingerprint: "sha256:190dacd8ee8fdf1fd3df46cdfb9ef449772f7ba6913e37563a17005969fdd873",
      credential_type: "hardware",
      device_label: "Second security key",
      challenge_signature: "sSFZNn7fc/TjJZxEncMo07Sx2iiu0x3FvH+hX3RsDAypus12p0lnAJuspi2LXL6ktt7A6U47dREmqVN8FtLxBw==",
      chain_signature: "YjVC2b1AK7RUwGmUo2LF0zyrdicIYCuggXx+3HxqSk201GAMiw8492C2JGDNyEMg0Xqg/R3ffZi2ZKVSLqTJDQ==",
    },
    answer: {
      credential: {
        id: "686af33e-effe-4e34-a936-e7a8a3f5e033",
        key_fingerprint: "sha256:190dacd8ee8fdf1fd3df46cdfb9ef449772f7ba6913e37563a17005969fdd873",
        credential_type: "hardware",
        device_label: "Second security key",
        status: "active",
        created_at: "2025-01-01T00:00:00.000000Z",
        revoked_at: null,
        hardware_backed: true,
      },
    },
  },
  get_keys: {
    query: { per_page: 2 },
    answer: {
      keys: [
        {
          fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
          pseudonym: "Ada",
          algorithm: "ed25519",
          status: "active",
          registered_at: "2025-01-01T00:00:00.000000Z",
          expires_at: null,
        },
        {
          fingerprint: "sha256:0144de5a919afd1626e81a3dab4ff9ee0f409de508e31f05b01cf085baa76921",
          pseudonym: "Grace",
          algorithm: "ecdsa-p256",
          status: "active",
          registered_at: "2025-01-01T00:00:00.000000Z",
          expires_at: null,
        },
      ],
      page: 1,
      per_page: 2,
      total: 2,
    },
  },
  get_keys_search: {
    query: { pseudonym: "ad" },
    answer: {
      keys: [
        {
          fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
          pseudonym: "Ada",
          algorithm: "ed25519",
          status: "active",
          registered_at: "2025-01-01T00:00:00.000000Z",
          expires_at: null,
        },
      ],
      page: 1,
      per_page: 50,
      total: 1,
    },
  },
  get_keys_fingerprint: {
    params: { fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2" },
    answer: {
      fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
      public_key:
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA9fQjbt6zcUCadJwfh6GY3Bo93QmFwm/L0K6S53aaktY=\n-----END PUBLIC KEY-----\n",
      pseudonym: "Ada",
      algorithm: "ed25519",
      status: "active",
      registered_at: "2025-01-01T00:00:00.000000Z",
      expires_at: null,
      log_entry_id: 1,
      successor_fingerprint: null,
      predecessor_fingerprint: null,
    },
  },
  get_keys_fingerprint_status: {
    params: { fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2" },
    answer: {
      fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
      status: "active",
      expires_at: null,
      successor_fingerprint: null,
    },
  },
  post_keys_register: {
    body: {
      payload: {
        public_key:
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA9fQjbt6zcUCadJwfh6GY3Bo93QmFwm/L0K6S53aaktY=\n-----END PUBLIC KEY-----\n",
        pseudonym: "Ada",
        key_algorithm: "ed25519",
      },
    },
    answer: {
      fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
      pseudonym: "Ada",
      algorithm: "ed25519",
      log_entry_id: 1,
      leaf_index: 0,
      entry_hash: "38da5267c424c4899844461728abf36fd7f047c6649e6b634089fe1992d8d010",
    },
  },
  post_keys_succeed: {
    body: {
      payload: {
        old_fingerprint: "sha256:f538fcc87d60df35dba3f4b871a95c0fcbe6e290386ee2db5eb202fc4a7179f8",
        new_public_key:
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAEj8mJgySe9TxThL1CWY6RP8ywWT1uQu4W9VqQreQd4o=\n-----END PUBLIC KEY-----\n",
        new_algorithm: "ed25519",
      },
      auth: {
        challenge_id: "a86f77be-c5a4-44bf-8338-18883f1a82ce",
        challenge_signature: "CttsxUk4JQBb79KhiyQQUPueAHJxZZgKJAifk88phYVj4FaP3f7Z2irLHdA1wfeUyVZSp/MopoHGTGn5CviqBw==",
      },
    },
    answer: {
      old_fingerprint: "sha256:f538fcc87d60df35dba3f4b871a95c0fcbe6e290386ee2db5eb202fc4a7179f8",
      new_fingerprint: "sha256:ffa91c6f642a7ec09f45f3164ac5f2923627815c8cb9f8df10149ff96f339dee",
      log_entry_id: 5,
      leaf_index: 4,
      entry_hash: "96bb367d6043e907022fd965f086a74c1a368504d996ea35af1002102d5bf322",
    },
  },
  post_keys_revoke: {
    body: {
      payload: { fingerprint: "sha256:ffa91c6f642a7ec09f45f3164ac5f2923627815c8cb9f8df10149ff96f339dee" },
      auth: {
        challenge_id: "9a299457-7184-4f5c-89d2-315e304d0efa",
        challenge_signature: "6ky37u4Z8mziGqFTDKmBhQw9C4N/qy2GChEqhKp41aGPoIzhrWBWHjETxNsIKjv1l/nCyv2gdl5TUtl226CQCA==",
      },
    },
    answer: {
      fingerprint: "sha256:ffa91c6f642a7ec09f45f3164ac5f2923627815c8cb9f8df10149ff96f339dee",
      status: "revoked",
      log_entry_id: 6,
      leaf_index: 5,
      entry_hash: "25f80c2379850da41be2dd479aca443d4afcd30d4228d975fea4e19b4a8f78fc",
    },
  },
  post_auth_challenge: {
    body: { fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2", purpose: "login" },
    answer: {
      challenge_id: "fdd03fe4-552b-41e8-a798-67453ff3712e",
      nonce:
        "service.auth.v1:login:sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2:ZK_ZZHURV3p5ESWIGFvAI1b_ngGEweTrc-9DGz_AqYc",
      expires_at: "2025-01-01T00:05:00.000000Z",
    },
  },
  post_auth_login: {
    body: {
      challenge_id: "fdd03fe4-552b-41e8-a798-67453ff3712e",
      challenge_signature: "gRI3sgCA7j+jMI52sSsiNQ7rKyszhtZYxmsdGzTglWQjPrb2t4rlUC2x/Oc7LFzvifntAISsSZO0IGTUrU9JBw==",
    },
    answer: {
      token:
        "eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzaGEyNTY6YWVjNzQ3MDhhMjBjNmQ4ODBlY2JmOTI1NTViYjFmY2Q5NDk4MGE3ZWVmNmNiM2JkNjRiYzYwOGU5OTVkZWUzNSIsInN1YiI6InNoYTI1Njo5OTdkZWJiMzQ4NDE5MGVkZmEwZDE3YjYzYjMwNTI3Mjk1YjU3MzNjNWY3ZDkyZGJiZTQ2MTI0OTk5ZWU5NGMyIiwiaWF0IjoxNzM1Njg5NjAwLCJleHAiOjE3MzU2OTMyMDAsImp0aSI6IjE2MDI4ZGQzLTE2ODUtNDY5YS1iNWMwLTBhODYxNjFjY2EwMiIsInBzZXVkb255bSI6IkFkYSIsInJlY292ZXJ5IjpmYWxzZSwiYXV0aF90aW1lIjoxNzM1Njg5NjAwfQ.T5mlrsxu7IuQc0OdLCDU_ZelGrN8StvCGqzH2g0hT-99fMLEdtjJKfJ-h63MBLQUDDYDNH_6jHqGhwAaaiN7CQ",
      fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
      pseudonym: "Ada",
      expires_at: "2025-01-01T01:00:00.000000Z",
    },
  },
  post_auth_renew: {
    answer: {
      token:
        "eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzaGEyNTY6YWVjNzQ3MDhhMjBjNmQ4ODBlY2JmOTI1NTViYjFmY2Q5NDk4MGE3ZWVmNmNiM2JkNjRiYzYwOGU5OTVkZWUzNSIsInN1YiI6InNoYTI1Njo5OTdkZWJiMzQ4NDE5MGVkZmEwZDE3YjYzYjMwNTI3Mjk1YjU3MzNjNWY3ZDkyZGJiZTQ2MTI0OTk5ZWU5NGMyIiwiaWF0IjoxNzM1Njg5NjAwLCJleHAiOjE3MzU2OTMyMDAsImp0aSI6IjIyYzkwZWE4LTg3ODMtNDI4My05ZTBjLWQxOWIzOGU4NzkxNSIsInBzZXVkb255bSI6IkFkYSIsInJlY292ZXJ5IjpmYWxzZSwiYXV0aF90aW1lIjoxNzM1Njg5NjAwfQ.BkZtlsC8_JpmoRq7zbUOAFUTNBrwrYClMxsqanotMia6vH052VpbmN0oOw24tvWSvXigs1HLcPpSyO1AUfIKDQ",
      fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
      pseudonym: "Ada",
      expires_at: "2025-01-01T01:00:00.000000Z",
    },
  },
  post_auth_password: {
    body: {
      challenge_id: "e1191d1a-e009-45d3-b4e7-6d9ced805d2d",
      challenge_signature: "X9HKsXejKpfJUjai/cS2IJ70ILt9BOZlD3EFUBlah0wt0spC22DQfXn2K5TEBONmEnBpoYSm0UTm3q5m7XhzCw==",
      password: "correct horse battery",
    },
    answer: {
      fingerprint: "sha256:bfaad9cf63e65c1adfa212c6f35ba111ee8700c1e5bc62ab129cae315df225c5",
      password_set: true,
    },
  },
  post_attestations: {
    body: {
      manifest: {
        document: {
          title: "Annual report",
          content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810",
          tags: ["report"],
        },
        attestations: [],
      },
      public_key_pem:
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA9fQjbt6zcUCadJwfh6GY3Bo93QmFwm/L0K6S53aaktY=\n-----END PUBLIC KEY-----\n",
      signature: "rWRXKWs4QE6jF6EpSqiOycvfFO08wVbJs2uKF2eH2IdRDKauLaS8GiSrd5Eo41K8BMDZeokSj435g6g6UnZWDA==",
      intent_statement: "I wrote it.",
    },
    answer: {
      attestation: {
        id: "f794879f-eacd-482e-a3e3-afd08e630187",
        type: "authorship",
        scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
        signer_key_fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
        signature_algorithm: "ed25519",
        signature: "rWRXKWs4QE6jF6EpSqiOycvfFO08wVbJs2uKF2eH2IdRDKauLaS8GiSrd5Eo41K8BMDZeokSj435g6g6UnZWDA==",
        timestamp: "2025-01-01T00:06:00.000000Z",
        intent_statement: "I wrote it.",
      },
      fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
      pseudonym: "Ada",
      log_entry_id: 13,
      leaf_index: 12,
      entry_hash: "eaa1271ad14e4eddc4d552fdb9b125d590391e8c825d88832f4f217d8f430024",
      manifest_hash: "38f0c85d6331fd79023d1cd40a3908b665272ec2077277686ac55af17b1b6494",
      sth: {
        tree_size: 13,
        root_hash: "a0c1c77a408d11e88441fd76a687c5b7892966343a7e4dcd7cc1f8a4eb15fde8",
        signature: "ncXF8iPUdZpXXN4z3bwA96zu6b+Zvh8Opk7iusQLS5hrkJUv9W5fx3dvgyeB7aJsilSxYNc3c5FzE9h69qoGAA==",
        timestamp: "2025-01-01T00:06:00.000000Z",
        key_id: "sha256:aec74708a20c6d880ecbf92555bb1fcd94980a7eef6cb3bd64bc608e995dee35",
        tree_version: 2,
      },
      duplicate: false,
    },
  },
  post_documents_sign: {
    body: {
      title: "Annual report",
      content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810",
      tags: ["report"],
      public_key_pem:
        "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEUs9fpUTEgnvKOKmB97TfUF5S8feK\ngQYkHD37cxoDSOX7Lo38Z2TYc/OBbm30nmt8VstOsMnnWxWxdNgfejNpfA==\n-----END PUBLIC KEY-----\n",
      attestation_type: "editorial_review",
    },
    answer: {
      manifest: {
        attestations: [],
        document: {
          content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810",
          title: "Annual report",
          tags: ["report"],
        },
      },
      signing_payload:
        "eyJhdHRlc3RhdGlvbnMiOltdLCJkb2N1bWVudCI6eyJjb250ZW50X2hhc2giOiJzaGEyNTY6NDk4NjNjYzg4YzcxZGU2NjI5MmE5ZjVmMmI5MzJkMWRmMGMxZWQxMDFlYzJiOTc4ODBkZTFhMTEzMzcwOTgxMCIsInRhZ3MiOlsicmVwb3J0Il0sInRpdGxlIjoiQW5udWFsIHJlcG9ydCJ9fQ==",
      manifest_hash: "38f0c85d6331fd79023d1cd40a3908b665272ec2077277686ac55af17b1b6494",
    },
  },
  get_log_head: {
    answer: {
      head: {
        id: 14,
        entry_hash: "e03e603d5ce2478c9b769abfec311247f160c2a0bf9fe35c4cb58ae40f1d0670",
        event_type: "https://x-service.example/predicates/authorship/v1",
        timestamp: "2025-01-01T00:06:00.000000Z",
      },
      entry_count: 14,
    },
  },
  get_log_entry_id: {
    params: { entry_id: 1 },
    answer: {
      id: 1,
      timestamp: "2025-01-01T00:00:00.000000Z",
      event_type: "key_registration",
      payload: {
        expiration_date: null,
        fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
        key_algorithm: "ed25519",
        pseudonym: "Ada",
        public_key:
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA9fQjbt6zcUCadJwfh6GY3Bo93QmFwm/L0K6S53aaktY=\n-----END PUBLIC KEY-----\n",
      },
      previous_hash: null,
      entry_hash: "38da5267c424c4899844461728abf36fd7f047c6649e6b634089fe1992d8d010",
      chain_version: 2,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "38da5267c424c4899844461728abf36fd7f047c6649e6b634089fe1992d8d010",
          is_primary: true,
        },
      ],
    },
  },
  get_log_sth: {
    answer: {
      tree_size: 14,
      root_hash: "8e25a7b9bab203b0ddaa39ed471a8ddc6d2e893bba39959fc7fb5f35551a8ea3",
      signature: "4xTdPSNlTmVOWjJeRHSKF4xiQthb8ETPf1dGQVeID6x4IKTr7+T8PCc2QR3+HSolZQeqYvBm5SAgF5LtVXqFCw==",
      timestamp: "2025-01-01T00:06:00.000000Z",
      key_id: "sha256:aec74708a20c6d880ecbf92555bb1fcd94980a7eef6cb3bd64bc608e995dee35",
      tree_version: 2,
    },
  },
  get_log_sth_tree_size: {
    params: { tree_size: 3 },
    answer: {
      tree_size: 3,
      root_hash: "35668c8c9ece78f9d8cbd1720e9848763f825a6c51ee7e3e9e03bf8e1ecb231e",
      signature: "th7R8EHjLI2v/gbe9/WsYs0wjbmnfJ2WUgGUc3qgRhLgMdvq72obblR70gASsocD8hbBcKtrxOa1Cogxhh4VBw==",
      timestamp: "2025-01-01T00:00:00.000000Z",
      key_id: "sha256:aec74708a20c6d880ecbf92555bb1fcd94980a7eef6cb3bd64bc608e995dee35",
      tree_version: 2,
    },
  },
  get_log_proof_leaf_index: {
    params: { leaf_index: 2 },
    query: { tree_size: 5 },
    answer: {
      leaf_index: 2,
      tree_size: 5,
      tree_version: 2,
      leaf_hash: "0867d2d7594eb156d2bfd1134a7277c09ddbf861c11534be6d531ad9beba1c43",
      root_hash: "1a339820ee3de64324a8959b39c3bebfe86677126b52f514b1e35b3b112d60cf",
      audit_path: [
        "be6f25dca8609319758d29294b2238d4e69fcb110e15b327843a5dcca69ae9a8",
        "43c84f92444974a7ed93c9bf2f3671600b170711ecca5d9e20531e9969d2d750",
        "874404a1469b9fc6f37f4f4cbd57ab516a4ebe6bdf5ac7d62386faf748837cd5",
      ],
      entry_hash: "c64d7ec235a88dd4eef22d41f97bb4a4d7735affbf93960d9ae620c48f024125",
      sth: {
        tree_size: 5,
        root_hash: "1a339820ee3de64324a8959b39c3bebfe86677126b52f514b1e35b3b112d60cf",
        signature: "23N2B1jYEv8KCX1QQwxsNQt/JJa9U8gZDyi+h9xJBmMUEhUW4abnzazGTOhqfSDVYKb8gX9Tc9Mx/jLNKjnDAg==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:aec74708a20c6d880ecbf92555bb1fcd94980a7eef6cb3bd64bc608e995dee35",
        tree_version: 2,
      },
    },
  },
  get_log_consistency: {
    query: { from: 3, to: 6 },
    answer: {
      from_size: 3,
      to_size: 6,
      tree_version: 2,
      from_root: "35668c8c9ece78f9d8cbd1720e9848763f825a6c51ee7e3e9e03bf8e1ecb231e",
      to_root: "915a36cbf5732e66e17c9c8bf04107da691295e901b2ada7d3bf7a70bfef98df",
      peaks: [
        "43c84f92444974a7ed93c9bf2f3671600b170711ecca5d9e20531e9969d2d750",
        "0867d2d7594eb156d2bfd1134a7277c09ddbf861c11534be6d531ad9beba1c43",
      ],
      extension: [
        "be6f25dca8609319758d29294b2238d4e69fcb110e15b327843a5dcca69ae9a8",
        "9c62fd88972b2a71dd340e9d47c33b6a624fe27ba5370d188b79cd0dc08999c9",
      ],
      from_sth: {
        tree_size: 3,
        root_hash: "35668c8c9ece78f9d8cbd1720e9848763f825a6c51ee7e3e9e03bf8e1ecb231e",
        signature: "th7R8EHjLI2v/gbe9/WsYs0wjbmnfJ2WUgGUc3qgRhLgMdvq72obblR70gASsocD8hbBcKtrxOa1Cogxhh4VBw==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:aec74708a20c6d880ecbf92555bb1fcd94980a7eef6cb3bd64bc608e995dee35",
        tree_version: 2,
      },
      to_sth: {
        tree_size: 6,
        root_hash: "915a36cbf5732e66e17c9c8bf04107da691295e901b2ada7d3bf7a70bfef98df",
        signature: "qkADXMkOeIuoz3LAUL/o2jbDyeTmrM0jE3hriBQrFmf8rRPbYtYDhvD9NtGFutVuPSWgwEnd4MX+yacQKZrgDQ==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:aec74708a20c6d880ecbf92555bb1fcd94980a7eef6cb3bd64bc608e995dee35",
        tree_version: 2,
      },
    },
  },
  post_log_verify: { answer: { valid: true, entry_count: 14, errors: [], warnings: [] } },
  get_log_operator_key: {
    answer: {
      fingerprint: "sha256:aec74708a20c6d880ecbf92555bb1fcd94980a7eef6cb3bd64bc608e995dee35",
      algorithm: "ed25519",
      public_key:
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAE0lR9A2ufpAxWZ08Pto5RTIt3I/T9g0bRlZFYICnqP8=\n-----END PUBLIC KEY-----\n",
    },
  },
  get_log_checkpoint: {
    answer:
      "cairnlog/aec74708a20c6d88\n14\njiWnubqyA7DdqjntRxqN3G0uiTu6OZWfx/tfNVUajqM=\n\n— cairnlog/aec74708a20c6d88 hd/3SgdLNG0jGR9VZ+vMkizo4dq3lg4HjP9SIujS4B9e06Gjd6Sz+wgDYnUkY51vgjT59/j16c4olcgWZtMlEe1AGAw=\n",
  },
  get_log_tile_version_level_index: { params: { version: 2, level: 0, index: 0 } },
  get_log_tile_version_level_index_p_width: { params: { version: 2, level: 0, index_p: "1.p", width: 4 } },
  post_log_anchor: {
    answer: {
      anchored_entry_id: 14,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "e03e603d5ce2478c9b769abfec311247f160c2a0bf9fe35c4cb58ae40f1d0670",
          is_primary: true,
        },
      ],
      ots_proof:
        "AE9wZW5UaW1lc3RhbXBzAABQcm9vZgC/ieLohOiSlAEI4D5gPVziR4ybdpq/7DESR/FgwqC/n+NcTLWK5A8dBnDwELdSaAQxMiGarg8tyxekFdoI8QRlAAAA8AhIU6Fj7xcF3gCD3+MNLvkMjh0caHR0cHM6Ly9jYWxlbmRhci5leGFtcGxlLm9yZw==",
    },
  },
  get_log_anchor_status: {
    answer: {
      anchored_entry_id: null,
      anchored_at: null,
      proof_status: "none",
      entries_since_anchor: 14,
      anchor_due: false,
    },
  },
  post_log_sth_sign: {
    answer: {
      tree_size: 14,
      root_hash: "8e25a7b9bab203b0ddaa39ed471a8ddc6d2e893bba39959fc7fb5f35551a8ea3",
      signature: "4xTdPSNlTmVOWjJeRHSKF4xiQthb8ETPf1dGQVeID6x4IKTr7+T8PCc2QR3+HSolZQeqYvBm5SAgF5LtVXqFCw==",
      timestamp: "2025-01-01T00:06:00.000000Z",
      key_id: "sha256:aec74708a20c6d880ecbf92555bb1fcd94980a7eef6cb3bd64bc608e995dee35",
      tree_version: 2,
    },
  },
  get_log: {
    query: { per_page: 1, event_type: "key_registration" },
    answer: {
      entries: [
        {
          id: 1,
          timestamp: "2025-01-01T00:00:00.000000Z",
          event_type: "key_registration",
          payload: {
            expiration_date: null,
            fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
            key_algorithm: "ed25519",
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA9fQjbt6zcUCadJwfh6GY3Bo93QmFwm/L0K6S53aaktY=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "38da5267c424c4899844461728abf36fd7f047c6649e6b634089fe1992d8d010",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "38da5267c424c4899844461728abf36fd7f047c6649e6b634089fe1992d8d010",
              is_primary: true,
            },
          ],
        },
      ],
      page: 1,
      per_page: 1,
      total: 9,
    },
  },
  get_log_by_fingerprint_fingerprint: {
    params: { fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2" },
    query: { per_page: 1 },
    answer: {
      entries: [
        {
          id: 1,
          timestamp: "2025-01-01T00:00:00.000000Z",
          event_type: "key_registration",
          payload: {
            expiration_date: null,
            fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
            key_algorithm: "ed25519",
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA9fQjbt6zcUCadJwfh6GY3Bo93QmFwm/L0K6S53aaktY=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "38da5267c424c4899844461728abf36fd7f047c6649e6b634089fe1992d8d010",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "38da5267c424c4899844461728abf36fd7f047c6649e6b634089fe1992d8d010",
              is_primary: true,
            },
          ],
        },
      ],
      page: 1,
      per_page: 1,
      total: 3,
    },
  },
  get_log_audit_trail: {
    query: {
      fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
      start_date: "2025-01-01",
      per_page: 1,
    },
    answer: {
      entries: [
        {
          id: 1,
          timestamp: "2025-01-01T00:00:00.000000Z",
          event_type: "key_registration",
          payload: {
            expiration_date: null,
            fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
            key_algorithm: "ed25519",
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA9fQjbt6zcUCadJwfh6GY3Bo93QmFwm/L0K6S53aaktY=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "38da5267c424c4899844461728abf36fd7f047c6649e6b634089fe1992d8d010",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "38da5267c424c4899844461728abf36fd7f047c6649e6b634089fe1992d8d010",
              is_primary: true,
            },
          ],
        },
      ],
      page: 1,
      per_page: 1,
      total: 3,
    },
  },
  post_endorsements_offer: {
    body: {
      endorser_fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
      endorsed_fingerprint: "sha256:0144de5a919afd1626e81a3dab4ff9ee0f409de508e31f05b01cf085baa76921",
      category: "x-service:institutional_endorsement",
      valid_until: "2027-01-01",
      institutional_metadata: { name: "University of Example" },
      external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
      auth: {
        challenge_id: "3c5a354a-0252-4761-8d71-f3f4c831ba6a",
        challenge_signature: "za7WQq8HkAT6GFPcwNhN85k6MBzbnhJaNbO4gB1DvoTzxGtlq0ref2J6CLFhja91a0TNsmdbubpOBfbWUpbSBw==",
      },
    },
    answer: {
      id: 275,
      timestamp: "2025-01-01T00:06:00.000000Z",
      event_type: "endorsement_offer",
      payload: {
        category: "x-service:institutional_endorsement",
        endorsed_key_fingerprint: "sha256:0144de5a919afd1626e81a3dab4ff9ee0f409de508e31f05b01cf085baa76921",
        endorser_key_fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
        external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
        institutional_metadata: { name: "University of Example" },
        valid_until: "2027-01-01",
      },
      previous_hash: "31e0dd9e656860dd6d198513951666ef9842b89af3c8bac61fbb3556517e1603",
      entry_hash: "6a509aa0353646c07e83849089bb627eb0419fa0f4eecb4f3a09d4d225579c5c",
      chain_version: 2,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "6a509aa0353646c07e83849089bb627eb0419fa0f4eecb4f3a09d4d225579c5c",
          is_primary: true,
        },
      ],
    },
  },
  post_endorsements_accept: {
    body: {
      offer_entry_id: 275,
      endorsed_fingerprint: "sha256:0144de5a919afd1626e81a3dab4ff9ee0f409de508e31f05b01cf085baa76921",
      auth: {
        challenge_id: "f03ef293-91b2-4112-aebf-f5d4c2097a61",
        challenge_signature:
          "MEUCIQDf3Sm9DtlQfKX2AZ6hTpWWoJU4s5M1UQk2784mq7F5/AIgc4tC9p6R5IuJf8FToS9WNww+JHtLePmJWYY96taiCBQ=",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 275,
        endorser_fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
        endorsed_fingerprint: "sha256:0144de5a919afd1626e81a3dab4ff9ee0f409de508e31f05b01cf085baa76921",
        category: "x-service:institutional_endorsement",
        status: "pending_activation",
        offered_at: "2025-01-01T00:06:00.000000Z",
        accepted_at: "2025-01-01T00:06:00.000000Z",
        activates_at: "2025-01-02T00:06:00.000000Z",
        valid_until: "2027-01-01",
        ended_at: null,
        end_note: null,
        discount: 1,
        institutional_metadata: { name: "University of Example" },
        external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
      },
      log_entry: {
        id: 276,
        timestamp: "2025-01-01T00:06:00.000000Z",
        event_type: "endorsement_acceptance",
        payload: {
          category: "x-service:institutional_endorsement",
          endorsed_key_fingerprint: "sha256:0144de5a919afd1626e81a3dab4ff9ee0f409de508e31f05b01cf085baa76921",
          endorser_key_fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: null,
          offer_entry_id: 275,
          valid_until: "2027-01-01",
        },
        previous_hash: "6a509aa0353646c07e83849089bb627eb0419fa0f4eecb4f3a09d4d225579c5c",
        entry_hash: "573128650b4a273a5dbcc491463236d1e43a056b685e3694d315900d16168245",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "573128650b4a273a5dbcc491463236d1e43a056b685e3694d315900d16168245",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_withdraw: {
    body: {
      endorser_fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
      endorsed_fingerprint: "sha256:0144de5a919afd1626e81a3dab4ff9ee0f409de508e31f05b01cf085baa76921",
      original_offer_entry_id: 280,
      note: "A mistake.",
      auth: {
        challenge_id: "c082c3a9-627d-4880-a8ba-11a72bf6b1e6",
        challenge_signature: "08pA2ysQT5dVeASmQbbq+K7RCL3TZ3/JJxTsoaBxdOX/aZlV6hNeZwmv54hjpSkC6zCSkpzaypHF2Q8QfG8XAA==",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 280,
        endorser_fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
        endorsed_fingerprint: "sha256:0144de5a919afd1626e81a3dab4ff9ee0f409de508e31f05b01cf085baa76921",
        category: "x-service:human_attestation",
        status: "withdrawn",
        offered_at: "2025-01-02T00:07:00.000000Z",
        accepted_at: null,
        activates_at: null,
        valid_until: "2027-01-01",
        ended_at: "2025-01-02T00:07:00.000000Z",
        end_note: "A mistake.",
        discount: 1,
        institutional_metadata: { name: "University of Example" },
        external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
      },
      log_entry: {
        id: 281,
        timestamp: "2025-01-02T00:07:00.000000Z",
        event_type: "endorsement_withdrawal",
        payload: {
          category: "x-service:human_attestation",
          endorsed_key_fingerprint: "sha256:0144de5a919afd1626e81a3dab4ff9ee0f409de508e31f05b01cf085baa76921",
          endorser_key_fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: "A mistake.",
          offer_entry_id: 280,
          valid_until: "2027-01-01",
        },
        previous_hash: "ffc7378e64fd9c38cb04e092f0004e48d20fbafa900e9e546518d951ced43783",
        entry_hash: "81b439e11b0ff6a50f5f499a209e9d8734ddebc359dd05434e0ff79a6490bcc0",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "81b439e11b0ff6a50f5f499a209e9d8734ddebc359dd05434e0ff79a6490bcc0",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_revoke_acceptance: {
    body: {
      endorsed_fingerprint: "sha256:0144de5a919afd1626e81a3dab4ff9ee0f409de508e31f05b01cf085baa76921",
      original_offer_entry_id: 275,
      note: "We no longer work together.",
      auth: {
        challenge_id: "5e734739-3876-4d99-95ab-cd176142306d",
        challenge_signature:
          "MEQCICx3A90wYFDOJfLOqoXii8a1Ye7omIVrvLTSRhoTaMMQAiBTyvzuIDOQQB5kVsemphmIJc0dr/74Y96IAEiCsA9Dew==",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 275,
        endorser_fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
        endorsed_fingerprint: "sha256:0144de5a919afd1626e81a3dab4ff9ee0f409de508e31f05b01cf085baa76921",
        category: "x-service:institutional_endorsement",
        status: "acceptance_revoked",
        offered_at: "2025-01-01T00:06:00.000000Z",
        accepted_at: "2025-01-01T00:06:00.000000Z",
        activates_at: "2025-01-02T00:06:00.000000Z",
        valid_until: "2027-01-01",
        ended_at: "2025-01-02T00:07:00.000000Z",
        end_note: "We no longer work together.",
        discount: 1,
        institutional_metadata: { name: "University of Example" },
        external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
      },
      log_entry: {
        id: 279,
        timestamp: "2025-01-02T00:07:00.000000Z",
        event_type: "acceptance_revocation",
        payload: {
          category: "x-service:institutional_endorsement",
          endorsed_key_fingerprint: "sha256:0144de5a919afd1626e81a3dab4ff9ee0f409de508e31f05b01cf085baa76921",
          endorser_key_fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: "We no longer work together.",
          offer_entry_id: 275,
          valid_until: "2027-01-01",
        },
        previous_hash: "efc9e267d6e073305be4bd881672bff3517282be04ff01b01dacd0b0f6680564",
        entry_hash: "348a7a61b0e9b162f0532fc500783622bd08f18d33ae4b65b159ae174d1c6926",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "348a7a61b0e9b162f0532fc500783622bd08f18d33ae4b65b159ae174d1c6926",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_revocation_alert: {
    body: {
      endorser_fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
      compromised_fingerprint: "sha256:0144de5a919afd1626e81a3dab4ff9ee0f409de508e31f05b01cf085baa76921",
      reason: "The laptop with the key was stolen.",
      auth: {
        challenge_id: "66eb130e-4c57-4fcf-8f73-681b480efed6",
        challenge_signature: "/PWPZjsptvu1I5wcErBKCS9u+3p5O+icjvYckipy07e/q6/0IF7TZSvnDYv/fNUZvOH17fswFXjeNpWKeK4DDg==",
      },
    },
    answer: {
      alert: {
        alert_entry_id: 278,
        compromised_fingerprint: "sha256:0144de5a919afd1626e81a3dab4ff9ee0f409de508e31f05b01cf085baa76921",
        endorser_fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
        reason: "The laptop with the key was stolen.",
        evidence: null,
        filed_at: "2025-01-02T00:07:00.000000Z",
      },
      log_entry: {
        id: 278,
        timestamp: "2025-01-02T00:07:00.000000Z",
        event_type: "endorser_revocation_alert",
        payload: {
          compromised_key_fingerprint: "sha256:0144de5a919afd1626e81a3dab4ff9ee0f409de508e31f05b01cf085baa76921",
          endorser_key_fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
          evidence: null,
          reason: "The laptop with the key was stolen.",
        },
        previous_hash: "38b0b53da30090b64c6459811b0ca2e1106f16774a87430c359716c8bcf48cf3",
        entry_hash: "efc9e267d6e073305be4bd881672bff3517282be04ff01b01dacd0b0f6680564",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "efc9e267d6e073305be4bd881672bff3517282be04ff01b01dacd0b0f6680564",
            is_primary: true,
          },
        ],
      },
    },
  },
  get_endorsements_fingerprint: {
    params: { fingerprint: "sha256:0144de5a919afd1626e81a3dab4ff9ee0f409de508e31f05b01cf085baa76921" },
    answer: {
      endorsements: [
        {
          offer_entry_id: 275,
          endorser_fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
          endorsed_fingerprint: "sha256:0144de5a919afd1626e81a3dab4ff9ee0f409de508e31f05b01cf085baa76921",
          category: "x-service:institutional_endorsement",
          status: "active",
          offered_at: "2025-01-01T00:06:00.000000Z",
          accepted_at: "2025-01-01T00:06:00.000000Z",
          activates_at: "2025-01-02T00:06:00.000000Z",
          valid_until: "2027-01-01",
          ended_at: null,
          end_note: null,
          discount: 1,
          institutional_metadata: { name: "University of Example" },
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
        },
      ],
      page: 1,
      per_page: 50,
      total: 1,
    },
  },
  get_endorsements_fingerprint_issued: {
    params: { fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2" },
    query: { status: "active" },
    answer: {
      endorsements: [
        {
          offer_entry_id: 275,
          endorser_fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
          endorsed_fingerprint: "sha256:0144de5a919afd1626e81a3dab4ff9ee0f409de508e31f05b01cf085baa76921",
          category: "x-service:institutional_endorsement",
          status: "active",
          offered_at: "2025-01-01T00:06:00.000000Z",
          accepted_at: "2025-01-01T00:06:00.000000Z",
          activates_at: "2025-01-02T00:06:00.000000Z",
          valid_until: "2027-01-01",
          ended_at: null,
          end_note: null,
          discount: 1,
          institutional_metadata: { name: "University of Example" },
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
        },
      ],
      page: 1,
      per_page: 50,
      total: 1,
    },
  },
  get_endorsements_revocation_alerts_fingerprint: {
    params: { fingerprint: "sha256:0144de5a919afd1626e81a3dab4ff9ee0f409de508e31f05b01cf085baa76921" },
    answer: {
      alerts: [
        {
          alert_entry_id: 278,
          compromised_fingerprint: "sha256:0144de5a919afd1626e81a3dab4ff9ee0f409de508e31f05b01cf085baa76921",
          endorser_fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
          reason: "The laptop with the key was stolen.",
          evidence: null,
          filed_at: "2025-01-02T00:07:00.000000Z",
        },
      ],
      page: 1,
      per_page: 50,
      total: 1,
    },
  },
  get_identifier_types: {
    answer: {
      identifier_types: [
        {
          type: "orcid",
          label: "ORCID iD",
          pattern: "^\\d{4}-\\d{4}-\\d{4}-\\d{3}[\\dX]$",
          example: "0000-0002-1825-0097",
          url_template: "https://orcid.org/{value}",
        },
        {
          type: "doi",
          label: "Digital Object Identifier",
          pattern: "^10\\.\\d{4,9}(?:\\.\\d+)*/[!-~]+$",
          example: "10.1000/182",
          url_template: "https://doi.org/{value}",
        },
      ],
    },
  },
  get_graph_fingerprint: {
    params: { fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2" },
    query: { max_depth: 2 },
    answer: {
      root: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
      nodes: [
        {
          fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
          pseudonym: "Ada",
          status: "active",
          depth: 0,
        },
        {
          fingerprint: "sha256:0144de5a919afd1626e81a3dab4ff9ee0f409de508e31f05b01cf085baa76921",
          pseudonym: "Grace",
          status: "active",
          depth: 1,
        },
      ],
      edges: [
        {
          from: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
          to: "sha256:0144de5a919afd1626e81a3dab4ff9ee0f409de508e31f05b01cf085baa76921",
          category: "x-service:institutional_endorsement",
          status: "active",
          offer_entry_id: 275,
          since: "2025-01-01T00:06:00.000000Z",
          until: "2027-01-01",
        },
      ],
      truncated: false,
      depth_reached: 1,
      cached: false,
    },
  },
  get_endorsements_fingerprint_status: {
    params: { fingerprint: "sha256:0144de5a919afd1626e81a3dab4ff9ee0f409de508e31f05b01cf085baa76921" },
    answer: {
      fingerprint: "sha256:0144de5a919afd1626e81a3dab4ff9ee0f409de508e31f05b01cf085baa76921",
      key_status: "active",
      received: { offered: 0, pending_activation: 0, active: 1, expired: 0, withdrawn: 0, acceptance_revoked: 0 },
      issued: { offered: 0, pending_activation: 0, active: 0, expired: 0, withdrawn: 0, acceptance_revoked: 0 },
      alerts: 0,
      trust_level: 0.1,
      capacity: 9,
      capacity_used: 0,
      over_capacity: false,
      may_endorse: true,
    },
  },
  get_trust_configs: {
    answer: {
      trust_configs: [
        {
          id: 1,
          fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
          category_weights: { "x-service:institutional_endorsement": 0.8 },
          decay_per_hop: 0.5,
          direct_signer_anchors: [
            { fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2", weight: 1 },
          ],
          endorser_anchors: [
            { fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2", weight: 0.9 },
          ],
          max_depth: 4,
          minimum_threshold: 0.4,
          status: "active",
          created_at: "2025-01-02T00:07:00.000000Z",
        },
      ],
      page: 1,
      per_page: 50,
      total: 1,
    },
  },
  post_trust_configs: {
    body: {
      fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
      direct_signer_anchors: [
        { fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2", weight: 0.9 },
      ],
      minimum_threshold: 0.4,
      category_weights: { "x-service:institutional_endorsement": 0.8 },
    },
    answer: {
      id: 1,
      fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2", weight: 0.9 },
      ],
      max_depth: 4,
      minimum_threshold: 0.4,
      status: "active",
      created_at: "2025-01-02T00:07:00.000000Z",
    },
  },
  get_trust_configs_fingerprint: {
    params: { fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2" },
    answer: {
      id: 1,
      fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2", weight: 0.9 },
      ],
      max_depth: 4,
      minimum_threshold: 0.4,
      status: "active",
      created_at: "2025-01-02T00:07:00.000000Z",
    },
  },
  post_trust_configs_revoke: {
    body: { fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2" },
    answer: {
      id: 1,
      fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2", weight: 0.9 },
      ],
      max_depth: 4,
      minimum_threshold: 0.4,
      status: "revoked",
      created_at: "2025-01-02T00:07:00.000000Z",
    },
  },
  post_verify: {
    body: {
      manifest: {
        document: {
          title: "Annual report",
          content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810",
          tags: ["report"],
        },
        attestations: [
          {
            id: "f794879f-eacd-482e-a3e3-afd08e630187",
            type: "authorship",
            scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
            signer_key_fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
            signature_algorithm: "ed25519",
            signature: "rWRXKWs4QE6jF6EpSqiOycvfFO08wVbJs2uKF2eH2IdRDKauLaS8GiSrd5Eo41K8BMDZeokSj435g6g6UnZWDA==",
            timestamp: "2025-01-01T00:06:00.000000Z",
            intent_statement: "I wrote it.",
          },
        ],
      },
      source_hash: "49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810",
    },
    answer: {
      layer1: { status: "valid", details: "The source is the attested document, and all 1 attestation(s) hold." },
      layer2: { status: "valid", details: "Every signer's key was registered and active when it signed." },
      overall_status: "valid",
      attestations: [
        {
          id: "f794879f-eacd-482e-a3e3-afd08e630187",
          signer_key_fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
          layer1: { status: "valid", details: "The signature verifies; it covers the document." },
          layer2: { status: "valid", details: "The key is active, and was when the attestation was made." },
          covers: "document",
          logged: { entry_id: 13, leaf_index: 12 },
        },
      ],
      attestation_graph: {
        nodes: [
          {
            id: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810",
            kind: "document",
            title: "Annual report",
          },
          { id: "f794879f-eacd-482e-a3e3-afd08e630187", kind: "attestation", type: "authorship", status: "valid" },
          {
            id: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
            kind: "key",
            pseudonym: "Ada",
            status: "active",
          },
        ],
        edges: [
          {
            from: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
            to: "f794879f-eacd-482e-a3e3-afd08e630187",
            kind: "signed",
          },
          {
            from: "f794879f-eacd-482e-a3e3-afd08e630187",
            to: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810",
            kind: "attests",
          },
        ],
      },
    },
  },
  post_composite_assemble: {
    body: {
      title: "Report and appendix",
      parts: [
        {
          title: "Report",
          content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810",
          role: "chapter",
          manifest: {
            document: {
              title: "Annual report",
              content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810",
              tags: ["report"],
            },
            attestations: [
              {
                id: "f794879f-eacd-482e-a3e3-afd08e630187",
                type: "authorship",
                scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                signer_key_fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
                signature_algorithm: "ed25519",
                signature: "rWRXKWs4QE6jF6EpSqiOycvfFO08wVbJs2uKF2eH2IdRDKauLaS8GiSrd5Eo41K8BMDZeokSj435g6g6UnZWDA==",
                timestamp: "2025-01-01T00:06:00.000000Z",
                intent_statement: "I wrote it.",
              },
            ],
          },
        },
        { title: "Appendix", content_hash: "f30c534da958a753ac20c6d5fd4041de4d9ae2497e7440cfe2d034b00b71ed13" },
      ],
    },
    answer: {
      composite: {
        title: "Report and appendix",
        parts: [
          {
            title: "Report",
            content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810",
            role: "chapter",
            manifest: {
              document: {
                title: "Annual report",
                content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810",
                tags: ["report"],
              },
              attestations: [
                {
                  id: "f794879f-eacd-482e-a3e3-afd08e630187",
                  type: "authorship",
                  scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                  signer_key_fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
                  signature_algorithm: "ed25519",
                  signature: "rWRXKWs4QE6jF6EpSqiOycvfFO08wVbJs2uKF2eH2IdRDKauLaS8GiSrd5Eo41K8BMDZeokSj435g6g6UnZWDA==",
                  timestamp: "2025-01-01T00:06:00.000000Z",
                  intent_statement: "I wrote it.",
                },
              ],
            },
          },
          {
            title: "Appendix",
            content_hash: "sha256:f30c534da958a753ac20c6d5fd4041de4d9ae2497e7440cfe2d034b00b71ed13",
          },
        ],
        composite_hash: "sha256:f3d42ebf9659b162e0ba8c402359401de7ed8c28843c01f6e0bdb238acd8d03c",
      },
    },
  },
  post_composite_compile: {
    body: {
      composite: {
        title: "Report and appendix",
        parts: [
          {
            title: "Report",
            content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810",
            role: "chapter",
            manifest: {
              document: {
                title: "Annual report",
                content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810",
                tags: ["report"],
              },
              attestations: [
                {
                  id: "f794879f-eacd-482e-a3e3-afd08e630187",
                  type: "authorship",
                  scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                  signer_key_fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
                  signature_algorithm: "ed25519",
                  signature: "rWRXKWs4QE6jF6EpSqiOycvfFO08wVbJs2uKF2eH2IdRDKauLaS8GiSrd5Eo41K8BMDZeokSj435g6g6UnZWDA==",
                  timestamp: "2025-01-01T00:06:00.000000Z",
                  intent_statement: "I wrote it.",
                },
              ],
            },
          },
          {
            title: "Appendix",
            content_hash: "sha256:f30c534da958a753ac20c6d5fd4041de4d9ae2497e7440cfe2d034b00b71ed13",
          },
        ],
        composite_hash: "sha256:f3d42ebf9659b162e0ba8c402359401de7ed8c28843c01f6e0bdb238acd8d03c",
      },
    },
    answer: {
      manifest: {
        attestations: [],
        document: {
          content_hash: "sha256:f3d42ebf9659b162e0ba8c402359401de7ed8c28843c01f6e0bdb238acd8d03c",
          parts: [
            {
              title: "Report",
              content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810",
              role: "chapter",
              manifest: {
                document: {
                  title: "Annual report",
                  content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810",
                  tags: ["report"],
                },
                attestations: [
                  {
                    id: "f794879f-eacd-482e-a3e3-afd08e630187",
                    type: "authorship",
                    scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                    signer_key_fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
                    signature_algorithm: "ed25519",
                    signature:
                      "rWRXKWs4QE6jF6EpSqiOycvfFO08wVbJs2uKF2eH2IdRDKauLaS8GiSrd5Eo41K8BMDZeokSj435g6g6UnZWDA==",
                    timestamp: "2025-01-01T00:06:00.000000Z",
                    intent_statement: "I wrote it.",
                  },
                ],
              },
            },
            {
              title: "Appendix",
              content_hash: "sha256:f30c534da958a753ac20c6d5fd4041de4d9ae2497e7440cfe2d034b00b71ed13",
            },
          ],
          title: "Report and appendix",
        },
      },
      signing_payload:
        "eyJhdHRlc3RhdGlvbnMiOltdLCJkb2N1bWVudCI6eyJjb250ZW50X2hhc2giOiJzaGEyNTY6ZjNkNDJlYmY5NjU5YjE2MmUwYmE4YzQwMjM1OTQwMWRlN2VkOGMyODg0M2MwMWY2ZTBiZGIyMzhhY2Q4ZDAzYyIsInBhcnRzIjpbeyJjb250ZW50X2hhc2giOiJzaGEyNTY6NDk4NjNjYzg4YzcxZGU2NjI5MmE5ZjVmMmI5MzJkMWRmMGMxZWQxMDFlYzJiOTc4ODBkZTFhMTEzMzcwOTgxMCIsIm1hbmlmZXN0Ijp7ImF0dGVzdGF0aW9ucyI6W3siaWQiOiJmNzk0ODc5Zi1lYWNkLTQ4MmUtYTNlMy1hZmQwOGU2MzAxODciLCJpbnRlbnRfc3RhdGVtZW50IjoiSSB3cm90ZSBpdC4iLCJzY29wZSI6eyJjb250ZW50X2hhc2giOiJzaGEyNTY6NDk4NjNjYzg4YzcxZGU2NjI5MmE5ZjVmMmI5MzJkMWRmMGMxZWQxMDFlYzJiOTc4ODBkZTFhMTEzMzcwOTgxMCJ9LCJzaWduYXR1cmUiOiJyV1JYS1dzNFFFNmpGNkVwU3FpT3ljdmZGTzA4d1ZiSnMydUtGMmVIMklkUkRLYXVMYVM4R2lTcmQ1RW80MUs4Qk1EWmVva1NqNDM1ZzZnNlVuWldEQT09Iiwic2lnbmF0dXJlX2FsZ29yaXRobSI6ImVkMjU1MTkiLCJzaWduZXJfa2V5X2ZpbmdlcnByaW50Ijoic2hhMjU2Ojk5N2RlYmIzNDg0MTkwZWRmYTBkMTdiNjNiMzA1MjcyOTViNTczM2M1ZjdkOTJkYmJlNDYxMjQ5OTllZTk0YzIiLCJ0aW1lc3RhbXAiOiIyMDI1LTAxLTAxVDAwOjA2OjAwLjAwMDAwMFoiLCJ0eXBlIjoiYXV0aG9yc2hpcCJ9XSwiZG9jdW1lbnQiOnsiY29udGVudF9oYXNoIjoic2hhMjU2OjQ5ODYzY2M4OGM3MWRlNjYyOTJhOWY1ZjJiOTMyZDFkZjBjMWVkMTAxZWMyYjk3ODgwZGUxYTExMzM3MDk4MTAiLCJ0YWdzIjpbInJlcG9ydCJdLCJ0aXRsZSI6IkFubnVhbCByZXBvcnQifX0sInJvbGUiOiJjaGFwdGVyIiwidGl0bGUiOiJSZXBvcnQifSx7ImNvbnRlbnRfaGFzaCI6InNoYTI1NjpmMzBjNTM0ZGE5NThhNzUzYWMyMGM2ZDVmZDQwNDFkZTRkOWFlMjQ5N2U3NDQwY2ZlMmQwMzRiMDBiNzFlZDEzIiwidGl0bGUiOiJBcHBlbmRpeCJ9XSwidGl0bGUiOiJSZXBvcnQgYW5kIGFwcGVuZGl4In19",
      manifest_hash: "280d78498e9304c235982bc88964241324ee6e71f8557b04d78e86e6bfd339d1",
    },
  },
  get_audit_export: {
    query: { scope: "attestations", page_size: 1 },
    answer: {
      entries: [
        {
          id: 12,
          timestamp: "2025-01-01T00:06:00.000000Z",
          event_type: "https://x-service.example/predicates/editorial-review/v1",
          payload: {
            attestation_id: "1cdfa733-978a-43dd-b193-52a74deb2268",
            attestation_type: "editorial_review",
            document_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810",
            document_title: "Annual report",
            intent_statement: null,
            manifest_hash: "38f0c85d6331fd79023d1cd40a3908b665272ec2077277686ac55af17b1b6494",
            signature:
              "MEUCIDRKLvjMq1pZBNRCEGvJWhdB6Xvlwo7u6X6TfF6pNt9BAiEAuQyFv76XfZePoq9H8RxWDzjFL0jJorqSl8mwThRh4ME=",
            signature_algorithm: "ecdsa-p256",
            signer_key_fingerprint: "sha256:0144de5a919afd1626e81a3dab4ff9ee0f409de508e31f05b01cf085baa76921",
            tags: ["report"],
            timestamp: "2025-01-01T00:06:00.000000Z",
          },
          previous_hash: "46329ff9394cb91d4943409827e26b9a937ba3f9639d1d231e8f9b3183e1c12a",
          entry_hash: "4f66c13088ea076318b8590846b9cc6f0c4bd6f2fd0198120034a17a32a4332e",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "4f66c13088ea076318b8590846b9cc6f0c4bd6f2fd0198120034a17a32a4332e",
              is_primary: true,
            },
          ],
        },
      ],
      page: 1,
      page_size: 1,
      total: 3,
      truncated: false,
    },
  },
  post_claims: {
    body: {
      payload: {
        commitment_alg: "hmac-sha256-ecdh-v1",
        ephemeral_public_key:
          "BDGFafUF8d7t4MyVeORrX+jVxoT4ESJp/jwXm65Pqvl+yOUSGCMWXouOu2HzAY8OpPb4qd/9dHnEe62dBi/rKa0=",
        commitment: "3ffcecdb414aca3a0beb34e003e97f11def8baaa14d460f1098ae02783a5cbfa",
        lookup_key: "ff4f8aa0c78aeb7f1b109a01db136501b22662586b59541f9bf1bde3e9fee543",
        nonce: "VYIr8XjJX/5k1Ekg",
        ciphertext: "b4a+ue+255uQY31+HVLrnQ2/MmtuO/gR3SN98JlLH1Hm0e73kq2/nT801hxzMltCZ1aZ",
        recipient_fingerprint: "sha256:2f5699118efff35a486f4ce0169be8bbe4bbdbf57755be4bdc4ee3575a306447",
      },
    },
    answer: {
      entry_id: 286,
      commitment: "3ffcecdb414aca3a0beb34e003e97f11def8baaa14d460f1098ae02783a5cbfa",
      lookup_key: "ff4f8aa0c78aeb7f1b109a01db136501b22662586b59541f9bf1bde3e9fee543",
      leaf_index: 285,
      log_entry_id: 286,
    },
  },
  get_claims: {
    query: { lookup_key: "ff4f8aa0c78aeb7f1b109a01db136501b22662586b59541f9bf1bde3e9fee543" },
    answer: {
      entries: [
        {
          id: 286,
          timestamp: "2025-01-02T00:07:00.000000Z",
          event_type: "encrypted_claim",
          payload: {
            ciphertext: "b4a+ue+255uQY31+HVLrnQ2/MmtuO/gR3SN98JlLH1Hm0e73kq2/nT801hxzMltCZ1aZ",
            commitment: "3ffcecdb414aca3a0beb34e003e97f11def8baaa14d460f1098ae02783a5cbfa",
            commitment_alg: "hmac-sha256-ecdh-v1",
            ephemeral_public_key:
              "BDGFafUF8d7t4MyVeORrX+jVxoT4ESJp/jwXm65Pqvl+yOUSGCMWXouOu2HzAY8OpPb4qd/9dHnEe62dBi/rKa0=",
            lookup_key: "ff4f8aa0c78aeb7f1b109a01db136501b22662586b59541f9bf1bde3e9fee543",
            nonce: "VYIr8XjJX/5k1Ekg",
            recipient_fingerprint: "sha256:2f5699118efff35a486f4ce0169be8bbe4bbdbf57755be4bdc4ee3575a306447",
          },
          previous_hashes: [
            { algorithm: "sha2-256", digest_hex: "0d683209274e33360e3793584095995d7bf883032cd5940a8b4a9d418f538107" },
          ],
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "ab8bef8007e9084dee54cc0792680c8581dbfc5391ef4af3338bbb94b8d98a59",
              is_primary: true,
            },
          ],
        },
      ],
      page: 1,
      per_page: 50,
      total: 1,
    },
  },
  get_claims_entry_id: {
    params: { entry_id: 286 },
    answer: {
      ciphertext: "b4a+ue+255uQY31+HVLrnQ2/MmtuO/gR3SN98JlLH1Hm0e73kq2/nT801hxzMltCZ1aZ",
      commitment: "3ffcecdb414aca3a0beb34e003e97f11def8baaa14d460f1098ae02783a5cbfa",
      commitment_alg: "hmac-sha256-ecdh-v1",
      ephemeral_public_key: "BDGFafUF8d7t4MyVeORrX+jVxoT4ESJp/jwXm65Pqvl+yOUSGCMWXouOu2HzAY8OpPb4qd/9dHnEe62dBi/rKa0=",
      lookup_key: "ff4f8aa0c78aeb7f1b109a01db136501b22662586b59541f9bf1bde3e9fee543",
      nonce: "VYIr8XjJX/5k1Ekg",
      recipient_fingerprint: "sha256:2f5699118efff35a486f4ce0169be8bbe4bbdbf57755be4bdc4ee3575a306447",
    },
  },
  post_claims_entry_id_reveal: {
    params: { entry_id: 286 },
    body: {
      plaintext: { salary: 52000, name: "Zoë 🪨" },
      commitment_key: "0e30ffb829fc0c76ca0736758e4b1cc6fc0cb4447b7e42331d950a982dbb4ac4",
    },
    answer: { valid: true },
  },
  get_log_attestation_requests: {
    query: { target: "sha256:0144de5a919afd1626e81a3dab4ff9ee0f409de508e31f05b01cf085baa76921", status: "open" },
    answer: {
      requests: [
        {
          request_id: "7bcfce40-6df9-437c-9431-96b1917c213d",
          requester_fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
          target_fingerprint: "sha256:0144de5a919afd1626e81a3dab4ff9ee0f409de508e31f05b01cf085baa76921",
          attestation_type: "peer_review",
          status: "open",
          deadline: "2025-01-16T00:07:00.000000Z",
          created_at: "2025-01-02T00:07:00.000000Z",
          log_entry_id: 283,
          leaf_index: 282,
        },
      ],
      page: 1,
      per_page: 50,
      total: 1,
    },
  },
  post_log_attestation_requests: {
    body: {
      target_fingerprint: "sha256:0144de5a919afd1626e81a3dab4ff9ee0f409de508e31f05b01cf085baa76921",
      attestation_type: "peer_review",
      nonce: "request-2025-0001",
      intent_statement: "Please review the annual report.",
      claims: { document_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
    },
    answer: {
      request_id: "7bcfce40-6df9-437c-9431-96b1917c213d",
      requester_fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
      target_fingerprint: "sha256:0144de5a919afd1626e81a3dab4ff9ee0f409de508e31f05b01cf085baa76921",
      attestation_type: "peer_review",
      status: "open",
      deadline: "2025-01-16T00:07:00.000000Z",
      created_at: "2025-01-02T00:07:00.000000Z",
      log_entry_id: 283,
      leaf_index: 282,
      nonce: "request-2025-0001",
      intent_statement: "Please review the annual report.",
      claims: { document_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
      policy_entry_id: 282,
      response: null,
    },
  },
  get_log_attestation_requests_request_id: {
    params: { request_id: "7bcfce40-6df9-437c-9431-96b1917c213d" },
    answer: {
      request_id: "7bcfce40-6df9-437c-9431-96b1917c213d",
      requester_fingerprint: "sha256:997debb3484190edfa0d17b63b30527295b5733c5f7d92dbbe46124999ee94c2",
      target_fingerprint: "sha256:0144de5a919afd1626e81a3dab4ff9ee0f409de508e31f05b01cf085baa76921",
      attestation_type: "peer_review",
      status: "declined",
      deadline: "2025-01-16T00:07:00.000000Z",
      created_at: "2025-01-02T00:07:00.000000Z",
      log_entry_id: 283,
      leaf_index: 282,
      nonce: "request-2025-0001",
      intent_statement: "Please review the annual report.",
      claims: { document_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
      policy_entry_id: 282,
      response: {
        decision: "decline",
        responder_fingerprint: "sha256:0144de5a919afd1626e81a3dab4ff9ee0f409de508e31f05b01cf085baa76921",
        attestation_id: null,
        reason: "No time before summer.",
        responded_at: "2025-01-02T00:07:00.000000Z",
        log_entry_id: 284,
        leaf_index: 283,
      },
    },
  },
  get_log_request_policies_fingerprint: {
    params: { fingerprint: "sha256:0144de5a919afd1626e81a3dab4ff9ee0f409de508e31f05b01cf085baa76921" },
    answer: {
      target_fingerprint: "sha256:0144de5a919afd1626e81a3dab4ff9ee0f409de508e31f05b01cf085baa76921",
      active: {
        target_fingerprint: "sha256:0144de5a919afd1626e81a3dab4ff9ee0f409de508e31f05b01cf085baa76921",
        predicates: { all: [{ field: "attestation_type", op: "in", value: ["peer_review", "editorial_review"] }] },
        default_action_on_failure: "decline",
        effective_from: "2025-01-02T00:07:00.000000Z",
        published_at: "2025-01-02T00:07:00.000000Z",
        log_entry_id: 282,
        leaf_index: 281,
      },
      scheduled: null,
    },
  },
  post_log_attestation_requests_request_id_respond: {
    params: { request_id: "7bcfce40-6df9-437c-9431-96b1917c213d" },
    body: { decision: "decline", reason: "No time before summer." },
    answer: {
      request_id: "7bcfce40-6df9-437c-9431-96b1917c213d",
      status: "declined",
      responder_fingerprint: "sha256:0144de5a919afd1626e81a3dab4ff9ee0f409de508e31f05b01cf085baa76921",
      decision: "decline",
      attestation_id: null,
      reason: "No time before summer.",
      log_entry_id: 284,
      leaf_index: 283,
    },
  },
  post_log_request_policies: {
    body: {
      target_fingerprint: "sha256:0144de5a919afd1626e81a3dab4ff9ee0f409de508e31f05b01cf085baa76921",
      predicates: { all: [{ field: "attestation_type", op: "in", value: ["peer_review", "editorial_review"] }] },
      default_action_on_failure: "decline",
    },
    answer: {
      target_fingerprint: "sha256:0144de5a919afd1626e81a3dab4ff9ee0f409de508e31f05b01cf085baa76921",
      predicates: { all: [{ field: "attestation_type", op: "in", value: ["peer_review", "editorial_review"] }] },
      default_action_on_failure: "decline",
      published_at: "2025-01-02T00:07:00.000000Z",
      log_entry_id: 282,
      leaf_index: 281,
      effective_from: "2025-01-02T00:07:00.000000Z",
      status: "active",
    },
  },
  get_inbox: {
    query: { unread: "true" },
    answer: {
      notifications: [
        {
          id: 283,
          kind: "attestation_request",
          request_id: "7bcfce40-6df9-437c-9431-96b1917c213d",
          created_at: "2025-01-02T00:07:00.000000Z",
          read: false,
        },
      ],
      page: 1,
      per_page: 50,
      total: 1,
    },
  },
  post_inbox_id_read: {
    params: { id: 283 },
    answer: {
      id: 283,
      kind: "attestation_request",
      request_id: "7bcfce40-6df9-437c-9431-96b1917c213d",
      created_at: "2025-01-02T00:07:00.000000Z",
      read: true,
    },
  },
  post_webhooks: {
    body: { url: "https://receiver.example/hook", events: ["key.revoked"], secret: "a-secret-of-24-characters" },
    answer: {
      id: 1,
      url: "https://receiver.example/hook",
      events: ["key.revoked"],
      key_fingerprint: null,
      document_hash: null,
      active: true,
      healthy: true,
      retry_count: 0,
      created_at: "2025-01-02T00:07:00.000000Z",
    },
  },
  get_webhooks: {
    answer: [
      {
        id: 1,
        url: "https://receiver.example/hook",
        events: ["key.revoked"],
        key_fingerprint: null,
        document_hash: null,
        active: true,
        healthy: true,
        retry_count: 0,
        created_at: "2025-01-02T00:07:00.000000Z",
      },
    ],
  },
  delete_webhooks_webhook_id: {
    params: { webhook_id: 1 },
    answer: {
      id: 1,
      url: "https://receiver.example/hook",
      events: ["key.revoked"],
      key_fingerprint: null,
      document_hash: null,
      active: false,
      healthy: true,
      retry_count: 0,
      created_at: "2025-01-02T00:07:00.000000Z",
    },
  },
  get_openapi_json: { answer: { openapi: "3.1.0", info: { title: "cairnlog" } } },
};

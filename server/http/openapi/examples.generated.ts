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
  get_writers: { answer: { rule: "everybody", sentence: "Everybody who has a key may write to this log." } },
  get_leader: { answer: { role: "leader" } },
  get_follower: {
    answer: { role: "follower", leader: "https://a.log.example", epoch: 3, sequence: 1841, lag_seconds: 0.02 },
  },
  get_readyz: {
    answer: {
      status: "ok",
      transport: "uws",
      vkey: "cairnlog/a44ab2566be8b414/tlog+267ff101+AfT7nMflXnwWY3SwlPvsJNKdT89BZr/EVU3HegdaB91X",
      writers: { rule: "everybody", sentence: "Everybody who has a key may write to this log." },
      warnings: [
        "SERVICE_HARDWARE_ROOTS is not set: a credential of the type hardware is taken for hardware-backed on its holder's word.",
      ],
    },
  },
  get_metrics: {
    answer:
      '# HELP cairnlog_build_info The version of the service.\n# TYPE cairnlog_build_info gauge\ncairnlog_build_info{version="0.1.0"} 1\n\n# HELP cairnlog_http_connections Open connections.\n# TYPE cairnlog_http_connections gauge',
  },
  post_users: {
    body: {
      display_name: "Ada Lovelace",
      email: "ada@example.org",
      credential_type: "hardware",
      key_fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
      device_label: "Security key",
    },
    answer: {
      user: {
        id: "89e5f826-c83d-44c1-97f0-55263a6600b8",
        display_name: "Ada Lovelace",
        created_at: "2025-01-01T00:00:00.000000Z",
      },
      credential: {
        id: "41ccc52d-db5d-459d-8a25-6869110a3d43",
        key_fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
        credential_type: "hardware",
        device_label: "Security key",
        status: "active",
        created_at: "2025-01-01T00:00:00.000000Z",
        revoked_at: null,
        hardware_backed: true,
      },
      recovery_key: "YJM4W-KNCH4-11AH9-SF6SH-S3SFR-PSD0Y-AD14W-KP986",
    },
  },
  post_users_recover: {
    body: {
      pseudonym: "Ada Lovelace",
      recovery_key: "YJM4W-KNCH4-11AH9-SF6SH-S3SFR-PSD0Y-AD14W-KP986",
      credential_type: "hardware",
      key_fingerprint: "sha256:3581bed47d622b4c2114e271df65d2123c981e2d5553d12759838e61b9e7abd1",
      device_label: "Security key",
    },
    answer: {
      user: {
        id: "89e5f826-c83d-44c1-97f0-55263a6600b8",
        display_name: "Ada Lovelace",
        created_at: "2025-01-01T00:00:00.000000Z",
      },
      credential: {
        id: "458e439f-a1c9-4627-a33f-76d9651928f3",
        key_fingerprint: "sha256:3581bed47d622b4c2114e271df65d2123c981e2d5553d12759838e61b9e7abd1",
        credential_type: "hardware",
        device_label: "Security key",
        status: "active",
        created_at: "2025-01-01T00:06:00.000000Z",
        revoked_at: null,
        hardware_backed: true,
      },
      recovery_key: "T40M8-SKJ3M-H6GXB-QANMB-GZ0SK-0JER9-W4NTY-MKJJE",
      revoked_credentials: 2,
    },
  },
  post_credentials_enroll: {
    body: {
      challenge_id:
        "AQEABiqZy-4DAOsnusOWmE5yGmwtbaDuxZNBXAY22gfO2Sc8tH3035sCUc0v6DqowPnh52DV8-bz4w8NaHLPVSJZmeU6YmB5fepqAmQMWA1VQEjv2Wle9Q6Oinp-b6JFcy4AAY1dve-_bA",
      issuing_fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
      key_fingerprint: "sha256:eb27bac396984e721a6c2d6da0eec593415c0636da07ced9273cb47df4df9b02",
      credential_type: "hardware",
      device_label: "Second security key",
      challenge_signature: "1Z4bXN2kbyxzJwDzx1R5Rin/O6Z9t0heAXEKWoKj1fv96Cyeswk/vg1oi2kIK0xN53oG6rNtoQ6P0K5ENTA2Aw==",
      chain_signature: "ysTql1DKMOwuCFo01VBqzjy98WRDbnwKAVWamdGB57RhjL54r1zrvKihLy6IV+cKb2/mgV7WJUz7FbjoRvSxAg==",
    },
    answer: {
      credential: {
        id: "8ae8f850-3d3d-49d7-93ff-3e909303d064",
        key_fingerprint: "sha256:eb27bac396984e721a6c2d6da0eec593415c0636da07ced9273cb47df4df9b02",
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
          fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
          pseudonym: "Ada",
          algorithm: "ed25519",
          status: "active",
          registered_at: "2025-01-01T00:00:00.000000Z",
          expires_at: null,
          named: false,
        },
        {
          fingerprint: "sha256:c39790d20a84904ce243cbba81e21c195ac12f839d9ddfa1a82b895a0bf1ff62",
          pseudonym: "Grace",
          algorithm: "ecdsa-p256",
          status: "active",
          registered_at: "2025-01-01T00:00:00.000000Z",
          expires_at: null,
          named: false,
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
          fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
          pseudonym: "Ada",
          algorithm: "ed25519",
          status: "active",
          registered_at: "2025-01-01T00:00:00.000000Z",
          expires_at: null,
          named: false,
        },
      ],
      page: 1,
      per_page: 50,
      total: 1,
    },
  },
  get_keys_fingerprint: {
    params: { fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f" },
    answer: {
      fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
      public_key:
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA6l8m13z9hiTwyCf6VQHh0t8PQKYSsIgFezgkyGXsWfg=\n-----END PUBLIC KEY-----\n",
      pseudonym: "Ada",
      algorithm: "ed25519",
      status: "active",
      registered_at: "2025-01-01T00:00:00.000000Z",
      expires_at: null,
      log_entry_id: 1,
      successor_fingerprint: null,
      predecessor_fingerprint: null,
      proven: false,
      named: false,
      predecessor_confirmed: null,
      successor_confirmed: null,
    },
  },
  get_keys_fingerprint_status: {
    params: { fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f" },
    answer: {
      fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
      status: "active",
      expires_at: null,
      named: false,
      successor_fingerprint: null,
      successor_confirmed: null,
    },
  },
  post_keys_register: {
    body: {
      payload: {
        public_key:
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA6l8m13z9hiTwyCf6VQHh0t8PQKYSsIgFezgkyGXsWfg=\n-----END PUBLIC KEY-----\n",
        pseudonym: "Ada",
        key_algorithm: "ed25519",
      },
    },
    answer: {
      fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
      pseudonym: "Ada",
      algorithm: "ed25519",
      log_entry_id: 1,
      leaf_index: 0,
      entry_hash: "c1c350841087b0a3d7a2ab36b5723e4cd9efedb7d411eda7a9dd32bf7fa640a3",
    },
  },
  post_keys_succeed: {
    body: {
      payload: {
        old_fingerprint: "sha256:b12df219122cf73d560d2c4bbb4edfd9df88e1597d18a5ac500d7ce8dbc94775",
        new_public_key:
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAz53A55cAOVBwQY2nM4qEMciwtJMJu7ASP90jHZNbQAc=\n-----END PUBLIC KEY-----\n",
        new_algorithm: "ed25519",
      },
      auth: {
        challenge_id:
          "AQEABiqZy-4DALEt8hkSLPc9Vg0sS7tO39nfiOFZfRilrFANfOjbyUd1Tz6WpCxveAsl7hxUQi3JRUtVofh9aSGS7xW7QQtLLiuV3C9tfd8rvmCHRNqns7hn1JmUPlPAbJZfFpqojc0glg",
        challenge_signature: "tCEj61IfgGPIXrhynLger0sntjT0PX49rB6AiH3JO+2guuoYvj1GDihI4YlYScs0CjeaIa4vT0al7GEBoJfBCQ==",
      },
    },
    answer: {
      old_fingerprint: "sha256:b12df219122cf73d560d2c4bbb4edfd9df88e1597d18a5ac500d7ce8dbc94775",
      new_fingerprint: "sha256:efe7fd0906400b2020c44c4cfd25e66a95870bd57fe119b85e8fcf8dc5e2904f",
      log_entry_id: 5,
      leaf_index: 4,
      entry_hash: "a249ad7999713a305d5d888d71a9272fd72955558914f60c2375b19c83a24be1",
    },
  },
  post_keys_revoke: {
    body: {
      payload: { fingerprint: "sha256:efe7fd0906400b2020c44c4cfd25e66a95870bd57fe119b85e8fcf8dc5e2904f" },
      auth: {
        challenge_id:
          "AQEABiqZy-4DAO_n_QkGQAsgIMRMTP0l5mqVhwvVf-EZuF6Pz43F4pBPLTnSbDWwKLTfIzJYhRCDP5SQe4ptTl9ssvnMBPAf0S2XrC3MqMRYsiagj90yidGPQ327gQmFvCyAnimr5CPI3Q",
        challenge_signature: "BIq1ZLBqiZyuGpVmmolbxBlPUU6beP3v+sMzUzFkiFRErL6fvifzKoYD34bIUaAODFO6lqfkbaNdrYqMrY38BQ==",
      },
    },
    answer: {
      fingerprint: "sha256:efe7fd0906400b2020c44c4cfd25e66a95870bd57fe119b85e8fcf8dc5e2904f",
      status: "revoked",
      log_entry_id: 6,
      leaf_index: 5,
      entry_hash: "de17cba510310adcadd09c3258852a68bda77797ad5ca0c5426ce3747432ea3c",
    },
  },
  post_auth_challenge: {
    body: { fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f", purpose: "login" },
    answer: {
      challenge_id:
        "AQAABiqZy-4DAOHD6dAJb9IkS3ZKC46qPtSVcQlzj43b2t7RX46B4ldf7Czq3MFCr0WaQBgG_VvXZ0FoFJibqG2vSZuN8rbp0Ssa9_XH6d-IiVYFCdz-SxsYv7baqVNjYhrZEGF6RBtI5g",
      nonce:
        "service.auth.v1:login:sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f:7Czq3MFCr0WaQBgG_VvXZ0FoFJibqG2vSZuN8rbp0Ss",
      expires_at: "2025-01-01T00:05:00.000000Z",
      origin: "http://127.0.0.1:42999",
      act: null,
    },
  },
  post_auth_login: {
    body: {
      challenge_id:
        "AQAABiqZy-4DAOHD6dAJb9IkS3ZKC46qPtSVcQlzj43b2t7RX46B4ldf7Czq3MFCr0WaQBgG_VvXZ0FoFJibqG2vSZuN8rbp0Ssa9_XH6d-IiVYFCdz-SxsYv7baqVNjYhrZEGF6RBtI5g",
      challenge_signature: "YH+yAzNdZVmoa1jlg0wsnWTK5QcPODTjPZK87DvlQ63n8uNUVrRjDQnWSHJz5cSHQSHr04XDwUtmUeNITiSlAQ==",
    },
    answer: {
      token:
        "eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzaGEyNTY6YTQ0YWIyNTY2YmU4YjQxNDc4M2E3YjQzNDk4N2Y3MmNjYTI5YjM5OWQxODg1MmI2ZjgxZTFlMmIwMzVhMTYyZSIsInN1YiI6InNoYTI1NjplMWMzZTlkMDA5NmZkMjI0NGI3NjRhMGI4ZWFhM2VkNDk1NzEwOTczOGY4ZGRiZGFkZWQxNWY4ZTgxZTI1NzVmIiwiaWF0IjoxNzM1Njg5NjAwLCJleHAiOjE3MzU2OTMyMDAsImp0aSI6Ijk4YWRlMjgxLThhOGYtNDQ2Yi1iMWMwLWY3NGIzY2I0MDU5YSIsInBzZXVkb255bSI6IkFkYSIsInJlY292ZXJ5IjpmYWxzZSwiYXV0aF90aW1lIjoxNzM1Njg5NjAwfQ.0hWRtgC29KaaCNIBEyiuDC7wjWS9pD1oiiLKrqZZNCpJlTTbqSiI5w-ABWahtX7kBK985ubLCmRWgLkHrNvFAQ",
      fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
      pseudonym: "Ada",
      expires_at: "2025-01-01T01:00:00.000000Z",
    },
  },
  post_auth_renew: {
    answer: {
      token:
        "eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzaGEyNTY6YTQ0YWIyNTY2YmU4YjQxNDc4M2E3YjQzNDk4N2Y3MmNjYTI5YjM5OWQxODg1MmI2ZjgxZTFlMmIwMzVhMTYyZSIsInN1YiI6InNoYTI1NjplMWMzZTlkMDA5NmZkMjI0NGI3NjRhMGI4ZWFhM2VkNDk1NzEwOTczOGY4ZGRiZGFkZWQxNWY4ZTgxZTI1NzVmIiwiaWF0IjoxNzM1Njg5NjAwLCJleHAiOjE3MzU2OTMyMDAsImp0aSI6IjAxMzVhYjZkLTcxOGEtNGY3Yy04YWRjLTI4ZjdmMTZiNGFhYiIsInBzZXVkb255bSI6IkFkYSIsInJlY292ZXJ5IjpmYWxzZSwiYXV0aF90aW1lIjoxNzM1Njg5NjAwfQ.4qBAeeTsr8xYXdReBxGMsBvuZZVvYTag4R2DBD_NIWPyLfXjB-tx7Ta0JH80vz43I-5PHiNBVfywDnQytq3zBA",
      fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
      pseudonym: "Ada",
      expires_at: "2025-01-01T01:00:00.000000Z",
    },
  },
  post_auth_password: {
    body: {
      challenge_id:
        "AQEABiqZy-4DAItNsPxoSUqhxNEwBmrSzV0251kD_rlMwfbohvbhY5mmtjMAN9PvRLBDWdGPhrTwKbBYWXFzWhoY-hdxFbv97VDYRvSHQvrSj7xpLu3GGpBTkMeVha_RzyQ8A0Y5qe9wxA",
      challenge_signature: "KI/LsMy3MUC80mSSvalW0b603IRdcD+XIyK0cJ56re1JY9uKNJcUoCBVMgRj5DSLNWDDABRbI6f8JEiKqKyVCA==",
      password: "correct horse battery",
    },
    answer: {
      fingerprint: "sha256:8b4db0fc68494aa1c4d130066ad2cd5d36e75903feb94cc1f6e886f6e16399a6",
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
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA6l8m13z9hiTwyCf6VQHh0t8PQKYSsIgFezgkyGXsWfg=\n-----END PUBLIC KEY-----\n",
      signature: "CkRRUDsuJvegfjl18zvxzzdJGZzN6uL/G9Vf1x5DayjWS/dHfUPng4IWgLNL2S+Cgp6PBzwBzEUCnF+DCHKUAg==",
      intent_statement: "I wrote it.",
    },
    answer: {
      attestation: {
        id: "897b7e47-756e-407b-aea5-c437535f3307",
        type: "authorship",
        scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
        signer_key_fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
        signature_algorithm: "ed25519",
        signature: "CkRRUDsuJvegfjl18zvxzzdJGZzN6uL/G9Vf1x5DayjWS/dHfUPng4IWgLNL2S+Cgp6PBzwBzEUCnF+DCHKUAg==",
        timestamp: "2025-01-01T00:06:00.000000Z",
        intent_statement: "I wrote it.",
      },
      fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
      pseudonym: "Ada",
      log_entry_id: 13,
      leaf_index: 12,
      entry_hash: "40f53ef20988d24204b22b118838dba092cfef3c182c5c63295ec20e2e60acd0",
      manifest_hash: "38f0c85d6331fd79023d1cd40a3908b665272ec2077277686ac55af17b1b6494",
      sth: {
        tree_size: 13,
        root_hash: "f88e835d195db3d8a941bdab9bc54de1699f820d2d827ba21cde7ab9b6fae130",
        signature: "NP4QTnwdulgZlgwzvfGNOjp5yrlYcjLmR/+9kCeUupjFSL0FcA4VZjiCmy/AhAuTcDYwpwpr7bjXXdSFDo4+Dw==",
        timestamp: "2025-01-01T00:06:00.000000Z",
        key_id: "sha256:a44ab2566be8b414783a7b434987f72cca29b399d18852b6f81e1e2b035a162e",
        tree_version: 2,
      },
      duplicate: false,
      signed: { attestation_type: false, intent_statement: false },
    },
  },
  post_attestations_batch: {
    body: {
      submissions: [
        {
          manifest: {
            document: {
              title: "Minutes",
              content_hash: "sha256:c74e517559a5ed1b9f8f47889125b5d6b84df309d173fee85585b4c045f5214b",
            },
            attestations: [],
          },
          public_key_pem:
            "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA6l8m13z9hiTwyCf6VQHh0t8PQKYSsIgFezgkyGXsWfg=\n-----END PUBLIC KEY-----\n",
          signature: "Kxw+7LIhfIJEfo7w6lf7Vd6p+GEPt6oWeJ3LjvtCXtOZVadE8U6KBcTPZPi9d1cfLx/uATheJEYTjCUzBRosCw==",
        },
        {
          manifest: {
            document: {
              title: "Minutes",
              content_hash: "sha256:c74e517559a5ed1b9f8f47889125b5d6b84df309d173fee85585b4c045f5214b",
            },
            attestations: [],
          },
          public_key_pem:
            "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA6l8m13z9hiTwyCf6VQHh0t8PQKYSsIgFezgkyGXsWfg=\n-----END PUBLIC KEY-----\n",
          signature: "rmLBDxzdP0QTY3kPAkUxx2GZcvUJd8DEQ+OgPizrK5vqvaIqXVwFSx6v8jwAynZtHIMo3k6UK3qaEG+TVczqDg==",
        },
      ],
    },
    answer: {
      results: [
        {
          status: 201,
          receipt: {
            attestation: {
              id: "ca1ca327-f43e-4b45-aeef-3c713b42a530",
              type: "authorship",
              scope: { content_hash: "sha256:c74e517559a5ed1b9f8f47889125b5d6b84df309d173fee85585b4c045f5214b" },
              signer_key_fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
              signature_algorithm: "ed25519",
              signature: "Kxw+7LIhfIJEfo7w6lf7Vd6p+GEPt6oWeJ3LjvtCXtOZVadE8U6KBcTPZPi9d1cfLx/uATheJEYTjCUzBRosCw==",
              timestamp: "2025-01-01T00:06:00.000000Z",
            },
            fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
            pseudonym: "Ada",
            log_entry_id: 14,
            leaf_index: 13,
            entry_hash: "7826c04820448a8f34dade72c11f2ff18d591148fd09d1ac65d0568b83f395ff",
            manifest_hash: "25367d2d820f2cc8ef80c557f5e4b35bef45d435ae93ee6e3aeffc3e00a05c0e",
            sth: {
              tree_size: 14,
              root_hash: "26b120c5e714170b90d982794d4ad9cb5f8671afc5c1c4f806774fc7c6906017",
              signature: "ee+5ArgChK6XUFvXTxTdgtvStcv4upaoid3U5JEmzK9qd9Wa2asnTHp9lQMFnQN/Sgt0TGdbp3h2bJKUbYl8AQ==",
              timestamp: "2025-01-01T00:06:00.000000Z",
              key_id: "sha256:a44ab2566be8b414783a7b434987f72cca29b399d18852b6f81e1e2b035a162e",
              tree_version: 2,
            },
            duplicate: false,
            signed: { attestation_type: false, intent_statement: false },
          },
        },
        {
          status: 422,
          problem: {
            type: "about:blank",
            title: "Unprocessable Content",
            status: 422,
            detail: "The signature does not verify over the manifest with this public key.",
            code: "invalid-signature",
          },
        },
      ],
    },
  },
  post_documents_sign: {
    body: {
      title: "Annual report",
      content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810",
      tags: ["report"],
      public_key_pem:
        "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEkCMnOr2eIbR7jwsTRKx679/EKTz/\n3pNAgtux0RVRVgPG9uh9c3CILkiqENaiWubF4bCni9llSA+kPx8dtui+Dg==\n-----END PUBLIC KEY-----\n",
      attestation_type: "editorial_review",
    },
    answer: {
      manifest: {
        attestations: [],
        document: {
          content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810",
          title: "Annual report",
          tags: ["report"],
          attestation_type: "editorial_review",
        },
      },
      signing_payload:
        "eyJhdHRlc3RhdGlvbnMiOltdLCJkb2N1bWVudCI6eyJhdHRlc3RhdGlvbl90eXBlIjoiZWRpdG9yaWFsX3JldmlldyIsImNvbnRlbnRfaGFzaCI6InNoYTI1Njo0OTg2M2NjODhjNzFkZTY2MjkyYTlmNWYyYjkzMmQxZGYwYzFlZDEwMWVjMmI5Nzg4MGRlMWExMTMzNzA5ODEwIiwidGFncyI6WyJyZXBvcnQiXSwidGl0bGUiOiJBbm51YWwgcmVwb3J0In19",
      manifest_hash: "07a3a261f09eccfd842bc0cc3b0f4d6489cff455701b173ccae85104b6b55285",
    },
  },
  get_log_head: {
    answer: {
      head: {
        id: 15,
        entry_hash: "cc7a4f3605beaad719a7ce7dd7111b20ea49949e6497eac55f847ad1f0509866",
        event_type: "https://x-service.example/predicates/authorship/v1",
        timestamp: "2025-01-01T00:06:00.000000Z",
      },
      entry_count: 15,
    },
  },
  get_log_entry_id: {
    params: { entry_id: 1 },
    answer: {
      id: 1,
      timestamp: "2025-01-01T00:00:00.000000Z",
      event_type: "key_registration",
      payload: {
        event_type: "key_registration",
        expiration_date: null,
        fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
        key_algorithm: "ed25519",
        possession_signature: null,
        pseudonym: "Ada",
        public_key:
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA6l8m13z9hiTwyCf6VQHh0t8PQKYSsIgFezgkyGXsWfg=\n-----END PUBLIC KEY-----\n",
      },
      previous_hash: null,
      entry_hash: "c1c350841087b0a3d7a2ab36b5723e4cd9efedb7d411eda7a9dd32bf7fa640a3",
      chain_version: 2,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "c1c350841087b0a3d7a2ab36b5723e4cd9efedb7d411eda7a9dd32bf7fa640a3",
          is_primary: true,
        },
      ],
    },
  },
  get_log_sth: {
    answer: {
      tree_size: 15,
      root_hash: "9bfa5d7547c57fed97f4542f0cabef1a22dca68a74da6b7496fbd72c8682e752",
      signature: "aVtMe4s6xnAjkvo9uHe3AZRXkTqOTHbL1i0ljxlfkKdAIYxFA49P0pVZCzU8AQexKQT2zEOfZI9ROfihxZLADg==",
      timestamp: "2025-01-01T00:06:00.000000Z",
      key_id: "sha256:a44ab2566be8b414783a7b434987f72cca29b399d18852b6f81e1e2b035a162e",
      tree_version: 2,
    },
  },
  get_log_sth_tree_size: {
    params: { tree_size: 3 },
    answer: {
      tree_size: 3,
      root_hash: "b6fc3d8a09178d83ef2a40045d06a6c81583db8b745fbff07e27c9556116ff6d",
      signature: "wAIaAWLGBgSRtoC4nP9Shv5DIfn2EhtT4FmUY+RV8GzvuYMtlsPxLwzwMEgIAgdoXloIt0FKt81p4XhQMChCAg==",
      timestamp: "2025-01-01T00:00:00.000000Z",
      key_id: "sha256:a44ab2566be8b414783a7b434987f72cca29b399d18852b6f81e1e2b035a162e",
      tree_version: 2,
    },
  },
  get_log_heads: {
    query: { from: 3, limit: 1 },
    answer: {
      heads: [
        {
          tree_size: 3,
          root_hash: "b6fc3d8a09178d83ef2a40045d06a6c81583db8b745fbff07e27c9556116ff6d",
          signature: "wAIaAWLGBgSRtoC4nP9Shv5DIfn2EhtT4FmUY+RV8GzvuYMtlsPxLwzwMEgIAgdoXloIt0FKt81p4XhQMChCAg==",
          timestamp: "2025-01-01T00:00:00.000000Z",
          key_id: "sha256:a44ab2566be8b414783a7b434987f72cca29b399d18852b6f81e1e2b035a162e",
          tree_version: 2,
        },
      ],
    },
  },
  get_log_proof_leaf_index: {
    params: { leaf_index: 2 },
    query: { tree_size: 5 },
    answer: {
      leaf_index: 2,
      tree_size: 5,
      tree_version: 2,
      leaf_hash: "2081787ed33d14568e949aea7a785edea920f370613436c613b4cba205473b59",
      root_hash: "504fd3a980fd52e456ec9cddd67b896fef74b0e2d4f8a88b9e321a94bb23fdd1",
      audit_path: [
        "86c0580156e83426840d489398fd78d38ef3a83fc0d2a8e07c2441d585ef8d59",
        "a6468450c033be33224d7ba44d926d4191e81b67c2e1b9e69fcd633b52bedde4",
        "aee2f9026f84d9e52a3d59bbba582ad7c432e543c920f0c1ece27fc889f9629d",
      ],
      entry_hash: "8c9fb850bba59029be6872413d8843f7fe10a2856454921d40cce46756b72b6c",
      sth: {
        tree_size: 5,
        root_hash: "504fd3a980fd52e456ec9cddd67b896fef74b0e2d4f8a88b9e321a94bb23fdd1",
        signature: "IkhZKVB+nJbF2TqdcQ3P/gKfN2tm3mUgkNKgsE20MhVtBHDYVf7xSB7D2g9e+mmeiv0GJn/HRNhu3IE+jLzrDA==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:a44ab2566be8b414783a7b434987f72cca29b399d18852b6f81e1e2b035a162e",
        tree_version: 2,
      },
    },
  },
  get_log_entry_id_proof: {
    params: { entry_id: 3 },
    query: { tree_size: 5 },
    answer: {
      leaf_index: 2,
      tree_size: 5,
      tree_version: 2,
      leaf_hash: "2081787ed33d14568e949aea7a785edea920f370613436c613b4cba205473b59",
      root_hash: "504fd3a980fd52e456ec9cddd67b896fef74b0e2d4f8a88b9e321a94bb23fdd1",
      audit_path: [
        "86c0580156e83426840d489398fd78d38ef3a83fc0d2a8e07c2441d585ef8d59",
        "a6468450c033be33224d7ba44d926d4191e81b67c2e1b9e69fcd633b52bedde4",
        "aee2f9026f84d9e52a3d59bbba582ad7c432e543c920f0c1ece27fc889f9629d",
      ],
      entry_hash: "8c9fb850bba59029be6872413d8843f7fe10a2856454921d40cce46756b72b6c",
      sth: {
        tree_size: 5,
        root_hash: "504fd3a980fd52e456ec9cddd67b896fef74b0e2d4f8a88b9e321a94bb23fdd1",
        signature: "IkhZKVB+nJbF2TqdcQ3P/gKfN2tm3mUgkNKgsE20MhVtBHDYVf7xSB7D2g9e+mmeiv0GJn/HRNhu3IE+jLzrDA==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:a44ab2566be8b414783a7b434987f72cca29b399d18852b6f81e1e2b035a162e",
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
      from_root: "b6fc3d8a09178d83ef2a40045d06a6c81583db8b745fbff07e27c9556116ff6d",
      to_root: "25a7e9f24952a464b2a0985cd7f3610afd111ef22d7f22a5f7999df287b1f1f5",
      peaks: [
        "a6468450c033be33224d7ba44d926d4191e81b67c2e1b9e69fcd633b52bedde4",
        "2081787ed33d14568e949aea7a785edea920f370613436c613b4cba205473b59",
      ],
      extension: [
        "86c0580156e83426840d489398fd78d38ef3a83fc0d2a8e07c2441d585ef8d59",
        "ce4c644c4d9f84c1fb84f84aff5094a877dc36cb72d46dedc7ee4802c3516260",
      ],
      from_sth: {
        tree_size: 3,
        root_hash: "b6fc3d8a09178d83ef2a40045d06a6c81583db8b745fbff07e27c9556116ff6d",
        signature: "wAIaAWLGBgSRtoC4nP9Shv5DIfn2EhtT4FmUY+RV8GzvuYMtlsPxLwzwMEgIAgdoXloIt0FKt81p4XhQMChCAg==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:a44ab2566be8b414783a7b434987f72cca29b399d18852b6f81e1e2b035a162e",
        tree_version: 2,
      },
      to_sth: {
        tree_size: 6,
        root_hash: "25a7e9f24952a464b2a0985cd7f3610afd111ef22d7f22a5f7999df287b1f1f5",
        signature: "+rYaTv4HUkH3+DRo/XkTyRQeWxsNYeRziwv+yGcr5ivQpPk4MqShvkWMDihlDKIxF5gZhNe0L42kczlBLNfoCw==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:a44ab2566be8b414783a7b434987f72cca29b399d18852b6f81e1e2b035a162e",
        tree_version: 2,
      },
    },
  },
  post_log_verify: { answer: { valid: true, entry_count: 15, errors: [], warnings: [] } },
  get_log_operator_key: {
    answer: {
      fingerprint: "sha256:a44ab2566be8b414783a7b434987f72cca29b399d18852b6f81e1e2b035a162e",
      algorithm: "ed25519",
      public_key:
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA9Pucx+VefBZjdLCU++wk0p1Pz0Fmv8RVTcd6B1oH3Vc=\n-----END PUBLIC KEY-----\n",
      operators: [
        {
          key_id: "sha256:a44ab2566be8b414783a7b434987f72cca29b399d18852b6f81e1e2b035a162e",
          algorithm: "ed25519",
          public_key:
            "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA9Pucx+VefBZjdLCU++wk0p1Pz0Fmv8RVTcd6B1oH3Vc=\n-----END PUBLIC KEY-----\n",
          from_size: 1,
          until_size: null,
          rotation: null,
        },
      ],
    },
  },
  get_log_checkpoint: {
    answer:
      "cairnlog/a44ab2566be8b414\n15\nm/pddUfFf+2X9FQvDKvvGiLcpop02mt0lvvXLIaC51I=\n\n— cairnlog/a44ab2566be8b414 GKk75vo1AJHAtu9UNrav24v65+hEZxpA6v3QCXhmNJvSxXirSbJ9//5l6JQtTNFxjjCB9mAHO4tMxg+dKoMJKXEXrQQ=\n",
  },
  get_log_tile_version_level_index: { params: { version: 2, level: 0, index: 0 } },
  get_log_tile_version_level_index_p_width: { params: { version: 2, level: 0, index_p: "1.p", width: 4 } },
  get_tlog_checkpoint: {
    answer:
      "cairnlog/a44ab2566be8b414/tlog\n15\nfNwf3WtKBKnfpa4Qfk2/IJS2zZ7OwWhlrsdLI2cLQAY=\n\n— cairnlog/a44ab2566be8b414/tlog Jn/xAZHABxt8RxZcTzkjoBIAfldrIET0ycLnNE3DMVqiNtdOxTSdpG7b9V3RatmNCh2uusbzn+8arvuikRfCGfVLvgc=\n",
  },
  get_tlog_vkey: { answer: "cairnlog/a44ab2566be8b414/tlog+267ff101+AfT7nMflXnwWY3SwlPvsJNKdT89BZr/EVU3HegdaB91X\n" },
  get_tlog_tile_level_n1: { params: { level: "entries", n1: "000" } },
  get_tlog_tile_level_n1_n2: { params: { level: "1", n1: "000.p", n2: "1" } },
  post_log_anchor: {
    answer: {
      anchored_entry_id: 15,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "cc7a4f3605beaad719a7ce7dd7111b20ea49949e6497eac55f847ad1f0509866",
          is_primary: true,
        },
      ],
      ots_proof:
        "AE9wZW5UaW1lc3RhbXBzAABQcm9vZgC/ieLohOiSlAEIzHpPNgW+qtcZp8591xEbIOpJlJ5kl+rFX4R60fBQmGbwELu2GjJBtwmGyXd+97CouHQI8QRlAAAA8Ai4Kc8SpyxaTwCD3+MNLvkMjh0caHR0cHM6Ly9jYWxlbmRhci5leGFtcGxlLm9yZw==",
    },
  },
  get_log_anchor_status: {
    answer: {
      anchored_entry_id: null,
      anchored_at: null,
      proof_status: "none",
      entries_since_anchor: 15,
      anchor_due: false,
    },
  },
  post_log_sth_sign: {
    answer: {
      tree_size: 15,
      root_hash: "9bfa5d7547c57fed97f4542f0cabef1a22dca68a74da6b7496fbd72c8682e752",
      signature: "aVtMe4s6xnAjkvo9uHe3AZRXkTqOTHbL1i0ljxlfkKdAIYxFA49P0pVZCzU8AQexKQT2zEOfZI9ROfihxZLADg==",
      timestamp: "2025-01-01T00:06:00.000000Z",
      key_id: "sha256:a44ab2566be8b414783a7b434987f72cca29b399d18852b6f81e1e2b035a162e",
      tree_version: 2,
    },
  },
  get_log_shards: { answer: { frozen: null } },
  post_log_freeze: {
    body: {
      reason: "The log goes on with a new one every year.",
      successor: {
        url: "https://2027.log.example",
        vkey: "cairnlog/a44ab2566be8b414/tlog+267ff101+AfT7nMflXnwWY3SwlPvsJNKdT89BZr/EVU3HegdaB91X",
      },
    },
    answer: {
      log_entry_id: 328,
      leaf_index: 327,
      entry_hash: "9a73f40b20294c250d2a03443afb9257286be75329d4e3e9d83a233c9de8fb5e",
      sth: {
        tree_size: 328,
        root_hash: "0aab912b01b31acf76f1f355d6fae7ffce84c6ed1dcdb7fa5d760096dd573d89",
        signature: "szp26Al8k8kz68EmYY9PXACQwk75a6Qc+j0/dx+RZmuqLzN1TGGz1g+VfO4MuNCL3LJxQW7iEsP4z8OIgDktBQ==",
        timestamp: "2025-01-02T02:27:00.000000Z",
        key_id: "sha256:a44ab2566be8b414783a7b434987f72cca29b399d18852b6f81e1e2b035a162e",
        tree_version: 2,
      },
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
            event_type: "key_registration",
            expiration_date: null,
            fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
            key_algorithm: "ed25519",
            possession_signature: null,
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA6l8m13z9hiTwyCf6VQHh0t8PQKYSsIgFezgkyGXsWfg=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "c1c350841087b0a3d7a2ab36b5723e4cd9efedb7d411eda7a9dd32bf7fa640a3",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "c1c350841087b0a3d7a2ab36b5723e4cd9efedb7d411eda7a9dd32bf7fa640a3",
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
    params: { fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f" },
    query: { per_page: 1 },
    answer: {
      entries: [
        {
          id: 1,
          timestamp: "2025-01-01T00:00:00.000000Z",
          event_type: "key_registration",
          payload: {
            event_type: "key_registration",
            expiration_date: null,
            fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
            key_algorithm: "ed25519",
            possession_signature: null,
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA6l8m13z9hiTwyCf6VQHh0t8PQKYSsIgFezgkyGXsWfg=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "c1c350841087b0a3d7a2ab36b5723e4cd9efedb7d411eda7a9dd32bf7fa640a3",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "c1c350841087b0a3d7a2ab36b5723e4cd9efedb7d411eda7a9dd32bf7fa640a3",
              is_primary: true,
            },
          ],
        },
      ],
      page: 1,
      per_page: 1,
      total: 4,
    },
  },
  get_log_audit_trail: {
    query: {
      fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
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
            event_type: "key_registration",
            expiration_date: null,
            fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
            key_algorithm: "ed25519",
            possession_signature: null,
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA6l8m13z9hiTwyCf6VQHh0t8PQKYSsIgFezgkyGXsWfg=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "c1c350841087b0a3d7a2ab36b5723e4cd9efedb7d411eda7a9dd32bf7fa640a3",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "c1c350841087b0a3d7a2ab36b5723e4cd9efedb7d411eda7a9dd32bf7fa640a3",
              is_primary: true,
            },
          ],
        },
      ],
      page: 1,
      per_page: 1,
      total: 4,
    },
  },
  post_endorsements_offer: {
    body: {
      endorser_fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
      endorsed_fingerprint: "sha256:c39790d20a84904ce243cbba81e21c195ac12f839d9ddfa1a82b895a0bf1ff62",
      category: "x-service:institutional_endorsement",
      valid_until: "2027-01-01",
      institutional_metadata: { name: "University of Example" },
      external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
      auth: {
        challenge_id:
          "AQEABiqZ4WMtAOHD6dAJb9IkS3ZKC46qPtSVcQlzj43b2t7RX46B4ldf34s_eoC_bcXF6QQs9QbkRaQqVpLD3hFCJb_pYk-nNtg_GLB9PhWtJREmxmE0rGEt3KxVNy5dGfjkZMOg5X4XnQ",
        challenge_signature: "3mbOmWSD91BweQTTsq9ojso21afYsUU95YHveJwJDAmiqlzCmcza9ykXNoNMyXLlw++I+1fuigBr054SR/N4DQ==",
      },
    },
    answer: {
      id: 276,
      timestamp: "2025-01-01T00:06:00.000000Z",
      event_type: "endorsement_offer",
      payload: {
        category: "x-service:institutional_endorsement",
        endorsed_key_fingerprint: "sha256:c39790d20a84904ce243cbba81e21c195ac12f839d9ddfa1a82b895a0bf1ff62",
        endorser_key_fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
        event_type: "endorsement_offer",
        external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
        institutional_metadata: { name: "University of Example" },
        valid_until: "2027-01-01",
      },
      previous_hash: "eab6cfee5c0a6cf2905f81bcd11bac7472285b0221611d9078baf86a5dbf20e1",
      entry_hash: "74818e537cfbad4c947b1c60e9486a831b1e2f4779655aa274f62da23625b309",
      chain_version: 2,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "74818e537cfbad4c947b1c60e9486a831b1e2f4779655aa274f62da23625b309",
          is_primary: true,
        },
      ],
    },
  },
  post_endorsements_accept: {
    body: {
      offer_entry_id: 276,
      endorsed_fingerprint: "sha256:c39790d20a84904ce243cbba81e21c195ac12f839d9ddfa1a82b895a0bf1ff62",
      auth: {
        challenge_id:
          "AQEABiqZ4WMtAMOXkNIKhJBM4kPLuoHiHBlawS-DnZ3foagriVoL8f9ipbo_4iw-ujk8-moS_zMo-2DXfi6zm48PAYnknZDMJK2XEkCTj4grjrz3YokwOECqObRddZzUtJURAV9ZzNwi6Q",
        challenge_signature:
          "MEQCIDBvn8i5kKOq1mSN8qHXwnoZOY7oRkp50IJE5gghf5TpAiA2hPviLYBAemEDeixe2s5rk7K05Ajl0ZnFAAncxwLYXg==",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 276,
        endorser_fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
        endorsed_fingerprint: "sha256:c39790d20a84904ce243cbba81e21c195ac12f839d9ddfa1a82b895a0bf1ff62",
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
        id: 277,
        timestamp: "2025-01-01T00:06:00.000000Z",
        event_type: "endorsement_acceptance",
        payload: {
          category: "x-service:institutional_endorsement",
          endorsed_key_fingerprint: "sha256:c39790d20a84904ce243cbba81e21c195ac12f839d9ddfa1a82b895a0bf1ff62",
          endorser_key_fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
          event_type: "endorsement_acceptance",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: null,
          offer_entry_id: 276,
          valid_until: "2027-01-01",
        },
        previous_hash: "74818e537cfbad4c947b1c60e9486a831b1e2f4779655aa274f62da23625b309",
        entry_hash: "47873cc0cac47c1829a9db188d4fa75e42c3ff14628613052c4252b72645b80a",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "47873cc0cac47c1829a9db188d4fa75e42c3ff14628613052c4252b72645b80a",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_withdraw: {
    body: {
      endorser_fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
      endorsed_fingerprint: "sha256:c39790d20a84904ce243cbba81e21c195ac12f839d9ddfa1a82b895a0bf1ff62",
      original_offer_entry_id: 281,
      note: "A mistake.",
      auth: {
        challenge_id:
          "AQEABiquAs4UAOHD6dAJb9IkS3ZKC46qPtSVcQlzj43b2t7RX46B4ldf-H6qeUEnnW9heIgM5CBncN3hN7nU1j2mV2CyF3P3G49e22dzHpxw-Ly4-fdY82E2R1S1RXMAXwwui3fO0buB0Q",
        challenge_signature: "sDFlnI1Tyo7VZDA1JZOFDASltiFTZjcoGih5TdathcWyj8d0c27pfW7MoFiFUenVOurfWkLdkU5XZQNrtFZsBQ==",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 281,
        endorser_fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
        endorsed_fingerprint: "sha256:c39790d20a84904ce243cbba81e21c195ac12f839d9ddfa1a82b895a0bf1ff62",
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
        id: 282,
        timestamp: "2025-01-02T00:07:00.000000Z",
        event_type: "endorsement_withdrawal",
        payload: {
          category: "x-service:human_attestation",
          endorsed_key_fingerprint: "sha256:c39790d20a84904ce243cbba81e21c195ac12f839d9ddfa1a82b895a0bf1ff62",
          endorser_key_fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
          event_type: "endorsement_withdrawal",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: "A mistake.",
          offer_entry_id: 281,
          valid_until: "2027-01-01",
        },
        previous_hash: "6f391bd74e638b1e19d50d46e2bb914c6013ee072f3cd5388fc605e1637ebacf",
        entry_hash: "e5213b8e223cd3d65e467679261d694f08645ffbbcb20d27fc9f259360177e7f",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "e5213b8e223cd3d65e467679261d694f08645ffbbcb20d27fc9f259360177e7f",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_revoke_acceptance: {
    body: {
      endorsed_fingerprint: "sha256:c39790d20a84904ce243cbba81e21c195ac12f839d9ddfa1a82b895a0bf1ff62",
      original_offer_entry_id: 276,
      note: "We no longer work together.",
      auth: {
        challenge_id:
          "AQEABiquAs4UAMOXkNIKhJBM4kPLuoHiHBlawS-DnZ3foagriVoL8f9isfTF5mVKMe8sL0leu3AMujubldYNZHHOy1759wSNvFTTU6oaG1SnGr4c22JkE_-GAFlRfAB35SmDd9b0gMdJDw",
        challenge_signature:
          "MEYCIQDMCD0TevNEGzeQ2BWXJkPNRsco66guv0BaUS0RKteBTQIhAONwXyZCNTPI3TwOdl/MAVAn7foYbqPHvw8X7KPMf7UT",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 276,
        endorser_fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
        endorsed_fingerprint: "sha256:c39790d20a84904ce243cbba81e21c195ac12f839d9ddfa1a82b895a0bf1ff62",
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
        id: 280,
        timestamp: "2025-01-02T00:07:00.000000Z",
        event_type: "acceptance_revocation",
        payload: {
          category: "x-service:institutional_endorsement",
          endorsed_key_fingerprint: "sha256:c39790d20a84904ce243cbba81e21c195ac12f839d9ddfa1a82b895a0bf1ff62",
          endorser_key_fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
          event_type: "acceptance_revocation",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: "We no longer work together.",
          offer_entry_id: 276,
          valid_until: "2027-01-01",
        },
        previous_hash: "de7683882f4dde9534ba788d319e82f5bb6f94b87ae766c67f77ce2b88da1547",
        entry_hash: "b8f721d163ab2799954e686cccaaa8113d84aca21c3d44e8d43d4c8bb314ad48",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "b8f721d163ab2799954e686cccaaa8113d84aca21c3d44e8d43d4c8bb314ad48",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_revocation_alert: {
    body: {
      endorser_fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
      compromised_fingerprint: "sha256:c39790d20a84904ce243cbba81e21c195ac12f839d9ddfa1a82b895a0bf1ff62",
      reason: "The laptop with the key was stolen.",
      auth: {
        challenge_id:
          "AQEABiquAs4UAOHD6dAJb9IkS3ZKC46qPtSVcQlzj43b2t7RX46B4ldfEGox4Zyx0wpUXZ8Br337fAeIKT6z3_FZz0M-4JX3LJj8VGiZn1NCVSkLqTJY6Yq8Azup2HHaHGXuGjfJgSBypg",
        challenge_signature: "KCMHeu6rD7f6BkK7pLLFjMmtVDXPy5eE4FIzPVq7P78ofgSRieYaQNuCbMWgJkpbNaweBt+jHYL2JH+ZGZ1oBg==",
      },
    },
    answer: {
      alert: {
        alert_entry_id: 279,
        compromised_fingerprint: "sha256:c39790d20a84904ce243cbba81e21c195ac12f839d9ddfa1a82b895a0bf1ff62",
        endorser_fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
        reason: "The laptop with the key was stolen.",
        evidence: null,
        filed_at: "2025-01-02T00:07:00.000000Z",
      },
      log_entry: {
        id: 279,
        timestamp: "2025-01-02T00:07:00.000000Z",
        event_type: "endorser_revocation_alert",
        payload: {
          compromised_key_fingerprint: "sha256:c39790d20a84904ce243cbba81e21c195ac12f839d9ddfa1a82b895a0bf1ff62",
          endorser_key_fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
          event_type: "endorser_revocation_alert",
          evidence: null,
          reason: "The laptop with the key was stolen.",
        },
        previous_hash: "11750795ba4dd78aa92d241c5bf6d4003d3b399db0758dffc9b707cb95870748",
        entry_hash: "de7683882f4dde9534ba788d319e82f5bb6f94b87ae766c67f77ce2b88da1547",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "de7683882f4dde9534ba788d319e82f5bb6f94b87ae766c67f77ce2b88da1547",
            is_primary: true,
          },
        ],
      },
    },
  },
  get_endorsements_fingerprint: {
    params: { fingerprint: "sha256:c39790d20a84904ce243cbba81e21c195ac12f839d9ddfa1a82b895a0bf1ff62" },
    answer: {
      endorsements: [
        {
          offer_entry_id: 276,
          endorser_fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
          endorsed_fingerprint: "sha256:c39790d20a84904ce243cbba81e21c195ac12f839d9ddfa1a82b895a0bf1ff62",
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
    params: { fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f" },
    query: { status: "active" },
    answer: {
      endorsements: [
        {
          offer_entry_id: 276,
          endorser_fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
          endorsed_fingerprint: "sha256:c39790d20a84904ce243cbba81e21c195ac12f839d9ddfa1a82b895a0bf1ff62",
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
    params: { fingerprint: "sha256:c39790d20a84904ce243cbba81e21c195ac12f839d9ddfa1a82b895a0bf1ff62" },
    answer: {
      alerts: [
        {
          alert_entry_id: 279,
          compromised_fingerprint: "sha256:c39790d20a84904ce243cbba81e21c195ac12f839d9ddfa1a82b895a0bf1ff62",
          endorser_fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
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
    params: { fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f" },
    query: { max_depth: 2 },
    answer: {
      root: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
      nodes: [
        {
          fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
          pseudonym: "Ada",
          status: "active",
          named: false,
          depth: 0,
        },
        {
          fingerprint: "sha256:c39790d20a84904ce243cbba81e21c195ac12f839d9ddfa1a82b895a0bf1ff62",
          pseudonym: "Grace",
          status: "active",
          named: false,
          depth: 1,
        },
      ],
      edges: [
        {
          from: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
          to: "sha256:c39790d20a84904ce243cbba81e21c195ac12f839d9ddfa1a82b895a0bf1ff62",
          category: "x-service:institutional_endorsement",
          status: "active",
          offer_entry_id: 276,
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
    params: { fingerprint: "sha256:c39790d20a84904ce243cbba81e21c195ac12f839d9ddfa1a82b895a0bf1ff62" },
    answer: {
      fingerprint: "sha256:c39790d20a84904ce243cbba81e21c195ac12f839d9ddfa1a82b895a0bf1ff62",
      key_status: "active",
      key_named: false,
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
          fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
          category_weights: { "x-service:institutional_endorsement": 0.8 },
          decay_per_hop: 0.5,
          direct_signer_anchors: [
            { fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f", weight: 1 },
          ],
          endorser_anchors: [
            { fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f", weight: 0.9 },
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
      fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
      direct_signer_anchors: [
        { fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f", weight: 0.9 },
      ],
      minimum_threshold: 0.4,
      category_weights: { "x-service:institutional_endorsement": 0.8 },
    },
    answer: {
      id: 1,
      fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f", weight: 0.9 },
      ],
      max_depth: 4,
      minimum_threshold: 0.4,
      status: "active",
      created_at: "2025-01-02T00:07:00.000000Z",
    },
  },
  get_trust_configs_fingerprint: {
    params: { fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f" },
    answer: {
      id: 1,
      fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f", weight: 0.9 },
      ],
      max_depth: 4,
      minimum_threshold: 0.4,
      status: "active",
      created_at: "2025-01-02T00:07:00.000000Z",
    },
  },
  post_trust_configs_revoke: {
    body: { fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f" },
    answer: {
      id: 1,
      fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f", weight: 0.9 },
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
            id: "897b7e47-756e-407b-aea5-c437535f3307",
            type: "authorship",
            scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
            signer_key_fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
            signature_algorithm: "ed25519",
            signature: "CkRRUDsuJvegfjl18zvxzzdJGZzN6uL/G9Vf1x5DayjWS/dHfUPng4IWgLNL2S+Cgp6PBzwBzEUCnF+DCHKUAg==",
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
          id: "897b7e47-756e-407b-aea5-c437535f3307",
          signer_key_fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
          layer1: {
            status: "valid",
            details:
              "The signature verifies; it covers the document. The signer signed neither type nor statement: both are the log's word.",
          },
          layer2: {
            status: "valid",
            details:
              "The key is active, and was when the attestation was made. The key has not signed its name and expiration: anybody may have recorded them.",
          },
          covers: "document",
          signed: { attestation_type: false, intent_statement: false },
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
          { id: "897b7e47-756e-407b-aea5-c437535f3307", kind: "attestation", type: "authorship", status: "valid" },
          {
            id: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
            kind: "key",
            pseudonym: "Ada",
            status: "active",
            named: false,
          },
        ],
        edges: [
          {
            from: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
            to: "897b7e47-756e-407b-aea5-c437535f3307",
            kind: "signed",
          },
          {
            from: "897b7e47-756e-407b-aea5-c437535f3307",
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
                id: "897b7e47-756e-407b-aea5-c437535f3307",
                type: "authorship",
                scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                signer_key_fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
                signature_algorithm: "ed25519",
                signature: "CkRRUDsuJvegfjl18zvxzzdJGZzN6uL/G9Vf1x5DayjWS/dHfUPng4IWgLNL2S+Cgp6PBzwBzEUCnF+DCHKUAg==",
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
                  id: "897b7e47-756e-407b-aea5-c437535f3307",
                  type: "authorship",
                  scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                  signer_key_fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
                  signature_algorithm: "ed25519",
                  signature: "CkRRUDsuJvegfjl18zvxzzdJGZzN6uL/G9Vf1x5DayjWS/dHfUPng4IWgLNL2S+Cgp6PBzwBzEUCnF+DCHKUAg==",
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
                  id: "897b7e47-756e-407b-aea5-c437535f3307",
                  type: "authorship",
                  scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                  signer_key_fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
                  signature_algorithm: "ed25519",
                  signature: "CkRRUDsuJvegfjl18zvxzzdJGZzN6uL/G9Vf1x5DayjWS/dHfUPng4IWgLNL2S+Cgp6PBzwBzEUCnF+DCHKUAg==",
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
                    id: "897b7e47-756e-407b-aea5-c437535f3307",
                    type: "authorship",
                    scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                    signer_key_fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
                    signature_algorithm: "ed25519",
                    signature:
                      "CkRRUDsuJvegfjl18zvxzzdJGZzN6uL/G9Vf1x5DayjWS/dHfUPng4IWgLNL2S+Cgp6PBzwBzEUCnF+DCHKUAg==",
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
        "eyJhdHRlc3RhdGlvbnMiOltdLCJkb2N1bWVudCI6eyJjb250ZW50X2hhc2giOiJzaGEyNTY6ZjNkNDJlYmY5NjU5YjE2MmUwYmE4YzQwMjM1OTQwMWRlN2VkOGMyODg0M2MwMWY2ZTBiZGIyMzhhY2Q4ZDAzYyIsInBhcnRzIjpbeyJjb250ZW50X2hhc2giOiJzaGEyNTY6NDk4NjNjYzg4YzcxZGU2NjI5MmE5ZjVmMmI5MzJkMWRmMGMxZWQxMDFlYzJiOTc4ODBkZTFhMTEzMzcwOTgxMCIsIm1hbmlmZXN0Ijp7ImF0dGVzdGF0aW9ucyI6W3siaWQiOiI4OTdiN2U0Ny03NTZlLTQwN2ItYWVhNS1jNDM3NTM1ZjMzMDciLCJpbnRlbnRfc3RhdGVtZW50IjoiSSB3cm90ZSBpdC4iLCJzY29wZSI6eyJjb250ZW50X2hhc2giOiJzaGEyNTY6NDk4NjNjYzg4YzcxZGU2NjI5MmE5ZjVmMmI5MzJkMWRmMGMxZWQxMDFlYzJiOTc4ODBkZTFhMTEzMzcwOTgxMCJ9LCJzaWduYXR1cmUiOiJDa1JSVURzdUp2ZWdmamwxOHp2eHp6ZEpHWnpONnVML0c5VmYxeDVEYXlqV1MvZEhmVVBuZzRJV2dMTkwyUytDZ3A2UEJ6d0J6RVVDbkYrRENIS1VBZz09Iiwic2lnbmF0dXJlX2FsZ29yaXRobSI6ImVkMjU1MTkiLCJzaWduZXJfa2V5X2ZpbmdlcnByaW50Ijoic2hhMjU2OmUxYzNlOWQwMDk2ZmQyMjQ0Yjc2NGEwYjhlYWEzZWQ0OTU3MTA5NzM4ZjhkZGJkYWRlZDE1ZjhlODFlMjU3NWYiLCJ0aW1lc3RhbXAiOiIyMDI1LTAxLTAxVDAwOjA2OjAwLjAwMDAwMFoiLCJ0eXBlIjoiYXV0aG9yc2hpcCJ9XSwiZG9jdW1lbnQiOnsiY29udGVudF9oYXNoIjoic2hhMjU2OjQ5ODYzY2M4OGM3MWRlNjYyOTJhOWY1ZjJiOTMyZDFkZjBjMWVkMTAxZWMyYjk3ODgwZGUxYTExMzM3MDk4MTAiLCJ0YWdzIjpbInJlcG9ydCJdLCJ0aXRsZSI6IkFubnVhbCByZXBvcnQifX0sInJvbGUiOiJjaGFwdGVyIiwidGl0bGUiOiJSZXBvcnQifSx7ImNvbnRlbnRfaGFzaCI6InNoYTI1NjpmMzBjNTM0ZGE5NThhNzUzYWMyMGM2ZDVmZDQwNDFkZTRkOWFlMjQ5N2U3NDQwY2ZlMmQwMzRiMDBiNzFlZDEzIiwidGl0bGUiOiJBcHBlbmRpeCJ9XSwidGl0bGUiOiJSZXBvcnQgYW5kIGFwcGVuZGl4In19",
      manifest_hash: "6e47d88e55e8da074277162c9f05a39b41499ea51911d445ecb007a7bb8dcd45",
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
            attestation_id: "d3c8bdd6-884e-472a-97a1-c77e5ed79940",
            attestation_type: "editorial_review",
            document_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810",
            document_title: "Annual report",
            intent_statement: null,
            manifest_hash: "07a3a261f09eccfd842bc0cc3b0f4d6489cff455701b173ccae85104b6b55285",
            signature:
              "MEUCICKfGBfiqs0++a+OZ75uSWRPQrGWzH/7KDl6mrhhnbOrAiEA8eZBG/4hIn4m6kjcti333/WgHg2OfIz2jhJX7YSNmVY=",
            signature_algorithm: "ecdsa-p256",
            signer_key_fingerprint: "sha256:c39790d20a84904ce243cbba81e21c195ac12f839d9ddfa1a82b895a0bf1ff62",
            tags: ["report"],
            timestamp: "2025-01-01T00:06:00.000000Z",
          },
          previous_hash: "62866a7ca4971baad72caeab3c03f8f9523d657a1ab29dacb9eefedec3869483",
          entry_hash: "c8b3481b9c6aef4d2480e64b65d923ae69575c218e564e1158c09e43e2881b47",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "c8b3481b9c6aef4d2480e64b65d923ae69575c218e564e1158c09e43e2881b47",
              is_primary: true,
            },
          ],
        },
      ],
      page: 1,
      page_size: 1,
      total: 4,
      truncated: false,
    },
  },
  post_claims: {
    body: {
      payload: {
        commitment_alg: "hmac-sha256-ecdh-v1",
        ephemeral_public_key:
          "BMyi7LZmtnRZd67lUsd+BTjHs45zBIwMkxdTbj0A2e+htSv2nvr+lXFCLnOdYl2/bjBWWOj+aPvkRWFUKnO0g0g=",
        commitment: "3c6c2a93db081f2b3b287db254303a682b98b47d208caa1e962405a1867d2910",
        lookup_key: "604b44bc83f961bbc26bb3eff6a8ffa625cee573e81fb2be83cc480139406a48",
        nonce: "eJtAeJLNqjbhojvA",
        ciphertext: "H64Z/PYpO2CdphmA0b8jrR1Hzw3NBNqQQrve6bClcF9uD7oq2YdGmaLMfqAud1PGvcqJ",
        recipient_fingerprint: "sha256:4b299e8a419cc4e3fee48de669ed32af5f61e4d7d03fa905d320cf7cd168b354",
      },
    },
    answer: {
      entry_id: 287,
      commitment: "3c6c2a93db081f2b3b287db254303a682b98b47d208caa1e962405a1867d2910",
      lookup_key: "604b44bc83f961bbc26bb3eff6a8ffa625cee573e81fb2be83cc480139406a48",
      leaf_index: 286,
      log_entry_id: 287,
    },
  },
  get_claims: {
    query: { lookup_key: "604b44bc83f961bbc26bb3eff6a8ffa625cee573e81fb2be83cc480139406a48" },
    answer: {
      entries: [
        {
          id: 287,
          timestamp: "2025-01-02T00:07:00.000000Z",
          event_type: "encrypted_claim",
          payload: {
            ciphertext: "H64Z/PYpO2CdphmA0b8jrR1Hzw3NBNqQQrve6bClcF9uD7oq2YdGmaLMfqAud1PGvcqJ",
            commitment: "3c6c2a93db081f2b3b287db254303a682b98b47d208caa1e962405a1867d2910",
            commitment_alg: "hmac-sha256-ecdh-v1",
            ephemeral_public_key:
              "BMyi7LZmtnRZd67lUsd+BTjHs45zBIwMkxdTbj0A2e+htSv2nvr+lXFCLnOdYl2/bjBWWOj+aPvkRWFUKnO0g0g=",
            event_type: "encrypted_claim",
            lookup_key: "604b44bc83f961bbc26bb3eff6a8ffa625cee573e81fb2be83cc480139406a48",
            nonce: "eJtAeJLNqjbhojvA",
            recipient_fingerprint: "sha256:4b299e8a419cc4e3fee48de669ed32af5f61e4d7d03fa905d320cf7cd168b354",
          },
          previous_hashes: [
            { algorithm: "sha2-256", digest_hex: "a37ee924e862c912f46c228e8bd7467b5b1538cd5bffb6c2164c937808d596b3" },
          ],
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "469272650ff8139363eda2fdaadaa85de9519123078d4b4bfd23acad23ab78a2",
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
    params: { entry_id: 287 },
    answer: {
      ciphertext: "H64Z/PYpO2CdphmA0b8jrR1Hzw3NBNqQQrve6bClcF9uD7oq2YdGmaLMfqAud1PGvcqJ",
      commitment: "3c6c2a93db081f2b3b287db254303a682b98b47d208caa1e962405a1867d2910",
      commitment_alg: "hmac-sha256-ecdh-v1",
      ephemeral_public_key: "BMyi7LZmtnRZd67lUsd+BTjHs45zBIwMkxdTbj0A2e+htSv2nvr+lXFCLnOdYl2/bjBWWOj+aPvkRWFUKnO0g0g=",
      lookup_key: "604b44bc83f961bbc26bb3eff6a8ffa625cee573e81fb2be83cc480139406a48",
      nonce: "eJtAeJLNqjbhojvA",
      recipient_fingerprint: "sha256:4b299e8a419cc4e3fee48de669ed32af5f61e4d7d03fa905d320cf7cd168b354",
    },
  },
  post_claims_entry_id_reveal: {
    params: { entry_id: 287 },
    body: {
      plaintext: { salary: 52000, name: "Zoë 🪨" },
      commitment_key: "9984853e0ca7e13a041c455a6b2d0d855b438a0816692104c7bd936d88b1fc7e",
    },
    answer: { valid: true },
  },
  get_log_attestation_requests: {
    query: { target: "sha256:c39790d20a84904ce243cbba81e21c195ac12f839d9ddfa1a82b895a0bf1ff62", status: "open" },
    answer: {
      requests: [
        {
          request_id: "c1361fe1-9c6c-401c-9cf6-3bd6ae9257fc",
          requester_fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
          target_fingerprint: "sha256:c39790d20a84904ce243cbba81e21c195ac12f839d9ddfa1a82b895a0bf1ff62",
          attestation_type: "peer_review",
          status: "open",
          deadline: "2025-01-16T00:07:00.000000Z",
          created_at: "2025-01-02T00:07:00.000000Z",
          log_entry_id: 284,
          leaf_index: 283,
          responses: [],
        },
      ],
      page: 1,
      per_page: 50,
      total: 1,
    },
  },
  post_log_attestation_requests: {
    body: {
      target_fingerprint: "sha256:c39790d20a84904ce243cbba81e21c195ac12f839d9ddfa1a82b895a0bf1ff62",
      attestation_type: "peer_review",
      nonce: "request-2025-0001",
      intent_statement: "Please review the annual report.",
      claims: { document_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
    },
    answer: {
      request_id: "c1361fe1-9c6c-401c-9cf6-3bd6ae9257fc",
      requester_fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
      target_fingerprint: "sha256:c39790d20a84904ce243cbba81e21c195ac12f839d9ddfa1a82b895a0bf1ff62",
      attestation_type: "peer_review",
      status: "open",
      deadline: "2025-01-16T00:07:00.000000Z",
      created_at: "2025-01-02T00:07:00.000000Z",
      log_entry_id: 284,
      leaf_index: 283,
      nonce: "request-2025-0001",
      intent_statement: "Please review the annual report.",
      claims: { document_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
      policy_entry_id: 283,
      response: null,
      responses: [],
    },
  },
  get_log_attestation_requests_request_id: {
    params: { request_id: "c1361fe1-9c6c-401c-9cf6-3bd6ae9257fc" },
    answer: {
      request_id: "c1361fe1-9c6c-401c-9cf6-3bd6ae9257fc",
      requester_fingerprint: "sha256:e1c3e9d0096fd2244b764a0b8eaa3ed4957109738f8ddbdaded15f8e81e2575f",
      target_fingerprint: "sha256:c39790d20a84904ce243cbba81e21c195ac12f839d9ddfa1a82b895a0bf1ff62",
      attestation_type: "peer_review",
      status: "declined",
      deadline: "2025-01-16T00:07:00.000000Z",
      created_at: "2025-01-02T00:07:00.000000Z",
      log_entry_id: 284,
      leaf_index: 283,
      responses: [
        {
          decision: "decline",
          responder_fingerprint: "sha256:c39790d20a84904ce243cbba81e21c195ac12f839d9ddfa1a82b895a0bf1ff62",
          by_target: true,
          attestation_id: null,
          reason: "No time before summer.",
          responded_at: "2025-01-02T00:07:00.000000Z",
          log_entry_id: 285,
          leaf_index: 284,
        },
      ],
      nonce: "request-2025-0001",
      intent_statement: "Please review the annual report.",
      claims: { document_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
      policy_entry_id: 283,
      response: {
        decision: "decline",
        responder_fingerprint: "sha256:c39790d20a84904ce243cbba81e21c195ac12f839d9ddfa1a82b895a0bf1ff62",
        by_target: true,
        attestation_id: null,
        reason: "No time before summer.",
        responded_at: "2025-01-02T00:07:00.000000Z",
        log_entry_id: 285,
        leaf_index: 284,
      },
    },
  },
  get_log_request_policies_fingerprint: {
    params: { fingerprint: "sha256:c39790d20a84904ce243cbba81e21c195ac12f839d9ddfa1a82b895a0bf1ff62" },
    answer: {
      target_fingerprint: "sha256:c39790d20a84904ce243cbba81e21c195ac12f839d9ddfa1a82b895a0bf1ff62",
      active: {
        target_fingerprint: "sha256:c39790d20a84904ce243cbba81e21c195ac12f839d9ddfa1a82b895a0bf1ff62",
        predicates: { all: [{ field: "attestation_type", op: "in", value: ["peer_review", "editorial_review"] }] },
        default_action_on_failure: "decline",
        effective_from: "2025-01-02T00:07:00.000000Z",
        published_at: "2025-01-02T00:07:00.000000Z",
        log_entry_id: 283,
        leaf_index: 282,
      },
      scheduled: null,
    },
  },
  post_log_attestation_requests_request_id_respond: {
    params: { request_id: "c1361fe1-9c6c-401c-9cf6-3bd6ae9257fc" },
    body: { decision: "decline", reason: "No time before summer." },
    answer: {
      request_id: "c1361fe1-9c6c-401c-9cf6-3bd6ae9257fc",
      status: "declined",
      responder_fingerprint: "sha256:c39790d20a84904ce243cbba81e21c195ac12f839d9ddfa1a82b895a0bf1ff62",
      decision: "decline",
      attestation_id: null,
      reason: "No time before summer.",
      log_entry_id: 285,
      leaf_index: 284,
    },
  },
  post_log_request_policies: {
    body: {
      target_fingerprint: "sha256:c39790d20a84904ce243cbba81e21c195ac12f839d9ddfa1a82b895a0bf1ff62",
      predicates: { all: [{ field: "attestation_type", op: "in", value: ["peer_review", "editorial_review"] }] },
      default_action_on_failure: "decline",
    },
    answer: {
      target_fingerprint: "sha256:c39790d20a84904ce243cbba81e21c195ac12f839d9ddfa1a82b895a0bf1ff62",
      predicates: { all: [{ field: "attestation_type", op: "in", value: ["peer_review", "editorial_review"] }] },
      default_action_on_failure: "decline",
      published_at: "2025-01-02T00:07:00.000000Z",
      log_entry_id: 283,
      leaf_index: 282,
      effective_from: "2025-01-02T00:07:00.000000Z",
      status: "active",
    },
  },
  get_inbox: {
    query: { unread: "true" },
    answer: {
      notifications: [
        {
          id: 284,
          kind: "attestation_request",
          request_id: "c1361fe1-9c6c-401c-9cf6-3bd6ae9257fc",
          created_at: "2025-01-02T00:07:00.000000Z",
          read: false,
          responder_fingerprint: null,
        },
      ],
      page: 1,
      per_page: 50,
      total: 1,
    },
  },
  post_inbox_id_read: {
    params: { id: 284 },
    answer: {
      id: 284,
      kind: "attestation_request",
      request_id: "c1361fe1-9c6c-401c-9cf6-3bd6ae9257fc",
      created_at: "2025-01-02T00:07:00.000000Z",
      read: true,
      responder_fingerprint: null,
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

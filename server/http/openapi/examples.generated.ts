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
  get_leader: { answer: { role: "leader" } },
  get_follower: {
    answer: { role: "follower", leader: "https://a.log.example", epoch: 3, sequence: 1841, lag_seconds: 0.02 },
  },
  get_readyz: {
    answer: {
      status: "ok",
      transport: "uws",
      vkey: "cairnlog/569781434f3177d4/tlog+fe9b6092+AfH8ZtOaFC21j1tXyMPBM0pROYKBhvEP1zaQ+DEWY3fd",
      warnings: [
        "SERVICE_HARDWARE_ROOTS is not set: a credential of the type hardware is taken for hardware-backed on its holder's word.",
      ],
    },
  },
  get_metrics: {
    answer:
      '# HELP cairnlog_info The version of the service.\n# TYPE cairnlog_info gauge\ncairnlog_info{version="0.1.0"} 1\n\n# HELP cairnlog_http_connections Open connections.\n# TYPE cairnlog_http_connections gauge',
  },
  post_users: {
    body: {
      display_name: "Ada Lovelace",
      email: "ada@example.org",
      credential_type: "hardware",
      key_fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
      device_label: "Security key",
    },
    answer: {
      user: {
        id: "7fcfab97-47f6-4276-9b6f-f3bee8e952c2",
        display_name: "Ada Lovelace",
        created_at: "2025-01-01T00:00:00.000000Z",
      },
      credential: {
        id: "e13f6adb-317b-4a1a-8b32-aa2644152484",
        key_fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
        credential_type: "hardware",
        device_label: "Security key",
        status: "active",
        created_at: "2025-01-01T00:00:00.000000Z",
        revoked_at: null,
        hardware_backed: true,
      },
      recovery_key: "9TRJ8-RJZWY-39VRQ-VP62W-7WXP9-2SJSF-JG14D-5TRHD",
    },
  },
  post_users_recover: {
    body: {
      pseudonym: "Ada Lovelace",
      recovery_key: "9TRJ8-RJZWY-39VRQ-VP62W-7WXP9-2SJSF-JG14D-5TRHD",
      credential_type: "hardware",
      key_fingerprint: "sha256:a6738a9bc192520e058f357a4b68453409b44772f685a2802a5a8703a9bbeaef",
      device_label: "Security key",
    },
    answer: {
      user: {
        id: "7fcfab97-47f6-4276-9b6f-f3bee8e952c2",
        display_name: "Ada Lovelace",
        created_at: "2025-01-01T00:00:00.000000Z",
      },
      credential: {
        id: "13e66609-6550-4b85-ba32-87ed5144765e",
        key_fingerprint: "sha256:a6738a9bc192520e058f357a4b68453409b44772f685a2802a5a8703a9bbeaef",
        credential_type: "hardware",
        device_label: "Security key",
        status: "active",
        created_at: "2025-01-01T00:06:00.000000Z",
        revoked_at: null,
        hardware_backed: true,
      },
      recovery_key: "X9KDE-5P003-7S9TH-TRK85-YF0WF-4H43M-7FKZ4-GBASJ",
      revoked_credentials: 2,
    },
  },
  post_credentials_enroll: {
    body: {
      challenge_id: "2702f23e-4e4c-4828-bc55-5f89dab2427f",
      issuing_fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
      key_fingerprint: "sha256:99e61bb999c38ab1dc82f3348e15e6061a62fe4511dc9d36610449c2beb12b6f",
      credential_type: "hardware",
      device_label: "Second security key",
      challenge_signature: "ZjKy9SzRxR/xpn3puNEMrylZDuB2kjrHJHLeqAfFkfZMcbub34XZTk5gkOVv2w+phTteFav2Cz0YQucovh0yAQ==",
      chain_signature: "Sg/ZI8hwp6eMaefdw0Zmofa5kmenO5Ys2nWYM3ZmOHY1SgK+pPwisE/eSUYG2ByFecsq+as6GmKa0l2Hd4SUCQ==",
    },
    answer: {
      credential: {
        id: "7ea71569-d705-4f26-a314-27886e8f326d",
        key_fingerprint: "sha256:99e61bb999c38ab1dc82f3348e15e6061a62fe4511dc9d36610449c2beb12b6f",
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
          fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
          pseudonym: "Ada",
          algorithm: "ed25519",
          status: "active",
          registered_at: "2025-01-01T00:00:00.000000Z",
          expires_at: null,
        },
        {
          fingerprint: "sha256:6061edfe4ae80dbc964cd79489d7d9ceb5a9b96fd08ebf55769f279fa147364f",
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
          fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
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
    params: { fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c" },
    answer: {
      fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
      public_key:
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAwpdPgYW0frnH4tqCZ0OFuSYpNyykVd9GSJamZ5cwLg0=\n-----END PUBLIC KEY-----\n",
      pseudonym: "Ada",
      algorithm: "ed25519",
      status: "active",
      registered_at: "2025-01-01T00:00:00.000000Z",
      expires_at: null,
      log_entry_id: 1,
      successor_fingerprint: null,
      predecessor_fingerprint: null,
      proven: false,
    },
  },
  get_keys_fingerprint_status: {
    params: { fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c" },
    answer: {
      fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
      status: "active",
      expires_at: null,
      successor_fingerprint: null,
    },
  },
  post_keys_register: {
    body: {
      payload: {
        public_key:
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAwpdPgYW0frnH4tqCZ0OFuSYpNyykVd9GSJamZ5cwLg0=\n-----END PUBLIC KEY-----\n",
        pseudonym: "Ada",
        key_algorithm: "ed25519",
      },
    },
    answer: {
      fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
      pseudonym: "Ada",
      algorithm: "ed25519",
      log_entry_id: 1,
      leaf_index: 0,
      entry_hash: "194917a31f5eb43789c97b4d03565b3b42d2d643864511b86e387c03c9a79561",
    },
  },
  post_keys_succeed: {
    body: {
      payload: {
        old_fingerprint: "sha256:9dcbccea65c9ba3871c5b80d75ed499c88c696ead23124758e230778838902a3",
        new_public_key:
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGo5/yorcHE0heppSlrJNjIVR2iuXUleYPt2uhruYOW8=\n-----END PUBLIC KEY-----\n",
        new_algorithm: "ed25519",
      },
      auth: {
        challenge_id: "9a6874be-6800-4c62-9e3a-233c61eaedde",
        challenge_signature: "1eX+HmqO3Sr9LBAr1tGiWyVjskvHYwUsUnqy8xsdjhPnW1wWB8ufAnL+LTeqEoL1pHOA4XjSleYutPhJMUU2Bw==",
      },
    },
    answer: {
      old_fingerprint: "sha256:9dcbccea65c9ba3871c5b80d75ed499c88c696ead23124758e230778838902a3",
      new_fingerprint: "sha256:ddbc4eeaede9670f42e0c500bd8f2d0c01914bff7d56cd51501fb020b2078460",
      log_entry_id: 5,
      leaf_index: 4,
      entry_hash: "e9e0a351d927a3bde00846ea9efa8aea379bc290f5ea9a6cef8fed5891cc4064",
    },
  },
  post_keys_revoke: {
    body: {
      payload: { fingerprint: "sha256:ddbc4eeaede9670f42e0c500bd8f2d0c01914bff7d56cd51501fb020b2078460" },
      auth: {
        challenge_id: "e31b010e-9e5c-48c5-b637-cc1cb7c9f14b",
        challenge_signature: "X95An5KRfy0klm5vmso6y63FfTOWTCvdJOWZY2mZcSed7IgtgAUWyH42ZMObKv+kNRuqdBOcpBFTrVphXslrAQ==",
      },
    },
    answer: {
      fingerprint: "sha256:ddbc4eeaede9670f42e0c500bd8f2d0c01914bff7d56cd51501fb020b2078460",
      status: "revoked",
      log_entry_id: 6,
      leaf_index: 5,
      entry_hash: "7159434e34dabfa3276601d726929bb06b88b4d2cc4fa9e4b3e48be39c410c5d",
    },
  },
  post_auth_challenge: {
    body: { fingerprint: "sha256:f04878d77eb58f84cfe3b3580bbeb8cc8f72f3b6398da6ff3c77f668a97ae1fa", purpose: "login" },
    answer: {
      challenge_id:
        "AQAABiqZy-4DAPBIeNd-tY-Ez-OzWAu-uMyPcvO2OY2m_zx39mipeuH6tml--e85t2sTvxQdudRiG36g2bSKS6lh_xXx2ijxLFaxOT-Da1nY1L75BpEP0-xFTlArLek9OrL4DIzOZHTrsg",
      nonce:
        "service.auth.v1:login:sha256:f04878d77eb58f84cfe3b3580bbeb8cc8f72f3b6398da6ff3c77f668a97ae1fa:tml--e85t2sTvxQdudRiG36g2bSKS6lh_xXx2ijxLFY",
      expires_at: "2025-01-01T00:05:00.000000Z",
      origin: "http://127.0.0.1:51605",
      act: null,
    },
  },
  post_auth_login: {
    body: {
      challenge_id: "7351889d-e097-4bf7-9d99-255611c8ee81",
      challenge_signature: "ETT9/eGCqOYLq68W/lHM0L0EmPevQh39j4OJNpzE295TqwsVTcS472GT2muhgIGmHOHQadynS/Nyjs4aNFYXBQ==",
    },
    answer: {
      token:
        "eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzaGEyNTY6NTY5NzgxNDM0ZjMxNzdkNDZlOTNlOWE2ZmZiNTBiYzliMWI2YWQxMWMyMjZkYjUxOTEzNDViMzI2ZTEwM2FlOSIsInN1YiI6InNoYTI1Njo0MmMxYTI2N2QzYzQzN2NhZmE1YTJmZTdiYjdhNzdjYWFjZTM0NjIwNDhhZWY1OThmNGQ5MGYzZTJjNWJkYTBjIiwiaWF0IjoxNzM1Njg5NjAwLCJleHAiOjE3MzU2OTMyMDAsImp0aSI6IjQzMWNmZGI5LWZjNzctNDY3Yy1hZjVjLTlmNTE5Y2M1M2JhMSIsInBzZXVkb255bSI6IkFkYSIsInJlY292ZXJ5IjpmYWxzZSwiYXV0aF90aW1lIjoxNzM1Njg5NjAwfQ.UrSZ7slGuF9pTFmpU07lSxw1gZA-pHG04SxsQT5IgrYejB1Gge3c7Ec4z_mUZzrt-mXREMAmIfc9lWtlgV5BBw",
      fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
      pseudonym: "Ada",
      expires_at: "2025-01-01T01:00:00.000000Z",
    },
  },
  post_auth_renew: {
    answer: {
      token:
        "eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzaGEyNTY6NTY5NzgxNDM0ZjMxNzdkNDZlOTNlOWE2ZmZiNTBiYzliMWI2YWQxMWMyMjZkYjUxOTEzNDViMzI2ZTEwM2FlOSIsInN1YiI6InNoYTI1Njo0MmMxYTI2N2QzYzQzN2NhZmE1YTJmZTdiYjdhNzdjYWFjZTM0NjIwNDhhZWY1OThmNGQ5MGYzZTJjNWJkYTBjIiwiaWF0IjoxNzM1Njg5NjAwLCJleHAiOjE3MzU2OTMyMDAsImp0aSI6ImNlNzJiNzZhLWZhOTUtNDQ5Zi04YTlkLWZkMzJlNzZmOGMzZiIsInBzZXVkb255bSI6IkFkYSIsInJlY292ZXJ5IjpmYWxzZSwiYXV0aF90aW1lIjoxNzM1Njg5NjAwfQ.kc3Nz0K_QDyQXIlL1-Y47AbyJkWYCi9aUvXq4CHmBGXcHHcLWqvExlVetVsaGSMKOwhkAWAqeR7k9ToPJ8yTCQ",
      fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
      pseudonym: "Ada",
      expires_at: "2025-01-01T01:00:00.000000Z",
    },
  },
  post_auth_password: {
    body: {
      challenge_id: "0749b9b5-695d-4847-abac-42917cf8ac28",
      challenge_signature: "v/n2GloPo5OVLNbO+TDfw8VBdGWKTKJpx6Q/6WpVvNYrcoqOTSl93ygDFR2rPKDeaaKs0Jslrr8OkkZRud/OBA==",
      password: "correct horse battery",
    },
    answer: {
      fingerprint: "sha256:7ad6b071f569da9e094b32003fedcc39ab3bcb8f3f747b36c272869f138ebce8",
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
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAwpdPgYW0frnH4tqCZ0OFuSYpNyykVd9GSJamZ5cwLg0=\n-----END PUBLIC KEY-----\n",
      signature: "NxQpA53lVCSUrvPAp1nY/ra39qJnFPgUiXeNy3JhdD3P87EinmvvwyMhQjPSF1QnZLh6L2AbKU1NKq8X64L4Bw==",
      intent_statement: "I wrote it.",
    },
    answer: {
      attestation: {
        id: "533a52a0-709e-4510-a87a-9bb637b2f545",
        type: "authorship",
        scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
        signer_key_fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
        signature_algorithm: "ed25519",
        signature: "NxQpA53lVCSUrvPAp1nY/ra39qJnFPgUiXeNy3JhdD3P87EinmvvwyMhQjPSF1QnZLh6L2AbKU1NKq8X64L4Bw==",
        timestamp: "2025-01-01T00:06:00.000000Z",
        intent_statement: "I wrote it.",
      },
      fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
      pseudonym: "Ada",
      log_entry_id: 13,
      leaf_index: 12,
      entry_hash: "ffea377014f8bc232fcd8d85213cc2b2081cb66c56a36b6c066cfe332a5d8d39",
      manifest_hash: "38f0c85d6331fd79023d1cd40a3908b665272ec2077277686ac55af17b1b6494",
      sth: {
        tree_size: 13,
        root_hash: "29c4defac67399c0b4a4fa9154ea5b2bdae2b20b06326f6402f6eea85e3857ff",
        signature: "h7N9n6yOQpuZzVRt1MBuLmZ7EB5z+sRuE3YYTJq1aW9nkLmmSr/FVyhIwRt0CWSrf1+8XC0m0Wax+FEpUgypDQ==",
        timestamp: "2025-01-01T00:06:00.000000Z",
        key_id: "sha256:569781434f3177d46e93e9a6ffb50bc9b1b6ad11c226db5191345b326e103ae9",
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
            "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAwpdPgYW0frnH4tqCZ0OFuSYpNyykVd9GSJamZ5cwLg0=\n-----END PUBLIC KEY-----\n",
          signature: "3l8oBh6BmZOvUbItvKQrdiDyvcrj3/0YB6/EtIdQbxU7YApescHecTXMAnKKRtk/sRc4+uVbLrrXZnadjm4cAQ==",
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
            "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAwpdPgYW0frnH4tqCZ0OFuSYpNyykVd9GSJamZ5cwLg0=\n-----END PUBLIC KEY-----\n",
          signature: "3nKNvh7DckukO4SuD/EkpWTXSeB1250n9CC5Dk1ewgbcfW8z+gIAw1jUfbpD2thmH+gDaQvjp2Fl/X9caHOPAw==",
        },
      ],
    },
    answer: {
      results: [
        {
          status: 201,
          receipt: {
            attestation: {
              id: "71f3db3b-16a8-4174-993b-6debf74d8fec",
              type: "authorship",
              scope: { content_hash: "sha256:c74e517559a5ed1b9f8f47889125b5d6b84df309d173fee85585b4c045f5214b" },
              signer_key_fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
              signature_algorithm: "ed25519",
              signature: "3l8oBh6BmZOvUbItvKQrdiDyvcrj3/0YB6/EtIdQbxU7YApescHecTXMAnKKRtk/sRc4+uVbLrrXZnadjm4cAQ==",
              timestamp: "2025-01-01T00:06:00.000000Z",
            },
            fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
            pseudonym: "Ada",
            log_entry_id: 14,
            leaf_index: 13,
            entry_hash: "371214fd0fadb41463301066f91dbc152f4f43604f6ba89821bc3ebff9413970",
            manifest_hash: "25367d2d820f2cc8ef80c557f5e4b35bef45d435ae93ee6e3aeffc3e00a05c0e",
            sth: {
              tree_size: 14,
              root_hash: "29a59a357d4fc6e8a821985c58918e2aa222aacf79613baddc7f59d673249e54",
              signature: "Ig4gVuxPzyM7Env+AxM5f7UQpQ0Q/c03XTHJbHmr5SJ0WDtbNyZtUOyGtxYXN1iw2zrOnhgFC4pbrkahmAsLBA==",
              timestamp: "2025-01-01T00:06:00.000000Z",
              key_id: "sha256:569781434f3177d46e93e9a6ffb50bc9b1b6ad11c226db5191345b326e103ae9",
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
        "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEp8K6u6TexDsWuTePnmVB/R4YYp7+\nv6n8RD1J1/3mN/zjMwYrr/9ODSQnUbN+j7hfMNPLpVzS6VKdr1TDmmRQPg==\n-----END PUBLIC KEY-----\n",
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
        entry_hash: "70fc38ede29d6df93c1c391dc01cc0a52634f69027b4b527c2e26a6735dce71d",
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
        fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
        key_algorithm: "ed25519",
        possession_signature: null,
        pseudonym: "Ada",
        public_key:
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAwpdPgYW0frnH4tqCZ0OFuSYpNyykVd9GSJamZ5cwLg0=\n-----END PUBLIC KEY-----\n",
      },
      previous_hash: null,
      entry_hash: "194917a31f5eb43789c97b4d03565b3b42d2d643864511b86e387c03c9a79561",
      chain_version: 2,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "194917a31f5eb43789c97b4d03565b3b42d2d643864511b86e387c03c9a79561",
          is_primary: true,
        },
      ],
    },
  },
  get_log_sth: {
    answer: {
      tree_size: 15,
      root_hash: "bf8a09f52cb16b8bd5e0828d91360c193f87e5a9991e6633764f86445b769c5a",
      signature: "YPfoRDFsrkD04NgCehMmf6vQPQWAbPwhRBHsRmi78RVZbaJh0ApOBnkjT2D65cTyuSg8nnBhpo+UZy5AqUtiDg==",
      timestamp: "2025-01-01T00:06:00.000000Z",
      key_id: "sha256:569781434f3177d46e93e9a6ffb50bc9b1b6ad11c226db5191345b326e103ae9",
      tree_version: 2,
    },
  },
  get_log_sth_tree_size: {
    params: { tree_size: 3 },
    answer: {
      tree_size: 3,
      root_hash: "86f9e05c69f4395701a567b1c2713924afec07de9875ac9526cbd2069c7f1acd",
      signature: "stoy8DPrMVugMdYoLA97dwRFNNO8rzMc+VFig6fUrmAIQgojvovt8VzxhJF6Jw9nU1JEz9gJLKwUpt5xpwWYBg==",
      timestamp: "2025-01-01T00:00:00.000000Z",
      key_id: "sha256:569781434f3177d46e93e9a6ffb50bc9b1b6ad11c226db5191345b326e103ae9",
      tree_version: 2,
    },
  },
  get_log_heads: {
    query: { from: 3, limit: 1 },
    answer: {
      heads: [
        {
          tree_size: 3,
          root_hash: "86f9e05c69f4395701a567b1c2713924afec07de9875ac9526cbd2069c7f1acd",
          signature: "stoy8DPrMVugMdYoLA97dwRFNNO8rzMc+VFig6fUrmAIQgojvovt8VzxhJF6Jw9nU1JEz9gJLKwUpt5xpwWYBg==",
          timestamp: "2025-01-01T00:00:00.000000Z",
          key_id: "sha256:569781434f3177d46e93e9a6ffb50bc9b1b6ad11c226db5191345b326e103ae9",
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
      leaf_hash: "ec1523417629d1a192598c4d3889f6e205cd288b805adcfa2eb5df9b09c60b8c",
      root_hash: "73da60ec98d51e3efd26fa3ab2fb5809bd5fa9f9639c8bcfe15b909784bc2cd2",
      audit_path: [
        "a7558b1976199d904f3b6171749c68c37829638ee670d277b77c1ee4ed2781cf",
        "2d81175d23ae543da2ad45c1fe056ddc5d2ff6f493de562b21e1478cabd5e6b0",
        "0d9017c62e25b889d3b2b7faf32c4bde51ece517b8b28e68fd1a8f3164538f3b",
      ],
      entry_hash: "62d589ce49a7ce31eb5e975e5b02661a3833672548a3b5a34d07be66af6c5a44",
      sth: {
        tree_size: 5,
        root_hash: "73da60ec98d51e3efd26fa3ab2fb5809bd5fa9f9639c8bcfe15b909784bc2cd2",
        signature: "4lixvlMP9w/vQPULCPhECWn6VNUjwq+V5e3q8aZdq/ERzpZDNE+V+D8i5fKwql0CAI/at3tmXfktePV3p33OBA==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:569781434f3177d46e93e9a6ffb50bc9b1b6ad11c226db5191345b326e103ae9",
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
      leaf_hash: "ec1523417629d1a192598c4d3889f6e205cd288b805adcfa2eb5df9b09c60b8c",
      root_hash: "73da60ec98d51e3efd26fa3ab2fb5809bd5fa9f9639c8bcfe15b909784bc2cd2",
      audit_path: [
        "a7558b1976199d904f3b6171749c68c37829638ee670d277b77c1ee4ed2781cf",
        "2d81175d23ae543da2ad45c1fe056ddc5d2ff6f493de562b21e1478cabd5e6b0",
        "0d9017c62e25b889d3b2b7faf32c4bde51ece517b8b28e68fd1a8f3164538f3b",
      ],
      entry_hash: "62d589ce49a7ce31eb5e975e5b02661a3833672548a3b5a34d07be66af6c5a44",
      sth: {
        tree_size: 5,
        root_hash: "73da60ec98d51e3efd26fa3ab2fb5809bd5fa9f9639c8bcfe15b909784bc2cd2",
        signature: "4lixvlMP9w/vQPULCPhECWn6VNUjwq+V5e3q8aZdq/ERzpZDNE+V+D8i5fKwql0CAI/at3tmXfktePV3p33OBA==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:569781434f3177d46e93e9a6ffb50bc9b1b6ad11c226db5191345b326e103ae9",
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
      from_root: "86f9e05c69f4395701a567b1c2713924afec07de9875ac9526cbd2069c7f1acd",
      to_root: "b3319d48c876e0f1d80c798a89dfdbe0b195ee2108f268fb414ca75731ae2448",
      peaks: [
        "2d81175d23ae543da2ad45c1fe056ddc5d2ff6f493de562b21e1478cabd5e6b0",
        "ec1523417629d1a192598c4d3889f6e205cd288b805adcfa2eb5df9b09c60b8c",
      ],
      extension: [
        "a7558b1976199d904f3b6171749c68c37829638ee670d277b77c1ee4ed2781cf",
        "eea614afa30ee0f9126e7742eb01425146774b17a84c0396ad169f35bb7303c0",
      ],
      from_sth: {
        tree_size: 3,
        root_hash: "86f9e05c69f4395701a567b1c2713924afec07de9875ac9526cbd2069c7f1acd",
        signature: "stoy8DPrMVugMdYoLA97dwRFNNO8rzMc+VFig6fUrmAIQgojvovt8VzxhJF6Jw9nU1JEz9gJLKwUpt5xpwWYBg==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:569781434f3177d46e93e9a6ffb50bc9b1b6ad11c226db5191345b326e103ae9",
        tree_version: 2,
      },
      to_sth: {
        tree_size: 6,
        root_hash: "b3319d48c876e0f1d80c798a89dfdbe0b195ee2108f268fb414ca75731ae2448",
        signature: "TNzusVJYxwdtEBkM+iR52KKa9B8RBP6Q4KsVLq/PSvrC7t8y9N9CaWw+ATMMAQ2a/QfROS1fEpYclmsuUt4JBA==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:569781434f3177d46e93e9a6ffb50bc9b1b6ad11c226db5191345b326e103ae9",
        tree_version: 2,
      },
    },
  },
  post_log_verify: { answer: { valid: true, entry_count: 15, errors: [], warnings: [] } },
  get_log_operator_key: {
    answer: {
      fingerprint: "sha256:569781434f3177d46e93e9a6ffb50bc9b1b6ad11c226db5191345b326e103ae9",
      algorithm: "ed25519",
      public_key:
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA8fxm05oULbWPW1fIw8EzSlE5goGG8Q/XNpD4MRZjd90=\n-----END PUBLIC KEY-----\n",
      operators: [
        {
          key_id: "sha256:569781434f3177d46e93e9a6ffb50bc9b1b6ad11c226db5191345b326e103ae9",
          algorithm: "ed25519",
          public_key:
            "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA8fxm05oULbWPW1fIw8EzSlE5goGG8Q/XNpD4MRZjd90=\n-----END PUBLIC KEY-----\n",
          from_size: 1,
          until_size: null,
          rotation: null,
        },
      ],
    },
  },
  get_log_checkpoint: {
    answer:
      "cairnlog/569781434f3177d4\n15\nv4oJ9Syxa4vV4IKNkTYMGT+H5amZHmYzdk+GRFt2nFo=\n\n— cairnlog/569781434f3177d4 oBdHX68Hjq5ugoidcQ6dh5TrBIT9FliBLhvabek4WMeA88ZWhBhqHxvGRw2Yekl38ra/ty6NQougzfF9imzD/eyKDQI=\n",
  },
  get_log_tile_version_level_index: { params: { version: 2, level: 0, index: 0 } },
  get_log_tile_version_level_index_p_width: { params: { version: 2, level: 0, index_p: "1.p", width: 4 } },
  get_tlog_checkpoint: {
    answer:
      "cairnlog/569781434f3177d4/tlog\n15\nEoL39HvdhODCpa5qtR2SB6W3X+cbbPZwSQy1iSgjrk8=\n\n— cairnlog/569781434f3177d4/tlog /ptgksAJ7lCVQ2jTFR0kCVU/0TcGtJv/FbGlS2b9O+Q6qZXQrdqWMZ59Ygu8iTMIL8BGtSs2c9z1LZNvwZG//J5Q8Qc=\n",
  },
  get_tlog_vkey: { answer: "cairnlog/569781434f3177d4/tlog+fe9b6092+AfH8ZtOaFC21j1tXyMPBM0pROYKBhvEP1zaQ+DEWY3fd\n" },
  get_tlog_tile_level_n1: { params: { level: "entries", n1: "000" } },
  get_tlog_tile_level_n1_n2: { params: { level: "1", n1: "000.p", n2: "1" } },
  post_log_anchor: {
    answer: {
      anchored_entry_id: 15,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "70fc38ede29d6df93c1c391dc01cc0a52634f69027b4b527c2e26a6735dce71d",
          is_primary: true,
        },
      ],
      ots_proof:
        "AE9wZW5UaW1lc3RhbXBzAABQcm9vZgC/ieLohOiSlAEIcPw47eKdbfk8HDkdwBzApSY09pAntLUnwuJqZzXc5x3wEJf97kMo6LTp3EV1d9mLVGEI8QRlAAAA8AhKgBb2d4Nm9wCD3+MNLvkMjh0caHR0cHM6Ly9jYWxlbmRhci5leGFtcGxlLm9yZw==",
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
      root_hash: "bf8a09f52cb16b8bd5e0828d91360c193f87e5a9991e6633764f86445b769c5a",
      signature: "YPfoRDFsrkD04NgCehMmf6vQPQWAbPwhRBHsRmi78RVZbaJh0ApOBnkjT2D65cTyuSg8nnBhpo+UZy5AqUtiDg==",
      timestamp: "2025-01-01T00:06:00.000000Z",
      key_id: "sha256:569781434f3177d46e93e9a6ffb50bc9b1b6ad11c226db5191345b326e103ae9",
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
            event_type: "key_registration",
            expiration_date: null,
            fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
            key_algorithm: "ed25519",
            possession_signature: null,
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAwpdPgYW0frnH4tqCZ0OFuSYpNyykVd9GSJamZ5cwLg0=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "194917a31f5eb43789c97b4d03565b3b42d2d643864511b86e387c03c9a79561",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "194917a31f5eb43789c97b4d03565b3b42d2d643864511b86e387c03c9a79561",
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
    params: { fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c" },
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
            fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
            key_algorithm: "ed25519",
            possession_signature: null,
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAwpdPgYW0frnH4tqCZ0OFuSYpNyykVd9GSJamZ5cwLg0=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "194917a31f5eb43789c97b4d03565b3b42d2d643864511b86e387c03c9a79561",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "194917a31f5eb43789c97b4d03565b3b42d2d643864511b86e387c03c9a79561",
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
      fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
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
            fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
            key_algorithm: "ed25519",
            possession_signature: null,
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAwpdPgYW0frnH4tqCZ0OFuSYpNyykVd9GSJamZ5cwLg0=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "194917a31f5eb43789c97b4d03565b3b42d2d643864511b86e387c03c9a79561",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "194917a31f5eb43789c97b4d03565b3b42d2d643864511b86e387c03c9a79561",
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
      endorser_fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
      endorsed_fingerprint: "sha256:6061edfe4ae80dbc964cd79489d7d9ceb5a9b96fd08ebf55769f279fa147364f",
      category: "x-service:institutional_endorsement",
      valid_until: "2027-01-01",
      institutional_metadata: { name: "University of Example" },
      external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
      auth: {
        challenge_id: "d6420f9c-bdfd-4024-86b5-e65c236cf767",
        challenge_signature: "ZcL8wBw2wX9KpgkRhUKy0zXpoq/AH3qBdGeObkF9CVADFXyHiZvYkZdPYfnZdfB/JUmUB84PNNa8+RbuEO/GDA==",
      },
    },
    answer: {
      id: 276,
      timestamp: "2025-01-01T00:06:00.000000Z",
      event_type: "endorsement_offer",
      payload: {
        category: "x-service:institutional_endorsement",
        endorsed_key_fingerprint: "sha256:6061edfe4ae80dbc964cd79489d7d9ceb5a9b96fd08ebf55769f279fa147364f",
        endorser_key_fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
        event_type: "endorsement_offer",
        external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
        institutional_metadata: { name: "University of Example" },
        valid_until: "2027-01-01",
      },
      previous_hash: "19aed196422094678ac690b7e650eee19a16a26dd27d5a12feeae47f58d50306",
      entry_hash: "04d1bca8ea4551843431667507aed561825fdd64c577d6eafa0ea6d66e1dbb9d",
      chain_version: 2,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "04d1bca8ea4551843431667507aed561825fdd64c577d6eafa0ea6d66e1dbb9d",
          is_primary: true,
        },
      ],
    },
  },
  post_endorsements_accept: {
    body: {
      offer_entry_id: 276,
      endorsed_fingerprint: "sha256:6061edfe4ae80dbc964cd79489d7d9ceb5a9b96fd08ebf55769f279fa147364f",
      auth: {
        challenge_id: "46be4076-869b-4256-af0e-817675dbdf0f",
        challenge_signature:
          "MEQCICSbpPyzfyO32rzBfgVzTUq/xFaGtwaIzVvP8Vz/+k9qAiBcLCvi9wMlktpd5eCyEa38IegDMTnllgFEhEniDCqlWA==",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 276,
        endorser_fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
        endorsed_fingerprint: "sha256:6061edfe4ae80dbc964cd79489d7d9ceb5a9b96fd08ebf55769f279fa147364f",
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
          endorsed_key_fingerprint: "sha256:6061edfe4ae80dbc964cd79489d7d9ceb5a9b96fd08ebf55769f279fa147364f",
          endorser_key_fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
          event_type: "endorsement_acceptance",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: null,
          offer_entry_id: 276,
          valid_until: "2027-01-01",
        },
        previous_hash: "04d1bca8ea4551843431667507aed561825fdd64c577d6eafa0ea6d66e1dbb9d",
        entry_hash: "49c9805121da64644dd736f85fd3a1bff33ab6633ddd15859febbf779cdd2b96",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "49c9805121da64644dd736f85fd3a1bff33ab6633ddd15859febbf779cdd2b96",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_withdraw: {
    body: {
      endorser_fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
      endorsed_fingerprint: "sha256:6061edfe4ae80dbc964cd79489d7d9ceb5a9b96fd08ebf55769f279fa147364f",
      original_offer_entry_id: 281,
      note: "A mistake.",
      auth: {
        challenge_id: "d9d7ead3-bb24-4c75-806a-5a64096fbc02",
        challenge_signature: "qzvhXne913gxelneYBo5tF4RoXYpNiabab4rmjFoWVHGPPFykVRxvOMOYTTsbX6ToooK/t1DWLyqpSolMdfJAg==",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 281,
        endorser_fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
        endorsed_fingerprint: "sha256:6061edfe4ae80dbc964cd79489d7d9ceb5a9b96fd08ebf55769f279fa147364f",
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
          endorsed_key_fingerprint: "sha256:6061edfe4ae80dbc964cd79489d7d9ceb5a9b96fd08ebf55769f279fa147364f",
          endorser_key_fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
          event_type: "endorsement_withdrawal",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: "A mistake.",
          offer_entry_id: 281,
          valid_until: "2027-01-01",
        },
        previous_hash: "90200d037948444b28ebe915e14e1314421ee994b37b420b1bfc64143f4e0e78",
        entry_hash: "d97af08115db53ab03b3a1268ba0cf78b7472144351eca846eb3f62ddfe49434",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "d97af08115db53ab03b3a1268ba0cf78b7472144351eca846eb3f62ddfe49434",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_revoke_acceptance: {
    body: {
      endorsed_fingerprint: "sha256:6061edfe4ae80dbc964cd79489d7d9ceb5a9b96fd08ebf55769f279fa147364f",
      original_offer_entry_id: 276,
      note: "We no longer work together.",
      auth: {
        challenge_id: "7da9d93d-5efe-46b3-ade1-c6a322f5c319",
        challenge_signature:
          "MEUCIGFGIppzlScS8McQEm7yHEP7yOXrqoGMLgTOojmCKeZKAiEAwB0fqmaK5GFTc1A+Nlf9miTffET8mhiAJJuPQWaFzOA=",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 276,
        endorser_fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
        endorsed_fingerprint: "sha256:6061edfe4ae80dbc964cd79489d7d9ceb5a9b96fd08ebf55769f279fa147364f",
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
          endorsed_key_fingerprint: "sha256:6061edfe4ae80dbc964cd79489d7d9ceb5a9b96fd08ebf55769f279fa147364f",
          endorser_key_fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
          event_type: "acceptance_revocation",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: "We no longer work together.",
          offer_entry_id: 276,
          valid_until: "2027-01-01",
        },
        previous_hash: "5503d5c89eed9a552156e308da0c1abd8849395c3ee32dec1498bd2af6f0f21a",
        entry_hash: "dc795a7ac6f66e08dd5f96898d54d373fe5808a8fd3e0e0896a271de80823ec5",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "dc795a7ac6f66e08dd5f96898d54d373fe5808a8fd3e0e0896a271de80823ec5",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_revocation_alert: {
    body: {
      endorser_fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
      compromised_fingerprint: "sha256:6061edfe4ae80dbc964cd79489d7d9ceb5a9b96fd08ebf55769f279fa147364f",
      reason: "The laptop with the key was stolen.",
      auth: {
        challenge_id: "6babe2af-098a-402d-ba50-3d93f954d184",
        challenge_signature: "N5pXpwkLQRF6zcUSN4lA4JAUuzP7yOlJ4dPW01LVXjM0bHJevl5xQxvkVIGKgvfwIyzSXC/VOcCSmY0oiQsMBA==",
      },
    },
    answer: {
      alert: {
        alert_entry_id: 279,
        compromised_fingerprint: "sha256:6061edfe4ae80dbc964cd79489d7d9ceb5a9b96fd08ebf55769f279fa147364f",
        endorser_fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
        reason: "The laptop with the key was stolen.",
        evidence: null,
        filed_at: "2025-01-02T00:07:00.000000Z",
      },
      log_entry: {
        id: 279,
        timestamp: "2025-01-02T00:07:00.000000Z",
        event_type: "endorser_revocation_alert",
        payload: {
          compromised_key_fingerprint: "sha256:6061edfe4ae80dbc964cd79489d7d9ceb5a9b96fd08ebf55769f279fa147364f",
          endorser_key_fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
          event_type: "endorser_revocation_alert",
          evidence: null,
          reason: "The laptop with the key was stolen.",
        },
        previous_hash: "dc617117d49a38d991088209cd67d23d6305d786e8d7efce923cbe3137db6429",
        entry_hash: "5503d5c89eed9a552156e308da0c1abd8849395c3ee32dec1498bd2af6f0f21a",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "5503d5c89eed9a552156e308da0c1abd8849395c3ee32dec1498bd2af6f0f21a",
            is_primary: true,
          },
        ],
      },
    },
  },
  get_endorsements_fingerprint: {
    params: { fingerprint: "sha256:6061edfe4ae80dbc964cd79489d7d9ceb5a9b96fd08ebf55769f279fa147364f" },
    answer: {
      endorsements: [
        {
          offer_entry_id: 276,
          endorser_fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
          endorsed_fingerprint: "sha256:6061edfe4ae80dbc964cd79489d7d9ceb5a9b96fd08ebf55769f279fa147364f",
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
    params: { fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c" },
    query: { status: "active" },
    answer: {
      endorsements: [
        {
          offer_entry_id: 276,
          endorser_fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
          endorsed_fingerprint: "sha256:6061edfe4ae80dbc964cd79489d7d9ceb5a9b96fd08ebf55769f279fa147364f",
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
    params: { fingerprint: "sha256:6061edfe4ae80dbc964cd79489d7d9ceb5a9b96fd08ebf55769f279fa147364f" },
    answer: {
      alerts: [
        {
          alert_entry_id: 279,
          compromised_fingerprint: "sha256:6061edfe4ae80dbc964cd79489d7d9ceb5a9b96fd08ebf55769f279fa147364f",
          endorser_fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
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
    params: { fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c" },
    query: { max_depth: 2 },
    answer: {
      root: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
      nodes: [
        {
          fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
          pseudonym: "Ada",
          status: "active",
          depth: 0,
        },
        {
          fingerprint: "sha256:6061edfe4ae80dbc964cd79489d7d9ceb5a9b96fd08ebf55769f279fa147364f",
          pseudonym: "Grace",
          status: "active",
          depth: 1,
        },
      ],
      edges: [
        {
          from: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
          to: "sha256:6061edfe4ae80dbc964cd79489d7d9ceb5a9b96fd08ebf55769f279fa147364f",
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
    params: { fingerprint: "sha256:6061edfe4ae80dbc964cd79489d7d9ceb5a9b96fd08ebf55769f279fa147364f" },
    answer: {
      fingerprint: "sha256:6061edfe4ae80dbc964cd79489d7d9ceb5a9b96fd08ebf55769f279fa147364f",
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
          fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
          category_weights: { "x-service:institutional_endorsement": 0.8 },
          decay_per_hop: 0.5,
          direct_signer_anchors: [
            { fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c", weight: 1 },
          ],
          endorser_anchors: [
            { fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c", weight: 0.9 },
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
      fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
      direct_signer_anchors: [
        { fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c", weight: 0.9 },
      ],
      minimum_threshold: 0.4,
      category_weights: { "x-service:institutional_endorsement": 0.8 },
    },
    answer: {
      id: 1,
      fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c", weight: 0.9 },
      ],
      max_depth: 4,
      minimum_threshold: 0.4,
      status: "active",
      created_at: "2025-01-02T00:07:00.000000Z",
    },
  },
  get_trust_configs_fingerprint: {
    params: { fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c" },
    answer: {
      id: 1,
      fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c", weight: 0.9 },
      ],
      max_depth: 4,
      minimum_threshold: 0.4,
      status: "active",
      created_at: "2025-01-02T00:07:00.000000Z",
    },
  },
  post_trust_configs_revoke: {
    body: { fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c" },
    answer: {
      id: 1,
      fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c", weight: 0.9 },
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
            id: "533a52a0-709e-4510-a87a-9bb637b2f545",
            type: "authorship",
            scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
            signer_key_fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
            signature_algorithm: "ed25519",
            signature: "NxQpA53lVCSUrvPAp1nY/ra39qJnFPgUiXeNy3JhdD3P87EinmvvwyMhQjPSF1QnZLh6L2AbKU1NKq8X64L4Bw==",
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
          id: "533a52a0-709e-4510-a87a-9bb637b2f545",
          signer_key_fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
          layer1: {
            status: "valid",
            details:
              "The signature verifies; it covers the document. The signer signed neither type nor statement: both are the log's word.",
          },
          layer2: { status: "valid", details: "The key is active, and was when the attestation was made." },
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
          { id: "533a52a0-709e-4510-a87a-9bb637b2f545", kind: "attestation", type: "authorship", status: "valid" },
          {
            id: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
            kind: "key",
            pseudonym: "Ada",
            status: "active",
          },
        ],
        edges: [
          {
            from: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
            to: "533a52a0-709e-4510-a87a-9bb637b2f545",
            kind: "signed",
          },
          {
            from: "533a52a0-709e-4510-a87a-9bb637b2f545",
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
                id: "533a52a0-709e-4510-a87a-9bb637b2f545",
                type: "authorship",
                scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                signer_key_fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
                signature_algorithm: "ed25519",
                signature: "NxQpA53lVCSUrvPAp1nY/ra39qJnFPgUiXeNy3JhdD3P87EinmvvwyMhQjPSF1QnZLh6L2AbKU1NKq8X64L4Bw==",
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
                  id: "533a52a0-709e-4510-a87a-9bb637b2f545",
                  type: "authorship",
                  scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                  signer_key_fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
                  signature_algorithm: "ed25519",
                  signature: "NxQpA53lVCSUrvPAp1nY/ra39qJnFPgUiXeNy3JhdD3P87EinmvvwyMhQjPSF1QnZLh6L2AbKU1NKq8X64L4Bw==",
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
                  id: "533a52a0-709e-4510-a87a-9bb637b2f545",
                  type: "authorship",
                  scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                  signer_key_fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
                  signature_algorithm: "ed25519",
                  signature: "NxQpA53lVCSUrvPAp1nY/ra39qJnFPgUiXeNy3JhdD3P87EinmvvwyMhQjPSF1QnZLh6L2AbKU1NKq8X64L4Bw==",
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
                    id: "533a52a0-709e-4510-a87a-9bb637b2f545",
                    type: "authorship",
                    scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                    signer_key_fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
                    signature_algorithm: "ed25519",
                    signature:
                      "NxQpA53lVCSUrvPAp1nY/ra39qJnFPgUiXeNy3JhdD3P87EinmvvwyMhQjPSF1QnZLh6L2AbKU1NKq8X64L4Bw==",
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
        "eyJhdHRlc3RhdGlvbnMiOltdLCJkb2N1bWVudCI6eyJjb250ZW50X2hhc2giOiJzaGEyNTY6ZjNkNDJlYmY5NjU5YjE2MmUwYmE4YzQwMjM1OTQwMWRlN2VkOGMyODg0M2MwMWY2ZTBiZGIyMzhhY2Q4ZDAzYyIsInBhcnRzIjpbeyJjb250ZW50X2hhc2giOiJzaGEyNTY6NDk4NjNjYzg4YzcxZGU2NjI5MmE5ZjVmMmI5MzJkMWRmMGMxZWQxMDFlYzJiOTc4ODBkZTFhMTEzMzcwOTgxMCIsIm1hbmlmZXN0Ijp7ImF0dGVzdGF0aW9ucyI6W3siaWQiOiI1MzNhNTJhMC03MDllLTQ1MTAtYTg3YS05YmI2MzdiMmY1NDUiLCJpbnRlbnRfc3RhdGVtZW50IjoiSSB3cm90ZSBpdC4iLCJzY29wZSI6eyJjb250ZW50X2hhc2giOiJzaGEyNTY6NDk4NjNjYzg4YzcxZGU2NjI5MmE5ZjVmMmI5MzJkMWRmMGMxZWQxMDFlYzJiOTc4ODBkZTFhMTEzMzcwOTgxMCJ9LCJzaWduYXR1cmUiOiJOeFFwQTUzbFZDU1VydlBBcDFuWS9yYTM5cUpuRlBnVWlYZU55M0poZEQzUDg3RWlubXZ2d3lNaFFqUFNGMVFuWkxoNkwyQWJLVTFOS3E4WDY0TDRCdz09Iiwic2lnbmF0dXJlX2FsZ29yaXRobSI6ImVkMjU1MTkiLCJzaWduZXJfa2V5X2ZpbmdlcnByaW50Ijoic2hhMjU2OjQyYzFhMjY3ZDNjNDM3Y2FmYTVhMmZlN2JiN2E3N2NhYWNlMzQ2MjA0OGFlZjU5OGY0ZDkwZjNlMmM1YmRhMGMiLCJ0aW1lc3RhbXAiOiIyMDI1LTAxLTAxVDAwOjA2OjAwLjAwMDAwMFoiLCJ0eXBlIjoiYXV0aG9yc2hpcCJ9XSwiZG9jdW1lbnQiOnsiY29udGVudF9oYXNoIjoic2hhMjU2OjQ5ODYzY2M4OGM3MWRlNjYyOTJhOWY1ZjJiOTMyZDFkZjBjMWVkMTAxZWMyYjk3ODgwZGUxYTExMzM3MDk4MTAiLCJ0YWdzIjpbInJlcG9ydCJdLCJ0aXRsZSI6IkFubnVhbCByZXBvcnQifX0sInJvbGUiOiJjaGFwdGVyIiwidGl0bGUiOiJSZXBvcnQifSx7ImNvbnRlbnRfaGFzaCI6InNoYTI1NjpmMzBjNTM0ZGE5NThhNzUzYWMyMGM2ZDVmZDQwNDFkZTRkOWFlMjQ5N2U3NDQwY2ZlMmQwMzRiMDBiNzFlZDEzIiwidGl0bGUiOiJBcHBlbmRpeCJ9XSwidGl0bGUiOiJSZXBvcnQgYW5kIGFwcGVuZGl4In19",
      manifest_hash: "aaa0542f30b1cdcfb12f2989ce141111ddccce3a14941ac5c877bd084631002e",
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
            attestation_id: "c5b96675-649c-4dc4-973f-11b63bab0710",
            attestation_type: "editorial_review",
            document_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810",
            document_title: "Annual report",
            intent_statement: null,
            manifest_hash: "07a3a261f09eccfd842bc0cc3b0f4d6489cff455701b173ccae85104b6b55285",
            signature:
              "MEQCIAV1hFUTV5AAELBs4Hx3HXRzuY9VWMVZDuHQSPFlrBpdAiA+ialfM6F3nCC+hXF2cqyTFQfTEEoRNfMtqjU1Oo3tIg==",
            signature_algorithm: "ecdsa-p256",
            signer_key_fingerprint: "sha256:6061edfe4ae80dbc964cd79489d7d9ceb5a9b96fd08ebf55769f279fa147364f",
            tags: ["report"],
            timestamp: "2025-01-01T00:06:00.000000Z",
          },
          previous_hash: "649c4d49919975169b3b886f61a479f2f85f41a84d0b397ff1d1fbd9d80d2d26",
          entry_hash: "6e82f466e3560dec5501dc2a7d99273f95c2372b707d885455d03daacdec86c7",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "6e82f466e3560dec5501dc2a7d99273f95c2372b707d885455d03daacdec86c7",
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
          "BF2PpEHEfsuyc1XJjD26RVR6cOmmOgxFQ6TNL7SqY0lTfC73DKEniMU/J3dJIMwZz8uSB5zmyurNy9Ie6vJAM/M=",
        commitment: "b93b0b85c9acfec65e5f5b3610cdecf6535ff6202259c9d2069320b47075c4f3",
        lookup_key: "fd45b8cf0fedef3666f39b1857e98af04bef03d2888e63f7d6c3d100432f10ac",
        nonce: "2yL1UhL1Iw63f0ot",
        ciphertext: "FyrqvP91+a04L45PncC0O6peztOXYDvrEVmiP1ExQa4KrVtF7DfVTJJIXrpKUw6qwv9Z",
        recipient_fingerprint: "sha256:8a95a6c4a50a7ec136bde24cf91e1868f2707f41fee1e4936e0c4263f08eff67",
      },
    },
    answer: {
      entry_id: 287,
      commitment: "b93b0b85c9acfec65e5f5b3610cdecf6535ff6202259c9d2069320b47075c4f3",
      lookup_key: "fd45b8cf0fedef3666f39b1857e98af04bef03d2888e63f7d6c3d100432f10ac",
      leaf_index: 286,
      log_entry_id: 287,
    },
  },
  get_claims: {
    query: { lookup_key: "fd45b8cf0fedef3666f39b1857e98af04bef03d2888e63f7d6c3d100432f10ac" },
    answer: {
      entries: [
        {
          id: 287,
          timestamp: "2025-01-02T00:07:00.000000Z",
          event_type: "encrypted_claim",
          payload: {
            ciphertext: "FyrqvP91+a04L45PncC0O6peztOXYDvrEVmiP1ExQa4KrVtF7DfVTJJIXrpKUw6qwv9Z",
            commitment: "b93b0b85c9acfec65e5f5b3610cdecf6535ff6202259c9d2069320b47075c4f3",
            commitment_alg: "hmac-sha256-ecdh-v1",
            ephemeral_public_key:
              "BF2PpEHEfsuyc1XJjD26RVR6cOmmOgxFQ6TNL7SqY0lTfC73DKEniMU/J3dJIMwZz8uSB5zmyurNy9Ie6vJAM/M=",
            event_type: "encrypted_claim",
            lookup_key: "fd45b8cf0fedef3666f39b1857e98af04bef03d2888e63f7d6c3d100432f10ac",
            nonce: "2yL1UhL1Iw63f0ot",
            recipient_fingerprint: "sha256:8a95a6c4a50a7ec136bde24cf91e1868f2707f41fee1e4936e0c4263f08eff67",
          },
          previous_hashes: [
            { algorithm: "sha2-256", digest_hex: "a7eb667b0b926ec87d5f54012d61fe6c4f45750ac36f6ba766883953db453ec6" },
          ],
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "571a0af46f7c3c87c589877c79a7bcee4baa799530efaab13ca4952a71c99623",
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
      ciphertext: "FyrqvP91+a04L45PncC0O6peztOXYDvrEVmiP1ExQa4KrVtF7DfVTJJIXrpKUw6qwv9Z",
      commitment: "b93b0b85c9acfec65e5f5b3610cdecf6535ff6202259c9d2069320b47075c4f3",
      commitment_alg: "hmac-sha256-ecdh-v1",
      ephemeral_public_key: "BF2PpEHEfsuyc1XJjD26RVR6cOmmOgxFQ6TNL7SqY0lTfC73DKEniMU/J3dJIMwZz8uSB5zmyurNy9Ie6vJAM/M=",
      lookup_key: "fd45b8cf0fedef3666f39b1857e98af04bef03d2888e63f7d6c3d100432f10ac",
      nonce: "2yL1UhL1Iw63f0ot",
      recipient_fingerprint: "sha256:8a95a6c4a50a7ec136bde24cf91e1868f2707f41fee1e4936e0c4263f08eff67",
    },
  },
  post_claims_entry_id_reveal: {
    params: { entry_id: 287 },
    body: {
      plaintext: { salary: 52000, name: "Zoë 🪨" },
      commitment_key: "119e8ca62bfe7c613b744931db9c33aed3bf32d782f4c599a9f2d7f7e42df08a",
    },
    answer: { valid: true },
  },
  get_log_attestation_requests: {
    query: { target: "sha256:6061edfe4ae80dbc964cd79489d7d9ceb5a9b96fd08ebf55769f279fa147364f", status: "open" },
    answer: {
      requests: [
        {
          request_id: "7415e4bc-3a0c-4191-82e6-c0d8ee13b347",
          requester_fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
          target_fingerprint: "sha256:6061edfe4ae80dbc964cd79489d7d9ceb5a9b96fd08ebf55769f279fa147364f",
          attestation_type: "peer_review",
          status: "open",
          deadline: "2025-01-16T00:07:00.000000Z",
          created_at: "2025-01-02T00:07:00.000000Z",
          log_entry_id: 284,
          leaf_index: 283,
        },
      ],
      page: 1,
      per_page: 50,
      total: 1,
    },
  },
  post_log_attestation_requests: {
    body: {
      target_fingerprint: "sha256:6061edfe4ae80dbc964cd79489d7d9ceb5a9b96fd08ebf55769f279fa147364f",
      attestation_type: "peer_review",
      nonce: "request-2025-0001",
      intent_statement: "Please review the annual report.",
      claims: { document_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
    },
    answer: {
      request_id: "7415e4bc-3a0c-4191-82e6-c0d8ee13b347",
      requester_fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
      target_fingerprint: "sha256:6061edfe4ae80dbc964cd79489d7d9ceb5a9b96fd08ebf55769f279fa147364f",
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
    },
  },
  get_log_attestation_requests_request_id: {
    params: { request_id: "7415e4bc-3a0c-4191-82e6-c0d8ee13b347" },
    answer: {
      request_id: "7415e4bc-3a0c-4191-82e6-c0d8ee13b347",
      requester_fingerprint: "sha256:42c1a267d3c437cafa5a2fe7bb7a77caace3462048aef598f4d90f3e2c5bda0c",
      target_fingerprint: "sha256:6061edfe4ae80dbc964cd79489d7d9ceb5a9b96fd08ebf55769f279fa147364f",
      attestation_type: "peer_review",
      status: "declined",
      deadline: "2025-01-16T00:07:00.000000Z",
      created_at: "2025-01-02T00:07:00.000000Z",
      log_entry_id: 284,
      leaf_index: 283,
      nonce: "request-2025-0001",
      intent_statement: "Please review the annual report.",
      claims: { document_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
      policy_entry_id: 283,
      response: {
        decision: "decline",
        responder_fingerprint: "sha256:6061edfe4ae80dbc964cd79489d7d9ceb5a9b96fd08ebf55769f279fa147364f",
        attestation_id: null,
        reason: "No time before summer.",
        responded_at: "2025-01-02T00:07:00.000000Z",
        log_entry_id: 285,
        leaf_index: 284,
      },
    },
  },
  get_log_request_policies_fingerprint: {
    params: { fingerprint: "sha256:6061edfe4ae80dbc964cd79489d7d9ceb5a9b96fd08ebf55769f279fa147364f" },
    answer: {
      target_fingerprint: "sha256:6061edfe4ae80dbc964cd79489d7d9ceb5a9b96fd08ebf55769f279fa147364f",
      active: {
        target_fingerprint: "sha256:6061edfe4ae80dbc964cd79489d7d9ceb5a9b96fd08ebf55769f279fa147364f",
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
    params: { request_id: "7415e4bc-3a0c-4191-82e6-c0d8ee13b347" },
    body: { decision: "decline", reason: "No time before summer." },
    answer: {
      request_id: "7415e4bc-3a0c-4191-82e6-c0d8ee13b347",
      status: "declined",
      responder_fingerprint: "sha256:6061edfe4ae80dbc964cd79489d7d9ceb5a9b96fd08ebf55769f279fa147364f",
      decision: "decline",
      attestation_id: null,
      reason: "No time before summer.",
      log_entry_id: 285,
      leaf_index: 284,
    },
  },
  post_log_request_policies: {
    body: {
      target_fingerprint: "sha256:6061edfe4ae80dbc964cd79489d7d9ceb5a9b96fd08ebf55769f279fa147364f",
      predicates: { all: [{ field: "attestation_type", op: "in", value: ["peer_review", "editorial_review"] }] },
      default_action_on_failure: "decline",
    },
    answer: {
      target_fingerprint: "sha256:6061edfe4ae80dbc964cd79489d7d9ceb5a9b96fd08ebf55769f279fa147364f",
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
          request_id: "7415e4bc-3a0c-4191-82e6-c0d8ee13b347",
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
    params: { id: 284 },
    answer: {
      id: 284,
      kind: "attestation_request",
      request_id: "7415e4bc-3a0c-4191-82e6-c0d8ee13b347",
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

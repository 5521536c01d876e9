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
      vkey: "cairnlog/78639c670bacdafe/tlog+050fc4ef+AWl4Y210iEedolj10Hxqyp1uGtCJ3l0fjnU841uEV109",
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
      key_fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
      device_label: "Security key",
    },
    answer: {
      user: {
        id: "a1bac499-828b-416e-87c3-24e4de95dff6",
        display_name: "Ada Lovelace",
        created_at: "2025-01-01T00:00:00.000000Z",
      },
      credential: {
        id: "12f848f3-deb4-476b-b5f6-a9093d85d912",
        key_fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
        credential_type: "hardware",
        device_label: "Security key",
        status: "active",
        created_at: "2025-01-01T00:00:00.000000Z",
        revoked_at: null,
        hardware_backed: true,
      },
      recovery_key: "7BN2J-A0SMD-PF398-16FR9-TJAMX-D2J71-ZKSF7-4NASE",
    },
  },
  post_users_recover: {
    body: {
      pseudonym: "Ada Lovelace",
      recovery_key: "7BN2J-A0SMD-PF398-16FR9-TJAMX-D2J71-ZKSF7-4NASE",
      credential_type: "hardware",
      key_fingerprint: "sha256:71cbe5626bc023a4e044829b877587c45a1c866c571ae5c798edf93b0e01d781",
      device_label: "Security key",
    },
    answer: {
      user: {
        id: "a1bac499-828b-416e-87c3-24e4de95dff6",
        display_name: "Ada Lovelace",
        created_at: "2025-01-01T00:00:00.000000Z",
      },
      credential: {
        id: "a8290d7d-6d06-4cb3-bbb5-9c4cd29370d4",
        key_fingerprint: "sha256:71cbe5626bc023a4e044829b877587c45a1c866c571ae5c798edf93b0e01d781",
        credential_type: "hardware",
        device_label: "Security key",
        status: "active",
        created_at: "2025-01-01T00:06:00.000000Z",
        revoked_at: null,
        hardware_backed: true,
      },
      recovery_key: "W0BMK-87X4D-ACN6R-1EV3B-G7Z7V-MYMY8-KTJMC-SN00G",
      revoked_credentials: 2,
    },
  },
  post_credentials_enroll: {
    body: {
      challenge_id:
        "AQEABiqZy-4DAKLCOcn-OuuV2fAAvp7RCbjXkj-SaG5GstWtTtSq-cc5FYM-o9B99hYd5Ifcxi3KX9XsyFFWYlYhJzsMDZ4P5WbZ8gEUcBxCImB-IK6KcZgI7j94h8hmixkzGfZIv0rTLQ",
      issuing_fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
      key_fingerprint: "sha256:a2c239c9fe3aeb95d9f000be9ed109b8d7923f92686e46b2d5ad4ed4aaf9c739",
      credential_type: "hardware",
      device_label: "Second security key",
      challenge_signature: "ve0EBUCAcV6UZh8Vc1Sgi03uJxwS/2iOm3RD1061glYsu7OkwYYUikCwuQTdK7VynI7U+CvlJQBlIpV5rSIfAA==",
      chain_signature: "OX6uVt11+bfuDu3DwHrzYLf0PbZlRoZVcl2Hiq1CeJip/DSfqK88hZuqFqxsN3hDpWg58GnX8X01Rkqfv7gGCw==",
    },
    answer: {
      credential: {
        id: "00a3de15-6b41-4aaa-a247-91117c7b20ef",
        key_fingerprint: "sha256:a2c239c9fe3aeb95d9f000be9ed109b8d7923f92686e46b2d5ad4ed4aaf9c739",
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
          fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
          pseudonym: "Ada",
          algorithm: "ed25519",
          status: "active",
          registered_at: "2025-01-01T00:00:00.000000Z",
          expires_at: null,
          named: false,
        },
        {
          fingerprint: "sha256:9a15deb39bc5953c4fcaab8904915c19562ab0f556e12c95608b40be2127a1c1",
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
          fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
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
    params: { fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75" },
    answer: {
      fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
      public_key:
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAS5pYl/9f9UMA8EGnndmjixnNsuD5N/q5As1uf1G22oM=\n-----END PUBLIC KEY-----\n",
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
    params: { fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75" },
    answer: {
      fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
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
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAS5pYl/9f9UMA8EGnndmjixnNsuD5N/q5As1uf1G22oM=\n-----END PUBLIC KEY-----\n",
        pseudonym: "Ada",
        key_algorithm: "ed25519",
      },
    },
    answer: {
      fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
      pseudonym: "Ada",
      algorithm: "ed25519",
      log_entry_id: 1,
      leaf_index: 0,
      entry_hash: "604caa867c85284a2f7d2f6a61b93c72afaa7f5aa74d9eaf1ad4f29a9550d981",
    },
  },
  post_keys_succeed: {
    body: {
      payload: {
        old_fingerprint: "sha256:65ebfee5f812525430a34abd524be8c52415c9c2411e5bac51471b3e11a87960",
        new_public_key:
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAke+VjbK9Pefe6u5F0cDlnMSuofPUrBeZhA5cKgatEPc=\n-----END PUBLIC KEY-----\n",
        new_algorithm: "ed25519",
      },
      auth: {
        challenge_id:
          "AQEABiqZy-4DAGXr_uX4ElJUMKNKvVJL6MUkFcnCQR5brFFHGz4RqHlgEyPCB6ByYiRAHS9roLGgMc6P1jdY-2h2SWyZXycllL5qXiZYrJMQ587M-Hss57LsNilzTKst1jYzV5GQ-xPh4w",
        challenge_signature: "ky/ja6ktjbNChGsLc9pqoxJdm9Hsh2+0CffTKuIl6jN2SPdnQ9r/SLIN0cGOPFeCawBCWNYKmmtjPVXJvU0BCw==",
      },
    },
    answer: {
      old_fingerprint: "sha256:65ebfee5f812525430a34abd524be8c52415c9c2411e5bac51471b3e11a87960",
      new_fingerprint: "sha256:2fd234d8aa22e09003e0b8333b661613c16145bd40f395a716dffdc96c227fb9",
      log_entry_id: 5,
      leaf_index: 4,
      entry_hash: "7a8f8d1339381ad9790b086354db2eff771258dc620ce1eda42a5e6ede88b4e7",
    },
  },
  post_keys_revoke: {
    body: {
      payload: { fingerprint: "sha256:2fd234d8aa22e09003e0b8333b661613c16145bd40f395a716dffdc96c227fb9" },
      auth: {
        challenge_id:
          "AQEABiqZy-4DAC_SNNiqIuCQA-C4MztmFhPBYUW9QPOVpxbf_clsIn-5J92Ywcmd0-XlanSbKsE132C16uwex49LQVmb-2bPcu9Q1oGObPI25m8x_Fc6jjoC2Ai9JDjgUCDSn_Hc8qKFfw",
        challenge_signature: "Y3enSHtwj7gYXM1G5phqkKGRZUacpikaoWhDIRbjUgR8uo5kr83nPLXK445IVB1jvnWWqPq+pRxPasNQMMElDg==",
      },
    },
    answer: {
      fingerprint: "sha256:2fd234d8aa22e09003e0b8333b661613c16145bd40f395a716dffdc96c227fb9",
      status: "revoked",
      log_entry_id: 6,
      leaf_index: 5,
      entry_hash: "80bf14b5de0053a33f77aa2f71a4c61d814cb5595e79a14717f472ef32df5cb9",
    },
  },
  post_auth_challenge: {
    body: { fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75", purpose: "login" },
    answer: {
      challenge_id:
        "AQAABiqZy-4DACR9aeQIUWlWWiFIE7RBG26_sMpfA0xCjbO9eZ1xhD51cJZAn300GnCHYiNz-9KDOAZkEornTOTFyarfVjihGgs-_vcWHY5N-gSJYdG3jZqQkw6E_w7giaHvyjNLW5Y_OA",
      nonce:
        "service.auth.v1:login:sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75:cJZAn300GnCHYiNz-9KDOAZkEornTOTFyarfVjihGgs",
      expires_at: "2025-01-01T00:05:00.000000Z",
      origin: "http://127.0.0.1:55501",
      act: null,
    },
  },
  post_auth_login: {
    body: {
      challenge_id:
        "AQAABiqZy-4DACR9aeQIUWlWWiFIE7RBG26_sMpfA0xCjbO9eZ1xhD51cJZAn300GnCHYiNz-9KDOAZkEornTOTFyarfVjihGgs-_vcWHY5N-gSJYdG3jZqQkw6E_w7giaHvyjNLW5Y_OA",
      challenge_signature: "fId0naTXPxSMGaf9Ar5Er8S/S8f+Fpa82RmhvY1Vn2fOwSVpVcckXjpeUaEkzm53PKytKDCmwpOkLmHm72RJBw==",
    },
    answer: {
      token:
        "eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzaGEyNTY6Nzg2MzljNjcwYmFjZGFmZWZiY2Q5YWM0NWFhOGMxZWIwZTc0M2ZkMjU2NTQxYjBiODZlMWI3MTQ4NzhhZTBhMSIsInN1YiI6InNoYTI1NjoyNDdkNjllNDA4NTE2OTU2NWEyMTQ4MTNiNDQxMWI2ZWJmYjBjYTVmMDM0YzQyOGRiM2JkNzk5ZDcxODQzZTc1IiwiaWF0IjoxNzM1Njg5NjAwLCJleHAiOjE3MzU2OTMyMDAsImp0aSI6IjllNDkxZTliLWJlYTItNDlkMi05NjgzLTE2MmZlOWUyODNjNCIsInBzZXVkb255bSI6IkFkYSIsInJlY292ZXJ5IjpmYWxzZSwiYXV0aF90aW1lIjoxNzM1Njg5NjAwfQ.oa27yTIhhJlThRWmBIDG8GyMt3a7eD95S5Rcy47Ra1IzW9wB9fsA1iFTXQ9dxu0wQXPefQS_y4BwXekVoYE7CA",
      fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
      pseudonym: "Ada",
      expires_at: "2025-01-01T01:00:00.000000Z",
    },
  },
  post_auth_renew: {
    answer: {
      token:
        "eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzaGEyNTY6Nzg2MzljNjcwYmFjZGFmZWZiY2Q5YWM0NWFhOGMxZWIwZTc0M2ZkMjU2NTQxYjBiODZlMWI3MTQ4NzhhZTBhMSIsInN1YiI6InNoYTI1NjoyNDdkNjllNDA4NTE2OTU2NWEyMTQ4MTNiNDQxMWI2ZWJmYjBjYTVmMDM0YzQyOGRiM2JkNzk5ZDcxODQzZTc1IiwiaWF0IjoxNzM1Njg5NjAwLCJleHAiOjE3MzU2OTMyMDAsImp0aSI6IjQ2NjljMDA5LWEwMTEtNDlkMi1hMzVmLTEyNTA1MTUzNTVkNiIsInBzZXVkb255bSI6IkFkYSIsInJlY292ZXJ5IjpmYWxzZSwiYXV0aF90aW1lIjoxNzM1Njg5NjAwfQ.ewDYNpGqVCy1EO6GVejYB7VSiG-sibgMIL6DFedURUZPz2Rz3Q6K18GIF4u0Mt4XPZWzOkv_o7uxSFAUj5X0Cw",
      fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
      pseudonym: "Ada",
      expires_at: "2025-01-01T01:00:00.000000Z",
    },
  },
  post_auth_password: {
    body: {
      challenge_id:
        "AQEABiqZy-4DAM1kM6wknLgEmTEG0kjjyh1hz51P2nR-zb1dMLKSA2T89rkXOb8Bqj6IuxQJA8o41Ivzx_G_wGV0ZafGzt9oqmg_k7ZLXplcEEepReLYw3kUNVl3Fa5Yo9WdxF6pZkwepw",
      challenge_signature: "iQ/fx6OJZXsgmOuLXaIwGGCipgnsPFWwAd898oJFK9r6pONjCEUUReDkyzf5C0Kh02ObwnKChHCHAD2SjIlKAg==",
      password: "correct horse battery",
    },
    answer: {
      fingerprint: "sha256:cd6433ac249cb804993106d248e3ca1d61cf9d4fda747ecdbd5d30b2920364fc",
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
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAS5pYl/9f9UMA8EGnndmjixnNsuD5N/q5As1uf1G22oM=\n-----END PUBLIC KEY-----\n",
      signature: "AspGiW1w5nA/cH7G61Np59vshQ8t9mzEMC4hllK3niJA63PVcw2fFvsX9vVLx5KB8ZxWMoDDgvAokdXDZGFoBw==",
      intent_statement: "I wrote it.",
    },
    answer: {
      attestation: {
        id: "6b2da4bb-0b54-4414-8f69-bee7469ce588",
        type: "authorship",
        scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
        signer_key_fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
        signature_algorithm: "ed25519",
        signature: "AspGiW1w5nA/cH7G61Np59vshQ8t9mzEMC4hllK3niJA63PVcw2fFvsX9vVLx5KB8ZxWMoDDgvAokdXDZGFoBw==",
        timestamp: "2025-01-01T00:06:00.000000Z",
        intent_statement: "I wrote it.",
      },
      fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
      pseudonym: "Ada",
      log_entry_id: 13,
      leaf_index: 12,
      entry_hash: "ac04b36987dd83835c3aac9d7461f08a4426e83f525c73649ae43b2fd3bf225e",
      manifest_hash: "38f0c85d6331fd79023d1cd40a3908b665272ec2077277686ac55af17b1b6494",
      sth: {
        tree_size: 13,
        root_hash: "893c89b30d340f518ef231eda6831750cf72b8583d46ee5df7844f6c8fbcbe89",
        signature: "GD7Us/z4LJuUBeUPbzmO6wtDEgdHu5fvz2uK4pWZ/BBnzSPud7uJxpGKfvQBV2FoFkqrXkVHWUK4a/3zol9OAw==",
        timestamp: "2025-01-01T00:06:00.000000Z",
        key_id: "sha256:78639c670bacdafefbcd9ac45aa8c1eb0e743fd256541b0b86e1b714878ae0a1",
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
            "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAS5pYl/9f9UMA8EGnndmjixnNsuD5N/q5As1uf1G22oM=\n-----END PUBLIC KEY-----\n",
          signature: "DO9pBhx6yKl3s3Biw46YAWlQ8FXGZn4/6CFLqjW+Xiqeo0O3CW49cSjk3cqASIg6muKOrchHPGOUN+AO1SayDQ==",
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
            "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAS5pYl/9f9UMA8EGnndmjixnNsuD5N/q5As1uf1G22oM=\n-----END PUBLIC KEY-----\n",
          signature: "pTeRfcaUg1PHoIDdHtfBf75OXoPUhK/DSnaNUCVb4oyWGHAySxICpg3O6ySgsJ3TPmJS7wjwdyeFRRI66H03AQ==",
        },
      ],
    },
    answer: {
      results: [
        {
          status: 201,
          receipt: {
            attestation: {
              id: "37764a26-e7a1-4901-ba30-a26b21884899",
              type: "authorship",
              scope: { content_hash: "sha256:c74e517559a5ed1b9f8f47889125b5d6b84df309d173fee85585b4c045f5214b" },
              signer_key_fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
              signature_algorithm: "ed25519",
              signature: "DO9pBhx6yKl3s3Biw46YAWlQ8FXGZn4/6CFLqjW+Xiqeo0O3CW49cSjk3cqASIg6muKOrchHPGOUN+AO1SayDQ==",
              timestamp: "2025-01-01T00:06:00.000000Z",
            },
            fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
            pseudonym: "Ada",
            log_entry_id: 14,
            leaf_index: 13,
            entry_hash: "c2c48926defd167e0a0d250cebaa95115f73abb71f0801cb281adab9ee52400c",
            manifest_hash: "25367d2d820f2cc8ef80c557f5e4b35bef45d435ae93ee6e3aeffc3e00a05c0e",
            sth: {
              tree_size: 14,
              root_hash: "1adc3d933696bacc7a203db4ce98bb01e5644f2b67b1121487c1cb2a07584d85",
              signature: "0MXpZc6hxRU2zK9XrU0eUYqZ5+xakTu4N/SDYLrluFkw/EojdOAIfHh3oTme0A4FAmzsDWxfTjUJWSDZf/eTAg==",
              timestamp: "2025-01-01T00:06:00.000000Z",
              key_id: "sha256:78639c670bacdafefbcd9ac45aa8c1eb0e743fd256541b0b86e1b714878ae0a1",
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
        "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEOBQam6nyRoAw9ucRf2/1YPrsIW7S\n9X2+Dt6o08FSrAbas+ciAqzk9MhiMso7ek80qSC6Su/tfQW/vSkPhQUt9w==\n-----END PUBLIC KEY-----\n",
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
        entry_hash: "a7dd3e9c2f7a319ed428a8a8ade96f80fbe889020ec46dd731bf4d2e291194cf",
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
        fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
        key_algorithm: "ed25519",
        possession_signature: null,
        pseudonym: "Ada",
        public_key:
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAS5pYl/9f9UMA8EGnndmjixnNsuD5N/q5As1uf1G22oM=\n-----END PUBLIC KEY-----\n",
      },
      previous_hash: null,
      entry_hash: "604caa867c85284a2f7d2f6a61b93c72afaa7f5aa74d9eaf1ad4f29a9550d981",
      chain_version: 2,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "604caa867c85284a2f7d2f6a61b93c72afaa7f5aa74d9eaf1ad4f29a9550d981",
          is_primary: true,
        },
      ],
    },
  },
  get_log_sth: {
    answer: {
      tree_size: 15,
      root_hash: "80b47936fdc9a02f1126a678545e0d723df57118999b0cc3e292eaa040bfb92c",
      signature: "Isedk3UkQPKoyrXLpWdJczT9v0sGGtFgIbL6DvDXv9VQLvhl/JgAFbiuncV2hTnI+B01OAZZK28oxlYkqhpjAA==",
      timestamp: "2025-01-01T00:06:00.000000Z",
      key_id: "sha256:78639c670bacdafefbcd9ac45aa8c1eb0e743fd256541b0b86e1b714878ae0a1",
      tree_version: 2,
    },
  },
  get_log_sth_tree_size: {
    params: { tree_size: 3 },
    answer: {
      tree_size: 3,
      root_hash: "3b68e50f17a4aa3a764cf8cb68d2448319691e409038eec225b0aeabb7e70238",
      signature: "jZrdiHS0IngdFs3mj5s4mt9t7w4aZcDgSochM1bOQBRog0yLAcil3wRswsO/qfECAlPMVrOS09x7AbGYqgcNAw==",
      timestamp: "2025-01-01T00:00:00.000000Z",
      key_id: "sha256:78639c670bacdafefbcd9ac45aa8c1eb0e743fd256541b0b86e1b714878ae0a1",
      tree_version: 2,
    },
  },
  get_log_heads: {
    query: { from: 3, limit: 1 },
    answer: {
      heads: [
        {
          tree_size: 3,
          root_hash: "3b68e50f17a4aa3a764cf8cb68d2448319691e409038eec225b0aeabb7e70238",
          signature: "jZrdiHS0IngdFs3mj5s4mt9t7w4aZcDgSochM1bOQBRog0yLAcil3wRswsO/qfECAlPMVrOS09x7AbGYqgcNAw==",
          timestamp: "2025-01-01T00:00:00.000000Z",
          key_id: "sha256:78639c670bacdafefbcd9ac45aa8c1eb0e743fd256541b0b86e1b714878ae0a1",
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
      leaf_hash: "4048d1263412f3dac2078f6c6263e26267b807c61280d5cc4da3ac1c012b4dab",
      root_hash: "deb73106ba9c944cd086bc3edc14fb4e788fc8c3fb62613a6167216b14b259b6",
      audit_path: [
        "855aea4944d54fe399e1eed0c7cb38fdad278a511e212761255c28cf7d24690d",
        "bc700f7031d170aceac74bcd3b9eab7470e32b71d2dbc995c5173291c5ec83e1",
        "910fbe8acf746b13729d4e46b31e3533b72af5876a33136418b296229e64ef57",
      ],
      entry_hash: "bd3abbf91804959fe9969b4a222fa025e2e9079eb077fe4f7b6b69dc770e63b9",
      sth: {
        tree_size: 5,
        root_hash: "deb73106ba9c944cd086bc3edc14fb4e788fc8c3fb62613a6167216b14b259b6",
        signature: "TqblUqC4VeVEmautQie3YhXGEz+56tHy7sCiKZuYII3QqUGDNVYdS86whTk1E95w/P5l24/N6h40P7OETj+wAg==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:78639c670bacdafefbcd9ac45aa8c1eb0e743fd256541b0b86e1b714878ae0a1",
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
      leaf_hash: "4048d1263412f3dac2078f6c6263e26267b807c61280d5cc4da3ac1c012b4dab",
      root_hash: "deb73106ba9c944cd086bc3edc14fb4e788fc8c3fb62613a6167216b14b259b6",
      audit_path: [
        "855aea4944d54fe399e1eed0c7cb38fdad278a511e212761255c28cf7d24690d",
        "bc700f7031d170aceac74bcd3b9eab7470e32b71d2dbc995c5173291c5ec83e1",
        "910fbe8acf746b13729d4e46b31e3533b72af5876a33136418b296229e64ef57",
      ],
      entry_hash: "bd3abbf91804959fe9969b4a222fa025e2e9079eb077fe4f7b6b69dc770e63b9",
      sth: {
        tree_size: 5,
        root_hash: "deb73106ba9c944cd086bc3edc14fb4e788fc8c3fb62613a6167216b14b259b6",
        signature: "TqblUqC4VeVEmautQie3YhXGEz+56tHy7sCiKZuYII3QqUGDNVYdS86whTk1E95w/P5l24/N6h40P7OETj+wAg==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:78639c670bacdafefbcd9ac45aa8c1eb0e743fd256541b0b86e1b714878ae0a1",
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
      from_root: "3b68e50f17a4aa3a764cf8cb68d2448319691e409038eec225b0aeabb7e70238",
      to_root: "3e463169644dab250d12e1fb450817c323e30dbd8f7b6d858a6a64474658e8ef",
      peaks: [
        "bc700f7031d170aceac74bcd3b9eab7470e32b71d2dbc995c5173291c5ec83e1",
        "4048d1263412f3dac2078f6c6263e26267b807c61280d5cc4da3ac1c012b4dab",
      ],
      extension: [
        "855aea4944d54fe399e1eed0c7cb38fdad278a511e212761255c28cf7d24690d",
        "15847f8c0d6b99ee7c37e357e8af6a28b74f7277042deb34417bab62daeb17f2",
      ],
      from_sth: {
        tree_size: 3,
        root_hash: "3b68e50f17a4aa3a764cf8cb68d2448319691e409038eec225b0aeabb7e70238",
        signature: "jZrdiHS0IngdFs3mj5s4mt9t7w4aZcDgSochM1bOQBRog0yLAcil3wRswsO/qfECAlPMVrOS09x7AbGYqgcNAw==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:78639c670bacdafefbcd9ac45aa8c1eb0e743fd256541b0b86e1b714878ae0a1",
        tree_version: 2,
      },
      to_sth: {
        tree_size: 6,
        root_hash: "3e463169644dab250d12e1fb450817c323e30dbd8f7b6d858a6a64474658e8ef",
        signature: "EX2vzbYj9jI2rywMSv+8XkEtTpp6wcK5DEDezoHFPXLsmtpfpDrSfd/gwIflT8cDSm1mY4bfzG53607VSHs1BQ==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:78639c670bacdafefbcd9ac45aa8c1eb0e743fd256541b0b86e1b714878ae0a1",
        tree_version: 2,
      },
    },
  },
  post_log_verify: { answer: { valid: true, entry_count: 15, errors: [], warnings: [] } },
  get_log_operator_key: {
    answer: {
      fingerprint: "sha256:78639c670bacdafefbcd9ac45aa8c1eb0e743fd256541b0b86e1b714878ae0a1",
      algorithm: "ed25519",
      public_key:
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAaXhjbXSIR52iWPXQfGrKnW4a0IneXR+OdTzjW4RXXT0=\n-----END PUBLIC KEY-----\n",
      operators: [
        {
          key_id: "sha256:78639c670bacdafefbcd9ac45aa8c1eb0e743fd256541b0b86e1b714878ae0a1",
          algorithm: "ed25519",
          public_key:
            "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAaXhjbXSIR52iWPXQfGrKnW4a0IneXR+OdTzjW4RXXT0=\n-----END PUBLIC KEY-----\n",
          from_size: 1,
          until_size: null,
          rotation: null,
        },
      ],
    },
  },
  get_log_checkpoint: {
    answer:
      "cairnlog/78639c670bacdafe\n15\ngLR5Nv3JoC8RJqZ4VF4Ncj31cRiZmwzD4pLqoEC/uSw=\n\n— cairnlog/78639c670bacdafe 8MEOyyfx2LG9hMTzx9+ySdvXU5ePMOYnjC71GUS6lADzHCSVRCV6R4xKcPPpn9l03l2flZxVpIpSrOrtDtOMP2BmQA8=\n",
  },
  get_log_tile_version_level_index: { params: { version: 2, level: 0, index: 0 } },
  get_log_tile_version_level_index_p_width: { params: { version: 2, level: 0, index_p: "1.p", width: 4 } },
  get_tlog_checkpoint: {
    answer:
      "cairnlog/78639c670bacdafe/tlog\n15\nvycyQ/IPuvXglPC0rMZapwuYw+uePCJOVAkX/yOnjrc=\n\n— cairnlog/78639c670bacdafe/tlog BQ/E71AYcTP16Vesytmu9Vhzd3DoWj4eHnl8LhFWRwPMWzEf7G+P07j8OxC8Vfoc0y9VodUmHuiYwBZVxSUfqVk6Cw4=\n",
  },
  get_tlog_vkey: { answer: "cairnlog/78639c670bacdafe/tlog+050fc4ef+AWl4Y210iEedolj10Hxqyp1uGtCJ3l0fjnU841uEV109\n" },
  get_tlog_tile_level_n1: { params: { level: "entries", n1: "000" } },
  get_tlog_tile_level_n1_n2: { params: { level: "1", n1: "000.p", n2: "1" } },
  post_log_anchor: {
    answer: {
      anchored_entry_id: 15,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "a7dd3e9c2f7a319ed428a8a8ade96f80fbe889020ec46dd731bf4d2e291194cf",
          is_primary: true,
        },
      ],
      ots_proof:
        "AE9wZW5UaW1lc3RhbXBzAABQcm9vZgC/ieLohOiSlAEIp90+nC96MZ7UKKiorelvgPvoiQIOxG3XMb9NLikRlM/wEN+Fqdek0h6vXFsGXm62qs4I8QRlAAAA8AhEimjodV8AJwCD3+MNLvkMjh0caHR0cHM6Ly9jYWxlbmRhci5leGFtcGxlLm9yZw==",
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
      root_hash: "80b47936fdc9a02f1126a678545e0d723df57118999b0cc3e292eaa040bfb92c",
      signature: "Isedk3UkQPKoyrXLpWdJczT9v0sGGtFgIbL6DvDXv9VQLvhl/JgAFbiuncV2hTnI+B01OAZZK28oxlYkqhpjAA==",
      timestamp: "2025-01-01T00:06:00.000000Z",
      key_id: "sha256:78639c670bacdafefbcd9ac45aa8c1eb0e743fd256541b0b86e1b714878ae0a1",
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
            fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
            key_algorithm: "ed25519",
            possession_signature: null,
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAS5pYl/9f9UMA8EGnndmjixnNsuD5N/q5As1uf1G22oM=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "604caa867c85284a2f7d2f6a61b93c72afaa7f5aa74d9eaf1ad4f29a9550d981",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "604caa867c85284a2f7d2f6a61b93c72afaa7f5aa74d9eaf1ad4f29a9550d981",
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
    params: { fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75" },
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
            fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
            key_algorithm: "ed25519",
            possession_signature: null,
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAS5pYl/9f9UMA8EGnndmjixnNsuD5N/q5As1uf1G22oM=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "604caa867c85284a2f7d2f6a61b93c72afaa7f5aa74d9eaf1ad4f29a9550d981",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "604caa867c85284a2f7d2f6a61b93c72afaa7f5aa74d9eaf1ad4f29a9550d981",
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
      fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
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
            fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
            key_algorithm: "ed25519",
            possession_signature: null,
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAS5pYl/9f9UMA8EGnndmjixnNsuD5N/q5As1uf1G22oM=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "604caa867c85284a2f7d2f6a61b93c72afaa7f5aa74d9eaf1ad4f29a9550d981",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "604caa867c85284a2f7d2f6a61b93c72afaa7f5aa74d9eaf1ad4f29a9550d981",
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
      endorser_fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
      endorsed_fingerprint: "sha256:9a15deb39bc5953c4fcaab8904915c19562ab0f556e12c95608b40be2127a1c1",
      category: "x-service:institutional_endorsement",
      valid_until: "2027-01-01",
      institutional_metadata: { name: "University of Example" },
      external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
      auth: {
        challenge_id:
          "AQEABiqZ4WMtACR9aeQIUWlWWiFIE7RBG26_sMpfA0xCjbO9eZ1xhD51TiM30ooTqyz2cCuY1Wm-tpicRDlYwdgaxic5V40GBPOh5cE3l_1UeW9erOvsAmmVj-6LrBu5zQ8wVkTeGhZOBw",
        challenge_signature: "iwLVZtNIiAeXU3Yyjhf2EOkHZjeDeUPuT6kzO1QrgemcI00nr2Wdexfk7hpHNtmIDntquZBudrHg+C8VSegiDw==",
      },
    },
    answer: {
      id: 276,
      timestamp: "2025-01-01T00:06:00.000000Z",
      event_type: "endorsement_offer",
      payload: {
        category: "x-service:institutional_endorsement",
        endorsed_key_fingerprint: "sha256:9a15deb39bc5953c4fcaab8904915c19562ab0f556e12c95608b40be2127a1c1",
        endorser_key_fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
        event_type: "endorsement_offer",
        external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
        institutional_metadata: { name: "University of Example" },
        valid_until: "2027-01-01",
      },
      previous_hash: "1ec588eca6bfd261fb51941cd22ba919ce72156e60ff125cfe1d73684f930ff0",
      entry_hash: "75217536a54d75d6880bf828ee54edf99c3e930820ee3de490d4331573ff3a92",
      chain_version: 2,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "75217536a54d75d6880bf828ee54edf99c3e930820ee3de490d4331573ff3a92",
          is_primary: true,
        },
      ],
    },
  },
  post_endorsements_accept: {
    body: {
      offer_entry_id: 276,
      endorsed_fingerprint: "sha256:9a15deb39bc5953c4fcaab8904915c19562ab0f556e12c95608b40be2127a1c1",
      auth: {
        challenge_id:
          "AQEABiqZ4WMtAJoV3rObxZU8T8qriQSRXBlWKrD1VuEslWCLQL4hJ6HBmz1nocTpJ-dsJBiTJPjWWhVIufMlVcHQmLlAKZ6V_ceo5JfrlPfKUdzcOMsFrbLSHoAwwiiZ1gKFDbEjFL6Jcg",
        challenge_signature:
          "MEUCIQDSunptM7xeqKkAvNbhtSkSoyJ9p8EGfKGsDQ3P0DvM2AIgTHSoP+oZnxtmuyl/2HLJUPrEd04FXJDa5xCv14NP2Cs=",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 276,
        endorser_fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
        endorsed_fingerprint: "sha256:9a15deb39bc5953c4fcaab8904915c19562ab0f556e12c95608b40be2127a1c1",
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
          endorsed_key_fingerprint: "sha256:9a15deb39bc5953c4fcaab8904915c19562ab0f556e12c95608b40be2127a1c1",
          endorser_key_fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
          event_type: "endorsement_acceptance",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: null,
          offer_entry_id: 276,
          valid_until: "2027-01-01",
        },
        previous_hash: "75217536a54d75d6880bf828ee54edf99c3e930820ee3de490d4331573ff3a92",
        entry_hash: "cb31fa785761f8f76993a0634768dad2c7f98a20ffd563d9f8f3c89f740f8212",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "cb31fa785761f8f76993a0634768dad2c7f98a20ffd563d9f8f3c89f740f8212",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_withdraw: {
    body: {
      endorser_fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
      endorsed_fingerprint: "sha256:9a15deb39bc5953c4fcaab8904915c19562ab0f556e12c95608b40be2127a1c1",
      original_offer_entry_id: 281,
      note: "A mistake.",
      auth: {
        challenge_id:
          "AQEABiquAs4UACR9aeQIUWlWWiFIE7RBG26_sMpfA0xCjbO9eZ1xhD51b63WWWM286i0CbCRhL47zlKTV8A8TAdZtU0-oaOs4iBzl5S34cUxEJbghl_vgXndJ4RYTpL_0RyEWMijY_uILw",
        challenge_signature: "zzHX8SnG4JPlg+X4V3xqLHLTlhRMZaUrePu+/B8uqxDvoNQZUrhdFfevYwUrTg4jVA5kHxoSXUfcPZhoaqrhBA==",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 281,
        endorser_fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
        endorsed_fingerprint: "sha256:9a15deb39bc5953c4fcaab8904915c19562ab0f556e12c95608b40be2127a1c1",
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
          endorsed_key_fingerprint: "sha256:9a15deb39bc5953c4fcaab8904915c19562ab0f556e12c95608b40be2127a1c1",
          endorser_key_fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
          event_type: "endorsement_withdrawal",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: "A mistake.",
          offer_entry_id: 281,
          valid_until: "2027-01-01",
        },
        previous_hash: "c009387d62bf1a9f0c60e7101731322a19b9f033bec3bbaeea8ff3b56e5e3716",
        entry_hash: "a8a87344f3bbfc9e308f662335591cb305e40fa57b24bf41709d0b12053b7796",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "a8a87344f3bbfc9e308f662335591cb305e40fa57b24bf41709d0b12053b7796",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_revoke_acceptance: {
    body: {
      endorsed_fingerprint: "sha256:9a15deb39bc5953c4fcaab8904915c19562ab0f556e12c95608b40be2127a1c1",
      original_offer_entry_id: 276,
      note: "We no longer work together.",
      auth: {
        challenge_id:
          "AQEABiquAs4UAJoV3rObxZU8T8qriQSRXBlWKrD1VuEslWCLQL4hJ6HByqRU7yiQ2-iKSakaF2e0Jbot0jYoKocCumzUlbH-Xf1l-gTGs1Sf7lEzTTyYEvzapTZ65UAEYFz6tHG6jh31nA",
        challenge_signature:
          "MEQCIEM3ppQoznu+8Iq9HC9Xi4j8HjJdLhq8RNDitPkN1oHyAiBoQFvm5EJspehFz9ztIlyJ/r6+HOggjcmCOYFidUyGyA==",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 276,
        endorser_fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
        endorsed_fingerprint: "sha256:9a15deb39bc5953c4fcaab8904915c19562ab0f556e12c95608b40be2127a1c1",
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
          endorsed_key_fingerprint: "sha256:9a15deb39bc5953c4fcaab8904915c19562ab0f556e12c95608b40be2127a1c1",
          endorser_key_fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
          event_type: "acceptance_revocation",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: "We no longer work together.",
          offer_entry_id: 276,
          valid_until: "2027-01-01",
        },
        previous_hash: "9ec96cf1ea49fa2c46b72d1bcd57560f1642d5899e4217a97321a0c072d39797",
        entry_hash: "08dab560cac0f214f8a15a2e7dc22cbd8179ab43851a534a9b4bb4fa623b26d1",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "08dab560cac0f214f8a15a2e7dc22cbd8179ab43851a534a9b4bb4fa623b26d1",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_revocation_alert: {
    body: {
      endorser_fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
      compromised_fingerprint: "sha256:9a15deb39bc5953c4fcaab8904915c19562ab0f556e12c95608b40be2127a1c1",
      reason: "The laptop with the key was stolen.",
      auth: {
        challenge_id:
          "AQEABiquAs4UACR9aeQIUWlWWiFIE7RBG26_sMpfA0xCjbO9eZ1xhD51EfxTvaHEqD3Ya0bqKVfceV4zkSJUtY6E4NnnK8qlsTCZKr0JTChWBEM9xlNe52urv0BZkph-kooyqmbhIPn4qQ",
        challenge_signature: "iqlbiUD8cnjbqVSe7vpgeH5Z2p3Zped0SNPHj7MlraKZ6DefUNLOvYkDiFFEe1lCKADgjRQx1EqAMatPIcxtDA==",
      },
    },
    answer: {
      alert: {
        alert_entry_id: 279,
        compromised_fingerprint: "sha256:9a15deb39bc5953c4fcaab8904915c19562ab0f556e12c95608b40be2127a1c1",
        endorser_fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
        reason: "The laptop with the key was stolen.",
        evidence: null,
        filed_at: "2025-01-02T00:07:00.000000Z",
      },
      log_entry: {
        id: 279,
        timestamp: "2025-01-02T00:07:00.000000Z",
        event_type: "endorser_revocation_alert",
        payload: {
          compromised_key_fingerprint: "sha256:9a15deb39bc5953c4fcaab8904915c19562ab0f556e12c95608b40be2127a1c1",
          endorser_key_fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
          event_type: "endorser_revocation_alert",
          evidence: null,
          reason: "The laptop with the key was stolen.",
        },
        previous_hash: "1e475dd6aecd127e09a8260d090d2908af9ec2a2b2c68c11770d63df841a3252",
        entry_hash: "9ec96cf1ea49fa2c46b72d1bcd57560f1642d5899e4217a97321a0c072d39797",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "9ec96cf1ea49fa2c46b72d1bcd57560f1642d5899e4217a97321a0c072d39797",
            is_primary: true,
          },
        ],
      },
    },
  },
  get_endorsements_fingerprint: {
    params: { fingerprint: "sha256:9a15deb39bc5953c4fcaab8904915c19562ab0f556e12c95608b40be2127a1c1" },
    answer: {
      endorsements: [
        {
          offer_entry_id: 276,
          endorser_fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
          endorsed_fingerprint: "sha256:9a15deb39bc5953c4fcaab8904915c19562ab0f556e12c95608b40be2127a1c1",
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
    params: { fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75" },
    query: { status: "active" },
    answer: {
      endorsements: [
        {
          offer_entry_id: 276,
          endorser_fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
          endorsed_fingerprint: "sha256:9a15deb39bc5953c4fcaab8904915c19562ab0f556e12c95608b40be2127a1c1",
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
    params: { fingerprint: "sha256:9a15deb39bc5953c4fcaab8904915c19562ab0f556e12c95608b40be2127a1c1" },
    answer: {
      alerts: [
        {
          alert_entry_id: 279,
          compromised_fingerprint: "sha256:9a15deb39bc5953c4fcaab8904915c19562ab0f556e12c95608b40be2127a1c1",
          endorser_fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
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
    params: { fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75" },
    query: { max_depth: 2 },
    answer: {
      root: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
      nodes: [
        {
          fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
          pseudonym: "Ada",
          status: "active",
          named: false,
          depth: 0,
        },
        {
          fingerprint: "sha256:9a15deb39bc5953c4fcaab8904915c19562ab0f556e12c95608b40be2127a1c1",
          pseudonym: "Grace",
          status: "active",
          named: false,
          depth: 1,
        },
      ],
      edges: [
        {
          from: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
          to: "sha256:9a15deb39bc5953c4fcaab8904915c19562ab0f556e12c95608b40be2127a1c1",
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
    params: { fingerprint: "sha256:9a15deb39bc5953c4fcaab8904915c19562ab0f556e12c95608b40be2127a1c1" },
    answer: {
      fingerprint: "sha256:9a15deb39bc5953c4fcaab8904915c19562ab0f556e12c95608b40be2127a1c1",
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
          fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
          category_weights: { "x-service:institutional_endorsement": 0.8 },
          decay_per_hop: 0.5,
          direct_signer_anchors: [
            { fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75", weight: 1 },
          ],
          endorser_anchors: [
            { fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75", weight: 0.9 },
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
      fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
      direct_signer_anchors: [
        { fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75", weight: 0.9 },
      ],
      minimum_threshold: 0.4,
      category_weights: { "x-service:institutional_endorsement": 0.8 },
    },
    answer: {
      id: 1,
      fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75", weight: 0.9 },
      ],
      max_depth: 4,
      minimum_threshold: 0.4,
      status: "active",
      created_at: "2025-01-02T00:07:00.000000Z",
    },
  },
  get_trust_configs_fingerprint: {
    params: { fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75" },
    answer: {
      id: 1,
      fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75", weight: 0.9 },
      ],
      max_depth: 4,
      minimum_threshold: 0.4,
      status: "active",
      created_at: "2025-01-02T00:07:00.000000Z",
    },
  },
  post_trust_configs_revoke: {
    body: { fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75" },
    answer: {
      id: 1,
      fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75", weight: 0.9 },
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
            id: "6b2da4bb-0b54-4414-8f69-bee7469ce588",
            type: "authorship",
            scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
            signer_key_fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
            signature_algorithm: "ed25519",
            signature: "AspGiW1w5nA/cH7G61Np59vshQ8t9mzEMC4hllK3niJA63PVcw2fFvsX9vVLx5KB8ZxWMoDDgvAokdXDZGFoBw==",
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
          id: "6b2da4bb-0b54-4414-8f69-bee7469ce588",
          signer_key_fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
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
          { id: "6b2da4bb-0b54-4414-8f69-bee7469ce588", kind: "attestation", type: "authorship", status: "valid" },
          {
            id: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
            kind: "key",
            pseudonym: "Ada",
            status: "active",
            named: false,
          },
        ],
        edges: [
          {
            from: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
            to: "6b2da4bb-0b54-4414-8f69-bee7469ce588",
            kind: "signed",
          },
          {
            from: "6b2da4bb-0b54-4414-8f69-bee7469ce588",
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
                id: "6b2da4bb-0b54-4414-8f69-bee7469ce588",
                type: "authorship",
                scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                signer_key_fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
                signature_algorithm: "ed25519",
                signature: "AspGiW1w5nA/cH7G61Np59vshQ8t9mzEMC4hllK3niJA63PVcw2fFvsX9vVLx5KB8ZxWMoDDgvAokdXDZGFoBw==",
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
                  id: "6b2da4bb-0b54-4414-8f69-bee7469ce588",
                  type: "authorship",
                  scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                  signer_key_fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
                  signature_algorithm: "ed25519",
                  signature: "AspGiW1w5nA/cH7G61Np59vshQ8t9mzEMC4hllK3niJA63PVcw2fFvsX9vVLx5KB8ZxWMoDDgvAokdXDZGFoBw==",
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
                  id: "6b2da4bb-0b54-4414-8f69-bee7469ce588",
                  type: "authorship",
                  scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                  signer_key_fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
                  signature_algorithm: "ed25519",
                  signature: "AspGiW1w5nA/cH7G61Np59vshQ8t9mzEMC4hllK3niJA63PVcw2fFvsX9vVLx5KB8ZxWMoDDgvAokdXDZGFoBw==",
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
                    id: "6b2da4bb-0b54-4414-8f69-bee7469ce588",
                    type: "authorship",
                    scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                    signer_key_fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
                    signature_algorithm: "ed25519",
                    signature:
                      "AspGiW1w5nA/cH7G61Np59vshQ8t9mzEMC4hllK3niJA63PVcw2fFvsX9vVLx5KB8ZxWMoDDgvAokdXDZGFoBw==",
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
        "eyJhdHRlc3RhdGlvbnMiOltdLCJkb2N1bWVudCI6eyJjb250ZW50X2hhc2giOiJzaGEyNTY6ZjNkNDJlYmY5NjU5YjE2MmUwYmE4YzQwMjM1OTQwMWRlN2VkOGMyODg0M2MwMWY2ZTBiZGIyMzhhY2Q4ZDAzYyIsInBhcnRzIjpbeyJjb250ZW50X2hhc2giOiJzaGEyNTY6NDk4NjNjYzg4YzcxZGU2NjI5MmE5ZjVmMmI5MzJkMWRmMGMxZWQxMDFlYzJiOTc4ODBkZTFhMTEzMzcwOTgxMCIsIm1hbmlmZXN0Ijp7ImF0dGVzdGF0aW9ucyI6W3siaWQiOiI2YjJkYTRiYi0wYjU0LTQ0MTQtOGY2OS1iZWU3NDY5Y2U1ODgiLCJpbnRlbnRfc3RhdGVtZW50IjoiSSB3cm90ZSBpdC4iLCJzY29wZSI6eyJjb250ZW50X2hhc2giOiJzaGEyNTY6NDk4NjNjYzg4YzcxZGU2NjI5MmE5ZjVmMmI5MzJkMWRmMGMxZWQxMDFlYzJiOTc4ODBkZTFhMTEzMzcwOTgxMCJ9LCJzaWduYXR1cmUiOiJBc3BHaVcxdzVuQS9jSDdHNjFOcDU5dnNoUTh0OW16RU1DNGhsbEszbmlKQTYzUFZjdzJmRnZzWDl2Vkx4NUtCOFp4V01vRERndkFva2RYRFpHRm9Cdz09Iiwic2lnbmF0dXJlX2FsZ29yaXRobSI6ImVkMjU1MTkiLCJzaWduZXJfa2V5X2ZpbmdlcnByaW50Ijoic2hhMjU2OjI0N2Q2OWU0MDg1MTY5NTY1YTIxNDgxM2I0NDExYjZlYmZiMGNhNWYwMzRjNDI4ZGIzYmQ3OTlkNzE4NDNlNzUiLCJ0aW1lc3RhbXAiOiIyMDI1LTAxLTAxVDAwOjA2OjAwLjAwMDAwMFoiLCJ0eXBlIjoiYXV0aG9yc2hpcCJ9XSwiZG9jdW1lbnQiOnsiY29udGVudF9oYXNoIjoic2hhMjU2OjQ5ODYzY2M4OGM3MWRlNjYyOTJhOWY1ZjJiOTMyZDFkZjBjMWVkMTAxZWMyYjk3ODgwZGUxYTExMzM3MDk4MTAiLCJ0YWdzIjpbInJlcG9ydCJdLCJ0aXRsZSI6IkFubnVhbCByZXBvcnQifX0sInJvbGUiOiJjaGFwdGVyIiwidGl0bGUiOiJSZXBvcnQifSx7ImNvbnRlbnRfaGFzaCI6InNoYTI1NjpmMzBjNTM0ZGE5NThhNzUzYWMyMGM2ZDVmZDQwNDFkZTRkOWFlMjQ5N2U3NDQwY2ZlMmQwMzRiMDBiNzFlZDEzIiwidGl0bGUiOiJBcHBlbmRpeCJ9XSwidGl0bGUiOiJSZXBvcnQgYW5kIGFwcGVuZGl4In19",
      manifest_hash: "39838c03acb9c8ba1d329abfd7f7cdb5a7654823cb0771e0dbad67e50a0833ed",
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
            attestation_id: "e9a31995-a5eb-45b4-912a-80120df045d1",
            attestation_type: "editorial_review",
            document_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810",
            document_title: "Annual report",
            intent_statement: null,
            manifest_hash: "07a3a261f09eccfd842bc0cc3b0f4d6489cff455701b173ccae85104b6b55285",
            signature:
              "MEQCIHiuMvAg8a6SR2lSQqU4iL2mr/J0KT0QUuoqkwjRsrllAiA2JQdEaqyn22Z0W/7lVjwf30WXiJi+58oE8TWDdtN3ZA==",
            signature_algorithm: "ecdsa-p256",
            signer_key_fingerprint: "sha256:9a15deb39bc5953c4fcaab8904915c19562ab0f556e12c95608b40be2127a1c1",
            tags: ["report"],
            timestamp: "2025-01-01T00:06:00.000000Z",
          },
          previous_hash: "114089e18457c0b73769e23c892a631938d641701ebc9ea19b30df7a83c94b49",
          entry_hash: "90459617ef3944a63ea8cdf9774d34a510c12647b5fcffd33c91b67f8af3147d",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "90459617ef3944a63ea8cdf9774d34a510c12647b5fcffd33c91b67f8af3147d",
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
          "BFizKprhKhdu04o7uvr2MVdJIm0vQM8CVMFuDW4rgMUsFQQUmq0/tiLabB1iRST/Yg7qxAgtex11RMGnTfE0ozA=",
        commitment: "d084f697f8d97e015ee77f7ed2b06c2630d0363d75d2fcb405fd6bb55305b84d",
        lookup_key: "5e65ff716594070a7c6872abfe422ab65b1b6e73d6617babeaeea7824416ec86",
        nonce: "hvaVQXW6sxafVGXX",
        ciphertext: "XjYt/dPsl46TEhZtsRDQsMm8MSIxiwih5ubQ8hTra1DbmFOFBUVdRw5hDfjsjCtwd56u",
        recipient_fingerprint: "sha256:1a56e7cabc73e57bb6c0703f14396c1d6d7a4fdb61b8c72b3f810db34adc64f6",
      },
    },
    answer: {
      entry_id: 287,
      commitment: "d084f697f8d97e015ee77f7ed2b06c2630d0363d75d2fcb405fd6bb55305b84d",
      lookup_key: "5e65ff716594070a7c6872abfe422ab65b1b6e73d6617babeaeea7824416ec86",
      leaf_index: 286,
      log_entry_id: 287,
    },
  },
  get_claims: {
    query: { lookup_key: "5e65ff716594070a7c6872abfe422ab65b1b6e73d6617babeaeea7824416ec86" },
    answer: {
      entries: [
        {
          id: 287,
          timestamp: "2025-01-02T00:07:00.000000Z",
          event_type: "encrypted_claim",
          payload: {
            ciphertext: "XjYt/dPsl46TEhZtsRDQsMm8MSIxiwih5ubQ8hTra1DbmFOFBUVdRw5hDfjsjCtwd56u",
            commitment: "d084f697f8d97e015ee77f7ed2b06c2630d0363d75d2fcb405fd6bb55305b84d",
            commitment_alg: "hmac-sha256-ecdh-v1",
            ephemeral_public_key:
              "BFizKprhKhdu04o7uvr2MVdJIm0vQM8CVMFuDW4rgMUsFQQUmq0/tiLabB1iRST/Yg7qxAgtex11RMGnTfE0ozA=",
            event_type: "encrypted_claim",
            lookup_key: "5e65ff716594070a7c6872abfe422ab65b1b6e73d6617babeaeea7824416ec86",
            nonce: "hvaVQXW6sxafVGXX",
            recipient_fingerprint: "sha256:1a56e7cabc73e57bb6c0703f14396c1d6d7a4fdb61b8c72b3f810db34adc64f6",
          },
          previous_hashes: [
            { algorithm: "sha2-256", digest_hex: "d1563818cbf3827cf4016abe0ae74f95923e12b8ff32eeefc3d953c27e9c6982" },
          ],
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "04b7ddbde8d28ca07e721a9337edb5d1e8c10e54bca9e1e9989f011f2d021feb",
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
      ciphertext: "XjYt/dPsl46TEhZtsRDQsMm8MSIxiwih5ubQ8hTra1DbmFOFBUVdRw5hDfjsjCtwd56u",
      commitment: "d084f697f8d97e015ee77f7ed2b06c2630d0363d75d2fcb405fd6bb55305b84d",
      commitment_alg: "hmac-sha256-ecdh-v1",
      ephemeral_public_key: "BFizKprhKhdu04o7uvr2MVdJIm0vQM8CVMFuDW4rgMUsFQQUmq0/tiLabB1iRST/Yg7qxAgtex11RMGnTfE0ozA=",
      lookup_key: "5e65ff716594070a7c6872abfe422ab65b1b6e73d6617babeaeea7824416ec86",
      nonce: "hvaVQXW6sxafVGXX",
      recipient_fingerprint: "sha256:1a56e7cabc73e57bb6c0703f14396c1d6d7a4fdb61b8c72b3f810db34adc64f6",
    },
  },
  post_claims_entry_id_reveal: {
    params: { entry_id: 287 },
    body: {
      plaintext: { salary: 52000, name: "Zoë 🪨" },
      commitment_key: "cf8eb62ead825cc93f3b9dd96e00280351c59e174f78fdb3b783c5cf2d54eca5",
    },
    answer: { valid: true },
  },
  get_log_attestation_requests: {
    query: { target: "sha256:9a15deb39bc5953c4fcaab8904915c19562ab0f556e12c95608b40be2127a1c1", status: "open" },
    answer: {
      requests: [
        {
          request_id: "9bfb9581-92e2-40fb-aafc-e04ab748e6d0",
          requester_fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
          target_fingerprint: "sha256:9a15deb39bc5953c4fcaab8904915c19562ab0f556e12c95608b40be2127a1c1",
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
      target_fingerprint: "sha256:9a15deb39bc5953c4fcaab8904915c19562ab0f556e12c95608b40be2127a1c1",
      attestation_type: "peer_review",
      nonce: "request-2025-0001",
      intent_statement: "Please review the annual report.",
      claims: { document_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
    },
    answer: {
      request_id: "9bfb9581-92e2-40fb-aafc-e04ab748e6d0",
      requester_fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
      target_fingerprint: "sha256:9a15deb39bc5953c4fcaab8904915c19562ab0f556e12c95608b40be2127a1c1",
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
    params: { request_id: "9bfb9581-92e2-40fb-aafc-e04ab748e6d0" },
    answer: {
      request_id: "9bfb9581-92e2-40fb-aafc-e04ab748e6d0",
      requester_fingerprint: "sha256:247d69e4085169565a214813b4411b6ebfb0ca5f034c428db3bd799d71843e75",
      target_fingerprint: "sha256:9a15deb39bc5953c4fcaab8904915c19562ab0f556e12c95608b40be2127a1c1",
      attestation_type: "peer_review",
      status: "declined",
      deadline: "2025-01-16T00:07:00.000000Z",
      created_at: "2025-01-02T00:07:00.000000Z",
      log_entry_id: 284,
      leaf_index: 283,
      responses: [
        {
          decision: "decline",
          responder_fingerprint: "sha256:9a15deb39bc5953c4fcaab8904915c19562ab0f556e12c95608b40be2127a1c1",
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
        responder_fingerprint: "sha256:9a15deb39bc5953c4fcaab8904915c19562ab0f556e12c95608b40be2127a1c1",
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
    params: { fingerprint: "sha256:9a15deb39bc5953c4fcaab8904915c19562ab0f556e12c95608b40be2127a1c1" },
    answer: {
      target_fingerprint: "sha256:9a15deb39bc5953c4fcaab8904915c19562ab0f556e12c95608b40be2127a1c1",
      active: {
        target_fingerprint: "sha256:9a15deb39bc5953c4fcaab8904915c19562ab0f556e12c95608b40be2127a1c1",
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
    params: { request_id: "9bfb9581-92e2-40fb-aafc-e04ab748e6d0" },
    body: { decision: "decline", reason: "No time before summer." },
    answer: {
      request_id: "9bfb9581-92e2-40fb-aafc-e04ab748e6d0",
      status: "declined",
      responder_fingerprint: "sha256:9a15deb39bc5953c4fcaab8904915c19562ab0f556e12c95608b40be2127a1c1",
      decision: "decline",
      attestation_id: null,
      reason: "No time before summer.",
      log_entry_id: 285,
      leaf_index: 284,
    },
  },
  post_log_request_policies: {
    body: {
      target_fingerprint: "sha256:9a15deb39bc5953c4fcaab8904915c19562ab0f556e12c95608b40be2127a1c1",
      predicates: { all: [{ field: "attestation_type", op: "in", value: ["peer_review", "editorial_review"] }] },
      default_action_on_failure: "decline",
    },
    answer: {
      target_fingerprint: "sha256:9a15deb39bc5953c4fcaab8904915c19562ab0f556e12c95608b40be2127a1c1",
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
          request_id: "9bfb9581-92e2-40fb-aafc-e04ab748e6d0",
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
      request_id: "9bfb9581-92e2-40fb-aafc-e04ab748e6d0",
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

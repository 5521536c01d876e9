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
      vkey: "cairnlog/d96bec4cdffadf26/tlog+ca3406e5+AYIcRg+YrBaCHYkx5hrbtahWHqDS7/uMFRK6Iv6EBG3+",
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
      key_fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
      device_label: "Security key",
    },
    answer: {
      user: {
        id: "d8c24007-5830-4a78-aa82-6227a542fcef",
        display_name: "Ada Lovelace",
        created_at: "2025-01-01T00:00:00.000000Z",
      },
      credential: {
        id: "bedec407-e935-42d7-b517-7eae607eaec3",
        key_fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
        credential_type: "hardware",
        device_label: "Security key",
        status: "active",
        created_at: "2025-01-01T00:00:00.000000Z",
        revoked_at: null,
        hardware_backed: true,
      },
      recovery_key: "QKM5E-A16KT-WXZJ5-6QVRX-RD9W9-HPTT6-P4B7V-M4KZ3",
    },
  },
  post_users_recover: {
    body: {
      pseudonym: "Ada Lovelace",
      recovery_key: "QKM5E-A16KT-WXZJ5-6QVRX-RD9W9-HPTT6-P4B7V-M4KZ3",
      credential_type: "hardware",
      key_fingerprint: "sha256:3bff2c3f5016f02e4394762c786b629340fb69ca99213b1258813443f5e60d9b",
      device_label: "Security key",
    },
    answer: {
      user: {
        id: "d8c24007-5830-4a78-aa82-6227a542fcef",
        display_name: "Ada Lovelace",
        created_at: "2025-01-01T00:00:00.000000Z",
      },
      credential: {
        id: "a7735212-7a87-4426-855a-f43cc77f7aef",
        key_fingerprint: "sha256:3bff2c3f5016f02e4394762c786b629340fb69ca99213b1258813443f5e60d9b",
        credential_type: "hardware",
        device_label: "Security key",
        status: "active",
        created_at: "2025-01-01T00:06:00.000000Z",
        revoked_at: null,
        hardware_backed: true,
      },
      recovery_key: "A7AJP-8RWJN-V5AWY-DR622-RDVVH-Z7C80-PVKT0-B01P1",
      revoked_credentials: 2,
    },
  },
  post_credentials_enroll: {
    body: {
      challenge_id:
        "AQEABiqZy-4DACVV96DIgwOitu_qTTmJngy35Du2kCHAE17DHa5MsngeUcpgC3zwQDiCEFsT9u6vfsSg423QlQey9zJSUKwi2G_EVJUAqR9_QshL_dPzxmsX_WB8dcu39kH-DF1E0dKgpg",
      issuing_fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
      key_fingerprint: "sha256:2555f7a0c88303a2b6efea4d39899e0cb7e43bb69021c0135ec31dae4cb2781e",
      credential_type: "hardware",
      device_label: "Second security key",
      challenge_signature: "8vVylGPohj3edPpW982aZt8j9iY8r2OtO6mc3xG6wPzehIxCTxUp2sQNh9d/PtnAfPi7I+w9aLXtSSq3vT3ADA==",
      chain_signature: "GkfXTvTUQ7Y5jNAOP3PMj/yeF5+gh3SWVgdiW7SiTwER70LkRTf+r8zTG8OftsPUL9JSzpgCpawP0OJDFBuSAA==",
    },
    answer: {
      credential: {
        id: "ebfa4c67-fef9-4f3e-b138-88c35d69b4c9",
        key_fingerprint: "sha256:2555f7a0c88303a2b6efea4d39899e0cb7e43bb69021c0135ec31dae4cb2781e",
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
          fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
          pseudonym: "Ada",
          algorithm: "ed25519",
          status: "active",
          registered_at: "2025-01-01T00:00:00.000000Z",
          expires_at: null,
          named: false,
        },
        {
          fingerprint: "sha256:df6c4bfbc3b36cf7609d0dcc23f14d4f1dd2bbb1194f94d2d96ab489ed6790a4",
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
          fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
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
    params: { fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a" },
    answer: {
      fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
      public_key:
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAs0hXW8nfXZBy5M7sMdGnNvqNIUUjoGw5hDnBj7z4Mlc=\n-----END PUBLIC KEY-----\n",
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
    params: { fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a" },
    answer: {
      fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
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
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAs0hXW8nfXZBy5M7sMdGnNvqNIUUjoGw5hDnBj7z4Mlc=\n-----END PUBLIC KEY-----\n",
        pseudonym: "Ada",
        key_algorithm: "ed25519",
      },
    },
    answer: {
      fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
      pseudonym: "Ada",
      algorithm: "ed25519",
      log_entry_id: 1,
      leaf_index: 0,
      entry_hash: "dd20777f283b29aa70e5a700368121da6a5d2fdeeed4de6c8e8a9332bc396f2f",
    },
  },
  post_keys_succeed: {
    body: {
      payload: {
        old_fingerprint: "sha256:4e973f7caadf3efcc8a6a94fd74cb74ff6bd0fcade77f01b00985a920eab64e1",
        new_public_key:
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAMNBLtVgtFpMNzXkBIo9rjQ8Nm5PCl0VnkYpnOi5+0J4=\n-----END PUBLIC KEY-----\n",
        new_algorithm: "ed25519",
      },
      auth: {
        challenge_id:
          "AQEABiqZy-4DAE6XP3yq3z78yKapT9dMt0_2vQ_K3nfwGwCYWpIOq2ThSAUvXS2VarmueucYBKSARy7zc-Mm3NkuTimOVYCbSMwOkSJP905CbaDe73qIEeTdWS6zPaTr_64qhaTrf0ptDQ",
        challenge_signature: "hFXZpD5mF8rupFF307LN1g+6L95LjCuTgWX8jOG2krO61j88jy3LITKJC34JihTgebncp0qIkF2Pai98kzjhCA==",
      },
    },
    answer: {
      old_fingerprint: "sha256:4e973f7caadf3efcc8a6a94fd74cb74ff6bd0fcade77f01b00985a920eab64e1",
      new_fingerprint: "sha256:b580643bc3e924d0896ad4c524f76752bb637749a36d2d5da04943fc07fd27f4",
      log_entry_id: 5,
      leaf_index: 4,
      entry_hash: "866d62c754eb60edfb4608ef4ad2ac75acd6740836252405d9da6f24b8ab1b05",
    },
  },
  post_keys_revoke: {
    body: {
      payload: { fingerprint: "sha256:b580643bc3e924d0896ad4c524f76752bb637749a36d2d5da04943fc07fd27f4" },
      auth: {
        challenge_id:
          "AQEABiqZy-4DALWAZDvD6STQiWrUxST3Z1K7Y3dJo20tXaBJQ_wH_Sf02IcGlmp2juo_Fay15e0oNUHJmppRKeaTSPEwqQ3Zb7LWNoQSQwjdMnD6s2oudiBDRZMhe6xXqV1qGQHdTyudMg",
        challenge_signature: "BxN/veNeJj+4wOjIVtCXHhTsPvyC8Weo5aD1EaRQVqeYq5iJbX1OP3KvQIuQ8QRmUYb74Rp+U6cKIdMnY1/FCA==",
      },
    },
    answer: {
      fingerprint: "sha256:b580643bc3e924d0896ad4c524f76752bb637749a36d2d5da04943fc07fd27f4",
      status: "revoked",
      log_entry_id: 6,
      leaf_index: 5,
      entry_hash: "ef29255111cd3aa3d48a4c89e4fc3dbbb0c9f24f0503b1a3f8df50474b00bf56",
    },
  },
  post_auth_challenge: {
    body: { fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a", purpose: "login" },
    answer: {
      challenge_id:
        "AQAABiqZy-4DAA_6JoCsooTM9syN3nLqlJnw2tCDu8YYYVUS0YCeXK16fHaq1KwjFPzuuuRGRosFZAyi8j4q9Gh1EodaCPztVRFZagUBt3D_RuIwyYC4VlrIBjO4CE-5KHpkkPAjDPls5w",
      nonce:
        "service.auth.v1:login:sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a:fHaq1KwjFPzuuuRGRosFZAyi8j4q9Gh1EodaCPztVRE",
      expires_at: "2025-01-01T00:05:00.000000Z",
      origin: "http://127.0.0.1:35179",
      act: null,
    },
  },
  post_auth_login: {
    body: {
      challenge_id:
        "AQAABiqZy-4DAA_6JoCsooTM9syN3nLqlJnw2tCDu8YYYVUS0YCeXK16fHaq1KwjFPzuuuRGRosFZAyi8j4q9Gh1EodaCPztVRFZagUBt3D_RuIwyYC4VlrIBjO4CE-5KHpkkPAjDPls5w",
      challenge_signature: "0BTy0NZbi8bY80GLJywZ07fkVJpjQ/8trygMce5WDcm+5FVwcUAZ9Fh8fcjg0GzhLxsHBDTMuqoPV817ts04AQ==",
    },
    answer: {
      token:
        "eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzaGEyNTY6ZDk2YmVjNGNkZmZhZGYyNmJmYjk4OGY0MzdhMjlkZTEyYjQyNmU1MjY1OTdiOTMzYmMxZTE3NzZlOTZmOGJiMCIsInN1YiI6InNoYTI1NjowZmZhMjY4MGFjYTI4NGNjZjZjYzhkZGU3MmVhOTQ5OWYwZGFkMDgzYmJjNjE4NjE1NTEyZDE4MDllNWNhZDdhIiwiaWF0IjoxNzM1Njg5NjAwLCJleHAiOjE3MzU2OTMyMDAsImp0aSI6ImI1YWQ2NmJhLTJjOWMtNDc4MS05Yzg0LWU0ZGRhNjUzOWZhNSIsInBzZXVkb255bSI6IkFkYSIsInJlY292ZXJ5IjpmYWxzZSwiYXV0aF90aW1lIjoxNzM1Njg5NjAwfQ.0f6QSSdF87ZHvk-cNLrayK4HTTeJsLJsUtbVMtWtczagSoH-QoL-OeegCCapwSjSu75JptKOh4-W3omghYFsAg",
      fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
      pseudonym: "Ada",
      expires_at: "2025-01-01T01:00:00.000000Z",
    },
  },
  post_auth_renew: {
    answer: {
      token:
        "eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzaGEyNTY6ZDk2YmVjNGNkZmZhZGYyNmJmYjk4OGY0MzdhMjlkZTEyYjQyNmU1MjY1OTdiOTMzYmMxZTE3NzZlOTZmOGJiMCIsInN1YiI6InNoYTI1NjowZmZhMjY4MGFjYTI4NGNjZjZjYzhkZGU3MmVhOTQ5OWYwZGFkMDgzYmJjNjE4NjE1NTEyZDE4MDllNWNhZDdhIiwiaWF0IjoxNzM1Njg5NjAwLCJleHAiOjE3MzU2OTMyMDAsImp0aSI6IjE2ODUyNWI2LWIzNWEtNGRlYS05M2ZkLTAyNzk0ZmViNTk1YiIsInBzZXVkb255bSI6IkFkYSIsInJlY292ZXJ5IjpmYWxzZSwiYXV0aF90aW1lIjoxNzM1Njg5NjAwfQ.qyHLFeQnYJVZEvowq2HVyGvSc4rey-Rj7pZ8bT54IeNjFIiJGTq9la6vKdkGvebFAFUDof1dXNaXFgzxO-9BDA",
      fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
      pseudonym: "Ada",
      expires_at: "2025-01-01T01:00:00.000000Z",
    },
  },
  post_auth_password: {
    body: {
      challenge_id:
        "AQEABiqZy-4DAHgDgrbi11Slr6Zhw39K03KDm5u_2nqyvkj6EGC2XahposviGMTGxzXlUgx2Btsm-t4WCy19Hy5rkyYE0dNCO_itD_Ubf3gcoCWzaOhhFJVlVU3LA2GI1dBXxRFhpoR5oQ",
      challenge_signature: "g8OOEBTzynmG57jtdtrnp0B9L8UAmr4J/Xkil+mfeD7yZvqH6T/iKz5r7PykphBxFkvS5Wwn0VrJktEhHEw3DA==",
      password: "correct horse battery",
    },
    answer: {
      fingerprint: "sha256:780382b6e2d754a5afa661c37f4ad372839b9bbfda7ab2be48fa1060b65da869",
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
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAs0hXW8nfXZBy5M7sMdGnNvqNIUUjoGw5hDnBj7z4Mlc=\n-----END PUBLIC KEY-----\n",
      signature: "px25xKox0JxZ2d2Gx9JO+Qt6DcvCfQRRBmS+FPconhxGpMXSx8N/dOFDKUZKubcxaxOWuz/bzixgqf14BqkiAg==",
      intent_statement: "I wrote it.",
    },
    answer: {
      attestation: {
        id: "18f32e5d-c560-4402-92f9-9cfe6d7cf859",
        type: "authorship",
        scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
        signer_key_fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
        signature_algorithm: "ed25519",
        signature: "px25xKox0JxZ2d2Gx9JO+Qt6DcvCfQRRBmS+FPconhxGpMXSx8N/dOFDKUZKubcxaxOWuz/bzixgqf14BqkiAg==",
        timestamp: "2025-01-01T00:06:00.000000Z",
        intent_statement: "I wrote it.",
      },
      fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
      pseudonym: "Ada",
      log_entry_id: 13,
      leaf_index: 12,
      entry_hash: "d2cd9e37c0ab169a27c260dfa7566bfb07b01ffa96cb2b1ffd51aa576b08cc70",
      manifest_hash: "38f0c85d6331fd79023d1cd40a3908b665272ec2077277686ac55af17b1b6494",
      sth: {
        tree_size: 13,
        root_hash: "a2eafda86141bef47c07fc570d6a3c5ff2a5010f07a320d474b0858769189978",
        signature: "QAYCTAdquTgTyxaPYRshGgPn2p98kCZGUDwjxdyhKJ8BztMlPLspYQF8qeEXXOYAjuuJ2SQ+9RakMdBMDGyCBA==",
        timestamp: "2025-01-01T00:06:00.000000Z",
        key_id: "sha256:d96bec4cdffadf26bfb988f437a29de12b426e526597b933bc1e1776e96f8bb0",
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
            "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAs0hXW8nfXZBy5M7sMdGnNvqNIUUjoGw5hDnBj7z4Mlc=\n-----END PUBLIC KEY-----\n",
          signature: "zZsPPOPyVMWbvIQBnSOZ7FivAaxjdH/Zgkzm05ZkI+VNGWgdWK1YVRBaUWyg1PP4qp5xVl/7QhgJkuJOH4k2Cw==",
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
            "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAs0hXW8nfXZBy5M7sMdGnNvqNIUUjoGw5hDnBj7z4Mlc=\n-----END PUBLIC KEY-----\n",
          signature: "uEWJLdcreUbVJvsg6gToyPdfw/IokeR1oLasjiCpnuqVxBu9pnKZLT2udxoew2ClhUuhT7Mt4KXGi+GmRUmyCg==",
        },
      ],
    },
    answer: {
      results: [
        {
          status: 201,
          receipt: {
            attestation: {
              id: "2bd18331-cd0e-4bea-b27e-168606206ece",
              type: "authorship",
              scope: { content_hash: "sha256:c74e517559a5ed1b9f8f47889125b5d6b84df309d173fee85585b4c045f5214b" },
              signer_key_fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
              signature_algorithm: "ed25519",
              signature: "zZsPPOPyVMWbvIQBnSOZ7FivAaxjdH/Zgkzm05ZkI+VNGWgdWK1YVRBaUWyg1PP4qp5xVl/7QhgJkuJOH4k2Cw==",
              timestamp: "2025-01-01T00:06:00.000000Z",
            },
            fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
            pseudonym: "Ada",
            log_entry_id: 14,
            leaf_index: 13,
            entry_hash: "755d18c9a18a823dcf8dd813658dc317f30909649fce5f5a3904ab4533e77e31",
            manifest_hash: "25367d2d820f2cc8ef80c557f5e4b35bef45d435ae93ee6e3aeffc3e00a05c0e",
            sth: {
              tree_size: 14,
              root_hash: "dee396aaff66935c2aa7f6a2e58619d129a03c1a701004213e1f140478b8611a",
              signature: "LnAmdSim8XIQhEgpbYUhdRJmQ/bSaZzYz/Ej787CaxXokjOiu8FCCSv0fB1bJPuGWAkZR2cCkXA8YOo/dlkZCA==",
              timestamp: "2025-01-01T00:06:00.000000Z",
              key_id: "sha256:d96bec4cdffadf26bfb988f437a29de12b426e526597b933bc1e1776e96f8bb0",
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
        "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE+6zvOluAOWgeCbrEOVwkOmguTQY5\ndurx79pMhTxN9/awEwsI5rM/t57beCnDJdHWQmw40Aboza9Bm5eqCib30A==\n-----END PUBLIC KEY-----\n",
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
        entry_hash: "0f0b335f9ce67ecf84f200cd504da3e5cebb326f2b5f0591e316c732642898a9",
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
        fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
        key_algorithm: "ed25519",
        possession_signature: null,
        pseudonym: "Ada",
        public_key:
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAs0hXW8nfXZBy5M7sMdGnNvqNIUUjoGw5hDnBj7z4Mlc=\n-----END PUBLIC KEY-----\n",
      },
      previous_hash: null,
      entry_hash: "dd20777f283b29aa70e5a700368121da6a5d2fdeeed4de6c8e8a9332bc396f2f",
      chain_version: 2,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "dd20777f283b29aa70e5a700368121da6a5d2fdeeed4de6c8e8a9332bc396f2f",
          is_primary: true,
        },
      ],
    },
  },
  get_log_sth: {
    answer: {
      tree_size: 15,
      root_hash: "a10e1e238dd2127097e289008e5baaf647c37ff2a1a77f4af15b9bdb04600ca0",
      signature: "nts65GcrY9s/Uftxv/gDaZDxzU1YG09q8MeWXzn7IYq9gUq/eBkctJMAMUh7CKVdIefuYTGfPUQ9fdZ+6pS/DA==",
      timestamp: "2025-01-01T00:06:00.000000Z",
      key_id: "sha256:d96bec4cdffadf26bfb988f437a29de12b426e526597b933bc1e1776e96f8bb0",
      tree_version: 2,
    },
  },
  get_log_sth_tree_size: {
    params: { tree_size: 3 },
    answer: {
      tree_size: 3,
      root_hash: "ef4fc575ab930ccdc33d5d0692e4d6a75d15b34e9d944a6b732752125c112216",
      signature: "geT9lg38EQjQXIyzf24FysyIv/lRUYFX4C8RRWTCoqKX7DJnF2Akpd9VqmAREMdWdex2OdH7mm2I50ppX6+4AQ==",
      timestamp: "2025-01-01T00:00:00.000000Z",
      key_id: "sha256:d96bec4cdffadf26bfb988f437a29de12b426e526597b933bc1e1776e96f8bb0",
      tree_version: 2,
    },
  },
  get_log_heads: {
    query: { from: 3, limit: 1 },
    answer: {
      heads: [
        {
          tree_size: 3,
          root_hash: "ef4fc575ab930ccdc33d5d0692e4d6a75d15b34e9d944a6b732752125c112216",
          signature: "geT9lg38EQjQXIyzf24FysyIv/lRUYFX4C8RRWTCoqKX7DJnF2Akpd9VqmAREMdWdex2OdH7mm2I50ppX6+4AQ==",
          timestamp: "2025-01-01T00:00:00.000000Z",
          key_id: "sha256:d96bec4cdffadf26bfb988f437a29de12b426e526597b933bc1e1776e96f8bb0",
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
      leaf_hash: "4a2800db2ec5b7031612c7bf947ed566108b98450c9c1fac96e24e8ae36fb672",
      root_hash: "7ec0e62f1f1f7b3070ce0e3c5a1919e993198cc8bbfb1e5bec474f6fa333b1e7",
      audit_path: [
        "750a234a131fe55dac1ddb0e51dc0be78d962f342b9ca1af93e8df7df8856188",
        "1b9d5671c0aa9996b203734736dc52c28b3cf3245518f3da607313530edd8c1d",
        "31210f2836af47f932b69c73f7112cc0f3d8f3baabf87029b127dacc384e02ae",
      ],
      entry_hash: "ba44592e31f10247a46e196eda2ba791198b8aff76a70c364a68854c88e54263",
      sth: {
        tree_size: 5,
        root_hash: "7ec0e62f1f1f7b3070ce0e3c5a1919e993198cc8bbfb1e5bec474f6fa333b1e7",
        signature: "86safmgx3MfSBfHnhKuKxdIujq7JJZZxOtAg5CrB13yLe+CwSffWLJ8dHRW0GamAEtwTQq5Y6zgkpA1gexUhDQ==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:d96bec4cdffadf26bfb988f437a29de12b426e526597b933bc1e1776e96f8bb0",
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
      leaf_hash: "4a2800db2ec5b7031612c7bf947ed566108b98450c9c1fac96e24e8ae36fb672",
      root_hash: "7ec0e62f1f1f7b3070ce0e3c5a1919e993198cc8bbfb1e5bec474f6fa333b1e7",
      audit_path: [
        "750a234a131fe55dac1ddb0e51dc0be78d962f342b9ca1af93e8df7df8856188",
        "1b9d5671c0aa9996b203734736dc52c28b3cf3245518f3da607313530edd8c1d",
        "31210f2836af47f932b69c73f7112cc0f3d8f3baabf87029b127dacc384e02ae",
      ],
      entry_hash: "ba44592e31f10247a46e196eda2ba791198b8aff76a70c364a68854c88e54263",
      sth: {
        tree_size: 5,
        root_hash: "7ec0e62f1f1f7b3070ce0e3c5a1919e993198cc8bbfb1e5bec474f6fa333b1e7",
        signature: "86safmgx3MfSBfHnhKuKxdIujq7JJZZxOtAg5CrB13yLe+CwSffWLJ8dHRW0GamAEtwTQq5Y6zgkpA1gexUhDQ==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:d96bec4cdffadf26bfb988f437a29de12b426e526597b933bc1e1776e96f8bb0",
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
      from_root: "ef4fc575ab930ccdc33d5d0692e4d6a75d15b34e9d944a6b732752125c112216",
      to_root: "412b55c0ae759741e3530c98a74965723577984d87af145d1f621639468c803d",
      peaks: [
        "1b9d5671c0aa9996b203734736dc52c28b3cf3245518f3da607313530edd8c1d",
        "4a2800db2ec5b7031612c7bf947ed566108b98450c9c1fac96e24e8ae36fb672",
      ],
      extension: [
        "750a234a131fe55dac1ddb0e51dc0be78d962f342b9ca1af93e8df7df8856188",
        "61145b5f3437e20a9866620b8b3e7dc5f5b627153eccdea71aa219a68384d466",
      ],
      from_sth: {
        tree_size: 3,
        root_hash: "ef4fc575ab930ccdc33d5d0692e4d6a75d15b34e9d944a6b732752125c112216",
        signature: "geT9lg38EQjQXIyzf24FysyIv/lRUYFX4C8RRWTCoqKX7DJnF2Akpd9VqmAREMdWdex2OdH7mm2I50ppX6+4AQ==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:d96bec4cdffadf26bfb988f437a29de12b426e526597b933bc1e1776e96f8bb0",
        tree_version: 2,
      },
      to_sth: {
        tree_size: 6,
        root_hash: "412b55c0ae759741e3530c98a74965723577984d87af145d1f621639468c803d",
        signature: "wNmVRLhHJuySkmCm6Hwq/ScQoeJZ2KCr5PvmrmqUJY2lTxU3p1FRxCDkQNmx504anhePxkRMuIYB4l19AHLdAQ==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:d96bec4cdffadf26bfb988f437a29de12b426e526597b933bc1e1776e96f8bb0",
        tree_version: 2,
      },
    },
  },
  post_log_verify: { answer: { valid: true, entry_count: 15, errors: [], warnings: [] } },
  get_log_operator_key: {
    answer: {
      fingerprint: "sha256:d96bec4cdffadf26bfb988f437a29de12b426e526597b933bc1e1776e96f8bb0",
      algorithm: "ed25519",
      public_key:
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAghxGD5isFoIdiTHmGtu1qFYeoNLv+4wVEroi/oQEbf4=\n-----END PUBLIC KEY-----\n",
      operators: [
        {
          key_id: "sha256:d96bec4cdffadf26bfb988f437a29de12b426e526597b933bc1e1776e96f8bb0",
          algorithm: "ed25519",
          public_key:
            "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAghxGD5isFoIdiTHmGtu1qFYeoNLv+4wVEroi/oQEbf4=\n-----END PUBLIC KEY-----\n",
          from_size: 1,
          until_size: null,
          rotation: null,
        },
      ],
    },
  },
  get_log_checkpoint: {
    answer:
      "cairnlog/d96bec4cdffadf26\n15\noQ4eI43SEnCX4okAjluq9kfDf/Khp39K8Vub2wRgDKA=\n\n— cairnlog/d96bec4cdffadf26 QFpQGFzcSmHMdbGU/OYDVszHwkRAZAA/OfBd0cobc1R6i4pVxheB2czxGIypmbVJaOIiyxKwkEI5k9EsO/lDK38QAwA=\n",
  },
  get_log_tile_version_level_index: { params: { version: 2, level: 0, index: 0 } },
  get_log_tile_version_level_index_p_width: { params: { version: 2, level: 0, index_p: "1.p", width: 4 } },
  get_tlog_checkpoint: {
    answer:
      "cairnlog/d96bec4cdffadf26/tlog\n15\n/bgevhEQfMAbBqaSEuMAJNwJQQDX9MdxmQNFS42Vlzw=\n\n— cairnlog/d96bec4cdffadf26/tlog yjQG5WXAG+KpvQmoa2JoV9DRxI1dhsDSKOiYCv1e39smnUsnbjLpKemKHFUZ4jO33Pay/khdkgGCg47Y4qdnb3f91Qk=\n",
  },
  get_tlog_vkey: { answer: "cairnlog/d96bec4cdffadf26/tlog+ca3406e5+AYIcRg+YrBaCHYkx5hrbtahWHqDS7/uMFRK6Iv6EBG3+\n" },
  get_tlog_tile_level_n1: { params: { level: "entries", n1: "000" } },
  get_tlog_tile_level_n1_n2: { params: { level: "1", n1: "000.p", n2: "1" } },
  post_log_anchor: {
    answer: {
      anchored_entry_id: 15,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "0f0b335f9ce67ecf84f200cd504da3e5cebb326f2b5f0591e316c732642898a9",
          is_primary: true,
        },
      ],
      ots_proof:
        "AE9wZW5UaW1lc3RhbXBzAABQcm9vZgC/ieLohOiSlAEIDwszX5zmfs+E8gDNUE2j5c67Mm8rXwWR4xbHMmQomKnwEH1n4pjFfT+ZgxDya/1A2UEI8QRlAAAA8AjKkftcOBluCgCD3+MNLvkMjh0caHR0cHM6Ly9jYWxlbmRhci5leGFtcGxlLm9yZw==",
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
      root_hash: "a10e1e238dd2127097e289008e5baaf647c37ff2a1a77f4af15b9bdb04600ca0",
      signature: "nts65GcrY9s/Uftxv/gDaZDxzU1YG09q8MeWXzn7IYq9gUq/eBkctJMAMUh7CKVdIefuYTGfPUQ9fdZ+6pS/DA==",
      timestamp: "2025-01-01T00:06:00.000000Z",
      key_id: "sha256:d96bec4cdffadf26bfb988f437a29de12b426e526597b933bc1e1776e96f8bb0",
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
            fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
            key_algorithm: "ed25519",
            possession_signature: null,
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAs0hXW8nfXZBy5M7sMdGnNvqNIUUjoGw5hDnBj7z4Mlc=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "dd20777f283b29aa70e5a700368121da6a5d2fdeeed4de6c8e8a9332bc396f2f",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "dd20777f283b29aa70e5a700368121da6a5d2fdeeed4de6c8e8a9332bc396f2f",
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
    params: { fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a" },
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
            fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
            key_algorithm: "ed25519",
            possession_signature: null,
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAs0hXW8nfXZBy5M7sMdGnNvqNIUUjoGw5hDnBj7z4Mlc=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "dd20777f283b29aa70e5a700368121da6a5d2fdeeed4de6c8e8a9332bc396f2f",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "dd20777f283b29aa70e5a700368121da6a5d2fdeeed4de6c8e8a9332bc396f2f",
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
      fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
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
            fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
            key_algorithm: "ed25519",
            possession_signature: null,
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAs0hXW8nfXZBy5M7sMdGnNvqNIUUjoGw5hDnBj7z4Mlc=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "dd20777f283b29aa70e5a700368121da6a5d2fdeeed4de6c8e8a9332bc396f2f",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "dd20777f283b29aa70e5a700368121da6a5d2fdeeed4de6c8e8a9332bc396f2f",
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
      endorser_fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
      endorsed_fingerprint: "sha256:df6c4bfbc3b36cf7609d0dcc23f14d4f1dd2bbb1194f94d2d96ab489ed6790a4",
      category: "x-service:institutional_endorsement",
      valid_until: "2027-01-01",
      institutional_metadata: { name: "University of Example" },
      external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
      auth: {
        challenge_id:
          "AQEABiqZ4WMtAA_6JoCsooTM9syN3nLqlJnw2tCDu8YYYVUS0YCeXK16dpT5qiKH0AFPisWIzI1c_nRONIRg2W-j7D4rQwHZV7MDrFgUgpW633cIUAewNUNXOvvqU7LzTnGOivFM9mfjjA",
        challenge_signature: "L53YZzG/9odtde1PiYDOvGag9gSyN5RVZWdzlbAkerRUZ/uJLTivFShAHkdpotrZEMLQ+AjcO/GCi40evx0cBQ==",
      },
    },
    answer: {
      id: 276,
      timestamp: "2025-01-01T00:06:00.000000Z",
      event_type: "endorsement_offer",
      payload: {
        category: "x-service:institutional_endorsement",
        endorsed_key_fingerprint: "sha256:df6c4bfbc3b36cf7609d0dcc23f14d4f1dd2bbb1194f94d2d96ab489ed6790a4",
        endorser_key_fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
        event_type: "endorsement_offer",
        external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
        institutional_metadata: { name: "University of Example" },
        valid_until: "2027-01-01",
      },
      previous_hash: "1d96312a03464288589e63fe5830d8a3983739d9d33d607d70228d3699efc5c0",
      entry_hash: "e303a0d3e79c5bf6699cddcd48c6fd734c527beee97110fdfba0703acbe059fc",
      chain_version: 2,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "e303a0d3e79c5bf6699cddcd48c6fd734c527beee97110fdfba0703acbe059fc",
          is_primary: true,
        },
      ],
    },
  },
  post_endorsements_accept: {
    body: {
      offer_entry_id: 276,
      endorsed_fingerprint: "sha256:df6c4bfbc3b36cf7609d0dcc23f14d4f1dd2bbb1194f94d2d96ab489ed6790a4",
      auth: {
        challenge_id:
          "AQEABiqZ4WMtAN9sS_vDs2z3YJ0NzCPxTU8d0ruxGU-U0tlqtIntZ5Cknr8EzBqXW8lcAOoCvDksMxenHTCtA-mxE3ywx9I6zyYB6grZ-wc7yuQ4m_No356mZfNSAV8WDy3JqD7S0HjvaA",
        challenge_signature:
          "MEUCIFND1pWqihp7YN3WTrG0ZAn1233Reefknk+YOiRYYxTgAiEAqkWOBtVdYcR6U1nsqmT/myJQdatJJ0eZfHnbKWQldC4=",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 276,
        endorser_fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
        endorsed_fingerprint: "sha256:df6c4bfbc3b36cf7609d0dcc23f14d4f1dd2bbb1194f94d2d96ab489ed6790a4",
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
          endorsed_key_fingerprint: "sha256:df6c4bfbc3b36cf7609d0dcc23f14d4f1dd2bbb1194f94d2d96ab489ed6790a4",
          endorser_key_fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
          event_type: "endorsement_acceptance",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: null,
          offer_entry_id: 276,
          valid_until: "2027-01-01",
        },
        previous_hash: "e303a0d3e79c5bf6699cddcd48c6fd734c527beee97110fdfba0703acbe059fc",
        entry_hash: "e4af8bfdad967441ba79814717cb961fb113bf7c032a4eb17034a989b601f592",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "e4af8bfdad967441ba79814717cb961fb113bf7c032a4eb17034a989b601f592",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_withdraw: {
    body: {
      endorser_fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
      endorsed_fingerprint: "sha256:df6c4bfbc3b36cf7609d0dcc23f14d4f1dd2bbb1194f94d2d96ab489ed6790a4",
      original_offer_entry_id: 281,
      note: "A mistake.",
      auth: {
        challenge_id:
          "AQEABiquAs4UAA_6JoCsooTM9syN3nLqlJnw2tCDu8YYYVUS0YCeXK16KSet9woSFBsaJkMsFb52fjFA1GvwXF9o9XtV8tqFqDp5AcY4xyiqfmuibBAzrYIFLJAKQ94YxvOmYnr14hGXDQ",
        challenge_signature: "z5Z6MJ46yF/BFIg+Qxd23dKJBxa/FOJgBVndXS+iFRy7WgmJo7mWiZ6t9B+67vfBuvdL5I0/El+vYMZVMkqnCA==",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 281,
        endorser_fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
        endorsed_fingerprint: "sha256:df6c4bfbc3b36cf7609d0dcc23f14d4f1dd2bbb1194f94d2d96ab489ed6790a4",
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
          endorsed_key_fingerprint: "sha256:df6c4bfbc3b36cf7609d0dcc23f14d4f1dd2bbb1194f94d2d96ab489ed6790a4",
          endorser_key_fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
          event_type: "endorsement_withdrawal",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: "A mistake.",
          offer_entry_id: 281,
          valid_until: "2027-01-01",
        },
        previous_hash: "0cf32683b2d3af8ebcc553b9b0d5316606fecd8f763c8b9fdfb657b21e595bca",
        entry_hash: "198deaf6eb428d24eee665699110d89d33a173825d68fc2ca49b8f27598eff1a",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "198deaf6eb428d24eee665699110d89d33a173825d68fc2ca49b8f27598eff1a",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_revoke_acceptance: {
    body: {
      endorsed_fingerprint: "sha256:df6c4bfbc3b36cf7609d0dcc23f14d4f1dd2bbb1194f94d2d96ab489ed6790a4",
      original_offer_entry_id: 276,
      note: "We no longer work together.",
      auth: {
        challenge_id:
          "AQEABiquAs4UAN9sS_vDs2z3YJ0NzCPxTU8d0ruxGU-U0tlqtIntZ5CkZHhGuN2QLCMRqoZJJkiQOsljDifNkTyJ0csHk_4teqpCJxv2PcLeUp2tJAEWwwEzkghG_skJmrigdZuKx05ODQ",
        challenge_signature:
          "MEUCIQD4rHlT4xZ5yVFZVIF4UtZyFqJIw3n259nm3idi6FXOXAIgOAGGC2G6MWcF0nv/m8yfAOFt8QJLdYT7/vvCI/oUi0U=",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 276,
        endorser_fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
        endorsed_fingerprint: "sha256:df6c4bfbc3b36cf7609d0dcc23f14d4f1dd2bbb1194f94d2d96ab489ed6790a4",
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
          endorsed_key_fingerprint: "sha256:df6c4bfbc3b36cf7609d0dcc23f14d4f1dd2bbb1194f94d2d96ab489ed6790a4",
          endorser_key_fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
          event_type: "acceptance_revocation",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: "We no longer work together.",
          offer_entry_id: 276,
          valid_until: "2027-01-01",
        },
        previous_hash: "ac10f7f5a972f0d870ff8c7632fafb92d22c52d7fe4c8a1e98c8e2e45d0d7c4c",
        entry_hash: "2bf3a33dae2b0e68c21bfc473f4da10d4a7323d9b83514c4e453993057273c1e",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "2bf3a33dae2b0e68c21bfc473f4da10d4a7323d9b83514c4e453993057273c1e",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_revocation_alert: {
    body: {
      endorser_fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
      compromised_fingerprint: "sha256:df6c4bfbc3b36cf7609d0dcc23f14d4f1dd2bbb1194f94d2d96ab489ed6790a4",
      reason: "The laptop with the key was stolen.",
      auth: {
        challenge_id:
          "AQEABiquAs4UAA_6JoCsooTM9syN3nLqlJnw2tCDu8YYYVUS0YCeXK16V5ydexTe2nZlrtAO2jliJP4KodhVODFrwMpUSN7JonDOoisM2WirfIjAlTQGtvNUbx8W0nVjSnm19LQlEK0hfw",
        challenge_signature: "gL1HLTfTtbEDAz6kJQrmSnpNzZVlBZQSvRM+Z47Az9+nwWZE+00p730/dmVyIuKHfXi1TNpFXhnjDrTmz6AaCg==",
      },
    },
    answer: {
      alert: {
        alert_entry_id: 279,
        compromised_fingerprint: "sha256:df6c4bfbc3b36cf7609d0dcc23f14d4f1dd2bbb1194f94d2d96ab489ed6790a4",
        endorser_fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
        reason: "The laptop with the key was stolen.",
        evidence: null,
        filed_at: "2025-01-02T00:07:00.000000Z",
      },
      log_entry: {
        id: 279,
        timestamp: "2025-01-02T00:07:00.000000Z",
        event_type: "endorser_revocation_alert",
        payload: {
          compromised_key_fingerprint: "sha256:df6c4bfbc3b36cf7609d0dcc23f14d4f1dd2bbb1194f94d2d96ab489ed6790a4",
          endorser_key_fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
          event_type: "endorser_revocation_alert",
          evidence: null,
          reason: "The laptop with the key was stolen.",
        },
        previous_hash: "3be95680ab3317834c197ec88a9e924354fd56898dd55bdafdaebeb3ce2dfd2e",
        entry_hash: "ac10f7f5a972f0d870ff8c7632fafb92d22c52d7fe4c8a1e98c8e2e45d0d7c4c",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "ac10f7f5a972f0d870ff8c7632fafb92d22c52d7fe4c8a1e98c8e2e45d0d7c4c",
            is_primary: true,
          },
        ],
      },
    },
  },
  get_endorsements_fingerprint: {
    params: { fingerprint: "sha256:df6c4bfbc3b36cf7609d0dcc23f14d4f1dd2bbb1194f94d2d96ab489ed6790a4" },
    answer: {
      endorsements: [
        {
          offer_entry_id: 276,
          endorser_fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
          endorsed_fingerprint: "sha256:df6c4bfbc3b36cf7609d0dcc23f14d4f1dd2bbb1194f94d2d96ab489ed6790a4",
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
    params: { fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a" },
    query: { status: "active" },
    answer: {
      endorsements: [
        {
          offer_entry_id: 276,
          endorser_fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
          endorsed_fingerprint: "sha256:df6c4bfbc3b36cf7609d0dcc23f14d4f1dd2bbb1194f94d2d96ab489ed6790a4",
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
    params: { fingerprint: "sha256:df6c4bfbc3b36cf7609d0dcc23f14d4f1dd2bbb1194f94d2d96ab489ed6790a4" },
    answer: {
      alerts: [
        {
          alert_entry_id: 279,
          compromised_fingerprint: "sha256:df6c4bfbc3b36cf7609d0dcc23f14d4f1dd2bbb1194f94d2d96ab489ed6790a4",
          endorser_fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
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
    params: { fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a" },
    query: { max_depth: 2 },
    answer: {
      root: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
      nodes: [
        {
          fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
          pseudonym: "Ada",
          status: "active",
          named: false,
          depth: 0,
        },
        {
          fingerprint: "sha256:df6c4bfbc3b36cf7609d0dcc23f14d4f1dd2bbb1194f94d2d96ab489ed6790a4",
          pseudonym: "Grace",
          status: "active",
          named: false,
          depth: 1,
        },
      ],
      edges: [
        {
          from: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
          to: "sha256:df6c4bfbc3b36cf7609d0dcc23f14d4f1dd2bbb1194f94d2d96ab489ed6790a4",
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
    params: { fingerprint: "sha256:df6c4bfbc3b36cf7609d0dcc23f14d4f1dd2bbb1194f94d2d96ab489ed6790a4" },
    answer: {
      fingerprint: "sha256:df6c4bfbc3b36cf7609d0dcc23f14d4f1dd2bbb1194f94d2d96ab489ed6790a4",
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
          fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
          category_weights: { "x-service:institutional_endorsement": 0.8 },
          decay_per_hop: 0.5,
          direct_signer_anchors: [
            { fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a", weight: 1 },
          ],
          endorser_anchors: [
            { fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a", weight: 0.9 },
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
      fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
      direct_signer_anchors: [
        { fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a", weight: 0.9 },
      ],
      minimum_threshold: 0.4,
      category_weights: { "x-service:institutional_endorsement": 0.8 },
    },
    answer: {
      id: 1,
      fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a", weight: 0.9 },
      ],
      max_depth: 4,
      minimum_threshold: 0.4,
      status: "active",
      created_at: "2025-01-02T00:07:00.000000Z",
    },
  },
  get_trust_configs_fingerprint: {
    params: { fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a" },
    answer: {
      id: 1,
      fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a", weight: 0.9 },
      ],
      max_depth: 4,
      minimum_threshold: 0.4,
      status: "active",
      created_at: "2025-01-02T00:07:00.000000Z",
    },
  },
  post_trust_configs_revoke: {
    body: { fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a" },
    answer: {
      id: 1,
      fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a", weight: 0.9 },
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
            id: "18f32e5d-c560-4402-92f9-9cfe6d7cf859",
            type: "authorship",
            scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
            signer_key_fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
            signature_algorithm: "ed25519",
            signature: "px25xKox0JxZ2d2Gx9JO+Qt6DcvCfQRRBmS+FPconhxGpMXSx8N/dOFDKUZKubcxaxOWuz/bzixgqf14BqkiAg==",
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
          id: "18f32e5d-c560-4402-92f9-9cfe6d7cf859",
          signer_key_fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
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
          { id: "18f32e5d-c560-4402-92f9-9cfe6d7cf859", kind: "attestation", type: "authorship", status: "valid" },
          {
            id: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
            kind: "key",
            pseudonym: "Ada",
            status: "active",
            named: false,
          },
        ],
        edges: [
          {
            from: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
            to: "18f32e5d-c560-4402-92f9-9cfe6d7cf859",
            kind: "signed",
          },
          {
            from: "18f32e5d-c560-4402-92f9-9cfe6d7cf859",
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
                id: "18f32e5d-c560-4402-92f9-9cfe6d7cf859",
                type: "authorship",
                scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                signer_key_fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
                signature_algorithm: "ed25519",
                signature: "px25xKox0JxZ2d2Gx9JO+Qt6DcvCfQRRBmS+FPconhxGpMXSx8N/dOFDKUZKubcxaxOWuz/bzixgqf14BqkiAg==",
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
                  id: "18f32e5d-c560-4402-92f9-9cfe6d7cf859",
                  type: "authorship",
                  scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                  signer_key_fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
                  signature_algorithm: "ed25519",
                  signature: "px25xKox0JxZ2d2Gx9JO+Qt6DcvCfQRRBmS+FPconhxGpMXSx8N/dOFDKUZKubcxaxOWuz/bzixgqf14BqkiAg==",
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
                  id: "18f32e5d-c560-4402-92f9-9cfe6d7cf859",
                  type: "authorship",
                  scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                  signer_key_fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
                  signature_algorithm: "ed25519",
                  signature: "px25xKox0JxZ2d2Gx9JO+Qt6DcvCfQRRBmS+FPconhxGpMXSx8N/dOFDKUZKubcxaxOWuz/bzixgqf14BqkiAg==",
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
                    id: "18f32e5d-c560-4402-92f9-9cfe6d7cf859",
                    type: "authorship",
                    scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                    signer_key_fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
                    signature_algorithm: "ed25519",
                    signature:
                      "px25xKox0JxZ2d2Gx9JO+Qt6DcvCfQRRBmS+FPconhxGpMXSx8N/dOFDKUZKubcxaxOWuz/bzixgqf14BqkiAg==",
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
        "eyJhdHRlc3RhdGlvbnMiOltdLCJkb2N1bWVudCI6eyJjb250ZW50X2hhc2giOiJzaGEyNTY6ZjNkNDJlYmY5NjU5YjE2MmUwYmE4YzQwMjM1OTQwMWRlN2VkOGMyODg0M2MwMWY2ZTBiZGIyMzhhY2Q4ZDAzYyIsInBhcnRzIjpbeyJjb250ZW50X2hhc2giOiJzaGEyNTY6NDk4NjNjYzg4YzcxZGU2NjI5MmE5ZjVmMmI5MzJkMWRmMGMxZWQxMDFlYzJiOTc4ODBkZTFhMTEzMzcwOTgxMCIsIm1hbmlmZXN0Ijp7ImF0dGVzdGF0aW9ucyI6W3siaWQiOiIxOGYzMmU1ZC1jNTYwLTQ0MDItOTJmOS05Y2ZlNmQ3Y2Y4NTkiLCJpbnRlbnRfc3RhdGVtZW50IjoiSSB3cm90ZSBpdC4iLCJzY29wZSI6eyJjb250ZW50X2hhc2giOiJzaGEyNTY6NDk4NjNjYzg4YzcxZGU2NjI5MmE5ZjVmMmI5MzJkMWRmMGMxZWQxMDFlYzJiOTc4ODBkZTFhMTEzMzcwOTgxMCJ9LCJzaWduYXR1cmUiOiJweDI1eEtveDBKeFoyZDJHeDlKTytRdDZEY3ZDZlFSUkJtUytGUGNvbmh4R3BNWFN4OE4vZE9GREtVWkt1YmN4YXhPV3V6L2J6aXhncWYxNEJxa2lBZz09Iiwic2lnbmF0dXJlX2FsZ29yaXRobSI6ImVkMjU1MTkiLCJzaWduZXJfa2V5X2ZpbmdlcnByaW50Ijoic2hhMjU2OjBmZmEyNjgwYWNhMjg0Y2NmNmNjOGRkZTcyZWE5NDk5ZjBkYWQwODNiYmM2MTg2MTU1MTJkMTgwOWU1Y2FkN2EiLCJ0aW1lc3RhbXAiOiIyMDI1LTAxLTAxVDAwOjA2OjAwLjAwMDAwMFoiLCJ0eXBlIjoiYXV0aG9yc2hpcCJ9XSwiZG9jdW1lbnQiOnsiY29udGVudF9oYXNoIjoic2hhMjU2OjQ5ODYzY2M4OGM3MWRlNjYyOTJhOWY1ZjJiOTMyZDFkZjBjMWVkMTAxZWMyYjk3ODgwZGUxYTExMzM3MDk4MTAiLCJ0YWdzIjpbInJlcG9ydCJdLCJ0aXRsZSI6IkFubnVhbCByZXBvcnQifX0sInJvbGUiOiJjaGFwdGVyIiwidGl0bGUiOiJSZXBvcnQifSx7ImNvbnRlbnRfaGFzaCI6InNoYTI1NjpmMzBjNTM0ZGE5NThhNzUzYWMyMGM2ZDVmZDQwNDFkZTRkOWFlMjQ5N2U3NDQwY2ZlMmQwMzRiMDBiNzFlZDEzIiwidGl0bGUiOiJBcHBlbmRpeCJ9XSwidGl0bGUiOiJSZXBvcnQgYW5kIGFwcGVuZGl4In19",
      manifest_hash: "a21a5421d83c8b39f3e44689f5a83e7681a1ba8013874f0c45797184713a09b0",
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
            attestation_id: "51343e37-1004-4845-953a-b5ab8626e3c2",
            attestation_type: "editorial_review",
            document_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810",
            document_title: "Annual report",
            intent_statement: null,
            manifest_hash: "07a3a261f09eccfd842bc0cc3b0f4d6489cff455701b173ccae85104b6b55285",
            signature:
              "MEQCIDyek14UrOPetITzCNnqgvHIdl0IcVjAqE6fWs6vmT2+AiByLqoUrs/kk8FDNnDJZtOWa1UmFllUNmL2Jfd88TQY9g==",
            signature_algorithm: "ecdsa-p256",
            signer_key_fingerprint: "sha256:df6c4bfbc3b36cf7609d0dcc23f14d4f1dd2bbb1194f94d2d96ab489ed6790a4",
            tags: ["report"],
            timestamp: "2025-01-01T00:06:00.000000Z",
          },
          previous_hash: "7cd2d96e6df6021980179028b6b218d2bb18b263110db1fe825262643d457dfc",
          entry_hash: "a6103de2caf8e95adf02e71d780ff45df1969dafab6aa3c5c2bd04ec97eebf77",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "a6103de2caf8e95adf02e71d780ff45df1969dafab6aa3c5c2bd04ec97eebf77",
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
          "BEhwefn51g2Ywy3/CpD1fmAn4NaBQqsy9rLTeQumR3awal43YBYr1bO5jj5KCuuH5mlog6vKcfTtFDrn98zzOL8=",
        commitment: "cbab5ce43b36bbdf7a28c7d924c739230f80043a5b8016dc4cabd09ae7453c34",
        lookup_key: "372e42015b50bdf6031362f8c290196354920981ec7a915b64774f70f1cc51f9",
        nonce: "vUilNJelthty8DVa",
        ciphertext: "4zjLlahbcspeco3O3c74W2epya/pJcF1qhCy3hxjpiPtwrX+0BEh5OTnwkoTVJWqWPkk",
        recipient_fingerprint: "sha256:423b066414f9e5a032585ade6e69ecd92b6842c39f59d8f33b631d01e68ed0d5",
      },
    },
    answer: {
      entry_id: 287,
      commitment: "cbab5ce43b36bbdf7a28c7d924c739230f80043a5b8016dc4cabd09ae7453c34",
      lookup_key: "372e42015b50bdf6031362f8c290196354920981ec7a915b64774f70f1cc51f9",
      leaf_index: 286,
      log_entry_id: 287,
    },
  },
  get_claims: {
    query: { lookup_key: "372e42015b50bdf6031362f8c290196354920981ec7a915b64774f70f1cc51f9" },
    answer: {
      entries: [
        {
          id: 287,
          timestamp: "2025-01-02T00:07:00.000000Z",
          event_type: "encrypted_claim",
          payload: {
            ciphertext: "4zjLlahbcspeco3O3c74W2epya/pJcF1qhCy3hxjpiPtwrX+0BEh5OTnwkoTVJWqWPkk",
            commitment: "cbab5ce43b36bbdf7a28c7d924c739230f80043a5b8016dc4cabd09ae7453c34",
            commitment_alg: "hmac-sha256-ecdh-v1",
            ephemeral_public_key:
              "BEhwefn51g2Ywy3/CpD1fmAn4NaBQqsy9rLTeQumR3awal43YBYr1bO5jj5KCuuH5mlog6vKcfTtFDrn98zzOL8=",
            event_type: "encrypted_claim",
            lookup_key: "372e42015b50bdf6031362f8c290196354920981ec7a915b64774f70f1cc51f9",
            nonce: "vUilNJelthty8DVa",
            recipient_fingerprint: "sha256:423b066414f9e5a032585ade6e69ecd92b6842c39f59d8f33b631d01e68ed0d5",
          },
          previous_hashes: [
            { algorithm: "sha2-256", digest_hex: "4fed7e2076dc422e49799635ede631a81e6ecd551ee6e4bf0032a3bf474498bb" },
          ],
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "339295f8b8b7c24423080c25f70cac8796ef9c63345e9ff833bbe4609f31e5d0",
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
      ciphertext: "4zjLlahbcspeco3O3c74W2epya/pJcF1qhCy3hxjpiPtwrX+0BEh5OTnwkoTVJWqWPkk",
      commitment: "cbab5ce43b36bbdf7a28c7d924c739230f80043a5b8016dc4cabd09ae7453c34",
      commitment_alg: "hmac-sha256-ecdh-v1",
      ephemeral_public_key: "BEhwefn51g2Ywy3/CpD1fmAn4NaBQqsy9rLTeQumR3awal43YBYr1bO5jj5KCuuH5mlog6vKcfTtFDrn98zzOL8=",
      lookup_key: "372e42015b50bdf6031362f8c290196354920981ec7a915b64774f70f1cc51f9",
      nonce: "vUilNJelthty8DVa",
      recipient_fingerprint: "sha256:423b066414f9e5a032585ade6e69ecd92b6842c39f59d8f33b631d01e68ed0d5",
    },
  },
  post_claims_entry_id_reveal: {
    params: { entry_id: 287 },
    body: {
      plaintext: { salary: 52000, name: "Zoë 🪨" },
      commitment_key: "9746d35a1dce1985f52eb18fc532cfa0dd116ff96c533f36d273ab61b17f84b0",
    },
    answer: { valid: true },
  },
  get_log_attestation_requests: {
    query: { target: "sha256:df6c4bfbc3b36cf7609d0dcc23f14d4f1dd2bbb1194f94d2d96ab489ed6790a4", status: "open" },
    answer: {
      requests: [
        {
          request_id: "fab58547-e27a-4b39-bf75-b089070a2d05",
          requester_fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
          target_fingerprint: "sha256:df6c4bfbc3b36cf7609d0dcc23f14d4f1dd2bbb1194f94d2d96ab489ed6790a4",
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
      target_fingerprint: "sha256:df6c4bfbc3b36cf7609d0dcc23f14d4f1dd2bbb1194f94d2d96ab489ed6790a4",
      attestation_type: "peer_review",
      nonce: "request-2025-0001",
      intent_statement: "Please review the annual report.",
      claims: { document_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
    },
    answer: {
      request_id: "fab58547-e27a-4b39-bf75-b089070a2d05",
      requester_fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
      target_fingerprint: "sha256:df6c4bfbc3b36cf7609d0dcc23f14d4f1dd2bbb1194f94d2d96ab489ed6790a4",
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
    params: { request_id: "fab58547-e27a-4b39-bf75-b089070a2d05" },
    answer: {
      request_id: "fab58547-e27a-4b39-bf75-b089070a2d05",
      requester_fingerprint: "sha256:0ffa2680aca284ccf6cc8dde72ea9499f0dad083bbc618615512d1809e5cad7a",
      target_fingerprint: "sha256:df6c4bfbc3b36cf7609d0dcc23f14d4f1dd2bbb1194f94d2d96ab489ed6790a4",
      attestation_type: "peer_review",
      status: "declined",
      deadline: "2025-01-16T00:07:00.000000Z",
      created_at: "2025-01-02T00:07:00.000000Z",
      log_entry_id: 284,
      leaf_index: 283,
      responses: [
        {
          decision: "decline",
          responder_fingerprint: "sha256:df6c4bfbc3b36cf7609d0dcc23f14d4f1dd2bbb1194f94d2d96ab489ed6790a4",
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
        responder_fingerprint: "sha256:df6c4bfbc3b36cf7609d0dcc23f14d4f1dd2bbb1194f94d2d96ab489ed6790a4",
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
    params: { fingerprint: "sha256:df6c4bfbc3b36cf7609d0dcc23f14d4f1dd2bbb1194f94d2d96ab489ed6790a4" },
    answer: {
      target_fingerprint: "sha256:df6c4bfbc3b36cf7609d0dcc23f14d4f1dd2bbb1194f94d2d96ab489ed6790a4",
      active: {
        target_fingerprint: "sha256:df6c4bfbc3b36cf7609d0dcc23f14d4f1dd2bbb1194f94d2d96ab489ed6790a4",
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
    params: { request_id: "fab58547-e27a-4b39-bf75-b089070a2d05" },
    body: { decision: "decline", reason: "No time before summer." },
    answer: {
      request_id: "fab58547-e27a-4b39-bf75-b089070a2d05",
      status: "declined",
      responder_fingerprint: "sha256:df6c4bfbc3b36cf7609d0dcc23f14d4f1dd2bbb1194f94d2d96ab489ed6790a4",
      decision: "decline",
      attestation_id: null,
      reason: "No time before summer.",
      log_entry_id: 285,
      leaf_index: 284,
    },
  },
  post_log_request_policies: {
    body: {
      target_fingerprint: "sha256:df6c4bfbc3b36cf7609d0dcc23f14d4f1dd2bbb1194f94d2d96ab489ed6790a4",
      predicates: { all: [{ field: "attestation_type", op: "in", value: ["peer_review", "editorial_review"] }] },
      default_action_on_failure: "decline",
    },
    answer: {
      target_fingerprint: "sha256:df6c4bfbc3b36cf7609d0dcc23f14d4f1dd2bbb1194f94d2d96ab489ed6790a4",
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
          request_id: "fab58547-e27a-4b39-bf75-b089070a2d05",
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
      request_id: "fab58547-e27a-4b39-bf75-b089070a2d05",
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

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
      vkey: "cairnlog/04436cd2202e1fea/tlog+b76accda+AexrMDf1ujSABqf979Q+P7+szDD35lO2ZdYjhG1tmQhr",
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
      key_fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
      device_label: "Security key",
    },
    answer: {
      user: {
        id: "a4764490-65a4-44c5-86c9-6cc941673549",
        display_name: "Ada Lovelace",
        created_at: "2025-01-01T00:00:00.000000Z",
      },
      credential: {
        id: "df8c3058-28a2-4c4a-af19-e08dbe84b2a6",
        key_fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
        credential_type: "hardware",
        device_label: "Security key",
        status: "active",
        created_at: "2025-01-01T00:00:00.000000Z",
        revoked_at: null,
        hardware_backed: true,
      },
      recovery_key: "N0J9Y-J4H4H-2BF9K-WPSDF-60HGB-GW6CY-3XJJ0-0JPH8",
    },
  },
  post_users_recover: {
    body: {
      pseudonym: "Ada Lovelace",
      recovery_key: "N0J9Y-J4H4H-2BF9K-WPSDF-60HGB-GW6CY-3XJJ0-0JPH8",
      credential_type: "hardware",
      key_fingerprint: "sha256:5ec52cc73faf088e8578ba7ea2ff8c1560c0e277aec46ef3c67d56ddd075c389",
      device_label: "Security key",
    },
    answer: {
      user: {
        id: "a4764490-65a4-44c5-86c9-6cc941673549",
        display_name: "Ada Lovelace",
        created_at: "2025-01-01T00:00:00.000000Z",
      },
      credential: {
        id: "a9942244-8ff7-4bee-a212-4ff681b5c169",
        key_fingerprint: "sha256:5ec52cc73faf088e8578ba7ea2ff8c1560c0e277aec46ef3c67d56ddd075c389",
        credential_type: "hardware",
        device_label: "Security key",
        status: "active",
        created_at: "2025-01-01T00:06:00.000000Z",
        revoked_at: null,
        hardware_backed: true,
      },
      recovery_key: "VBYKH-PY737-SA0NC-FJ9GP-R7TFJ-AP0A0-SR2M2-8M4NW",
      revoked_credentials: 2,
    },
  },
  post_credentials_enroll: {
    body: {
      challenge_id:
        "AQEABiqZy-4DAML4g6OT-Me5dMVqZyVM-FECse2byd0ybZL07moX3YAKGRugTikxjjs20hIqg6JoAMW9PptCQSUCysf5hzOMuwWUOOxS9ozf6V92KRgwtSXuEaGwdCDsMdJYRxA62smyQQ",
      issuing_fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
      key_fingerprint: "sha256:c2f883a393f8c7b974c56a67254cf85102b1ed9bc9dd326d92f4ee6a17dd800a",
      credential_type: "hardware",
      device_label: "Second security key",
      challenge_signature: "9qJsEOvGwHAEUw/MP+vn1nSHFLKlRXGxlsZMc+CI89fL7VPMJIe2gHKiomxgyhElfb+o/JSgJFpSZ/gZTavWAQ==",
      chain_signature: "M68gcbjxiCUVCjWBBGXOkrLIC/DtPBKd4p6+y3RfeQkqnALFu4hueCjCJfDlgec16iHPOJ2b1bPQulrUSGstDg==",
    },
    answer: {
      credential: {
        id: "a1a15ba9-8706-4459-b4f5-19501f9719f5",
        key_fingerprint: "sha256:c2f883a393f8c7b974c56a67254cf85102b1ed9bc9dd326d92f4ee6a17dd800a",
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
          fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
          pseudonym: "Ada",
          algorithm: "ed25519",
          status: "active",
          registered_at: "2025-01-01T00:00:00.000000Z",
          expires_at: null,
          named: false,
        },
        {
          fingerprint: "sha256:f509d484fe77ca9fbce41ebda031a3dc1ad7f42e6bb6e962cd4705e2e0f4a30e",
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
          fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
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
    params: { fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9" },
    answer: {
      fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
      public_key:
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA3vMlotNGWiM0sfVYNBlYn+maiuKzp2/IqTnBL8R1nrc=\n-----END PUBLIC KEY-----\n",
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
    params: { fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9" },
    answer: {
      fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
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
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA3vMlotNGWiM0sfVYNBlYn+maiuKzp2/IqTnBL8R1nrc=\n-----END PUBLIC KEY-----\n",
        pseudonym: "Ada",
        key_algorithm: "ed25519",
      },
    },
    answer: {
      fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
      pseudonym: "Ada",
      algorithm: "ed25519",
      log_entry_id: 1,
      leaf_index: 0,
      entry_hash: "99e2575c2d41fef196ab7fe4754b2b57280f307bea80011dbe6e8e0de09d50ec",
    },
  },
  post_keys_succeed: {
    body: {
      payload: {
        old_fingerprint: "sha256:de7d11dfacdfbe57e415e9443626275da6ce3fb22a37cfb4a5796531d75cd9f9",
        new_public_key:
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA3hA4AJF8lFAs+WUOKO7gqBeyFB2NnpEGSsaGnZ4fQRc=\n-----END PUBLIC KEY-----\n",
        new_algorithm: "ed25519",
      },
      auth: {
        challenge_id:
          "AQEABiqZy-4DAN59Ed-s375X5BXpRDYmJ12mzj-yKjfPtKV5ZTHXXNn57exXexA8viuS6UecFPJzWwuvH1ruWMVJzdkIZOWLOiFCjgvmze49yOEluSbDl-mAstGxWkVF_p088dOl8h82eg",
        challenge_signature: "5Zs3UuR8DpPWDRLb5iTvdYfeMQ2v9iDEj5o89PHQjwBKrFA5hSzeWro22KtXXannEUAFKYb8GZbZDAIQskqjCg==",
      },
    },
    answer: {
      old_fingerprint: "sha256:de7d11dfacdfbe57e415e9443626275da6ce3fb22a37cfb4a5796531d75cd9f9",
      new_fingerprint: "sha256:4037134d6d80cbf2c53a372a82ddab1dc460c9ca78d3c1b3fcf75d06034a6e77",
      log_entry_id: 5,
      leaf_index: 4,
      entry_hash: "e857fd81dcab1aa95584faa5f920f709b56b73f55952043ddfb753f404a99ee9",
    },
  },
  post_keys_revoke: {
    body: {
      payload: { fingerprint: "sha256:4037134d6d80cbf2c53a372a82ddab1dc460c9ca78d3c1b3fcf75d06034a6e77" },
      auth: {
        challenge_id:
          "AQEABiqZy-4DAEA3E01tgMvyxTo3KoLdqx3EYMnKeNPBs_z3XQYDSm53uplcM_MmtmYDxVRz6TFoS1wecuWKSifgp-1jlsJP57zt_0KqlZX0NbwMGXxt_nnRD8Int6WKdJiyDhlvbGIJ-Q",
        challenge_signature: "8ZaboMYNEq8ceChErewKXiuxovvWddL9Nsj88o4Y6RjjnDJxn6vEbRcDiG9FsrBPgs2HdwM43cOq8/kGyQKLAg==",
      },
    },
    answer: {
      fingerprint: "sha256:4037134d6d80cbf2c53a372a82ddab1dc460c9ca78d3c1b3fcf75d06034a6e77",
      status: "revoked",
      log_entry_id: 6,
      leaf_index: 5,
      entry_hash: "7256a16c79c52deed019f8a2ce86a703afd8ad35af34420094b50123f85d4892",
    },
  },
  post_auth_challenge: {
    body: { fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9", purpose: "login" },
    answer: {
      challenge_id:
        "AQAABiqZy-4DANla1HOVxMYZjyPYgOY04Hrr4sPV5NMmQBtY-C0kD9XZJ2DvSW5EGK0fH1fQMx74EoEvF3j9nPdYEB-MiB3VhVTpKRGk8_MNs3S_D0lVzxA2TJ-Bo8ZxvgeZFdR5W1TAEA",
      nonce:
        "service.auth.v1:login:sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9:J2DvSW5EGK0fH1fQMx74EoEvF3j9nPdYEB-MiB3VhVQ",
      expires_at: "2025-01-01T00:05:00.000000Z",
      origin: "http://127.0.0.1:52433",
      act: null,
    },
  },
  post_auth_login: {
    body: {
      challenge_id:
        "AQAABiqZy-4DANla1HOVxMYZjyPYgOY04Hrr4sPV5NMmQBtY-C0kD9XZJ2DvSW5EGK0fH1fQMx74EoEvF3j9nPdYEB-MiB3VhVTpKRGk8_MNs3S_D0lVzxA2TJ-Bo8ZxvgeZFdR5W1TAEA",
      challenge_signature: "ZqYbhZ4tS+OqBMbnAHGNrYUrjGRvl18YbmTJKDSkJhKYJAOtOYEJPe/FcvWm1RZJJZ6PjWk2BZyOBatCZ7shAw==",
    },
    answer: {
      token:
        "eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzaGEyNTY6MDQ0MzZjZDIyMDJlMWZlYTliOGEyMDIzM2RhZjYxMzFhMzcxMDVhYTQ2MzhjNzEzMDk1M2MzYTVmMWU4NGE5MSIsInN1YiI6InNoYTI1NjpkOTVhZDQ3Mzk1YzRjNjE5OGYyM2Q4ODBlNjM0ZTA3YWViZTJjM2Q1ZTRkMzI2NDAxYjU4ZjgyZDI0MGZkNWQ5IiwiaWF0IjoxNzM1Njg5NjAwLCJleHAiOjE3MzU2OTMyMDAsImp0aSI6ImRmZWYyM2I2LTFiNmItNDFhZS04Yjc3LTYzYjczZDBkNjU0MCIsInBzZXVkb255bSI6IkFkYSIsInJlY292ZXJ5IjpmYWxzZSwiYXV0aF90aW1lIjoxNzM1Njg5NjAwfQ.QP1dJDfIpuUMCwLfNXwWvb7PYUWFEyWmaGdCkN8ItwJ-ZfUExKuksFbELFhCX_YhE0FpBTr9v3R4uXElaUK_AA",
      fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
      pseudonym: "Ada",
      expires_at: "2025-01-01T01:00:00.000000Z",
    },
  },
  post_auth_renew: {
    answer: {
      token:
        "eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzaGEyNTY6MDQ0MzZjZDIyMDJlMWZlYTliOGEyMDIzM2RhZjYxMzFhMzcxMDVhYTQ2MzhjNzEzMDk1M2MzYTVmMWU4NGE5MSIsInN1YiI6InNoYTI1NjpkOTVhZDQ3Mzk1YzRjNjE5OGYyM2Q4ODBlNjM0ZTA3YWViZTJjM2Q1ZTRkMzI2NDAxYjU4ZjgyZDI0MGZkNWQ5IiwiaWF0IjoxNzM1Njg5NjAwLCJleHAiOjE3MzU2OTMyMDAsImp0aSI6IjBmMzQ1NjI2LTFiYTAtNDNkMC05MzI5LTE4OGMwOTNlMDA2MCIsInBzZXVkb255bSI6IkFkYSIsInJlY292ZXJ5IjpmYWxzZSwiYXV0aF90aW1lIjoxNzM1Njg5NjAwfQ._J8DYKcVVu8zQAuLFqnHv87s2RBtHqFKKxVPfESEvC2VpU-EPl7R-aHzQt9ESIURFhaMXFKGu-a44Mr59R_5AA",
      fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
      pseudonym: "Ada",
      expires_at: "2025-01-01T01:00:00.000000Z",
    },
  },
  post_auth_password: {
    body: {
      challenge_id:
        "AQEABiqZy-4DAIX2pO5iop2db0CQvo-IntM7p4IQjnaZ6W4wJF8NrVAtJN9snpzzPTGfTaksA4ydgtf-n-KRHi2xnCKkfZsaJ7TIUjIWAaPdlm6Bzvk-70xzV6z56oKYGr6LarnY009tjg",
      challenge_signature: "bxU/XE2Bu9x6Q8G0bYH2L37gf31jBAAoddYHNjLNwNP896v+ZPpDbsPx5jhtf/SmyOLZdpRhiMF1JungLWVjDg==",
      password: "correct horse battery",
    },
    answer: {
      fingerprint: "sha256:85f6a4ee62a29d9d6f4090be8f889ed33ba782108e7699e96e30245f0dad502d",
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
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA3vMlotNGWiM0sfVYNBlYn+maiuKzp2/IqTnBL8R1nrc=\n-----END PUBLIC KEY-----\n",
      signature: "oUPpxegqyfzlAiwVLEZDqmlAo8f9cBzQbknmA8bcmbCUl/5PQy7440HS9AjCukgAdCfs1FzX2d0WQaXYbY0lCw==",
      intent_statement: "I wrote it.",
    },
    answer: {
      attestation: {
        id: "58d54d7c-bf74-44db-863d-c1a7d5d3decd",
        type: "authorship",
        scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
        signer_key_fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
        signature_algorithm: "ed25519",
        signature: "oUPpxegqyfzlAiwVLEZDqmlAo8f9cBzQbknmA8bcmbCUl/5PQy7440HS9AjCukgAdCfs1FzX2d0WQaXYbY0lCw==",
        timestamp: "2025-01-01T00:06:00.000000Z",
        intent_statement: "I wrote it.",
      },
      fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
      pseudonym: "Ada",
      log_entry_id: 13,
      leaf_index: 12,
      entry_hash: "ca5d17d629f53609d5fbe15ed922a5fd9519fab631aa1408cfe32a0d72a6aa65",
      manifest_hash: "38f0c85d6331fd79023d1cd40a3908b665272ec2077277686ac55af17b1b6494",
      sth: {
        tree_size: 13,
        root_hash: "13b354c97c12d156a76d9e83ee624a166542b6848ce999089264d4a3bcd36212",
        signature: "BeTr3gBCDIKgLgNgSaOycGbn2C4y3eNgfMOi+G7yBYv/1wOXUjiFCIkJBKkG3JqDGOCfR1FZO0A39giqeCH6AQ==",
        timestamp: "2025-01-01T00:06:00.000000Z",
        key_id: "sha256:04436cd2202e1fea9b8a20233daf6131a37105aa4638c7130953c3a5f1e84a91",
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
            "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA3vMlotNGWiM0sfVYNBlYn+maiuKzp2/IqTnBL8R1nrc=\n-----END PUBLIC KEY-----\n",
          signature: "zNz3FM9gJ0Byr4HwVBxqluG0rY5eF9wfHdhhB4vKdpT8yuFJvFVi3oei2rvMRFGx6vxT6rNlQC4BfXErgCb9Ag==",
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
            "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA3vMlotNGWiM0sfVYNBlYn+maiuKzp2/IqTnBL8R1nrc=\n-----END PUBLIC KEY-----\n",
          signature: "Z92QAJsSfQtVoTpW+oyzXGrG+6kTLgwl5Ckh87xq4pwo7J8qukkrTMKr7/odHa7Md3Zl8ARBtmgok+rNXignBQ==",
        },
      ],
    },
    answer: {
      results: [
        {
          status: 201,
          receipt: {
            attestation: {
              id: "782a88c4-73aa-4cd7-98cc-67817e844402",
              type: "authorship",
              scope: { content_hash: "sha256:c74e517559a5ed1b9f8f47889125b5d6b84df309d173fee85585b4c045f5214b" },
              signer_key_fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
              signature_algorithm: "ed25519",
              signature: "zNz3FM9gJ0Byr4HwVBxqluG0rY5eF9wfHdhhB4vKdpT8yuFJvFVi3oei2rvMRFGx6vxT6rNlQC4BfXErgCb9Ag==",
              timestamp: "2025-01-01T00:06:00.000000Z",
            },
            fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
            pseudonym: "Ada",
            log_entry_id: 14,
            leaf_index: 13,
            entry_hash: "30590f4745860b2e9eafd190e990f0f3750baa39e99b475e59ff1004a82faf0c",
            manifest_hash: "25367d2d820f2cc8ef80c557f5e4b35bef45d435ae93ee6e3aeffc3e00a05c0e",
            sth: {
              tree_size: 14,
              root_hash: "2d5cd2147e3755793f6df460936ff818294540f49806771a7781be074c53ae66",
              signature: "my7s1EjaKA63lC9X/D0cKdabY4O60COuBzLV7A9VMr75rNr4H3iRqn002qEJM5TiBpt2QdZ+fzjAIX8byMJMDA==",
              timestamp: "2025-01-01T00:06:00.000000Z",
              key_id: "sha256:04436cd2202e1fea9b8a20233daf6131a37105aa4638c7130953c3a5f1e84a91",
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
        "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEQ93SMERGQm2C+GPMfGFTwU8axcUS\nsVfm6V3B+sGUFI+L3ND9L0kN5iH4ad5l18TqSQnPPQKiJ8Ksk10CTXUhdQ==\n-----END PUBLIC KEY-----\n",
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
        entry_hash: "27a40f23878ce516aa2941e0e5a4d88f964b6ca0733b7617a44f0504e7745f4e",
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
        fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
        key_algorithm: "ed25519",
        possession_signature: null,
        pseudonym: "Ada",
        public_key:
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA3vMlotNGWiM0sfVYNBlYn+maiuKzp2/IqTnBL8R1nrc=\n-----END PUBLIC KEY-----\n",
      },
      previous_hash: null,
      entry_hash: "99e2575c2d41fef196ab7fe4754b2b57280f307bea80011dbe6e8e0de09d50ec",
      chain_version: 2,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "99e2575c2d41fef196ab7fe4754b2b57280f307bea80011dbe6e8e0de09d50ec",
          is_primary: true,
        },
      ],
    },
  },
  get_log_sth: {
    answer: {
      tree_size: 15,
      root_hash: "3c1a36fc03ef5d93cd482a47651adf4aa0251a4e4d21a9d664f0c27ad9ade028",
      signature: "JGvkqy2yyw7niqFha+ORYc01gZW7UeIAVOVoVSXMdnguB9IqCQv7SuIief0sxbhh3X0zkaeOl43Xi6WWDUsfBg==",
      timestamp: "2025-01-01T00:06:00.000000Z",
      key_id: "sha256:04436cd2202e1fea9b8a20233daf6131a37105aa4638c7130953c3a5f1e84a91",
      tree_version: 2,
    },
  },
  get_log_sth_tree_size: {
    params: { tree_size: 3 },
    answer: {
      tree_size: 3,
      root_hash: "5dce3d596fbbd65525f45ce2577ea73aac228a24e5d8d2ccbf3e2dd3596e84d5",
      signature: "FXxvCBqgv+4qGlKKIrmT6Q23+oTA+q9eQ0OlUtlG4JfDOaZYmKc+WlUBfEXhY3rOoB2T58Hp2lpbP+SZIsuHAA==",
      timestamp: "2025-01-01T00:00:00.000000Z",
      key_id: "sha256:04436cd2202e1fea9b8a20233daf6131a37105aa4638c7130953c3a5f1e84a91",
      tree_version: 2,
    },
  },
  get_log_heads: {
    query: { from: 3, limit: 1 },
    answer: {
      heads: [
        {
          tree_size: 3,
          root_hash: "5dce3d596fbbd65525f45ce2577ea73aac228a24e5d8d2ccbf3e2dd3596e84d5",
          signature: "FXxvCBqgv+4qGlKKIrmT6Q23+oTA+q9eQ0OlUtlG4JfDOaZYmKc+WlUBfEXhY3rOoB2T58Hp2lpbP+SZIsuHAA==",
          timestamp: "2025-01-01T00:00:00.000000Z",
          key_id: "sha256:04436cd2202e1fea9b8a20233daf6131a37105aa4638c7130953c3a5f1e84a91",
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
      leaf_hash: "209a6834570389c6222b6f0045cb416a3f9e8ccc62a160ce8b118ec70c7990df",
      root_hash: "5874d091796c8cdfbca4aa1efdba576fb916015f5704ae6967e8849ab526f980",
      audit_path: [
        "592231e0cd8466985c9b1e07a3072aba60dc5ce60d70cb511cd02e7b7454731c",
        "17f7f6f01506eb5dd9c262170b381067584a69eece6c3e850b958a692101fbb9",
        "e977c25a06009ec04498ff7c50b0cc6914852131f1f8018cdee3c7483b39c5b0",
      ],
      entry_hash: "f331d198dbbff00fd5ef650acf2ed442b07c5903cb9b8b5720dd6d3c5301f45b",
      sth: {
        tree_size: 5,
        root_hash: "5874d091796c8cdfbca4aa1efdba576fb916015f5704ae6967e8849ab526f980",
        signature: "ZTgp/bsJcGgYpjrA+OU9I3pjKIMuRwsBRRmzg1rH27hYG/C1Yfn+x+G5eaZVob/ta1OR7sz3Z7SkZBaAiWFfDg==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:04436cd2202e1fea9b8a20233daf6131a37105aa4638c7130953c3a5f1e84a91",
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
      leaf_hash: "209a6834570389c6222b6f0045cb416a3f9e8ccc62a160ce8b118ec70c7990df",
      root_hash: "5874d091796c8cdfbca4aa1efdba576fb916015f5704ae6967e8849ab526f980",
      audit_path: [
        "592231e0cd8466985c9b1e07a3072aba60dc5ce60d70cb511cd02e7b7454731c",
        "17f7f6f01506eb5dd9c262170b381067584a69eece6c3e850b958a692101fbb9",
        "e977c25a06009ec04498ff7c50b0cc6914852131f1f8018cdee3c7483b39c5b0",
      ],
      entry_hash: "f331d198dbbff00fd5ef650acf2ed442b07c5903cb9b8b5720dd6d3c5301f45b",
      sth: {
        tree_size: 5,
        root_hash: "5874d091796c8cdfbca4aa1efdba576fb916015f5704ae6967e8849ab526f980",
        signature: "ZTgp/bsJcGgYpjrA+OU9I3pjKIMuRwsBRRmzg1rH27hYG/C1Yfn+x+G5eaZVob/ta1OR7sz3Z7SkZBaAiWFfDg==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:04436cd2202e1fea9b8a20233daf6131a37105aa4638c7130953c3a5f1e84a91",
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
      from_root: "5dce3d596fbbd65525f45ce2577ea73aac228a24e5d8d2ccbf3e2dd3596e84d5",
      to_root: "9d8a715c2b4950f7a8b14e221ae5fe84fedf6b45960f1a369fdc6a363e427825",
      peaks: [
        "17f7f6f01506eb5dd9c262170b381067584a69eece6c3e850b958a692101fbb9",
        "209a6834570389c6222b6f0045cb416a3f9e8ccc62a160ce8b118ec70c7990df",
      ],
      extension: [
        "592231e0cd8466985c9b1e07a3072aba60dc5ce60d70cb511cd02e7b7454731c",
        "a99fde97190c47b11d427ace878efc042147e03b10b2615ee12df53e868c73d7",
      ],
      from_sth: {
        tree_size: 3,
        root_hash: "5dce3d596fbbd65525f45ce2577ea73aac228a24e5d8d2ccbf3e2dd3596e84d5",
        signature: "FXxvCBqgv+4qGlKKIrmT6Q23+oTA+q9eQ0OlUtlG4JfDOaZYmKc+WlUBfEXhY3rOoB2T58Hp2lpbP+SZIsuHAA==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:04436cd2202e1fea9b8a20233daf6131a37105aa4638c7130953c3a5f1e84a91",
        tree_version: 2,
      },
      to_sth: {
        tree_size: 6,
        root_hash: "9d8a715c2b4950f7a8b14e221ae5fe84fedf6b45960f1a369fdc6a363e427825",
        signature: "pkTdb4diec8qZb1yZT4GWGoXUee0Xj2XbDjsebFhTs+Ec+HywFmcC8X7TQklAwuvE1i8iO1rOgKwTCo5aC2HDw==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:04436cd2202e1fea9b8a20233daf6131a37105aa4638c7130953c3a5f1e84a91",
        tree_version: 2,
      },
    },
  },
  post_log_verify: { answer: { valid: true, entry_count: 15, errors: [], warnings: [] } },
  get_log_operator_key: {
    answer: {
      fingerprint: "sha256:04436cd2202e1fea9b8a20233daf6131a37105aa4638c7130953c3a5f1e84a91",
      algorithm: "ed25519",
      public_key:
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA7GswN/W6NIAGp/3v1D4/v6zMMPfmU7Zl1iOEbW2ZCGs=\n-----END PUBLIC KEY-----\n",
      operators: [
        {
          key_id: "sha256:04436cd2202e1fea9b8a20233daf6131a37105aa4638c7130953c3a5f1e84a91",
          algorithm: "ed25519",
          public_key:
            "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA7GswN/W6NIAGp/3v1D4/v6zMMPfmU7Zl1iOEbW2ZCGs=\n-----END PUBLIC KEY-----\n",
          from_size: 1,
          until_size: null,
          rotation: null,
        },
      ],
    },
  },
  get_log_checkpoint: {
    answer:
      "cairnlog/04436cd2202e1fea\n15\nPBo2/APvXZPNSCpHZRrfSqAlGk5NIanWZPDCetmt4Cg=\n\n— cairnlog/04436cd2202e1fea A00sFbH5SDRm0ujOgp1y1MqTf7iMw0t6qmOHvLoZYcjqsGVbMK6BZuvl80B5VukGEpqamA3u7h5GKysvc6X96ZAekwQ=\n",
  },
  get_log_tile_version_level_index: { params: { version: 2, level: 0, index: 0 } },
  get_log_tile_version_level_index_p_width: { params: { version: 2, level: 0, index_p: "1.p", width: 4 } },
  get_tlog_checkpoint: {
    answer:
      "cairnlog/04436cd2202e1fea/tlog\n15\ngQe3caMipJswa8y1fxnUf+quU4rHNIIZKYFZVjGo/ew=\n\n— cairnlog/04436cd2202e1fea/tlog t2rM2meKk2AA6hYE/WwXFYvl2B5BByjskjNEVNCn1PmJxS9MPeq+WQtJhqB6hzHBMC2xBSYLAcmb4ISnEUEtOUzTbQY=\n",
  },
  get_tlog_vkey: { answer: "cairnlog/04436cd2202e1fea/tlog+b76accda+AexrMDf1ujSABqf979Q+P7+szDD35lO2ZdYjhG1tmQhr\n" },
  get_tlog_tile_level_n1: { params: { level: "entries", n1: "000" } },
  get_tlog_tile_level_n1_n2: { params: { level: "1", n1: "000.p", n2: "1" } },
  post_log_anchor: {
    answer: {
      anchored_entry_id: 15,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "27a40f23878ce516aa2941e0e5a4d88f964b6ca0733b7617a44f0504e7745f4e",
          is_primary: true,
        },
      ],
      ots_proof:
        "AE9wZW5UaW1lc3RhbXBzAABQcm9vZgC/ieLohOiSlAEIJ6QPI4eM5RaqKUHg5aTYj5ZLbKBzO3YXpE8FBOd0X07wEILLOsRjgF+iUgcroNouCw8I8QRlAAAA8AhFHvaHATIVTgCD3+MNLvkMjh0caHR0cHM6Ly9jYWxlbmRhci5leGFtcGxlLm9yZw==",
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
      root_hash: "3c1a36fc03ef5d93cd482a47651adf4aa0251a4e4d21a9d664f0c27ad9ade028",
      signature: "JGvkqy2yyw7niqFha+ORYc01gZW7UeIAVOVoVSXMdnguB9IqCQv7SuIief0sxbhh3X0zkaeOl43Xi6WWDUsfBg==",
      timestamp: "2025-01-01T00:06:00.000000Z",
      key_id: "sha256:04436cd2202e1fea9b8a20233daf6131a37105aa4638c7130953c3a5f1e84a91",
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
            fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
            key_algorithm: "ed25519",
            possession_signature: null,
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA3vMlotNGWiM0sfVYNBlYn+maiuKzp2/IqTnBL8R1nrc=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "99e2575c2d41fef196ab7fe4754b2b57280f307bea80011dbe6e8e0de09d50ec",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "99e2575c2d41fef196ab7fe4754b2b57280f307bea80011dbe6e8e0de09d50ec",
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
    params: { fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9" },
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
            fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
            key_algorithm: "ed25519",
            possession_signature: null,
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA3vMlotNGWiM0sfVYNBlYn+maiuKzp2/IqTnBL8R1nrc=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "99e2575c2d41fef196ab7fe4754b2b57280f307bea80011dbe6e8e0de09d50ec",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "99e2575c2d41fef196ab7fe4754b2b57280f307bea80011dbe6e8e0de09d50ec",
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
      fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
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
            fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
            key_algorithm: "ed25519",
            possession_signature: null,
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA3vMlotNGWiM0sfVYNBlYn+maiuKzp2/IqTnBL8R1nrc=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "99e2575c2d41fef196ab7fe4754b2b57280f307bea80011dbe6e8e0de09d50ec",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "99e2575c2d41fef196ab7fe4754b2b57280f307bea80011dbe6e8e0de09d50ec",
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
      endorser_fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
      endorsed_fingerprint: "sha256:f509d484fe77ca9fbce41ebda031a3dc1ad7f42e6bb6e962cd4705e2e0f4a30e",
      category: "x-service:institutional_endorsement",
      valid_until: "2027-01-01",
      institutional_metadata: { name: "University of Example" },
      external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
      auth: {
        challenge_id:
          "AQEABiqZ4WMtANla1HOVxMYZjyPYgOY04Hrr4sPV5NMmQBtY-C0kD9XZ3pncrlz3DM4WP8IMZ3xCF846iO439C5BLdAlIwDDyYGMgtzMF9Gb_r0J_czBx8PK6pCN9y8rB941gZ142po4yw",
        challenge_signature: "8/QkrvK5xMF41UsCC/OA/UsAkTPWF6dpo08QaK/0ZYYw+JH58nf/UKQlzYPms6/K/VoflJV/CLIED6KFOseUBg==",
      },
    },
    answer: {
      id: 276,
      timestamp: "2025-01-01T00:06:00.000000Z",
      event_type: "endorsement_offer",
      payload: {
        category: "x-service:institutional_endorsement",
        endorsed_key_fingerprint: "sha256:f509d484fe77ca9fbce41ebda031a3dc1ad7f42e6bb6e962cd4705e2e0f4a30e",
        endorser_key_fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
        event_type: "endorsement_offer",
        external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
        institutional_metadata: { name: "University of Example" },
        valid_until: "2027-01-01",
      },
      previous_hash: "e6ae134ed0c05ec898d836c12ad07f971887baf45a1528f2d9f637f9c347ed52",
      entry_hash: "d8c2b65ec733806b47a55a3d1d92f98abc2b8043c89c28f8b7c850cd1d57ffe1",
      chain_version: 2,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "d8c2b65ec733806b47a55a3d1d92f98abc2b8043c89c28f8b7c850cd1d57ffe1",
          is_primary: true,
        },
      ],
    },
  },
  post_endorsements_accept: {
    body: {
      offer_entry_id: 276,
      endorsed_fingerprint: "sha256:f509d484fe77ca9fbce41ebda031a3dc1ad7f42e6bb6e962cd4705e2e0f4a30e",
      auth: {
        challenge_id:
          "AQEABiqZ4WMtAPUJ1IT-d8qfvOQevaAxo9wa1_Qua7bpYs1HBeLg9KMO2PTjpRNINjo2k8-BWTS-XvVg2xr-MrinXFU1oi5DRFQNUSnQxZnq_9tfGwMwhleiQS809ce4l352rLyYlvkqrA",
        challenge_signature:
          "MEUCIQDNOMJ9yOkFG6pBVfe8L6eurEJCJvC12mbtpZAcRRcRwQIgVoB0QMIs0aG+31xE71fkVDTeJbfTVFon29BXyGMw31w=",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 276,
        endorser_fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
        endorsed_fingerprint: "sha256:f509d484fe77ca9fbce41ebda031a3dc1ad7f42e6bb6e962cd4705e2e0f4a30e",
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
          endorsed_key_fingerprint: "sha256:f509d484fe77ca9fbce41ebda031a3dc1ad7f42e6bb6e962cd4705e2e0f4a30e",
          endorser_key_fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
          event_type: "endorsement_acceptance",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: null,
          offer_entry_id: 276,
          valid_until: "2027-01-01",
        },
        previous_hash: "d8c2b65ec733806b47a55a3d1d92f98abc2b8043c89c28f8b7c850cd1d57ffe1",
        entry_hash: "3e285364484b8abc2f1109851d0ecaad320ae0a9344721959b61793dc945e18f",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "3e285364484b8abc2f1109851d0ecaad320ae0a9344721959b61793dc945e18f",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_withdraw: {
    body: {
      endorser_fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
      endorsed_fingerprint: "sha256:f509d484fe77ca9fbce41ebda031a3dc1ad7f42e6bb6e962cd4705e2e0f4a30e",
      original_offer_entry_id: 281,
      note: "A mistake.",
      auth: {
        challenge_id:
          "AQEABiquAs4UANla1HOVxMYZjyPYgOY04Hrr4sPV5NMmQBtY-C0kD9XZ4mka7EAvvY40ph6GFF7uL4ek85GD4ebEDGKj4S6So2vhN4esiBhDouiqnW7-LTpxi2bpal3E88bDKeHzBcqBXQ",
        challenge_signature: "jXuM1XJUceVSJq+dLOtGOh2wuVxsEdDjoibcRIETKQpcZ1gOhCVLKtu8dKb1WlB/2/spchEkqGxIgMS4H91rBg==",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 281,
        endorser_fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
        endorsed_fingerprint: "sha256:f509d484fe77ca9fbce41ebda031a3dc1ad7f42e6bb6e962cd4705e2e0f4a30e",
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
          endorsed_key_fingerprint: "sha256:f509d484fe77ca9fbce41ebda031a3dc1ad7f42e6bb6e962cd4705e2e0f4a30e",
          endorser_key_fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
          event_type: "endorsement_withdrawal",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: "A mistake.",
          offer_entry_id: 281,
          valid_until: "2027-01-01",
        },
        previous_hash: "3ae88a73b35606b508372cf61d3e238283c1d2d1edfae33b1fbdf5330d8f0cf9",
        entry_hash: "49793179c70b140d4ca525789b6ec57a9724e8f5f79996f01e5b66a7c33b7893",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "49793179c70b140d4ca525789b6ec57a9724e8f5f79996f01e5b66a7c33b7893",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_revoke_acceptance: {
    body: {
      endorsed_fingerprint: "sha256:f509d484fe77ca9fbce41ebda031a3dc1ad7f42e6bb6e962cd4705e2e0f4a30e",
      original_offer_entry_id: 276,
      note: "We no longer work together.",
      auth: {
        challenge_id:
          "AQEABiquAs4UAPUJ1IT-d8qfvOQevaAxo9wa1_Qua7bpYs1HBeLg9KMONTq73sXUfQvObVgw8r85PF2DpqoOhHb6MBMZA13djTisANGMZLEiZpGR6qW6Iop0-V76L7Pld9yF9EEfI6292g",
        challenge_signature:
          "MEUCIBLckOrYxjdrIwhn42VZxeXgIfvqhL/e8H1vPQDR6KeJAiEAzr661etb5SIOLHDlf5KX/IW04KkytKClLLTIoxDgOlg=",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 276,
        endorser_fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
        endorsed_fingerprint: "sha256:f509d484fe77ca9fbce41ebda031a3dc1ad7f42e6bb6e962cd4705e2e0f4a30e",
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
          endorsed_key_fingerprint: "sha256:f509d484fe77ca9fbce41ebda031a3dc1ad7f42e6bb6e962cd4705e2e0f4a30e",
          endorser_key_fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
          event_type: "acceptance_revocation",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: "We no longer work together.",
          offer_entry_id: 276,
          valid_until: "2027-01-01",
        },
        previous_hash: "c9392b0628e4bc6c7feb4648463477fe439328083547a9340dc13e052c5aaa05",
        entry_hash: "9bb471ea8202982054cf2bafd0f4421a0f392d5bdbe2923449316a2e94b89e5c",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "9bb471ea8202982054cf2bafd0f4421a0f392d5bdbe2923449316a2e94b89e5c",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_revocation_alert: {
    body: {
      endorser_fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
      compromised_fingerprint: "sha256:f509d484fe77ca9fbce41ebda031a3dc1ad7f42e6bb6e962cd4705e2e0f4a30e",
      reason: "The laptop with the key was stolen.",
      auth: {
        challenge_id:
          "AQEABiquAs4UANla1HOVxMYZjyPYgOY04Hrr4sPV5NMmQBtY-C0kD9XZnHyVu22kSbx-bDvLQ8jSjpXo1iU5SEJk9vWrpdWDZl6CxEYKVkRegSrfQjEMn12fs5lTX6VGQQ-z3Ng1CSlsfg",
        challenge_signature: "38m9pm/LdcK38lQL8iLpMXOSRxInKOu3j4v9bEnj7AURQPh1dU/okofsKaKTPmMu0H5Obwk9ylCOoXvGjrd9AQ==",
      },
    },
    answer: {
      alert: {
        alert_entry_id: 279,
        compromised_fingerprint: "sha256:f509d484fe77ca9fbce41ebda031a3dc1ad7f42e6bb6e962cd4705e2e0f4a30e",
        endorser_fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
        reason: "The laptop with the key was stolen.",
        evidence: null,
        filed_at: "2025-01-02T00:07:00.000000Z",
      },
      log_entry: {
        id: 279,
        timestamp: "2025-01-02T00:07:00.000000Z",
        event_type: "endorser_revocation_alert",
        payload: {
          compromised_key_fingerprint: "sha256:f509d484fe77ca9fbce41ebda031a3dc1ad7f42e6bb6e962cd4705e2e0f4a30e",
          endorser_key_fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
          event_type: "endorser_revocation_alert",
          evidence: null,
          reason: "The laptop with the key was stolen.",
        },
        previous_hash: "c941812176b6c29039b348dc6a99f5f4721ff3e0d66d21cdced346960c83db6c",
        entry_hash: "c9392b0628e4bc6c7feb4648463477fe439328083547a9340dc13e052c5aaa05",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "c9392b0628e4bc6c7feb4648463477fe439328083547a9340dc13e052c5aaa05",
            is_primary: true,
          },
        ],
      },
    },
  },
  get_endorsements_fingerprint: {
    params: { fingerprint: "sha256:f509d484fe77ca9fbce41ebda031a3dc1ad7f42e6bb6e962cd4705e2e0f4a30e" },
    answer: {
      endorsements: [
        {
          offer_entry_id: 276,
          endorser_fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
          endorsed_fingerprint: "sha256:f509d484fe77ca9fbce41ebda031a3dc1ad7f42e6bb6e962cd4705e2e0f4a30e",
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
    params: { fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9" },
    query: { status: "active" },
    answer: {
      endorsements: [
        {
          offer_entry_id: 276,
          endorser_fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
          endorsed_fingerprint: "sha256:f509d484fe77ca9fbce41ebda031a3dc1ad7f42e6bb6e962cd4705e2e0f4a30e",
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
    params: { fingerprint: "sha256:f509d484fe77ca9fbce41ebda031a3dc1ad7f42e6bb6e962cd4705e2e0f4a30e" },
    answer: {
      alerts: [
        {
          alert_entry_id: 279,
          compromised_fingerprint: "sha256:f509d484fe77ca9fbce41ebda031a3dc1ad7f42e6bb6e962cd4705e2e0f4a30e",
          endorser_fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
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
    params: { fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9" },
    query: { max_depth: 2 },
    answer: {
      root: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
      nodes: [
        {
          fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
          pseudonym: "Ada",
          status: "active",
          named: false,
          depth: 0,
        },
        {
          fingerprint: "sha256:f509d484fe77ca9fbce41ebda031a3dc1ad7f42e6bb6e962cd4705e2e0f4a30e",
          pseudonym: "Grace",
          status: "active",
          named: false,
          depth: 1,
        },
      ],
      edges: [
        {
          from: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
          to: "sha256:f509d484fe77ca9fbce41ebda031a3dc1ad7f42e6bb6e962cd4705e2e0f4a30e",
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
    params: { fingerprint: "sha256:f509d484fe77ca9fbce41ebda031a3dc1ad7f42e6bb6e962cd4705e2e0f4a30e" },
    answer: {
      fingerprint: "sha256:f509d484fe77ca9fbce41ebda031a3dc1ad7f42e6bb6e962cd4705e2e0f4a30e",
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
          fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
          category_weights: { "x-service:institutional_endorsement": 0.8 },
          decay_per_hop: 0.5,
          direct_signer_anchors: [
            { fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9", weight: 1 },
          ],
          endorser_anchors: [
            { fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9", weight: 0.9 },
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
      fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
      direct_signer_anchors: [
        { fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9", weight: 0.9 },
      ],
      minimum_threshold: 0.4,
      category_weights: { "x-service:institutional_endorsement": 0.8 },
    },
    answer: {
      id: 1,
      fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9", weight: 0.9 },
      ],
      max_depth: 4,
      minimum_threshold: 0.4,
      status: "active",
      created_at: "2025-01-02T00:07:00.000000Z",
    },
  },
  get_trust_configs_fingerprint: {
    params: { fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9" },
    answer: {
      id: 1,
      fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9", weight: 0.9 },
      ],
      max_depth: 4,
      minimum_threshold: 0.4,
      status: "active",
      created_at: "2025-01-02T00:07:00.000000Z",
    },
  },
  post_trust_configs_revoke: {
    body: { fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9" },
    answer: {
      id: 1,
      fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9", weight: 0.9 },
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
            id: "58d54d7c-bf74-44db-863d-c1a7d5d3decd",
            type: "authorship",
            scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
            signer_key_fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
            signature_algorithm: "ed25519",
            signature: "oUPpxegqyfzlAiwVLEZDqmlAo8f9cBzQbknmA8bcmbCUl/5PQy7440HS9AjCukgAdCfs1FzX2d0WQaXYbY0lCw==",
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
          id: "58d54d7c-bf74-44db-863d-c1a7d5d3decd",
          signer_key_fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
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
          { id: "58d54d7c-bf74-44db-863d-c1a7d5d3decd", kind: "attestation", type: "authorship", status: "valid" },
          {
            id: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
            kind: "key",
            pseudonym: "Ada",
            status: "active",
            named: false,
          },
        ],
        edges: [
          {
            from: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
            to: "58d54d7c-bf74-44db-863d-c1a7d5d3decd",
            kind: "signed",
          },
          {
            from: "58d54d7c-bf74-44db-863d-c1a7d5d3decd",
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
                id: "58d54d7c-bf74-44db-863d-c1a7d5d3decd",
                type: "authorship",
                scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                signer_key_fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
                signature_algorithm: "ed25519",
                signature: "oUPpxegqyfzlAiwVLEZDqmlAo8f9cBzQbknmA8bcmbCUl/5PQy7440HS9AjCukgAdCfs1FzX2d0WQaXYbY0lCw==",
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
                  id: "58d54d7c-bf74-44db-863d-c1a7d5d3decd",
                  type: "authorship",
                  scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                  signer_key_fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
                  signature_algorithm: "ed25519",
                  signature: "oUPpxegqyfzlAiwVLEZDqmlAo8f9cBzQbknmA8bcmbCUl/5PQy7440HS9AjCukgAdCfs1FzX2d0WQaXYbY0lCw==",
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
                  id: "58d54d7c-bf74-44db-863d-c1a7d5d3decd",
                  type: "authorship",
                  scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                  signer_key_fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
                  signature_algorithm: "ed25519",
                  signature: "oUPpxegqyfzlAiwVLEZDqmlAo8f9cBzQbknmA8bcmbCUl/5PQy7440HS9AjCukgAdCfs1FzX2d0WQaXYbY0lCw==",
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
                    id: "58d54d7c-bf74-44db-863d-c1a7d5d3decd",
                    type: "authorship",
                    scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                    signer_key_fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
                    signature_algorithm: "ed25519",
                    signature:
                      "oUPpxegqyfzlAiwVLEZDqmlAo8f9cBzQbknmA8bcmbCUl/5PQy7440HS9AjCukgAdCfs1FzX2d0WQaXYbY0lCw==",
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
        "eyJhdHRlc3RhdGlvbnMiOltdLCJkb2N1bWVudCI6eyJjb250ZW50X2hhc2giOiJzaGEyNTY6ZjNkNDJlYmY5NjU5YjE2MmUwYmE4YzQwMjM1OTQwMWRlN2VkOGMyODg0M2MwMWY2ZTBiZGIyMzhhY2Q4ZDAzYyIsInBhcnRzIjpbeyJjb250ZW50X2hhc2giOiJzaGEyNTY6NDk4NjNjYzg4YzcxZGU2NjI5MmE5ZjVmMmI5MzJkMWRmMGMxZWQxMDFlYzJiOTc4ODBkZTFhMTEzMzcwOTgxMCIsIm1hbmlmZXN0Ijp7ImF0dGVzdGF0aW9ucyI6W3siaWQiOiI1OGQ1NGQ3Yy1iZjc0LTQ0ZGItODYzZC1jMWE3ZDVkM2RlY2QiLCJpbnRlbnRfc3RhdGVtZW50IjoiSSB3cm90ZSBpdC4iLCJzY29wZSI6eyJjb250ZW50X2hhc2giOiJzaGEyNTY6NDk4NjNjYzg4YzcxZGU2NjI5MmE5ZjVmMmI5MzJkMWRmMGMxZWQxMDFlYzJiOTc4ODBkZTFhMTEzMzcwOTgxMCJ9LCJzaWduYXR1cmUiOiJvVVBweGVncXlmemxBaXdWTEVaRHFtbEFvOGY5Y0J6UWJrbm1BOGJjbWJDVWwvNVBReTc0NDBIUzlBakN1a2dBZENmczFGelgyZDBXUWFYWWJZMGxDdz09Iiwic2lnbmF0dXJlX2FsZ29yaXRobSI6ImVkMjU1MTkiLCJzaWduZXJfa2V5X2ZpbmdlcnByaW50Ijoic2hhMjU2OmQ5NWFkNDczOTVjNGM2MTk4ZjIzZDg4MGU2MzRlMDdhZWJlMmMzZDVlNGQzMjY0MDFiNThmODJkMjQwZmQ1ZDkiLCJ0aW1lc3RhbXAiOiIyMDI1LTAxLTAxVDAwOjA2OjAwLjAwMDAwMFoiLCJ0eXBlIjoiYXV0aG9yc2hpcCJ9XSwiZG9jdW1lbnQiOnsiY29udGVudF9oYXNoIjoic2hhMjU2OjQ5ODYzY2M4OGM3MWRlNjYyOTJhOWY1ZjJiOTMyZDFkZjBjMWVkMTAxZWMyYjk3ODgwZGUxYTExMzM3MDk4MTAiLCJ0YWdzIjpbInJlcG9ydCJdLCJ0aXRsZSI6IkFubnVhbCByZXBvcnQifX0sInJvbGUiOiJjaGFwdGVyIiwidGl0bGUiOiJSZXBvcnQifSx7ImNvbnRlbnRfaGFzaCI6InNoYTI1NjpmMzBjNTM0ZGE5NThhNzUzYWMyMGM2ZDVmZDQwNDFkZTRkOWFlMjQ5N2U3NDQwY2ZlMmQwMzRiMDBiNzFlZDEzIiwidGl0bGUiOiJBcHBlbmRpeCJ9XSwidGl0bGUiOiJSZXBvcnQgYW5kIGFwcGVuZGl4In19",
      manifest_hash: "77e7eecad99ba9e7aaea00d0bc811a9ed66b9d74f2b6f4e8aee116ae9456a574",
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
            attestation_id: "cfdac42e-6cc5-41a9-97a8-bd67b53956cc",
            attestation_type: "editorial_review",
            document_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810",
            document_title: "Annual report",
            intent_statement: null,
            manifest_hash: "07a3a261f09eccfd842bc0cc3b0f4d6489cff455701b173ccae85104b6b55285",
            signature:
              "MEUCIQDf+FpJMWLx9ZLmHlHG2Fxba5bCfi/f9/WndJTSQHftUgIgU+uwFXhN/MvzX/D0cpxYLJuJ02USzgxk3wdL+U6wQ5c=",
            signature_algorithm: "ecdsa-p256",
            signer_key_fingerprint: "sha256:f509d484fe77ca9fbce41ebda031a3dc1ad7f42e6bb6e962cd4705e2e0f4a30e",
            tags: ["report"],
            timestamp: "2025-01-01T00:06:00.000000Z",
          },
          previous_hash: "5a91679e0c8767e3aa2dad954cf0b2a5941b0630033da32b29f6f28adabe9d88",
          entry_hash: "9cbbefa7697aa75ecf23b463912b9cb11a5a9b725def2526bfcead2995de2684",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "9cbbefa7697aa75ecf23b463912b9cb11a5a9b725def2526bfcead2995de2684",
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
          "BFJZku9pRTOuIS21SaPeLGUZs8fO1rrwq/rfjORZca71I3rNejlhd7tYHOEFm8tYHpCM+p9+fRPZ2MtVoQWXAwg=",
        commitment: "61b5e92851786c573594fada144c64a1eb2565e41615a33da3ff0b83dc8d3713",
        lookup_key: "8c9c42b4c5e961ec4510005ec6ee6dafb6d6cbefb7457006c7335d7b38ae3fc7",
        nonce: "sWpxGEKO9ijKNUN7",
        ciphertext: "ysBE+PIgnPqQhCMQQnLUVjnTPMjtOi5CxCdtk9zUcXFjupEXGnG5JIEBhPenqqXimUtz",
        recipient_fingerprint: "sha256:81288dafaf2298b1f753c1c22b851cb5b60a4632b36767eb46e4276ef6cbbb12",
      },
    },
    answer: {
      entry_id: 287,
      commitment: "61b5e92851786c573594fada144c64a1eb2565e41615a33da3ff0b83dc8d3713",
      lookup_key: "8c9c42b4c5e961ec4510005ec6ee6dafb6d6cbefb7457006c7335d7b38ae3fc7",
      leaf_index: 286,
      log_entry_id: 287,
    },
  },
  get_claims: {
    query: { lookup_key: "8c9c42b4c5e961ec4510005ec6ee6dafb6d6cbefb7457006c7335d7b38ae3fc7" },
    answer: {
      entries: [
        {
          id: 287,
          timestamp: "2025-01-02T00:07:00.000000Z",
          event_type: "encrypted_claim",
          payload: {
            ciphertext: "ysBE+PIgnPqQhCMQQnLUVjnTPMjtOi5CxCdtk9zUcXFjupEXGnG5JIEBhPenqqXimUtz",
            commitment: "61b5e92851786c573594fada144c64a1eb2565e41615a33da3ff0b83dc8d3713",
            commitment_alg: "hmac-sha256-ecdh-v1",
            ephemeral_public_key:
              "BFJZku9pRTOuIS21SaPeLGUZs8fO1rrwq/rfjORZca71I3rNejlhd7tYHOEFm8tYHpCM+p9+fRPZ2MtVoQWXAwg=",
            event_type: "encrypted_claim",
            lookup_key: "8c9c42b4c5e961ec4510005ec6ee6dafb6d6cbefb7457006c7335d7b38ae3fc7",
            nonce: "sWpxGEKO9ijKNUN7",
            recipient_fingerprint: "sha256:81288dafaf2298b1f753c1c22b851cb5b60a4632b36767eb46e4276ef6cbbb12",
          },
          previous_hashes: [
            { algorithm: "sha2-256", digest_hex: "91abf4ba3e5eb1675383f3737e739b77b317144b3d9311083928a2792c428b13" },
          ],
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "654786aabae25d8a288e94a383ae7e3c5ecbb3ff0dde3d9b2272a747006a7562",
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
      ciphertext: "ysBE+PIgnPqQhCMQQnLUVjnTPMjtOi5CxCdtk9zUcXFjupEXGnG5JIEBhPenqqXimUtz",
      commitment: "61b5e92851786c573594fada144c64a1eb2565e41615a33da3ff0b83dc8d3713",
      commitment_alg: "hmac-sha256-ecdh-v1",
      ephemeral_public_key: "BFJZku9pRTOuIS21SaPeLGUZs8fO1rrwq/rfjORZca71I3rNejlhd7tYHOEFm8tYHpCM+p9+fRPZ2MtVoQWXAwg=",
      lookup_key: "8c9c42b4c5e961ec4510005ec6ee6dafb6d6cbefb7457006c7335d7b38ae3fc7",
      nonce: "sWpxGEKO9ijKNUN7",
      recipient_fingerprint: "sha256:81288dafaf2298b1f753c1c22b851cb5b60a4632b36767eb46e4276ef6cbbb12",
    },
  },
  post_claims_entry_id_reveal: {
    params: { entry_id: 287 },
    body: {
      plaintext: { salary: 52000, name: "Zoë 🪨" },
      commitment_key: "82cae52c78cb91368652c752ead7c4deca280ffdedefc4aff9ddee3ca5a20f15",
    },
    answer: { valid: true },
  },
  get_log_attestation_requests: {
    query: { target: "sha256:f509d484fe77ca9fbce41ebda031a3dc1ad7f42e6bb6e962cd4705e2e0f4a30e", status: "open" },
    answer: {
      requests: [
        {
          request_id: "9102c1a4-4f3a-473a-97ee-07d76d2fb622",
          requester_fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
          target_fingerprint: "sha256:f509d484fe77ca9fbce41ebda031a3dc1ad7f42e6bb6e962cd4705e2e0f4a30e",
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
      target_fingerprint: "sha256:f509d484fe77ca9fbce41ebda031a3dc1ad7f42e6bb6e962cd4705e2e0f4a30e",
      attestation_type: "peer_review",
      nonce: "request-2025-0001",
      intent_statement: "Please review the annual report.",
      claims: { document_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
    },
    answer: {
      request_id: "9102c1a4-4f3a-473a-97ee-07d76d2fb622",
      requester_fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
      target_fingerprint: "sha256:f509d484fe77ca9fbce41ebda031a3dc1ad7f42e6bb6e962cd4705e2e0f4a30e",
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
    params: { request_id: "9102c1a4-4f3a-473a-97ee-07d76d2fb622" },
    answer: {
      request_id: "9102c1a4-4f3a-473a-97ee-07d76d2fb622",
      requester_fingerprint: "sha256:d95ad47395c4c6198f23d880e634e07aebe2c3d5e4d326401b58f82d240fd5d9",
      target_fingerprint: "sha256:f509d484fe77ca9fbce41ebda031a3dc1ad7f42e6bb6e962cd4705e2e0f4a30e",
      attestation_type: "peer_review",
      status: "declined",
      deadline: "2025-01-16T00:07:00.000000Z",
      created_at: "2025-01-02T00:07:00.000000Z",
      log_entry_id: 284,
      leaf_index: 283,
      responses: [
        {
          decision: "decline",
          responder_fingerprint: "sha256:f509d484fe77ca9fbce41ebda031a3dc1ad7f42e6bb6e962cd4705e2e0f4a30e",
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
        responder_fingerprint: "sha256:f509d484fe77ca9fbce41ebda031a3dc1ad7f42e6bb6e962cd4705e2e0f4a30e",
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
    params: { fingerprint: "sha256:f509d484fe77ca9fbce41ebda031a3dc1ad7f42e6bb6e962cd4705e2e0f4a30e" },
    answer: {
      target_fingerprint: "sha256:f509d484fe77ca9fbce41ebda031a3dc1ad7f42e6bb6e962cd4705e2e0f4a30e",
      active: {
        target_fingerprint: "sha256:f509d484fe77ca9fbce41ebda031a3dc1ad7f42e6bb6e962cd4705e2e0f4a30e",
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
    params: { request_id: "9102c1a4-4f3a-473a-97ee-07d76d2fb622" },
    body: { decision: "decline", reason: "No time before summer." },
    answer: {
      request_id: "9102c1a4-4f3a-473a-97ee-07d76d2fb622",
      status: "declined",
      responder_fingerprint: "sha256:f509d484fe77ca9fbce41ebda031a3dc1ad7f42e6bb6e962cd4705e2e0f4a30e",
      decision: "decline",
      attestation_id: null,
      reason: "No time before summer.",
      log_entry_id: 285,
      leaf_index: 284,
    },
  },
  post_log_request_policies: {
    body: {
      target_fingerprint: "sha256:f509d484fe77ca9fbce41ebda031a3dc1ad7f42e6bb6e962cd4705e2e0f4a30e",
      predicates: { all: [{ field: "attestation_type", op: "in", value: ["peer_review", "editorial_review"] }] },
      default_action_on_failure: "decline",
    },
    answer: {
      target_fingerprint: "sha256:f509d484fe77ca9fbce41ebda031a3dc1ad7f42e6bb6e962cd4705e2e0f4a30e",
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
          request_id: "9102c1a4-4f3a-473a-97ee-07d76d2fb622",
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
      request_id: "9102c1a4-4f3a-473a-97ee-07d76d2fb622",
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

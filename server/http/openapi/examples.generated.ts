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
      vkey: "cairnlog/f29d89c3f65cfbd5/tlog+e4b7e13f+AQCSn/Fudd3y1U5c7c3xyd3eSRaF1kclrBdgBmozZ34B",
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
      key_fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
      device_label: "Security key",
    },
    answer: {
      user: {
        id: "5bc52299-30d1-4622-96b2-6c616abdaaa0",
        display_name: "Ada Lovelace",
        created_at: "2025-01-01T00:00:00.000000Z",
      },
      credential: {
        id: "a8d7318e-7434-44ee-b073-562123d0e84e",
        key_fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
        credential_type: "hardware",
        device_label: "Security key",
        status: "active",
        created_at: "2025-01-01T00:00:00.000000Z",
        revoked_at: null,
        hardware_backed: true,
      },
      recovery_key: "X84DE-WY5PN-VFRH7-FZQFN-EC9WQ-METFF-QAH1Y-YF2AW",
    },
  },
  post_users_recover: {
    body: {
      pseudonym: "Ada Lovelace",
      recovery_key: "X84DE-WY5PN-VFRH7-FZQFN-EC9WQ-METFF-QAH1Y-YF2AW",
      credential_type: "hardware",
      key_fingerprint: "sha256:f87dd3c3712cabafd6ee4b0219caf9ecaabd9c0b774e268b8eee1181922732df",
      device_label: "Security key",
    },
    answer: {
      user: {
        id: "5bc52299-30d1-4622-96b2-6c616abdaaa0",
        display_name: "Ada Lovelace",
        created_at: "2025-01-01T00:00:00.000000Z",
      },
      credential: {
        id: "27d38875-db34-4b3f-9795-68dfc3163ae1",
        key_fingerprint: "sha256:f87dd3c3712cabafd6ee4b0219caf9ecaabd9c0b774e268b8eee1181922732df",
        credential_type: "hardware",
        device_label: "Security key",
        status: "active",
        created_at: "2025-01-01T00:06:00.000000Z",
        revoked_at: null,
        hardware_backed: true,
      },
      recovery_key: "6R2G3-RMPQ0-JKWG2-10DYF-KH3WR-F21QW-YEW96-X10YD",
      revoked_credentials: 2,
    },
  },
  post_credentials_enroll: {
    body: {
      challenge_id:
        "AQEABiqZy-4DAKQ7xbbdjT9-fy7jDq9qy2gHXU3ZJE4LN48YJkSdjR366hgmz0_B5SLtOEBJBF3g8XlVGGWiXXHM1-VzBioIAzF_acBp_T_Q-DxAjajiI1GVKusJFzpsx7Ztm8pUnjAucQ",
      issuing_fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
      key_fingerprint: "sha256:a43bc5b6dd8d3f7e7f2ee30eaf6acb68075d4dd9244e0b378f1826449d8d1dfa",
      credential_type: "hardware",
      device_label: "Second security key",
      challenge_signature: "7eWZRoiRjJ8qrGis3XBlmN5FaugQKJdnTgC9UzJcGatCxsmwEXbv/JVSDq6BrEPO3E427lMMaLRd6lhXJ/02Dg==",
      chain_signature: "q13yoKxvnwDSd6NVCSzDg4+hl+xQKiELeT0Drn8KwmPDCISm8gCcHFPq5OkBk5ypqNcDQX0WrYeNe39RNTnaCg==",
    },
    answer: {
      credential: {
        id: "8a122e24-bbf1-4a03-90e6-943688715dbe",
        key_fingerprint: "sha256:a43bc5b6dd8d3f7e7f2ee30eaf6acb68075d4dd9244e0b378f1826449d8d1dfa",
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
          fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
          pseudonym: "Ada",
          algorithm: "ed25519",
          status: "active",
          registered_at: "2025-01-01T00:00:00.000000Z",
          expires_at: null,
          named: false,
        },
        {
          fingerprint: "sha256:0737af5b59a4025560dd92577e3099b2d3a65ef0c77d22e5b47ac6c650a26fdf",
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
          fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
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
    params: { fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106" },
    answer: {
      fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
      public_key:
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAtb+h6Lr1ABQscKE6mFgJazFCuYBdKarMy6DhwZlzupY=\n-----END PUBLIC KEY-----\n",
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
    params: { fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106" },
    answer: {
      fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
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
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAtb+h6Lr1ABQscKE6mFgJazFCuYBdKarMy6DhwZlzupY=\n-----END PUBLIC KEY-----\n",
        pseudonym: "Ada",
        key_algorithm: "ed25519",
      },
    },
    answer: {
      fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
      pseudonym: "Ada",
      algorithm: "ed25519",
      log_entry_id: 1,
      leaf_index: 0,
      entry_hash: "de14c0f1cdb850844b8e5bcd5cb9f08c64bef0f2f3ca60c112dd4ba5d5bfd203",
    },
  },
  post_keys_succeed: {
    body: {
      payload: {
        old_fingerprint: "sha256:a21cba70b4213433a7426a45bbd6ce3427125cc6ce0b623c98ad14f154d48b9d",
        new_public_key:
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAnEvurjYFTudjCjqhZk9YgFsRJaZkYJYWYXoQGS3n4FM=\n-----END PUBLIC KEY-----\n",
        new_algorithm: "ed25519",
      },
      auth: {
        challenge_id:
          "AQEABiqZy-4DAKIcunC0ITQzp0JqRbvWzjQnElzGzgtiPJitFPFU1IudKeQ7gHwFqXfS1brR93HC0a7bI9SN31Fw40OZVcKHmeIWdN0Cf-ZaxDB8iMnaGQg2Xl2-Ac1xdDOVGjgmXpzp6A",
        challenge_signature: "xyjvxBbWslDY05SmcMKnTqRywbLJJb3yjbU5ugU+snnyH9llvSO281BYpSp5+ncr0TRBX9QNORdjCSJmLS2uDw==",
      },
    },
    answer: {
      old_fingerprint: "sha256:a21cba70b4213433a7426a45bbd6ce3427125cc6ce0b623c98ad14f154d48b9d",
      new_fingerprint: "sha256:9b093aa46974e6ad6782258ee6c934c4e6589586c9c98cd2bb79cd9faf09eaf8",
      log_entry_id: 5,
      leaf_index: 4,
      entry_hash: "a9e3423254123fde065e3ae588cf98be5be6932dbf2fffe0a303e6fe8bb79ba9",
    },
  },
  post_keys_revoke: {
    body: {
      payload: { fingerprint: "sha256:9b093aa46974e6ad6782258ee6c934c4e6589586c9c98cd2bb79cd9faf09eaf8" },
      auth: {
        challenge_id:
          "AQEABiqZy-4DAJsJOqRpdOatZ4IljubJNMTmWJWGycmM0rt5zZ-vCer4zYMOjgmjvuOMcH8nlc5YKwfSc4p3tPR4MwYMlZB7RzN-x_7t9xU6cds2k4r6BE9V16hMGEmxqd-2qCjr6uJX-w",
        challenge_signature: "J7MhZRFhH7wuFr0jhLcfFUBkgpbgre98Dt4reIDV0U9/JV5owLe8Xn3vBzffo2zbOcYomW84mkVGrMSLOipFAQ==",
      },
    },
    answer: {
      fingerprint: "sha256:9b093aa46974e6ad6782258ee6c934c4e6589586c9c98cd2bb79cd9faf09eaf8",
      status: "revoked",
      log_entry_id: 6,
      leaf_index: 5,
      entry_hash: "71f4ecd95f5f93478a2df7ba625c5fa94103893b89f6ca790e86cf0ae49e4b53",
    },
  },
  post_auth_challenge: {
    body: { fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106", purpose: "login" },
    answer: {
      challenge_id:
        "AQAABiqZy-4DAIBG8JgWpYL5AOVkkrxzDLxAEdIxJ3s_oOGfBpt4IoEGVJRSzWCkbDvrSnoFz7FEmj3NVlPuzztEZPOagCOwdJwkV4myrPfp5PL4JkpYQSq5BgMiL6o2tP9snpLWwUQhJg",
      nonce:
        "service.auth.v1:login:sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106:VJRSzWCkbDvrSnoFz7FEmj3NVlPuzztEZPOagCOwdJw",
      expires_at: "2025-01-01T00:05:00.000000Z",
      origin: "http://127.0.0.1:45731",
      act: null,
    },
  },
  post_auth_login: {
    body: {
      challenge_id:
        "AQAABiqZy-4DAIBG8JgWpYL5AOVkkrxzDLxAEdIxJ3s_oOGfBpt4IoEGVJRSzWCkbDvrSnoFz7FEmj3NVlPuzztEZPOagCOwdJwkV4myrPfp5PL4JkpYQSq5BgMiL6o2tP9snpLWwUQhJg",
      challenge_signature: "9SmDdvQWDcjgkYGGv8lTjGvT+PqPHn6iDZNnfXDC9/3kFyjVrqfndguFWzqWcJxtJ/wP2aq799BlvDyhTnqxBQ==",
    },
    answer: {
      token:
        "eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzaGEyNTY6ZjI5ZDg5YzNmNjVjZmJkNTBhZTAwMWYzNzI4NzIxOTUyMzQ0MWY3YTQxYmNiMDJiZjYzZWRmNTc4MWYyNzdiNyIsInN1YiI6InNoYTI1Njo4MDQ2ZjA5ODE2YTU4MmY5MDBlNTY0OTJiYzczMGNiYzQwMTFkMjMxMjc3YjNmYTBlMTlmMDY5Yjc4MjI4MTA2IiwiaWF0IjoxNzM1Njg5NjAwLCJleHAiOjE3MzU2OTMyMDAsImp0aSI6ImZhMDZjMDg3LTliMGMtNDViNS1iODE1LTc3OWZhOWM0Y2Q2NyIsInBzZXVkb255bSI6IkFkYSIsInJlY292ZXJ5IjpmYWxzZSwiYXV0aF90aW1lIjoxNzM1Njg5NjAwfQ.TOFpgbDhhYdMenURj287LVt0QFqn6sPxI_a3XA6emrRVI_uFNjd8p0wiCxgjYhVQoJzwT4gJ-MfEXtWCGLkRCA",
      fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
      pseudonym: "Ada",
      expires_at: "2025-01-01T01:00:00.000000Z",
    },
  },
  post_auth_renew: {
    answer: {
      token:
        "eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzaGEyNTY6ZjI5ZDg5YzNmNjVjZmJkNTBhZTAwMWYzNzI4NzIxOTUyMzQ0MWY3YTQxYmNiMDJiZjYzZWRmNTc4MWYyNzdiNyIsInN1YiI6InNoYTI1Njo4MDQ2ZjA5ODE2YTU4MmY5MDBlNTY0OTJiYzczMGNiYzQwMTFkMjMxMjc3YjNmYTBlMTlmMDY5Yjc4MjI4MTA2IiwiaWF0IjoxNzM1Njg5NjAwLCJleHAiOjE3MzU2OTMyMDAsImp0aSI6IjY2MWU4M2E1LTMzNGUtNGY2Ny1hYTM5LWY0NzQwMDJiYzAwMSIsInBzZXVkb255bSI6IkFkYSIsInJlY292ZXJ5IjpmYWxzZSwiYXV0aF90aW1lIjoxNzM1Njg5NjAwfQ.1FGLwr6hfGSnijGynlP1xfn2vOS_JXRLE7n726GOel0vSYEzzU34hHbtu2l47e_G2EDKhHwjsp_WrnQav4beAA",
      fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
      pseudonym: "Ada",
      expires_at: "2025-01-01T01:00:00.000000Z",
    },
  },
  post_auth_password: {
    body: {
      challenge_id:
        "AQEABiqZy-4DAAUhBiy5-rAUWAdvh8o6gMJEFxBYEQ-ZIgu08QLFgeOsmgeB6ovyqE3GW-EJISmu7vSWeWTFp7FTCxD9HV3r1YKDHGaZpgWeSOP83nKuS-aPppAv14q26_sd5WejiGjeGg",
      challenge_signature: "4PYuznJsBg2Twh8Fu6vYL+Ds1gz1Zk2dZffuwpJyiGbdE7Aqfuh/BIh9tu9B44cmIPRkNsRZkQIHePcO2a/GDw==",
      password: "correct horse battery",
    },
    answer: {
      fingerprint: "sha256:0521062cb9fab01458076f87ca3a80c244171058110f99220bb4f102c581e3ac",
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
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAtb+h6Lr1ABQscKE6mFgJazFCuYBdKarMy6DhwZlzupY=\n-----END PUBLIC KEY-----\n",
      signature: "zXJ875hzN39c0EUEfp8BPfywlP8GWEidseN5u+VISn0HIktkNrnbI1IXgF+fL1VOj8lzfmHeKsFP8g8zrqOIBA==",
      intent_statement: "I wrote it.",
    },
    answer: {
      attestation: {
        id: "a4b6c0cc-0d4c-4ee8-9a9e-5e313fb5ad8e",
        type: "authorship",
        scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
        signer_key_fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
        signature_algorithm: "ed25519",
        signature: "zXJ875hzN39c0EUEfp8BPfywlP8GWEidseN5u+VISn0HIktkNrnbI1IXgF+fL1VOj8lzfmHeKsFP8g8zrqOIBA==",
        timestamp: "2025-01-01T00:06:00.000000Z",
        intent_statement: "I wrote it.",
      },
      fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
      pseudonym: "Ada",
      log_entry_id: 13,
      leaf_index: 12,
      entry_hash: "216e0fa45bcc3f330c6ad3a1ec1f23f9bf563d992e0872c44505ba2c12de5fae",
      manifest_hash: "38f0c85d6331fd79023d1cd40a3908b665272ec2077277686ac55af17b1b6494",
      sth: {
        tree_size: 13,
        root_hash: "dfa540213584986cd70585d51dfd9ec248ec0749208a2860fc118bd8d3cf4261",
        signature: "5xFH5i429ycA4gBuiMQnHdeA4Gg3CmJjodYET5g/mynPkKgUtpiE0fwFVJ0rLVQue7Hi/4EzsdszvoYI7R4iBA==",
        timestamp: "2025-01-01T00:06:00.000000Z",
        key_id: "sha256:f29d89c3f65cfbd50ae001f37287219523441f7a41bcb02bf63edf5781f277b7",
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
            "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAtb+h6Lr1ABQscKE6mFgJazFCuYBdKarMy6DhwZlzupY=\n-----END PUBLIC KEY-----\n",
          signature: "utXB4ql1aEh0wFlWx3HsjfaVKZyqlGaIHeI97GL+kDSh7ZuheZZxf/AO/a2FfjTQEHeRc81U6LTvb2T3aUQ0Cw==",
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
            "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAtb+h6Lr1ABQscKE6mFgJazFCuYBdKarMy6DhwZlzupY=\n-----END PUBLIC KEY-----\n",
          signature: "r5nnpK/CQMgd0jcInLiHGxoxaWBYe+xWrEhYo0/Mf4bpTx6SttGi2SUoR3O80ctBYlyJQBNUdpVD01BkElN1Bw==",
        },
      ],
    },
    answer: {
      results: [
        {
          status: 201,
          receipt: {
            attestation: {
              id: "fbfd74f3-77bf-4471-aa1d-b654e2d6d535",
              type: "authorship",
              scope: { content_hash: "sha256:c74e517559a5ed1b9f8f47889125b5d6b84df309d173fee85585b4c045f5214b" },
              signer_key_fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
              signature_algorithm: "ed25519",
              signature: "utXB4ql1aEh0wFlWx3HsjfaVKZyqlGaIHeI97GL+kDSh7ZuheZZxf/AO/a2FfjTQEHeRc81U6LTvb2T3aUQ0Cw==",
              timestamp: "2025-01-01T00:06:00.000000Z",
            },
            fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
            pseudonym: "Ada",
            log_entry_id: 14,
            leaf_index: 13,
            entry_hash: "7d779916e1dda726f2d769f7e29bbcf6f7d10863a08416bf36a29e7356cd0979",
            manifest_hash: "25367d2d820f2cc8ef80c557f5e4b35bef45d435ae93ee6e3aeffc3e00a05c0e",
            sth: {
              tree_size: 14,
              root_hash: "091773c6fa314cbab78837aed07f8ed0aee4be78aa255b44de7b5c490e6c1b96",
              signature: "1CLJtXgAzlypr5aZ6DvyzGMfHJBBjAcgco3X6pbfZTlphP1qK+MDJiRFxFzNDVFWm7ODIirZqrgnSS9BSn21Cg==",
              timestamp: "2025-01-01T00:06:00.000000Z",
              key_id: "sha256:f29d89c3f65cfbd50ae001f37287219523441f7a41bcb02bf63edf5781f277b7",
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
            request_id: "21aad8ce-0174-4871-85a9-000000000049",
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
        "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAExEBk4fyHaW2mK2J38u6Fdr6BzqEU\nCgn5BBY9fw0D1a3L2V61aah+BbTqwbyPRXIEDib8uGnaq/ChTQqdC4GnLg==\n-----END PUBLIC KEY-----\n",
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
        entry_hash: "f1c10b11e5efaae8ca032bf46f03d4120e7bef22fddde281d065a80647326793",
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
        fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
        key_algorithm: "ed25519",
        possession_signature: null,
        pseudonym: "Ada",
        public_key:
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAtb+h6Lr1ABQscKE6mFgJazFCuYBdKarMy6DhwZlzupY=\n-----END PUBLIC KEY-----\n",
      },
      previous_hash: null,
      entry_hash: "de14c0f1cdb850844b8e5bcd5cb9f08c64bef0f2f3ca60c112dd4ba5d5bfd203",
      chain_version: 2,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "de14c0f1cdb850844b8e5bcd5cb9f08c64bef0f2f3ca60c112dd4ba5d5bfd203",
          is_primary: true,
        },
      ],
    },
  },
  get_log_sth: {
    answer: {
      tree_size: 15,
      root_hash: "be3292562511b84b31626c9e3ff78d6fb09cbfdbd0876e6df20ae7fd78fe86b7",
      signature: "9Nqvz7sXxKEIslbP7M0wEXewP4aFC3Mb3kYF0upEmDYM2NoetidQH4kuTCKDkWU55omuPrKCgrrCejMaAS3mBQ==",
      timestamp: "2025-01-01T00:06:00.000000Z",
      key_id: "sha256:f29d89c3f65cfbd50ae001f37287219523441f7a41bcb02bf63edf5781f277b7",
      tree_version: 2,
    },
  },
  get_log_sth_tree_size: {
    params: { tree_size: 3 },
    answer: {
      tree_size: 3,
      root_hash: "0431762c257abc42ec0bbfb0b4ae9498c04c347a744aafeabd081bd50b0ba0d0",
      signature: "dnjW4kqPRPZsF2851EnuDxUAtY1pUQPDKujYfZdVimdrkdcxSRWWJbnfyaz19UjpTIzgqj9gAVvb59cZnCpzCA==",
      timestamp: "2025-01-01T00:00:00.000000Z",
      key_id: "sha256:f29d89c3f65cfbd50ae001f37287219523441f7a41bcb02bf63edf5781f277b7",
      tree_version: 2,
    },
  },
  get_log_heads: {
    query: { from: 3, limit: 1 },
    answer: {
      heads: [
        {
          tree_size: 3,
          root_hash: "0431762c257abc42ec0bbfb0b4ae9498c04c347a744aafeabd081bd50b0ba0d0",
          signature: "dnjW4kqPRPZsF2851EnuDxUAtY1pUQPDKujYfZdVimdrkdcxSRWWJbnfyaz19UjpTIzgqj9gAVvb59cZnCpzCA==",
          timestamp: "2025-01-01T00:00:00.000000Z",
          key_id: "sha256:f29d89c3f65cfbd50ae001f37287219523441f7a41bcb02bf63edf5781f277b7",
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
      leaf_hash: "d8f7b653b188fd574e2186a0d6c31e88afb124a9f8c8883c9a80874708ca1736",
      root_hash: "82d6c9c28581bcf275c31aa0afb7b111dbaeb131899cca45b085dbc4acd9f999",
      audit_path: [
        "da41299ca4bf527742a0a171a8562fd5c0d8e51cef98656644a44cde6012a87a",
        "c6aa5594765e54b183c73ad582c62ea483948b7c6987fdd8c629c969cd9be09e",
        "ba6c7364d681a9065d26a041e7f220fa6c63102df858a02feeeff0d80ff25243",
      ],
      entry_hash: "9e4534fcb896300fedd436ecd6b2b999e4fbcc36622d1df4a988cb4b9c0f2bca",
      sth: {
        tree_size: 5,
        root_hash: "82d6c9c28581bcf275c31aa0afb7b111dbaeb131899cca45b085dbc4acd9f999",
        signature: "UybmoRjMxORzL2bUgbj7Y0QePdAXb069fIc41Gvcuq4Te3xsMHoNTsEFCfJ/DI/YVSvHeD1FiHOCOT0cuvtsBg==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:f29d89c3f65cfbd50ae001f37287219523441f7a41bcb02bf63edf5781f277b7",
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
      leaf_hash: "d8f7b653b188fd574e2186a0d6c31e88afb124a9f8c8883c9a80874708ca1736",
      root_hash: "82d6c9c28581bcf275c31aa0afb7b111dbaeb131899cca45b085dbc4acd9f999",
      audit_path: [
        "da41299ca4bf527742a0a171a8562fd5c0d8e51cef98656644a44cde6012a87a",
        "c6aa5594765e54b183c73ad582c62ea483948b7c6987fdd8c629c969cd9be09e",
        "ba6c7364d681a9065d26a041e7f220fa6c63102df858a02feeeff0d80ff25243",
      ],
      entry_hash: "9e4534fcb896300fedd436ecd6b2b999e4fbcc36622d1df4a988cb4b9c0f2bca",
      sth: {
        tree_size: 5,
        root_hash: "82d6c9c28581bcf275c31aa0afb7b111dbaeb131899cca45b085dbc4acd9f999",
        signature: "UybmoRjMxORzL2bUgbj7Y0QePdAXb069fIc41Gvcuq4Te3xsMHoNTsEFCfJ/DI/YVSvHeD1FiHOCOT0cuvtsBg==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:f29d89c3f65cfbd50ae001f37287219523441f7a41bcb02bf63edf5781f277b7",
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
      from_root: "0431762c257abc42ec0bbfb0b4ae9498c04c347a744aafeabd081bd50b0ba0d0",
      to_root: "1c30e8e3b7357649a1b66f9d099511933ddbff402a754f19a7d639c1a4d7e51d",
      peaks: [
        "c6aa5594765e54b183c73ad582c62ea483948b7c6987fdd8c629c969cd9be09e",
        "d8f7b653b188fd574e2186a0d6c31e88afb124a9f8c8883c9a80874708ca1736",
      ],
      extension: [
        "da41299ca4bf527742a0a171a8562fd5c0d8e51cef98656644a44cde6012a87a",
        "d815e479a0e65f9a72399ae52bb539d90242ad947b3052cb530c38e3cc48414a",
      ],
      from_sth: {
        tree_size: 3,
        root_hash: "0431762c257abc42ec0bbfb0b4ae9498c04c347a744aafeabd081bd50b0ba0d0",
        signature: "dnjW4kqPRPZsF2851EnuDxUAtY1pUQPDKujYfZdVimdrkdcxSRWWJbnfyaz19UjpTIzgqj9gAVvb59cZnCpzCA==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:f29d89c3f65cfbd50ae001f37287219523441f7a41bcb02bf63edf5781f277b7",
        tree_version: 2,
      },
      to_sth: {
        tree_size: 6,
        root_hash: "1c30e8e3b7357649a1b66f9d099511933ddbff402a754f19a7d639c1a4d7e51d",
        signature: "W0TUTtL9w8rTPWFQLbiijuGo19immsm93XGsmxDrSmoDp2mv93R5ucd6HeJuZ7OsnvUDPS0op21wdqA7iv9WDw==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:f29d89c3f65cfbd50ae001f37287219523441f7a41bcb02bf63edf5781f277b7",
        tree_version: 2,
      },
    },
  },
  post_log_verify: { answer: { valid: true, entry_count: 15, errors: [], warnings: [] } },
  get_log_operator_key: {
    answer: {
      fingerprint: "sha256:f29d89c3f65cfbd50ae001f37287219523441f7a41bcb02bf63edf5781f277b7",
      algorithm: "ed25519",
      public_key:
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAAJKf8W513fLVTlztzfHJ3d5JFoXWRyWsF2AGajNnfgE=\n-----END PUBLIC KEY-----\n",
      operators: [
        {
          key_id: "sha256:f29d89c3f65cfbd50ae001f37287219523441f7a41bcb02bf63edf5781f277b7",
          algorithm: "ed25519",
          public_key:
            "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAAJKf8W513fLVTlztzfHJ3d5JFoXWRyWsF2AGajNnfgE=\n-----END PUBLIC KEY-----\n",
          from_size: 1,
          until_size: null,
          rotation: null,
        },
      ],
    },
  },
  get_log_checkpoint: {
    answer:
      "cairnlog/f29d89c3f65cfbd5\n15\nvjKSViURuEsxYmyeP/eNb7Ccv9vQh25t8grn/Xj+hrc=\n\n— cairnlog/f29d89c3f65cfbd5 y/RZDhiGLcGb+QB9MBPZkOJHdPFIHXiA8xpAkE3M3TVO1nrKumGr7FbuNha8CuPW2Gccbc4ilLi3Dj7ln3qy4KnAEw4=\n",
  },
  get_log_tile_version_level_index: { params: { version: 2, level: 0, index: 0 } },
  get_log_tile_version_level_index_p_width: { params: { version: 2, level: 0, index_p: "1.p", width: 4 } },
  get_tlog_checkpoint: {
    answer:
      "cairnlog/f29d89c3f65cfbd5/tlog\n15\nly85I8JF8P5mewkD6fcXY9nYFAXlkcXsqj736KyyoDo=\n\n— cairnlog/f29d89c3f65cfbd5/tlog 5LfhP8VVJvI6gQYCQ8OEA6jrH6kRLTz0GH6SE7SkxIF/6Whd1pOSGLvl7TVTfjSXyD9+cpRrxxEAib9gheEgdbX+gA8=\n",
  },
  get_tlog_vkey: { answer: "cairnlog/f29d89c3f65cfbd5/tlog+e4b7e13f+AQCSn/Fudd3y1U5c7c3xyd3eSRaF1kclrBdgBmozZ34B\n" },
  get_tlog_tile_level_n1: { params: { level: "entries", n1: "000" } },
  get_tlog_tile_level_n1_n2: { params: { level: "1", n1: "000.p", n2: "1" } },
  post_log_anchor: {
    answer: {
      anchored_entry_id: 15,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "f1c10b11e5efaae8ca032bf46f03d4120e7bef22fddde281d065a80647326793",
          is_primary: true,
        },
      ],
      ots_proof:
        "AE9wZW5UaW1lc3RhbXBzAABQcm9vZgC/ieLohOiSlAEI8cELEeXvqujKAyv0bwPUEg577yL93eKB0GWoBkcyZ5PwECH0iFtA/oDzCTXCSV29XWAI8QRlAAAA8AgKDxrIW8d6PgCD3+MNLvkMjh0caHR0cHM6Ly9jYWxlbmRhci5leGFtcGxlLm9yZw==",
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
      root_hash: "be3292562511b84b31626c9e3ff78d6fb09cbfdbd0876e6df20ae7fd78fe86b7",
      signature: "9Nqvz7sXxKEIslbP7M0wEXewP4aFC3Mb3kYF0upEmDYM2NoetidQH4kuTCKDkWU55omuPrKCgrrCejMaAS3mBQ==",
      timestamp: "2025-01-01T00:06:00.000000Z",
      key_id: "sha256:f29d89c3f65cfbd50ae001f37287219523441f7a41bcb02bf63edf5781f277b7",
      tree_version: 2,
    },
  },
  get_log_shards: { answer: { predecessor: null, frozen: null } },
  post_log_freeze: {
    body: {
      reason: "The log goes on with a new one every year.",
      successor: {
        url: "https://2027.log.example",
        vkey: "cairnlog/f29d89c3f65cfbd5/tlog+e4b7e13f+AQCSn/Fudd3y1U5c7c3xyd3eSRaF1kclrBdgBmozZ34B",
      },
    },
    answer: {
      log_entry_id: 330,
      leaf_index: 329,
      entry_hash: "e17bbfe5cdbdc07c3feadf16ac656f4fcc8faad528958b0aba70807fc78621d2",
      sth: {
        tree_size: 330,
        root_hash: "72ea318219ba749c0bfe16c3473c85b83ea3207b638a45e31f48158b1163eaff",
        signature: "A1rBok6atwpajsseKn/8+Wa1NE8r9wkHxQ4Yrv7Fx00+GirtVEP++j+TMUFtcrOiDMBeCqfyXOkTw/qlyUaCCw==",
        timestamp: "2025-01-02T02:29:00.000000Z",
        key_id: "sha256:f29d89c3f65cfbd50ae001f37287219523441f7a41bcb02bf63edf5781f277b7",
        tree_version: 2,
      },
    },
  },
  post_log_entry_id_withhold: {
    params: { entry_id: 287 },
    body: { reason: "An order.", basis: "Case 12/26" },
    answer: {
      log_entry_id: 289,
      leaf_index: 288,
      entry_hash: "95cf8b72b333cd6e76dc8c6d99985baeda979c322793013611b39a223c9c7ed4",
      sth: {
        tree_size: 289,
        root_hash: "44cccc88c50e160b63fdf9861abec828fb72bdfde502c519feda9c18d197ee16",
        signature: "uW9bXebpsHQFqBNjDZ/rJTImSP0U2Te3X0IU3fAAtc/AWG0IDNtSWgNs/LRYUdOmO5YQiLFKQJOUM4raTDwMBA==",
        timestamp: "2025-01-02T00:07:00.000000Z",
        key_id: "sha256:f29d89c3f65cfbd50ae001f37287219523441f7a41bcb02bf63edf5781f277b7",
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
            fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
            key_algorithm: "ed25519",
            possession_signature: null,
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAtb+h6Lr1ABQscKE6mFgJazFCuYBdKarMy6DhwZlzupY=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "de14c0f1cdb850844b8e5bcd5cb9f08c64bef0f2f3ca60c112dd4ba5d5bfd203",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "de14c0f1cdb850844b8e5bcd5cb9f08c64bef0f2f3ca60c112dd4ba5d5bfd203",
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
    params: { fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106" },
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
            fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
            key_algorithm: "ed25519",
            possession_signature: null,
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAtb+h6Lr1ABQscKE6mFgJazFCuYBdKarMy6DhwZlzupY=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "de14c0f1cdb850844b8e5bcd5cb9f08c64bef0f2f3ca60c112dd4ba5d5bfd203",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "de14c0f1cdb850844b8e5bcd5cb9f08c64bef0f2f3ca60c112dd4ba5d5bfd203",
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
      fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
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
            fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
            key_algorithm: "ed25519",
            possession_signature: null,
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAtb+h6Lr1ABQscKE6mFgJazFCuYBdKarMy6DhwZlzupY=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "de14c0f1cdb850844b8e5bcd5cb9f08c64bef0f2f3ca60c112dd4ba5d5bfd203",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "de14c0f1cdb850844b8e5bcd5cb9f08c64bef0f2f3ca60c112dd4ba5d5bfd203",
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
      endorser_fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
      endorsed_fingerprint: "sha256:0737af5b59a4025560dd92577e3099b2d3a65ef0c77d22e5b47ac6c650a26fdf",
      category: "x-service:institutional_endorsement",
      valid_until: "2027-01-01",
      institutional_metadata: { name: "University of Example" },
      external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
      auth: {
        challenge_id:
          "AQEABiqZ4WMtAIBG8JgWpYL5AOVkkrxzDLxAEdIxJ3s_oOGfBpt4IoEGk-amURkjct4wHVRB6UCvqAXrz0AzTlCS-cwMotlZf1aH-8uwASAjKlRDSfq7CAbeVbfmQBnq0b4y1LTubmBgcQ",
        challenge_signature: "3H0TgrTrP/Sn7yqTD3QXPmk/1gR95KWFQvGI/3q/d3+KtgfKB7oiT7f0INXinkfiWZmJM//B695ZW4OsqKC4CA==",
      },
    },
    answer: {
      id: 276,
      timestamp: "2025-01-01T00:06:00.000000Z",
      event_type: "endorsement_offer",
      payload: {
        category: "x-service:institutional_endorsement",
        endorsed_key_fingerprint: "sha256:0737af5b59a4025560dd92577e3099b2d3a65ef0c77d22e5b47ac6c650a26fdf",
        endorser_key_fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
        event_type: "endorsement_offer",
        external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
        institutional_metadata: { name: "University of Example" },
        valid_until: "2027-01-01",
      },
      previous_hash: "155d6255f0b8d00c92a49a4c5d1af025c3f370f688b227457d0a3b847dd19272",
      entry_hash: "fa21b7e42ab4d65276352f4be919d97624b26041305b7b248c0cff9f35f3050b",
      chain_version: 2,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "fa21b7e42ab4d65276352f4be919d97624b26041305b7b248c0cff9f35f3050b",
          is_primary: true,
        },
      ],
    },
  },
  post_endorsements_accept: {
    body: {
      offer_entry_id: 276,
      endorsed_fingerprint: "sha256:0737af5b59a4025560dd92577e3099b2d3a65ef0c77d22e5b47ac6c650a26fdf",
      auth: {
        challenge_id:
          "AQEABiqZ4WMtAAc3r1tZpAJVYN2SV34wmbLTpl7wx30i5bR6xsZQom_fnBKWMlnQBqDEV42QdJ4cj2M4UishmWm7SKjQpxxHgybBlOta3CccaiIHpalcjg1_v32rOiljiD3BKre23BsAow",
        challenge_signature:
          "MEUCIQCu7n/OQMhXR9gsDzuX86U47ZlwDRnuOAOogTisScQwxQIgAMNwGI17ovnTJvXzNqMyMQW4QvWIKxY2KMW4oCv2KZ0=",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 276,
        endorser_fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
        endorsed_fingerprint: "sha256:0737af5b59a4025560dd92577e3099b2d3a65ef0c77d22e5b47ac6c650a26fdf",
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
          endorsed_key_fingerprint: "sha256:0737af5b59a4025560dd92577e3099b2d3a65ef0c77d22e5b47ac6c650a26fdf",
          endorser_key_fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
          event_type: "endorsement_acceptance",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: null,
          offer_entry_id: 276,
          valid_until: "2027-01-01",
        },
        previous_hash: "fa21b7e42ab4d65276352f4be919d97624b26041305b7b248c0cff9f35f3050b",
        entry_hash: "6b09926a475effd21904b0f4fcab3dd8729039aca30219a2b3ce80becbdf4fd8",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "6b09926a475effd21904b0f4fcab3dd8729039aca30219a2b3ce80becbdf4fd8",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_withdraw: {
    body: {
      endorser_fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
      endorsed_fingerprint: "sha256:0737af5b59a4025560dd92577e3099b2d3a65ef0c77d22e5b47ac6c650a26fdf",
      original_offer_entry_id: 281,
      note: "A mistake.",
      auth: {
        challenge_id:
          "AQEABiquAs4UAIBG8JgWpYL5AOVkkrxzDLxAEdIxJ3s_oOGfBpt4IoEGg8HjBahRlJ4jCGyuQVpJz50iI_JGOVlKC6GvwcqpNpMZMpPzq-Hx6JsfebNKYCabZby4T5urN88qho0iaMA3Rw",
        challenge_signature: "qmRIOsgb8haec5ReyPEX+rhSYCZQd3vuI6HbNJCngxGd9yj9qlzPkhLeTai9jPkZ4dHPbsslIrTdLgAcJh6wBg==",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 281,
        endorser_fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
        endorsed_fingerprint: "sha256:0737af5b59a4025560dd92577e3099b2d3a65ef0c77d22e5b47ac6c650a26fdf",
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
          endorsed_key_fingerprint: "sha256:0737af5b59a4025560dd92577e3099b2d3a65ef0c77d22e5b47ac6c650a26fdf",
          endorser_key_fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
          event_type: "endorsement_withdrawal",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: "A mistake.",
          offer_entry_id: 281,
          valid_until: "2027-01-01",
        },
        previous_hash: "a9883a3aba58d1572b31ac620aed3afd09aa37978c3088355ef66266358bd963",
        entry_hash: "d744a9d491ad8023f32c20b49406f5917511035afb07b9f3ff6f1b2d1b67e83b",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "d744a9d491ad8023f32c20b49406f5917511035afb07b9f3ff6f1b2d1b67e83b",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_revoke_acceptance: {
    body: {
      endorsed_fingerprint: "sha256:0737af5b59a4025560dd92577e3099b2d3a65ef0c77d22e5b47ac6c650a26fdf",
      original_offer_entry_id: 276,
      note: "We no longer work together.",
      auth: {
        challenge_id:
          "AQEABiquAs4UAAc3r1tZpAJVYN2SV34wmbLTpl7wx30i5bR6xsZQom_fCxDxbtn3aFTHja5j4DvXuk-A8YIZylLQSgfGjwDZTjp2hSb4tY-wNQT-s37xgIc56jc6sr7xNErOsw-FxZW_fQ",
        challenge_signature:
          "MEUCIBkWgU8AX5hEv9zvncAPHHQL0Y5tWtFAQv2fgtBJzY5yAiEAzYWY4kc7u5BHHNuWJcRnzRiDfDmN0WQqVXothD2TUMA=",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 276,
        endorser_fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
        endorsed_fingerprint: "sha256:0737af5b59a4025560dd92577e3099b2d3a65ef0c77d22e5b47ac6c650a26fdf",
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
          endorsed_key_fingerprint: "sha256:0737af5b59a4025560dd92577e3099b2d3a65ef0c77d22e5b47ac6c650a26fdf",
          endorser_key_fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
          event_type: "acceptance_revocation",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: "We no longer work together.",
          offer_entry_id: 276,
          valid_until: "2027-01-01",
        },
        previous_hash: "7700071a905248286c22408caf4fe0e96af52e78533a77d5b3c4e19ffcd310f8",
        entry_hash: "61f3d7f9ba529bfc4a4a693c5b94fafee778d34e17c1874b87cce4b89712aab7",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "61f3d7f9ba529bfc4a4a693c5b94fafee778d34e17c1874b87cce4b89712aab7",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_revocation_alert: {
    body: {
      endorser_fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
      compromised_fingerprint: "sha256:0737af5b59a4025560dd92577e3099b2d3a65ef0c77d22e5b47ac6c650a26fdf",
      reason: "The laptop with the key was stolen.",
      auth: {
        challenge_id:
          "AQEABiquAs4UAIBG8JgWpYL5AOVkkrxzDLxAEdIxJ3s_oOGfBpt4IoEGYB0rY8WDLofxOjduY5ROmDRgSppG4OhKMMTkTTLzH5uF4oKhNwQ3fUPwjhE6di8wMnPxhToxAQqMSbm1NKjpxw",
        challenge_signature: "GwUh7w50Tcnuoco8pjpmBk9zyT0ZruBXRk6qB96+XWUd+MeW1Blha34JZpIl3w+/ONLfsWRRJ3YbzDUOuFtACA==",
      },
    },
    answer: {
      alert: {
        alert_entry_id: 279,
        compromised_fingerprint: "sha256:0737af5b59a4025560dd92577e3099b2d3a65ef0c77d22e5b47ac6c650a26fdf",
        endorser_fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
        reason: "The laptop with the key was stolen.",
        evidence: null,
        filed_at: "2025-01-02T00:07:00.000000Z",
      },
      log_entry: {
        id: 279,
        timestamp: "2025-01-02T00:07:00.000000Z",
        event_type: "endorser_revocation_alert",
        payload: {
          compromised_key_fingerprint: "sha256:0737af5b59a4025560dd92577e3099b2d3a65ef0c77d22e5b47ac6c650a26fdf",
          endorser_key_fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
          event_type: "endorser_revocation_alert",
          evidence: null,
          reason: "The laptop with the key was stolen.",
        },
        previous_hash: "aa7280713a42a61b464d5a6ffc54013a93f2387b88890ffcdc15979d0b520cec",
        entry_hash: "7700071a905248286c22408caf4fe0e96af52e78533a77d5b3c4e19ffcd310f8",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "7700071a905248286c22408caf4fe0e96af52e78533a77d5b3c4e19ffcd310f8",
            is_primary: true,
          },
        ],
      },
    },
  },
  get_endorsements_fingerprint: {
    params: { fingerprint: "sha256:0737af5b59a4025560dd92577e3099b2d3a65ef0c77d22e5b47ac6c650a26fdf" },
    answer: {
      endorsements: [
        {
          offer_entry_id: 276,
          endorser_fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
          endorsed_fingerprint: "sha256:0737af5b59a4025560dd92577e3099b2d3a65ef0c77d22e5b47ac6c650a26fdf",
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
    params: { fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106" },
    query: { status: "active" },
    answer: {
      endorsements: [
        {
          offer_entry_id: 276,
          endorser_fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
          endorsed_fingerprint: "sha256:0737af5b59a4025560dd92577e3099b2d3a65ef0c77d22e5b47ac6c650a26fdf",
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
    params: { fingerprint: "sha256:0737af5b59a4025560dd92577e3099b2d3a65ef0c77d22e5b47ac6c650a26fdf" },
    answer: {
      alerts: [
        {
          alert_entry_id: 279,
          compromised_fingerprint: "sha256:0737af5b59a4025560dd92577e3099b2d3a65ef0c77d22e5b47ac6c650a26fdf",
          endorser_fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
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
    params: { fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106" },
    query: { max_depth: 2 },
    answer: {
      root: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
      nodes: [
        {
          fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
          pseudonym: "Ada",
          status: "active",
          named: false,
          depth: 0,
        },
        {
          fingerprint: "sha256:0737af5b59a4025560dd92577e3099b2d3a65ef0c77d22e5b47ac6c650a26fdf",
          pseudonym: "Grace",
          status: "active",
          named: false,
          depth: 1,
        },
      ],
      edges: [
        {
          from: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
          to: "sha256:0737af5b59a4025560dd92577e3099b2d3a65ef0c77d22e5b47ac6c650a26fdf",
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
    params: { fingerprint: "sha256:0737af5b59a4025560dd92577e3099b2d3a65ef0c77d22e5b47ac6c650a26fdf" },
    answer: {
      fingerprint: "sha256:0737af5b59a4025560dd92577e3099b2d3a65ef0c77d22e5b47ac6c650a26fdf",
      key_status: "active",
      key_named: false,
      received: { offered: 0, pending_activation: 0, active: 1, expired: 0, withdrawn: 0, acceptance_revoked: 0 },
      issued: { offered: 0, pending_activation: 0, active: 0, expired: 0, withdrawn: 0, acceptance_revoked: 0 },
      alerts: 0,
      trust_level: 0.1,
      paths: [],
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
          fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
          category_weights: { "x-service:institutional_endorsement": 0.8 },
          decay_per_hop: 0.5,
          direct_signer_anchors: [
            { fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106", weight: 1 },
          ],
          endorser_anchors: [
            { fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106", weight: 0.9 },
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
      fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
      direct_signer_anchors: [
        { fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106", weight: 0.9 },
      ],
      minimum_threshold: 0.4,
      category_weights: { "x-service:institutional_endorsement": 0.8 },
    },
    answer: {
      id: 1,
      fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106", weight: 0.9 },
      ],
      max_depth: 4,
      minimum_threshold: 0.4,
      status: "active",
      created_at: "2025-01-02T00:07:00.000000Z",
    },
  },
  get_trust_configs_fingerprint: {
    params: { fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106" },
    answer: {
      id: 1,
      fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106", weight: 0.9 },
      ],
      max_depth: 4,
      minimum_threshold: 0.4,
      status: "active",
      created_at: "2025-01-02T00:07:00.000000Z",
    },
  },
  post_trust_configs_revoke: {
    body: { fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106" },
    answer: {
      id: 1,
      fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106", weight: 0.9 },
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
            id: "a4b6c0cc-0d4c-4ee8-9a9e-5e313fb5ad8e",
            type: "authorship",
            scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
            signer_key_fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
            signature_algorithm: "ed25519",
            signature: "zXJ875hzN39c0EUEfp8BPfywlP8GWEidseN5u+VISn0HIktkNrnbI1IXgF+fL1VOj8lzfmHeKsFP8g8zrqOIBA==",
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
          id: "a4b6c0cc-0d4c-4ee8-9a9e-5e313fb5ad8e",
          signer_key_fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
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
          { id: "a4b6c0cc-0d4c-4ee8-9a9e-5e313fb5ad8e", kind: "attestation", type: "authorship", status: "valid" },
          {
            id: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
            kind: "key",
            pseudonym: "Ada",
            status: "active",
            named: false,
          },
        ],
        edges: [
          {
            from: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
            to: "a4b6c0cc-0d4c-4ee8-9a9e-5e313fb5ad8e",
            kind: "signed",
          },
          {
            from: "a4b6c0cc-0d4c-4ee8-9a9e-5e313fb5ad8e",
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
                id: "a4b6c0cc-0d4c-4ee8-9a9e-5e313fb5ad8e",
                type: "authorship",
                scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                signer_key_fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
                signature_algorithm: "ed25519",
                signature: "zXJ875hzN39c0EUEfp8BPfywlP8GWEidseN5u+VISn0HIktkNrnbI1IXgF+fL1VOj8lzfmHeKsFP8g8zrqOIBA==",
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
                  id: "a4b6c0cc-0d4c-4ee8-9a9e-5e313fb5ad8e",
                  type: "authorship",
                  scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                  signer_key_fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
                  signature_algorithm: "ed25519",
                  signature: "zXJ875hzN39c0EUEfp8BPfywlP8GWEidseN5u+VISn0HIktkNrnbI1IXgF+fL1VOj8lzfmHeKsFP8g8zrqOIBA==",
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
                  id: "a4b6c0cc-0d4c-4ee8-9a9e-5e313fb5ad8e",
                  type: "authorship",
                  scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                  signer_key_fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
                  signature_algorithm: "ed25519",
                  signature: "zXJ875hzN39c0EUEfp8BPfywlP8GWEidseN5u+VISn0HIktkNrnbI1IXgF+fL1VOj8lzfmHeKsFP8g8zrqOIBA==",
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
                    id: "a4b6c0cc-0d4c-4ee8-9a9e-5e313fb5ad8e",
                    type: "authorship",
                    scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                    signer_key_fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
                    signature_algorithm: "ed25519",
                    signature:
                      "zXJ875hzN39c0EUEfp8BPfywlP8GWEidseN5u+VISn0HIktkNrnbI1IXgF+fL1VOj8lzfmHeKsFP8g8zrqOIBA==",
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
        "eyJhdHRlc3RhdGlvbnMiOltdLCJkb2N1bWVudCI6eyJjb250ZW50X2hhc2giOiJzaGEyNTY6ZjNkNDJlYmY5NjU5YjE2MmUwYmE4YzQwMjM1OTQwMWRlN2VkOGMyODg0M2MwMWY2ZTBiZGIyMzhhY2Q4ZDAzYyIsInBhcnRzIjpbeyJjb250ZW50X2hhc2giOiJzaGEyNTY6NDk4NjNjYzg4YzcxZGU2NjI5MmE5ZjVmMmI5MzJkMWRmMGMxZWQxMDFlYzJiOTc4ODBkZTFhMTEzMzcwOTgxMCIsIm1hbmlmZXN0Ijp7ImF0dGVzdGF0aW9ucyI6W3siaWQiOiJhNGI2YzBjYy0wZDRjLTRlZTgtOWE5ZS01ZTMxM2ZiNWFkOGUiLCJpbnRlbnRfc3RhdGVtZW50IjoiSSB3cm90ZSBpdC4iLCJzY29wZSI6eyJjb250ZW50X2hhc2giOiJzaGEyNTY6NDk4NjNjYzg4YzcxZGU2NjI5MmE5ZjVmMmI5MzJkMWRmMGMxZWQxMDFlYzJiOTc4ODBkZTFhMTEzMzcwOTgxMCJ9LCJzaWduYXR1cmUiOiJ6WEo4NzVoek4zOWMwRVVFZnA4QlBmeXdsUDhHV0VpZHNlTjV1K1ZJU24wSElrdGtOcm5iSTFJWGdGK2ZMMVZPajhsemZtSGVLc0ZQOGc4enJxT0lCQT09Iiwic2lnbmF0dXJlX2FsZ29yaXRobSI6ImVkMjU1MTkiLCJzaWduZXJfa2V5X2ZpbmdlcnByaW50Ijoic2hhMjU2OjgwNDZmMDk4MTZhNTgyZjkwMGU1NjQ5MmJjNzMwY2JjNDAxMWQyMzEyNzdiM2ZhMGUxOWYwNjliNzgyMjgxMDYiLCJ0aW1lc3RhbXAiOiIyMDI1LTAxLTAxVDAwOjA2OjAwLjAwMDAwMFoiLCJ0eXBlIjoiYXV0aG9yc2hpcCJ9XSwiZG9jdW1lbnQiOnsiY29udGVudF9oYXNoIjoic2hhMjU2OjQ5ODYzY2M4OGM3MWRlNjYyOTJhOWY1ZjJiOTMyZDFkZjBjMWVkMTAxZWMyYjk3ODgwZGUxYTExMzM3MDk4MTAiLCJ0YWdzIjpbInJlcG9ydCJdLCJ0aXRsZSI6IkFubnVhbCByZXBvcnQifX0sInJvbGUiOiJjaGFwdGVyIiwidGl0bGUiOiJSZXBvcnQifSx7ImNvbnRlbnRfaGFzaCI6InNoYTI1NjpmMzBjNTM0ZGE5NThhNzUzYWMyMGM2ZDVmZDQwNDFkZTRkOWFlMjQ5N2U3NDQwY2ZlMmQwMzRiMDBiNzFlZDEzIiwidGl0bGUiOiJBcHBlbmRpeCJ9XSwidGl0bGUiOiJSZXBvcnQgYW5kIGFwcGVuZGl4In19",
      manifest_hash: "89b9551765e3e53ce50f1afa9c4d26cbd18a6470d48e9d66d883f1f784eea311",
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
            attestation_id: "9a461a5a-0479-4da4-9cfc-22683ee41a54",
            attestation_type: "editorial_review",
            document_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810",
            document_title: "Annual report",
            intent_statement: null,
            manifest_hash: "07a3a261f09eccfd842bc0cc3b0f4d6489cff455701b173ccae85104b6b55285",
            signature:
              "MEUCIGZ+DnG33f94qIaH9NDW6aqdMBobeoDgU8z5W+NxICVbAiEApgNinHB5fbRq8ExPg9cYp6wMNdO4Aj1ATOjJDsCkx4E=",
            signature_algorithm: "ecdsa-p256",
            signer_key_fingerprint: "sha256:0737af5b59a4025560dd92577e3099b2d3a65ef0c77d22e5b47ac6c650a26fdf",
            tags: ["report"],
            timestamp: "2025-01-01T00:06:00.000000Z",
          },
          previous_hash: "e34058555be42c2f0c3f085f64ff4d5a77f8e3fd48dfdded16ebf715f2701dd8",
          entry_hash: "613bd755264514732113abfede8c19a02b285b530038c6e00e9736ab637bffe8",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "613bd755264514732113abfede8c19a02b285b530038c6e00e9736ab637bffe8",
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
          "BJXefDqMBEn8J7Dcr+mqZ8Ceqz6mnqnKcfh/6UQbj/vWFqZjNPdgA8Z0YPPhmuNohk/ndJMqPxUNzi/9t1u7HBM=",
        commitment: "4b63bb6ec3efa75ef6e78363177239ab8e4f19d87bd6e9bfdc8587d27c3b6812",
        lookup_key: "aa08c9486cb58ad48bf6334192f209f1854328046acfd7b79083eaf4b525f8b3",
        nonce: "6F3j2/yftUwUi28R",
        ciphertext: "XhXEY7Lq4LfUx4UxlZFHov5izN381ZGj0vnFZuSPbnRyv/tjFbQbjQz7biw5N8Hym/jJ",
        recipient_fingerprint: "sha256:612f66f2213059bd5d25d9c866d60fed3dedae028a896ceacb5fd805530fc9c0",
      },
    },
    answer: {
      entry_id: 287,
      commitment: "4b63bb6ec3efa75ef6e78363177239ab8e4f19d87bd6e9bfdc8587d27c3b6812",
      lookup_key: "aa08c9486cb58ad48bf6334192f209f1854328046acfd7b79083eaf4b525f8b3",
      leaf_index: 286,
      log_entry_id: 287,
    },
  },
  get_claims: {
    query: { lookup_key: "aa08c9486cb58ad48bf6334192f209f1854328046acfd7b79083eaf4b525f8b3" },
    answer: {
      entries: [
        {
          id: 287,
          timestamp: "2025-01-02T00:07:00.000000Z",
          event_type: "encrypted_claim",
          payload: {
            ciphertext: "XhXEY7Lq4LfUx4UxlZFHov5izN381ZGj0vnFZuSPbnRyv/tjFbQbjQz7biw5N8Hym/jJ",
            commitment: "4b63bb6ec3efa75ef6e78363177239ab8e4f19d87bd6e9bfdc8587d27c3b6812",
            commitment_alg: "hmac-sha256-ecdh-v1",
            ephemeral_public_key:
              "BJXefDqMBEn8J7Dcr+mqZ8Ceqz6mnqnKcfh/6UQbj/vWFqZjNPdgA8Z0YPPhmuNohk/ndJMqPxUNzi/9t1u7HBM=",
            event_type: "encrypted_claim",
            lookup_key: "aa08c9486cb58ad48bf6334192f209f1854328046acfd7b79083eaf4b525f8b3",
            nonce: "6F3j2/yftUwUi28R",
            recipient_fingerprint: "sha256:612f66f2213059bd5d25d9c866d60fed3dedae028a896ceacb5fd805530fc9c0",
          },
          previous_hashes: [
            { algorithm: "sha2-256", digest_hex: "3a86d77180d83c125a329d4c796aa4866c2204b2578f9367ec0ac8012f977f94" },
          ],
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "7032895a48d16c03943b39ddd10ff814f99995cfaafbaaec369d750d0d30319e",
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
      ciphertext: "XhXEY7Lq4LfUx4UxlZFHov5izN381ZGj0vnFZuSPbnRyv/tjFbQbjQz7biw5N8Hym/jJ",
      commitment: "4b63bb6ec3efa75ef6e78363177239ab8e4f19d87bd6e9bfdc8587d27c3b6812",
      commitment_alg: "hmac-sha256-ecdh-v1",
      ephemeral_public_key: "BJXefDqMBEn8J7Dcr+mqZ8Ceqz6mnqnKcfh/6UQbj/vWFqZjNPdgA8Z0YPPhmuNohk/ndJMqPxUNzi/9t1u7HBM=",
      lookup_key: "aa08c9486cb58ad48bf6334192f209f1854328046acfd7b79083eaf4b525f8b3",
      nonce: "6F3j2/yftUwUi28R",
      recipient_fingerprint: "sha256:612f66f2213059bd5d25d9c866d60fed3dedae028a896ceacb5fd805530fc9c0",
    },
  },
  post_claims_entry_id_reveal: {
    params: { entry_id: 287 },
    body: {
      plaintext: { salary: 52000, name: "Zoë 🪨" },
      commitment_key: "9a5a4828b71b672adbc23ed602a5da792693e8b9765885e486b63f816e54fe21",
    },
    answer: { valid: true },
  },
  get_log_attestation_requests: {
    query: { target: "sha256:0737af5b59a4025560dd92577e3099b2d3a65ef0c77d22e5b47ac6c650a26fdf", status: "open" },
    answer: {
      requests: [
        {
          request_id: "5164c933-682c-4f81-a75f-5ae2aeab7719",
          requester_fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
          target_fingerprint: "sha256:0737af5b59a4025560dd92577e3099b2d3a65ef0c77d22e5b47ac6c650a26fdf",
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
      target_fingerprint: "sha256:0737af5b59a4025560dd92577e3099b2d3a65ef0c77d22e5b47ac6c650a26fdf",
      attestation_type: "peer_review",
      nonce: "request-2025-0001",
      intent_statement: "Please review the annual report.",
      claims: { document_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
    },
    answer: {
      request_id: "5164c933-682c-4f81-a75f-5ae2aeab7719",
      requester_fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
      target_fingerprint: "sha256:0737af5b59a4025560dd92577e3099b2d3a65ef0c77d22e5b47ac6c650a26fdf",
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
    params: { request_id: "5164c933-682c-4f81-a75f-5ae2aeab7719" },
    answer: {
      request_id: "5164c933-682c-4f81-a75f-5ae2aeab7719",
      requester_fingerprint: "sha256:8046f09816a582f900e56492bc730cbc4011d231277b3fa0e19f069b78228106",
      target_fingerprint: "sha256:0737af5b59a4025560dd92577e3099b2d3a65ef0c77d22e5b47ac6c650a26fdf",
      attestation_type: "peer_review",
      status: "declined",
      deadline: "2025-01-16T00:07:00.000000Z",
      created_at: "2025-01-02T00:07:00.000000Z",
      log_entry_id: 284,
      leaf_index: 283,
      responses: [
        {
          decision: "decline",
          responder_fingerprint: "sha256:0737af5b59a4025560dd92577e3099b2d3a65ef0c77d22e5b47ac6c650a26fdf",
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
        responder_fingerprint: "sha256:0737af5b59a4025560dd92577e3099b2d3a65ef0c77d22e5b47ac6c650a26fdf",
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
    params: { fingerprint: "sha256:0737af5b59a4025560dd92577e3099b2d3a65ef0c77d22e5b47ac6c650a26fdf" },
    answer: {
      target_fingerprint: "sha256:0737af5b59a4025560dd92577e3099b2d3a65ef0c77d22e5b47ac6c650a26fdf",
      active: {
        target_fingerprint: "sha256:0737af5b59a4025560dd92577e3099b2d3a65ef0c77d22e5b47ac6c650a26fdf",
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
    params: { request_id: "5164c933-682c-4f81-a75f-5ae2aeab7719" },
    body: { decision: "decline", reason: "No time before summer." },
    answer: {
      request_id: "5164c933-682c-4f81-a75f-5ae2aeab7719",
      status: "declined",
      responder_fingerprint: "sha256:0737af5b59a4025560dd92577e3099b2d3a65ef0c77d22e5b47ac6c650a26fdf",
      decision: "decline",
      attestation_id: null,
      reason: "No time before summer.",
      log_entry_id: 285,
      leaf_index: 284,
    },
  },
  post_log_request_policies: {
    body: {
      target_fingerprint: "sha256:0737af5b59a4025560dd92577e3099b2d3a65ef0c77d22e5b47ac6c650a26fdf",
      predicates: { all: [{ field: "attestation_type", op: "in", value: ["peer_review", "editorial_review"] }] },
      default_action_on_failure: "decline",
    },
    answer: {
      target_fingerprint: "sha256:0737af5b59a4025560dd92577e3099b2d3a65ef0c77d22e5b47ac6c650a26fdf",
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
          request_id: "5164c933-682c-4f81-a75f-5ae2aeab7719",
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
      request_id: "5164c933-682c-4f81-a75f-5ae2aeab7719",
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

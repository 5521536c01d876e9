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
      '# HELP cairnlog_refusals_total Requests refused, by the code of the problem document.\n# TYPE cairnlog_refusals_total counter\ncairnlog_refusals_total{code="not-found"} 2\ncairnlog_refusals_total{code="precondition-failed"} 2\n\n# HELP cairnlog_http_aborted_total Requests whose client left before the answer was sent.',
  },
  post_users: {
    body: {
      display_name: "Ada Lovelace",
      email: "ada@example.org",
      credential_type: "hardware",
      key_fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
      device_label: "Security key",
    },
    answer: {
      user: {
        id: "db89f108-dde8-4cc8-9e2e-f2aa13ea5e96",
        display_name: "Ada Lovelace",
        created_at: "2025-01-01T00:00:00.000000Z",
      },
      credential: {
        id: "2044b8e9-e430-4fe9-a146-50a936a85170",
        key_fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
        credential_type: "hardware",
        device_label: "Security key",
        status: "active",
        created_at: "2025-01-01T00:00:00.000000Z",
        revoked_at: null,
        hardware_backed: true,
      },
      recovery_key: "HK666-Y0MVS-KWM67-Q439H-MF3QY-QJ9XZ-YZYGF-2EG1D",
    },
  },
  post_users_recover: {
    body: {
      pseudonym: "Ada Lovelace",
      recovery_key: "HK666-Y0MVS-KWM67-Q439H-MF3QY-QJ9XZ-YZYGF-2EG1D",
      credential_type: "hardware",
      key_fingerprint: "sha256:9fea8a4e021b43d21f3e0b83e5663be0a8d19896142560a0ed0e1f802a31d60b",
      device_label: "Security key",
    },
    answer: {
      user: {
        id: "db89f108-dde8-4cc8-9e2e-f2aa13ea5e96",
        display_name: "Ada Lovelace",
        created_at: "2025-01-01T00:00:00.000000Z",
      },
      credential: {
        id: "33e667f7-ff3f-4634-8539-706349c26d98",
        key_fingerprint: "sha256:9fea8a4e021b43d21f3e0b83e5663be0a8d19896142560a0ed0e1f802a31d60b",
        credential_type: "hardware",
        device_label: "Security key",
        status: "active",
        created_at: "2025-01-01T00:06:00.000000Z",
        revoked_at: null,
        hardware_backed: true,
      },
      recovery_key: "TBC9Y-J5ZX6-TZQSZ-DB5QR-P55KT-FECXA-AC46W-EC2DR",
      revoked_credentials: 2,
    },
  },
  post_credentials_enroll: {
    body: {
      challenge_id: "d189d6bb-1c07-4524-ba1f-b62e52a1a51b",
      issuing_fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
      key_fingerprint: "sha256:db78dabf5506df6ce759e36c8c2aeb911e41a2f491e9b9e20830036111536b82",
      credential_type: "hardware",
      device_label: "Second security key",
      challenge_signature: "x9LrajFD/J/FWKkDMqKtODjsNcFhSk8FqSe890zBS0MeXb+JuRusWeHgAtt3FYIet6MWQ+6xFeY5mlTay5mWBQ==",
      chain_signature: "UfSJXG21G3Ep87rMGyX+a0ipO6RGsrm6X3vO5+13p5BkarTemoLOZIW0LhwQXQnnEBKAv2OPFIqW9EYp0vYzAQ==",
    },
    answer: {
      credential: {
        id: "8fab79de-56d1-4150-aee7-528257e9cc6c",
        key_fingerprint: "sha256:db78dabf5506df6ce759e36c8c2aeb911e41a2f491e9b9e20830036111536b82",
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
          fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
          pseudonym: "Ada",
          algorithm: "ed25519",
          status: "active",
          registered_at: "2025-01-01T00:00:00.000000Z",
          expires_at: null,
        },
        {
          fingerprint: "sha256:042d1adc32cdbf6468885c7f9d0b364455d47bec49bf1a33600f0c407a1211e7",
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
          fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
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
    params: { fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3" },
    answer: {
      fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
      public_key:
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAY5muwmFyzQtqMxk71xcVAV8OcW10uGLGFAGQMtv3TBA=\n-----END PUBLIC KEY-----\n",
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
    params: { fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3" },
    answer: {
      fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
      status: "active",
      expires_at: null,
      successor_fingerprint: null,
    },
  },
  post_keys_register: {
    body: {
      payload: {
        public_key:
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAY5muwmFyzQtqMxk71xcVAV8OcW10uGLGFAGQMtv3TBA=\n-----END PUBLIC KEY-----\n",
        pseudonym: "Ada",
        key_algorithm: "ed25519",
      },
    },
    answer: {
      fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
      pseudonym: "Ada",
      algorithm: "ed25519",
      log_entry_id: 1,
      leaf_index: 0,
      entry_hash: "f82d16dba30784e9d71264e26a0c6a257d567120c37fba237a280793e510f4ad",
    },
  },
  post_keys_succeed: {
    body: {
      payload: {
        old_fingerprint: "sha256:244c3a185e631391ad369626fc34e480f14c8ab905c627d4119956716f9bb500",
        new_public_key:
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAyYD+D2u/mPNI0izuJGGWWFNoZBwf/GS2s2/BuVVkJCg=\n-----END PUBLIC KEY-----\n",
        new_algorithm: "ed25519",
      },
      auth: {
        challenge_id: "c5f0309f-bad4-47f2-a5fc-a0849f041aae",
        challenge_signature: "jW9E9wD0C83XfYweECKbtAGTs4arPsOAdFlm6eamrpFtoObgaYggFExQ4j7+73HqM4V0Sre4DEgqxbdTtFimAg==",
      },
    },
    answer: {
      old_fingerprint: "sha256:244c3a185e631391ad369626fc34e480f14c8ab905c627d4119956716f9bb500",
      new_fingerprint: "sha256:5268d72626b9408c31a33bcdadfc517ed0465b353f5c5131910036224709ea7e",
      log_entry_id: 5,
      leaf_index: 4,
      entry_hash: "e298f5545e4aa6387add8d6bd97c58948b864dc4126c7b7839e014e05e70f46f",
    },
  },
  post_keys_revoke: {
    body: {
      payload: { fingerprint: "sha256:5268d72626b9408c31a33bcdadfc517ed0465b353f5c5131910036224709ea7e" },
      auth: {
        challenge_id: "99dbc150-1190-4845-b789-02fb7db82a2f",
        challenge_signature: "N1NZIkqlbqoItG5ZYsKtwOUkOdw3LqkVnFCrQ41exOJFDCpoFoB3I3Lwgiaq9sQAmyf5H4fKR3Ba1yyK8c55CQ==",
      },
    },
    answer: {
      fingerprint: "sha256:5268d72626b9408c31a33bcdadfc517ed0465b353f5c5131910036224709ea7e",
      status: "revoked",
      log_entry_id: 6,
      leaf_index: 5,
      entry_hash: "159a85110f55012a823c6df8f74a1ef37e9c44b581213b47d0e222f26f8031ae",
    },
  },
  post_auth_challenge: {
    body: { fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3", purpose: "login" },
    answer: {
      challenge_id: "8b0660cd-dc8e-4597-a1eb-59aa88cfb6e3",
      nonce:
        "service.auth.v1:login:sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3:tD8ydbUcKLZxWYPXsrcz6zyfJBNZYIPDMZgDg4mMXVI",
      expires_at: "2025-01-01T00:05:00.000000Z",
    },
  },
  post_auth_login: {
    body: {
      challenge_id: "8b0660cd-dc8e-4597-a1eb-59aa88cfb6e3",
      challenge_signature: "opw+VyTfH1lYagMToAKayjbW3tTcg30DStqifs0l0ok/MqsNhxJQSQttCh1cME+2gr2CXeReysITesdDeegyAQ==",
    },
    answer: {
      token:
        "eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzaGEyNTY6NTQxNDg0Y2RjNjU3M2FhMzY3NDAwNGJhZjVkN2ZhYmNjMmJhYjhkMDRlMTc2ZGY5ZjYxNmEzZjdiY2I5YjJhZCIsInN1YiI6InNoYTI1NjpmMmNjNDY3YWRjODg2ZDAxYzMwNGU3ODEyNjUwYTQwZTEyNWQ3MmE4YThjOGRhMmM4ZTZlNWU4ZDQ4MmVmMmMzIiwiaWF0IjoxNzM1Njg5NjAwLCJleHAiOjE3MzU2OTMyMDAsImp0aSI6IjNkMDZjZmMwLTQ1N2QtNGE5OS1hYTYzLTUyYjllOTM5ODE1OSIsInBzZXVkb255bSI6IkFkYSIsInJlY292ZXJ5IjpmYWxzZSwiYXV0aF90aW1lIjoxNzM1Njg5NjAwfQ.p8a169cuTxIw9w0ytY5V_C1l5zI0LmS-uSXxcuVgsIF8P431kXYBCt8W0UO1kZgfVa3yqhniTMRrZ_luumUtDQ",
      fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
      pseudonym: "Ada",
      expires_at: "2025-01-01T01:00:00.000000Z",
    },
  },
  post_auth_renew: {
    answer: {
      token:
        "eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzaGEyNTY6NTQxNDg0Y2RjNjU3M2FhMzY3NDAwNGJhZjVkN2ZhYmNjMmJhYjhkMDRlMTc2ZGY5ZjYxNmEzZjdiY2I5YjJhZCIsInN1YiI6InNoYTI1NjpmMmNjNDY3YWRjODg2ZDAxYzMwNGU3ODEyNjUwYTQwZTEyNWQ3MmE4YThjOGRhMmM4ZTZlNWU4ZDQ4MmVmMmMzIiwiaWF0IjoxNzM1Njg5NjAwLCJleHAiOjE3MzU2OTMyMDAsImp0aSI6Ijc1YWVjZGZmLTgwM2YtNDFkMC04MzUxLWU3ODk0NDdiODcyNSIsInBzZXVkb255bSI6IkFkYSIsInJlY292ZXJ5IjpmYWxzZSwiYXV0aF90aW1lIjoxNzM1Njg5NjAwfQ.KgVi7fKxqLTiiC-gakSpgYPav4i3F6fLYKPpMxBpjd2-jjy_PlKLyku9YCQ5mCWda9txzqVEwMVdv5BJzPViDA",
      fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
      pseudonym: "Ada",
      expires_at: "2025-01-01T01:00:00.000000Z",
    },
  },
  post_auth_password: {
    body: {
      challenge_id: "473aeea1-0ccf-4e21-9597-a32d8304ed67",
      challenge_signature: "70kxYTG6p6LQOSZLZLT0dsbx9ogsygFPCwuMM+oJcfWVlOOJ7VGU9+qusvC0PKifXewhM+lc93c9KyKuZGNpBw==",
      password: "correct horse battery",
    },
    answer: {
      fingerprint: "sha256:537d07d6575a548f44d7fea26cba6b5dfc252466d9257adadca1769110d122da",
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
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAY5muwmFyzQtqMxk71xcVAV8OcW10uGLGFAGQMtv3TBA=\n-----END PUBLIC KEY-----\n",
      signature: "dpWZLIN8RCewaCu2nDbMwRN3c3C1LYafymtiheivLsa00jRObLtny267KDKnlWvQfZwuQeUo5bCtxlfUbCbeBg==",
      intent_statement: "I wrote it.",
    },
    answer: {
      attestation: {
        id: "e30f5916-f6e3-40e2-80a5-86ae7ff17e2e",
        type: "authorship",
        scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
        signer_key_fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
        signature_algorithm: "ed25519",
        signature: "dpWZLIN8RCewaCu2nDbMwRN3c3C1LYafymtiheivLsa00jRObLtny267KDKnlWvQfZwuQeUo5bCtxlfUbCbeBg==",
        timestamp: "2025-01-01T00:06:00.000000Z",
        intent_statement: "I wrote it.",
      },
      fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
      pseudonym: "Ada",
      log_entry_id: 13,
      leaf_index: 12,
      entry_hash: "38772b5e0cc53059979fbb4d51199026657a95462003be8f1fe85c1fdbb0c5c8",
      manifest_hash: "38f0c85d6331fd79023d1cd40a3908b665272ec2077277686ac55af17b1b6494",
      sth: {
        tree_size: 13,
        root_hash: "a75f5fb6046b3f0f928d15d809f382bb42c2270130fd13abea25b978264b20ec",
        signature: "qqPB2FUIm8UWiI0hVQriPUt5vQRFUJEEc1ekZtrfl5rIKXJ6h3cTcKFndrg/jUm8JU2MA1GORQXDhmvjOmWFBg==",
        timestamp: "2025-01-01T00:06:00.000000Z",
        key_id: "sha256:541484cdc6573aa3674004baf5d7fabcc2bab8d04e176df9f616a3f7bcb9b2ad",
        tree_version: 2,
      },
      duplicate: false,
      signed: { attestation_type: false, intent_statement: false },
    },
  },
  post_documents_sign: {
    body: {
      title: "Annual report",
      content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810",
      tags: ["report"],
      public_key_pem:
        "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE6zW/faVnfsOQm2t5nfQJJaGP+Sp5\nU6D83Nf11jFIud3OrcomSx8UCUCLujPYwHbCdb9Db5BOKq6YLb6lpjemlg==\n-----END PUBLIC KEY-----\n",
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
        id: 14,
        entry_hash: "35d3041884ac1729acf4ec7ce4650ac314bebe336380cdfc603fa8195c94eaf1",
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
        event_type: "key_registration",
        expiration_date: null,
        fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
        key_algorithm: "ed25519",
        possession_signature: null,
        pseudonym: "Ada",
        public_key:
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAY5muwmFyzQtqMxk71xcVAV8OcW10uGLGFAGQMtv3TBA=\n-----END PUBLIC KEY-----\n",
      },
      previous_hash: null,
      entry_hash: "f82d16dba30784e9d71264e26a0c6a257d567120c37fba237a280793e510f4ad",
      chain_version: 2,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "f82d16dba30784e9d71264e26a0c6a257d567120c37fba237a280793e510f4ad",
          is_primary: true,
        },
      ],
    },
  },
  get_log_sth: {
    answer: {
      tree_size: 14,
      root_hash: "cb8d1c956a8ebb3e9da0aefc8be3df2a750102fbdff9a8dc37131f0e8412512e",
      signature: "hi0R4QPSlSXXpePjIJp7qCyOm03ApMEtG12LPQlSrL/5tZ3FQoTuO2HIDOtWMxJ70xuJo/UbgJzAUPQttS0gDw==",
      timestamp: "2025-01-01T00:06:00.000000Z",
      key_id: "sha256:541484cdc6573aa3674004baf5d7fabcc2bab8d04e176df9f616a3f7bcb9b2ad",
      tree_version: 2,
    },
  },
  get_log_sth_tree_size: {
    params: { tree_size: 3 },
    answer: {
      tree_size: 3,
      root_hash: "8821135d4f39f99f4d070ab20ef958a0017ee2aebaa6bf65d4eecc8ac8a47900",
      signature: "XabmJr/6CHgBpdZ7APy/TOus5ihZxYKQX+oWGJFYEGnQTkjjHPuXWRZXdb37+y8rfR5e5zEoCgFz+F3YTCLpAQ==",
      timestamp: "2025-01-01T00:00:00.000000Z",
      key_id: "sha256:541484cdc6573aa3674004baf5d7fabcc2bab8d04e176df9f616a3f7bcb9b2ad",
      tree_version: 2,
    },
  },
  get_log_heads: {
    query: { from: 3, limit: 1 },
    answer: {
      heads: [
        {
          tree_size: 3,
          root_hash: "8821135d4f39f99f4d070ab20ef958a0017ee2aebaa6bf65d4eecc8ac8a47900",
          signature: "XabmJr/6CHgBpdZ7APy/TOus5ihZxYKQX+oWGJFYEGnQTkjjHPuXWRZXdb37+y8rfR5e5zEoCgFz+F3YTCLpAQ==",
          timestamp: "2025-01-01T00:00:00.000000Z",
          key_id: "sha256:541484cdc6573aa3674004baf5d7fabcc2bab8d04e176df9f616a3f7bcb9b2ad",
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
      leaf_hash: "6ba70199a0e68c6d7083de4fe7286a6349318ae763040d158d58e33d9e844a2e",
      root_hash: "d53b4034d5f5e4ae523be2644b877f80f83394fa57d4172d79d534bac8a041a1",
      audit_path: [
        "834001b27e9a9209c7e466f0b3f63c7974eb3dedc33aa6856d86dfe979f0b0e4",
        "9f7cac73b04b806e59d4c1061e252fe4cbc34dde9ec98d43d911be990dac81ca",
        "0e6a76318e2149e0666aed185aa1b6f588cb8cb5d705268d3fa0f8561b193f2a",
      ],
      entry_hash: "3030adb59fecbeab43ee1f3284c63d4b79464ae70a660775a8c13e11c7cf7e86",
      sth: {
        tree_size: 5,
        root_hash: "d53b4034d5f5e4ae523be2644b877f80f83394fa57d4172d79d534bac8a041a1",
        signature: "TaJUukaTJ8Xch0S5bFbK0nONuCqeuvxh1l0yfHYDRG1NCt8qNBaBizCGdTGvWxx7asn5PX66n6Qzh8uqwBrxAA==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:541484cdc6573aa3674004baf5d7fabcc2bab8d04e176df9f616a3f7bcb9b2ad",
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
      leaf_hash: "6ba70199a0e68c6d7083de4fe7286a6349318ae763040d158d58e33d9e844a2e",
      root_hash: "d53b4034d5f5e4ae523be2644b877f80f83394fa57d4172d79d534bac8a041a1",
      audit_path: [
        "834001b27e9a9209c7e466f0b3f63c7974eb3dedc33aa6856d86dfe979f0b0e4",
        "9f7cac73b04b806e59d4c1061e252fe4cbc34dde9ec98d43d911be990dac81ca",
        "0e6a76318e2149e0666aed185aa1b6f588cb8cb5d705268d3fa0f8561b193f2a",
      ],
      entry_hash: "3030adb59fecbeab43ee1f3284c63d4b79464ae70a660775a8c13e11c7cf7e86",
      sth: {
        tree_size: 5,
        root_hash: "d53b4034d5f5e4ae523be2644b877f80f83394fa57d4172d79d534bac8a041a1",
        signature: "TaJUukaTJ8Xch0S5bFbK0nONuCqeuvxh1l0yfHYDRG1NCt8qNBaBizCGdTGvWxx7asn5PX66n6Qzh8uqwBrxAA==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:541484cdc6573aa3674004baf5d7fabcc2bab8d04e176df9f616a3f7bcb9b2ad",
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
      from_root: "8821135d4f39f99f4d070ab20ef958a0017ee2aebaa6bf65d4eecc8ac8a47900",
      to_root: "d1fa3cbf80622dc3bc52df169aa4b48067e082982f910f93695425922e94c242",
      peaks: [
        "9f7cac73b04b806e59d4c1061e252fe4cbc34dde9ec98d43d911be990dac81ca",
        "6ba70199a0e68c6d7083de4fe7286a6349318ae763040d158d58e33d9e844a2e",
      ],
      extension: [
        "834001b27e9a9209c7e466f0b3f63c7974eb3dedc33aa6856d86dfe979f0b0e4",
        "bccc1771c5f07fc39e6f3eccadb0a63ccf3ec58ac6dca7a5bdf84c24fe82eca7",
      ],
      from_sth: {
        tree_size: 3,
        root_hash: "8821135d4f39f99f4d070ab20ef958a0017ee2aebaa6bf65d4eecc8ac8a47900",
        signature: "XabmJr/6CHgBpdZ7APy/TOus5ihZxYKQX+oWGJFYEGnQTkjjHPuXWRZXdb37+y8rfR5e5zEoCgFz+F3YTCLpAQ==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:541484cdc6573aa3674004baf5d7fabcc2bab8d04e176df9f616a3f7bcb9b2ad",
        tree_version: 2,
      },
      to_sth: {
        tree_size: 6,
        root_hash: "d1fa3cbf80622dc3bc52df169aa4b48067e082982f910f93695425922e94c242",
        signature: "s6YaF065BpS6iN6bu+v/rbYu0uOsPurIcjqTxB1CQ+g8RbyxRTeiNHuvDRxdejX8VgyjNqOZgkh5glBrRkK2CA==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:541484cdc6573aa3674004baf5d7fabcc2bab8d04e176df9f616a3f7bcb9b2ad",
        tree_version: 2,
      },
    },
  },
  post_log_verify: { answer: { valid: true, entry_count: 14, errors: [], warnings: [] } },
  get_log_operator_key: {
    answer: {
      fingerprint: "sha256:541484cdc6573aa3674004baf5d7fabcc2bab8d04e176df9f616a3f7bcb9b2ad",
      algorithm: "ed25519",
      public_key:
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAyUIA9n0AkJz4PEStaRp9IE5Gn3vo25KjHUVy/Kh6JMg=\n-----END PUBLIC KEY-----\n",
    },
  },
  get_log_checkpoint: {
    answer:
      "cairnlog/541484cdc6573aa3\n14\ny40clWqOuz6doK78i+PfKnUBAvvf+ajcNxMfDoQSUS4=\n\n— cairnlog/541484cdc6573aa3 xdtfHMePjVyUNeAczWPWQvsLpK0Ow00/xKE0x+1TeMWn/2qiH5FVmZWZKBh9ZyeQpvMti+JPdGj4w5vJeVMfLrw8NwY=\n",
  },
  get_log_tile_version_level_index: { params: { version: 2, level: 0, index: 0 } },
  get_log_tile_version_level_index_p_width: { params: { version: 2, level: 0, index_p: "1.p", width: 4 } },
  post_log_anchor: {
    answer: {
      anchored_entry_id: 14,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "35d3041884ac1729acf4ec7ce4650ac314bebe336380cdfc603fa8195c94eaf1",
          is_primary: true,
        },
      ],
      ots_proof:
        "AE9wZW5UaW1lc3RhbXBzAABQcm9vZgC/ieLohOiSlAEINdMEGISsFyms9Ox85GUKwxS+vjNjgM38YD+oGVyU6vHwELBGop8iJnsbhzMRB6Lu6OUI8QRlAAAA8AjnZw/lXtjT9ACD3+MNLvkMjh0caHR0cHM6Ly9jYWxlbmRhci5leGFtcGxlLm9yZw==",
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
      root_hash: "cb8d1c956a8ebb3e9da0aefc8be3df2a750102fbdff9a8dc37131f0e8412512e",
      signature: "hi0R4QPSlSXXpePjIJp7qCyOm03ApMEtG12LPQlSrL/5tZ3FQoTuO2HIDOtWMxJ70xuJo/UbgJzAUPQttS0gDw==",
      timestamp: "2025-01-01T00:06:00.000000Z",
      key_id: "sha256:541484cdc6573aa3674004baf5d7fabcc2bab8d04e176df9f616a3f7bcb9b2ad",
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
            fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
            key_algorithm: "ed25519",
            possession_signature: null,
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAY5muwmFyzQtqMxk71xcVAV8OcW10uGLGFAGQMtv3TBA=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "f82d16dba30784e9d71264e26a0c6a257d567120c37fba237a280793e510f4ad",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "f82d16dba30784e9d71264e26a0c6a257d567120c37fba237a280793e510f4ad",
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
    params: { fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3" },
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
            fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
            key_algorithm: "ed25519",
            possession_signature: null,
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAY5muwmFyzQtqMxk71xcVAV8OcW10uGLGFAGQMtv3TBA=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "f82d16dba30784e9d71264e26a0c6a257d567120c37fba237a280793e510f4ad",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "f82d16dba30784e9d71264e26a0c6a257d567120c37fba237a280793e510f4ad",
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
      fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
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
            fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
            key_algorithm: "ed25519",
            possession_signature: null,
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAY5muwmFyzQtqMxk71xcVAV8OcW10uGLGFAGQMtv3TBA=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "f82d16dba30784e9d71264e26a0c6a257d567120c37fba237a280793e510f4ad",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "f82d16dba30784e9d71264e26a0c6a257d567120c37fba237a280793e510f4ad",
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
      endorser_fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
      endorsed_fingerprint: "sha256:042d1adc32cdbf6468885c7f9d0b364455d47bec49bf1a33600f0c407a1211e7",
      category: "x-service:institutional_endorsement",
      valid_until: "2027-01-01",
      institutional_metadata: { name: "University of Example" },
      external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
      auth: {
        challenge_id: "26822d14-be4d-41f2-8dce-f8bd4a9d192d",
        challenge_signature: "xMIHX4PvaHOY0Kl7kHKl3thn42LiZKnhrp/joDydqcnuPnCCRH3d/VQ4F9UnazbqepdYQTRMl6JHQ4evf6e6Ag==",
      },
    },
    answer: {
      id: 275,
      timestamp: "2025-01-01T00:06:00.000000Z",
      event_type: "endorsement_offer",
      payload: {
        category: "x-service:institutional_endorsement",
        endorsed_key_fingerprint: "sha256:042d1adc32cdbf6468885c7f9d0b364455d47bec49bf1a33600f0c407a1211e7",
        endorser_key_fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
        event_type: "endorsement_offer",
        external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
        institutional_metadata: { name: "University of Example" },
        valid_until: "2027-01-01",
      },
      previous_hash: "f9f6b39a8feb1ace896ff9da0b8c39154f655eaca040eae986613fc3893c8dce",
      entry_hash: "e3288c4f434d5599bb9c4d77495b1be6e88d56b8b76f082cfce3e2e9628c105a",
      chain_version: 2,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "e3288c4f434d5599bb9c4d77495b1be6e88d56b8b76f082cfce3e2e9628c105a",
          is_primary: true,
        },
      ],
    },
  },
  post_endorsements_accept: {
    body: {
      offer_entry_id: 275,
      endorsed_fingerprint: "sha256:042d1adc32cdbf6468885c7f9d0b364455d47bec49bf1a33600f0c407a1211e7",
      auth: {
        challenge_id: "4719da2e-de84-49d4-a811-13cb6c7f325a",
        challenge_signature:
          "MEUCIQCLBN1MYtTNPhEI/IaqCr99AWFRVb9QGe2TQAqgPVXdtgIgKVv56FTBIPXGRK9T9KPEG6iy/lS36qIx+c2DW9OGHdE=",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 275,
        endorser_fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
        endorsed_fingerprint: "sha256:042d1adc32cdbf6468885c7f9d0b364455d47bec49bf1a33600f0c407a1211e7",
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
          endorsed_key_fingerprint: "sha256:042d1adc32cdbf6468885c7f9d0b364455d47bec49bf1a33600f0c407a1211e7",
          endorser_key_fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
          event_type: "endorsement_acceptance",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: null,
          offer_entry_id: 275,
          valid_until: "2027-01-01",
        },
        previous_hash: "e3288c4f434d5599bb9c4d77495b1be6e88d56b8b76f082cfce3e2e9628c105a",
        entry_hash: "792fb83f634c9af827715cb6d143daf792e8691acc9d4a488c79f64fa1e72566",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "792fb83f634c9af827715cb6d143daf792e8691acc9d4a488c79f64fa1e72566",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_withdraw: {
    body: {
      endorser_fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
      endorsed_fingerprint: "sha256:042d1adc32cdbf6468885c7f9d0b364455d47bec49bf1a33600f0c407a1211e7",
      original_offer_entry_id: 280,
      note: "A mistake.",
      auth: {
        challenge_id: "01fe36ee-feeb-4060-b727-027564638a7f",
        challenge_signature: "wXuwQuQ2QIC/BvcioWVkWjlQmLVY2trmHui0NhY80Tco1k6A/YE1BPRShahwXdgBh5SApl4H5gnxvLqywnERDQ==",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 280,
        endorser_fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
        endorsed_fingerprint: "sha256:042d1adc32cdbf6468885c7f9d0b364455d47bec49bf1a33600f0c407a1211e7",
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
          endorsed_key_fingerprint: "sha256:042d1adc32cdbf6468885c7f9d0b364455d47bec49bf1a33600f0c407a1211e7",
          endorser_key_fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
          event_type: "endorsement_withdrawal",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: "A mistake.",
          offer_entry_id: 280,
          valid_until: "2027-01-01",
        },
        previous_hash: "2fd993e4353181ef3bc04d9bab7ff2f3f407ff05923c64ea90b4718cbf95bc33",
        entry_hash: "8ac53721e2d9b8ec0b7887d49c45ac5bd57c562bdaaa9ffecf4a3e6a30d4eeca",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "8ac53721e2d9b8ec0b7887d49c45ac5bd57c562bdaaa9ffecf4a3e6a30d4eeca",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_revoke_acceptance: {
    body: {
      endorsed_fingerprint: "sha256:042d1adc32cdbf6468885c7f9d0b364455d47bec49bf1a33600f0c407a1211e7",
      original_offer_entry_id: 275,
      note: "We no longer work together.",
      auth: {
        challenge_id: "484cfd78-aa38-4d2a-89c9-9c5df53283c7",
        challenge_signature:
          "MEUCIESVCbCHODjF9KKv4GoKMQI8VcEd9TGtGPtL2aq20WrSAiEAvHfwU59wYiE6qWZB9ybPuIALs6kA2Pw+EFJwOPcB7iA=",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 275,
        endorser_fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
        endorsed_fingerprint: "sha256:042d1adc32cdbf6468885c7f9d0b364455d47bec49bf1a33600f0c407a1211e7",
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
          endorsed_key_fingerprint: "sha256:042d1adc32cdbf6468885c7f9d0b364455d47bec49bf1a33600f0c407a1211e7",
          endorser_key_fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
          event_type: "acceptance_revocation",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: "We no longer work together.",
          offer_entry_id: 275,
          valid_until: "2027-01-01",
        },
        previous_hash: "f4b69b0cd739946d1e8853ee65a51df30f979934673a521bb79b2f272eb669be",
        entry_hash: "4fb2d5983a011b286b4f8589e52f82986dad72c3cd146a9b3484d111a232f416",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "4fb2d5983a011b286b4f8589e52f82986dad72c3cd146a9b3484d111a232f416",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_revocation_alert: {
    body: {
      endorser_fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
      compromised_fingerprint: "sha256:042d1adc32cdbf6468885c7f9d0b364455d47bec49bf1a33600f0c407a1211e7",
      reason: "The laptop with the key was stolen.",
      auth: {
        challenge_id: "0e1d6eda-3262-496b-9ed8-279cf7642c09",
        challenge_signature: "yqRT9GBfn8ZBrw5atvxnO1Esbi5+my5ZS9b0Lqcacrbud0TDaEUCMacZQmqblP3XU3wvCTEp8jVfjv+KwVtfCQ==",
      },
    },
    answer: {
      alert: {
        alert_entry_id: 278,
        compromised_fingerprint: "sha256:042d1adc32cdbf6468885c7f9d0b364455d47bec49bf1a33600f0c407a1211e7",
        endorser_fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
        reason: "The laptop with the key was stolen.",
        evidence: null,
        filed_at: "2025-01-02T00:07:00.000000Z",
      },
      log_entry: {
        id: 278,
        timestamp: "2025-01-02T00:07:00.000000Z",
        event_type: "endorser_revocation_alert",
        payload: {
          compromised_key_fingerprint: "sha256:042d1adc32cdbf6468885c7f9d0b364455d47bec49bf1a33600f0c407a1211e7",
          endorser_key_fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
          event_type: "endorser_revocation_alert",
          evidence: null,
          reason: "The laptop with the key was stolen.",
        },
        previous_hash: "85c5e819ce1159a2fe02ba941f70df52c8fae9a2b808ac399eb8ce73ca9b3080",
        entry_hash: "f4b69b0cd739946d1e8853ee65a51df30f979934673a521bb79b2f272eb669be",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "f4b69b0cd739946d1e8853ee65a51df30f979934673a521bb79b2f272eb669be",
            is_primary: true,
          },
        ],
      },
    },
  },
  get_endorsements_fingerprint: {
    params: { fingerprint: "sha256:042d1adc32cdbf6468885c7f9d0b364455d47bec49bf1a33600f0c407a1211e7" },
    answer: {
      endorsements: [
        {
          offer_entry_id: 275,
          endorser_fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
          endorsed_fingerprint: "sha256:042d1adc32cdbf6468885c7f9d0b364455d47bec49bf1a33600f0c407a1211e7",
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
    params: { fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3" },
    query: { status: "active" },
    answer: {
      endorsements: [
        {
          offer_entry_id: 275,
          endorser_fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
          endorsed_fingerprint: "sha256:042d1adc32cdbf6468885c7f9d0b364455d47bec49bf1a33600f0c407a1211e7",
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
    params: { fingerprint: "sha256:042d1adc32cdbf6468885c7f9d0b364455d47bec49bf1a33600f0c407a1211e7" },
    answer: {
      alerts: [
        {
          alert_entry_id: 278,
          compromised_fingerprint: "sha256:042d1adc32cdbf6468885c7f9d0b364455d47bec49bf1a33600f0c407a1211e7",
          endorser_fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
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
    params: { fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3" },
    query: { max_depth: 2 },
    answer: {
      root: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
      nodes: [
        {
          fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
          pseudonym: "Ada",
          status: "active",
          depth: 0,
        },
        {
          fingerprint: "sha256:042d1adc32cdbf6468885c7f9d0b364455d47bec49bf1a33600f0c407a1211e7",
          pseudonym: "Grace",
          status: "active",
          depth: 1,
        },
      ],
      edges: [
        {
          from: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
          to: "sha256:042d1adc32cdbf6468885c7f9d0b364455d47bec49bf1a33600f0c407a1211e7",
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
    params: { fingerprint: "sha256:042d1adc32cdbf6468885c7f9d0b364455d47bec49bf1a33600f0c407a1211e7" },
    answer: {
      fingerprint: "sha256:042d1adc32cdbf6468885c7f9d0b364455d47bec49bf1a33600f0c407a1211e7",
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
          fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
          category_weights: { "x-service:institutional_endorsement": 0.8 },
          decay_per_hop: 0.5,
          direct_signer_anchors: [
            { fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3", weight: 1 },
          ],
          endorser_anchors: [
            { fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3", weight: 0.9 },
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
      fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
      direct_signer_anchors: [
        { fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3", weight: 0.9 },
      ],
      minimum_threshold: 0.4,
      category_weights: { "x-service:institutional_endorsement": 0.8 },
    },
    answer: {
      id: 1,
      fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3", weight: 0.9 },
      ],
      max_depth: 4,
      minimum_threshold: 0.4,
      status: "active",
      created_at: "2025-01-02T00:07:00.000000Z",
    },
  },
  get_trust_configs_fingerprint: {
    params: { fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3" },
    answer: {
      id: 1,
      fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3", weight: 0.9 },
      ],
      max_depth: 4,
      minimum_threshold: 0.4,
      status: "active",
      created_at: "2025-01-02T00:07:00.000000Z",
    },
  },
  post_trust_configs_revoke: {
    body: { fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3" },
    answer: {
      id: 1,
      fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3", weight: 0.9 },
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
            id: "e30f5916-f6e3-40e2-80a5-86ae7ff17e2e",
            type: "authorship",
            scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
            signer_key_fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
            signature_algorithm: "ed25519",
            signature: "dpWZLIN8RCewaCu2nDbMwRN3c3C1LYafymtiheivLsa00jRObLtny267KDKnlWvQfZwuQeUo5bCtxlfUbCbeBg==",
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
          id: "e30f5916-f6e3-40e2-80a5-86ae7ff17e2e",
          signer_key_fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
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
          { id: "e30f5916-f6e3-40e2-80a5-86ae7ff17e2e", kind: "attestation", type: "authorship", status: "valid" },
          {
            id: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
            kind: "key",
            pseudonym: "Ada",
            status: "active",
          },
        ],
        edges: [
          {
            from: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
            to: "e30f5916-f6e3-40e2-80a5-86ae7ff17e2e",
            kind: "signed",
          },
          {
            from: "e30f5916-f6e3-40e2-80a5-86ae7ff17e2e",
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
                id: "e30f5916-f6e3-40e2-80a5-86ae7ff17e2e",
                type: "authorship",
                scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                signer_key_fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
                signature_algorithm: "ed25519",
                signature: "dpWZLIN8RCewaCu2nDbMwRN3c3C1LYafymtiheivLsa00jRObLtny267KDKnlWvQfZwuQeUo5bCtxlfUbCbeBg==",
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
                  id: "e30f5916-f6e3-40e2-80a5-86ae7ff17e2e",
                  type: "authorship",
                  scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                  signer_key_fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
                  signature_algorithm: "ed25519",
                  signature: "dpWZLIN8RCewaCu2nDbMwRN3c3C1LYafymtiheivLsa00jRObLtny267KDKnlWvQfZwuQeUo5bCtxlfUbCbeBg==",
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
                  id: "e30f5916-f6e3-40e2-80a5-86ae7ff17e2e",
                  type: "authorship",
                  scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                  signer_key_fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
                  signature_algorithm: "ed25519",
                  signature: "dpWZLIN8RCewaCu2nDbMwRN3c3C1LYafymtiheivLsa00jRObLtny267KDKnlWvQfZwuQeUo5bCtxlfUbCbeBg==",
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
                    id: "e30f5916-f6e3-40e2-80a5-86ae7ff17e2e",
                    type: "authorship",
                    scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                    signer_key_fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
                    signature_algorithm: "ed25519",
                    signature:
                      "dpWZLIN8RCewaCu2nDbMwRN3c3C1LYafymtiheivLsa00jRObLtny267KDKnlWvQfZwuQeUo5bCtxlfUbCbeBg==",
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
        "eyJhdHRlc3RhdGlvbnMiOltdLCJkb2N1bWVudCI6eyJjb250ZW50X2hhc2giOiJzaGEyNTY6ZjNkNDJlYmY5NjU5YjE2MmUwYmE4YzQwMjM1OTQwMWRlN2VkOGMyODg0M2MwMWY2ZTBiZGIyMzhhY2Q4ZDAzYyIsInBhcnRzIjpbeyJjb250ZW50X2hhc2giOiJzaGEyNTY6NDk4NjNjYzg4YzcxZGU2NjI5MmE5ZjVmMmI5MzJkMWRmMGMxZWQxMDFlYzJiOTc4ODBkZTFhMTEzMzcwOTgxMCIsIm1hbmlmZXN0Ijp7ImF0dGVzdGF0aW9ucyI6W3siaWQiOiJlMzBmNTkxNi1mNmUzLTQwZTItODBhNS04NmFlN2ZmMTdlMmUiLCJpbnRlbnRfc3RhdGVtZW50IjoiSSB3cm90ZSBpdC4iLCJzY29wZSI6eyJjb250ZW50X2hhc2giOiJzaGEyNTY6NDk4NjNjYzg4YzcxZGU2NjI5MmE5ZjVmMmI5MzJkMWRmMGMxZWQxMDFlYzJiOTc4ODBkZTFhMTEzMzcwOTgxMCJ9LCJzaWduYXR1cmUiOiJkcFdaTElOOFJDZXdhQ3UybkRiTXdSTjNjM0MxTFlhZnltdGloZWl2THNhMDBqUk9iTHRueTI2N0tES25sV3ZRZlp3dVFlVW81YkN0eGxmVWJDYmVCZz09Iiwic2lnbmF0dXJlX2FsZ29yaXRobSI6ImVkMjU1MTkiLCJzaWduZXJfa2V5X2ZpbmdlcnByaW50Ijoic2hhMjU2OmYyY2M0NjdhZGM4ODZkMDFjMzA0ZTc4MTI2NTBhNDBlMTI1ZDcyYThhOGM4ZGEyYzhlNmU1ZThkNDgyZWYyYzMiLCJ0aW1lc3RhbXAiOiIyMDI1LTAxLTAxVDAwOjA2OjAwLjAwMDAwMFoiLCJ0eXBlIjoiYXV0aG9yc2hpcCJ9XSwiZG9jdW1lbnQiOnsiY29udGVudF9oYXNoIjoic2hhMjU2OjQ5ODYzY2M4OGM3MWRlNjYyOTJhOWY1ZjJiOTMyZDFkZjBjMWVkMTAxZWMyYjk3ODgwZGUxYTExMzM3MDk4MTAiLCJ0YWdzIjpbInJlcG9ydCJdLCJ0aXRsZSI6IkFubnVhbCByZXBvcnQifX0sInJvbGUiOiJjaGFwdGVyIiwidGl0bGUiOiJSZXBvcnQifSx7ImNvbnRlbnRfaGFzaCI6InNoYTI1NjpmMzBjNTM0ZGE5NThhNzUzYWMyMGM2ZDVmZDQwNDFkZTRkOWFlMjQ5N2U3NDQwY2ZlMmQwMzRiMDBiNzFlZDEzIiwidGl0bGUiOiJBcHBlbmRpeCJ9XSwidGl0bGUiOiJSZXBvcnQgYW5kIGFwcGVuZGl4In19",
      manifest_hash: "7b52ca29780ce984afafab5598b9d6a0fd600a0677781aa2010ebf4d7bfef929",
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
            attestation_id: "dc0f8a9c-75b9-4340-ab10-f718987c6da3",
            attestation_type: "editorial_review",
            document_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810",
            document_title: "Annual report",
            intent_statement: null,
            manifest_hash: "07a3a261f09eccfd842bc0cc3b0f4d6489cff455701b173ccae85104b6b55285",
            signature:
              "MEUCIG2fx8fNKYLBmFqqVpFqKRDvHcfP/raHV4/JHu74yLsvAiEA0bAgF3wK18PtE3pCQCJezvZ118CHiHCWBpbfVi7+Fxs=",
            signature_algorithm: "ecdsa-p256",
            signer_key_fingerprint: "sha256:042d1adc32cdbf6468885c7f9d0b364455d47bec49bf1a33600f0c407a1211e7",
            tags: ["report"],
            timestamp: "2025-01-01T00:06:00.000000Z",
          },
          previous_hash: "0b2f53709329852ebd9fd6390d26cc8bbd79603796cbe9b3cf5a0cd4f51e0ccf",
          entry_hash: "4c2a858d51bf33a11f687ad81f855134a2e41d8283ae4b467e9da3d5ed789337",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "4c2a858d51bf33a11f687ad81f855134a2e41d8283ae4b467e9da3d5ed789337",
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
          "BENZR/q0fb/xc140D0P3sQy/FBv64rCqmMWGRUfRvHKtz/ewic+niIFhE3VjSJeiO8qGZoLCSIHnjBUhVBdzU4A=",
        commitment: "863008f9fd30b1612a0836b2d0b6604fd290481e7a5fd8147b5c47e8b252c7f1",
        lookup_key: "296c74c5710b3690062653c5f43d77107bbcfd4122f584ac24942877b13d0dbb",
        nonce: "Kk6x+HhVOIzzrRyS",
        ciphertext: "WzVvlOrtlat8yMtLWfq7wF2eQeOfeSM/Ooyjcf3RXOuYx3i20xtQk/H4UGIn889hjNi5",
        recipient_fingerprint: "sha256:83a34c5870a829b49054cef01388c368291e9dfb39e7b0d4d216aca3b4484186",
      },
    },
    answer: {
      entry_id: 286,
      commitment: "863008f9fd30b1612a0836b2d0b6604fd290481e7a5fd8147b5c47e8b252c7f1",
      lookup_key: "296c74c5710b3690062653c5f43d77107bbcfd4122f584ac24942877b13d0dbb",
      leaf_index: 285,
      log_entry_id: 286,
    },
  },
  get_claims: {
    query: { lookup_key: "296c74c5710b3690062653c5f43d77107bbcfd4122f584ac24942877b13d0dbb" },
    answer: {
      entries: [
        {
          id: 286,
          timestamp: "2025-01-02T00:07:00.000000Z",
          event_type: "encrypted_claim",
          payload: {
            ciphertext: "WzVvlOrtlat8yMtLWfq7wF2eQeOfeSM/Ooyjcf3RXOuYx3i20xtQk/H4UGIn889hjNi5",
            commitment: "863008f9fd30b1612a0836b2d0b6604fd290481e7a5fd8147b5c47e8b252c7f1",
            commitment_alg: "hmac-sha256-ecdh-v1",
            ephemeral_public_key:
              "BENZR/q0fb/xc140D0P3sQy/FBv64rCqmMWGRUfRvHKtz/ewic+niIFhE3VjSJeiO8qGZoLCSIHnjBUhVBdzU4A=",
            event_type: "encrypted_claim",
            lookup_key: "296c74c5710b3690062653c5f43d77107bbcfd4122f584ac24942877b13d0dbb",
            nonce: "Kk6x+HhVOIzzrRyS",
            recipient_fingerprint: "sha256:83a34c5870a829b49054cef01388c368291e9dfb39e7b0d4d216aca3b4484186",
          },
          previous_hashes: [
            { algorithm: "sha2-256", digest_hex: "85d92e2750c572aa0b243ef9b34daf15cfef1ddc233224bd817ba6bb1c6e77d8" },
          ],
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "728b0518ade7b1972220237b35c5c70505442a63eb69bf5358edc255f5a85089",
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
      ciphertext: "WzVvlOrtlat8yMtLWfq7wF2eQeOfeSM/Ooyjcf3RXOuYx3i20xtQk/H4UGIn889hjNi5",
      commitment: "863008f9fd30b1612a0836b2d0b6604fd290481e7a5fd8147b5c47e8b252c7f1",
      commitment_alg: "hmac-sha256-ecdh-v1",
      ephemeral_public_key: "BENZR/q0fb/xc140D0P3sQy/FBv64rCqmMWGRUfRvHKtz/ewic+niIFhE3VjSJeiO8qGZoLCSIHnjBUhVBdzU4A=",
      lookup_key: "296c74c5710b3690062653c5f43d77107bbcfd4122f584ac24942877b13d0dbb",
      nonce: "Kk6x+HhVOIzzrRyS",
      recipient_fingerprint: "sha256:83a34c5870a829b49054cef01388c368291e9dfb39e7b0d4d216aca3b4484186",
    },
  },
  post_claims_entry_id_reveal: {
    params: { entry_id: 286 },
    body: {
      plaintext: { salary: 52000, name: "Zoë 🪨" },
      commitment_key: "95d2a359696b22b9bbf10bae4c6414bf0b60c9a0670ce924aca1e78e43d717f5",
    },
    answer: { valid: true },
  },
  get_log_attestation_requests: {
    query: { target: "sha256:042d1adc32cdbf6468885c7f9d0b364455d47bec49bf1a33600f0c407a1211e7", status: "open" },
    answer: {
      requests: [
        {
          request_id: "3f9db1b6-a82b-4c51-8d39-0cf72bb4931e",
          requester_fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
          target_fingerprint: "sha256:042d1adc32cdbf6468885c7f9d0b364455d47bec49bf1a33600f0c407a1211e7",
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
      target_fingerprint: "sha256:042d1adc32cdbf6468885c7f9d0b364455d47bec49bf1a33600f0c407a1211e7",
      attestation_type: "peer_review",
      nonce: "request-2025-0001",
      intent_statement: "Please review the annual report.",
      claims: { document_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
    },
    answer: {
      request_id: "3f9db1b6-a82b-4c51-8d39-0cf72bb4931e",
      requester_fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
      target_fingerprint: "sha256:042d1adc32cdbf6468885c7f9d0b364455d47bec49bf1a33600f0c407a1211e7",
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
    params: { request_id: "3f9db1b6-a82b-4c51-8d39-0cf72bb4931e" },
    answer: {
      request_id: "3f9db1b6-a82b-4c51-8d39-0cf72bb4931e",
      requester_fingerprint: "sha256:f2cc467adc886d01c304e7812650a40e125d72a8a8c8da2c8e6e5e8d482ef2c3",
      target_fingerprint: "sha256:042d1adc32cdbf6468885c7f9d0b364455d47bec49bf1a33600f0c407a1211e7",
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
        responder_fingerprint: "sha256:042d1adc32cdbf6468885c7f9d0b364455d47bec49bf1a33600f0c407a1211e7",
        attestation_id: null,
        reason: "No time before summer.",
        responded_at: "2025-01-02T00:07:00.000000Z",
        log_entry_id: 284,
        leaf_index: 283,
      },
    },
  },
  get_log_request_policies_fingerprint: {
    params: { fingerprint: "sha256:042d1adc32cdbf6468885c7f9d0b364455d47bec49bf1a33600f0c407a1211e7" },
    answer: {
      target_fingerprint: "sha256:042d1adc32cdbf6468885c7f9d0b364455d47bec49bf1a33600f0c407a1211e7",
      active: {
        target_fingerprint: "sha256:042d1adc32cdbf6468885c7f9d0b364455d47bec49bf1a33600f0c407a1211e7",
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
    params: { request_id: "3f9db1b6-a82b-4c51-8d39-0cf72bb4931e" },
    body: { decision: "decline", reason: "No time before summer." },
    answer: {
      request_id: "3f9db1b6-a82b-4c51-8d39-0cf72bb4931e",
      status: "declined",
      responder_fingerprint: "sha256:042d1adc32cdbf6468885c7f9d0b364455d47bec49bf1a33600f0c407a1211e7",
      decision: "decline",
      attestation_id: null,
      reason: "No time before summer.",
      log_entry_id: 284,
      leaf_index: 283,
    },
  },
  post_log_request_policies: {
    body: {
      target_fingerprint: "sha256:042d1adc32cdbf6468885c7f9d0b364455d47bec49bf1a33600f0c407a1211e7",
      predicates: { all: [{ field: "attestation_type", op: "in", value: ["peer_review", "editorial_review"] }] },
      default_action_on_failure: "decline",
    },
    answer: {
      target_fingerprint: "sha256:042d1adc32cdbf6468885c7f9d0b364455d47bec49bf1a33600f0c407a1211e7",
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
          request_id: "3f9db1b6-a82b-4c51-8d39-0cf72bb4931e",
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
      request_id: "3f9db1b6-a82b-4c51-8d39-0cf72bb4931e",
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

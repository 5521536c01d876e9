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
      transport: "uws",
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
      key_fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
      device_label: "Security key",
    },
    answer: {
      user: {
        id: "4b478769-19d0-438f-ab14-284d9e9aad33",
        display_name: "Ada Lovelace",
        created_at: "2025-01-01T00:00:00.000000Z",
      },
      credential: {
        id: "9ca8f74b-1843-4815-bf10-35757107c4b9",
        key_fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
        credential_type: "hardware",
        device_label: "Security key",
        status: "active",
        created_at: "2025-01-01T00:00:00.000000Z",
        revoked_at: null,
        hardware_backed: true,
      },
      recovery_key: "WFT35-1KB0E-KPCTA-MCCY6-VNJGR-63NFY-Y400H-VXP7V",
    },
  },
  post_users_recover: {
    body: {
      pseudonym: "Ada Lovelace",
      recovery_key: "WFT35-1KB0E-KPCTA-MCCY6-VNJGR-63NFY-Y400H-VXP7V",
      credential_type: "hardware",
      key_fingerprint: "sha256:fa904a37e66ac0cb719673e37ac1632c302d1809747c2838ae0911421c3e0292",
      device_label: "Security key",
    },
    answer: {
      user: {
        id: "4b478769-19d0-438f-ab14-284d9e9aad33",
        display_name: "Ada Lovelace",
        created_at: "2025-01-01T00:00:00.000000Z",
      },
      credential: {
        id: "c1c8d050-d434-4718-8eb6-96ae39844413",
        key_fingerprint: "sha256:fa904a37e66ac0cb719673e37ac1632c302d1809747c2838ae0911421c3e0292",
        credential_type: "hardware",
        device_label: "Security key",
        status: "active",
        created_at: "2025-01-01T00:06:00.000000Z",
        revoked_at: null,
        hardware_backed: true,
      },
      recovery_key: "E7S7N-6FW13-ZTGMZ-0NPZ5-P6RA5-Y24KA-A7TMP-3GNAZ",
      revoked_credentials: 2,
    },
  },
  post_credentials_enroll: {
    body: {
      challenge_id: "90c889f2-fd1e-4043-8574-8c02e5ee585f",
      issuing_fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
      key_fingerprint: "sha256:38fb37457f406ed8600c6ebe1f61b3aa3aa526a8c4e08cb8eaac2f7f8196082c",
      credential_type: "hardware",
      device_label: "Second security key",
      challenge_signature: "nF33Hhv3J7XaNBZSh1aWO8YpaRDLcZt/DOxOcByalHLZnd5ckwLBWMRpw3QUOoOe9JXOc8DXegWOq8CbFgduCg==",
      chain_signature: "M+YRyzqqK6s9ucCDBC19NDYOF7qStJEUGNJK/GBmwok4m5M/Mx84HRcH4gKJsuEwJPOoH/qZyehrCfNVRquEAw==",
    },
    answer: {
      credential: {
        id: "8ef4f3cc-f3e1-467c-9ae7-a5cdf27d78e3",
        key_fingerprint: "sha256:38fb37457f406ed8600c6ebe1f61b3aa3aa526a8c4e08cb8eaac2f7f8196082c",
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
          fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
          pseudonym: "Ada",
          algorithm: "ed25519",
          status: "active",
          registered_at: "2025-01-01T00:00:00.000000Z",
          expires_at: null,
        },
        {
          fingerprint: "sha256:5e6df39689c4b05a22e395c9a0008936b8a70cdfa069e544549daafdc8711cac",
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
          fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
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
    params: { fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78" },
    answer: {
      fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
      public_key:
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAjG15U9Ch0D9SbxXTfe9IpwlB01Qc1RmK0LVrpB18ncQ=\n-----END PUBLIC KEY-----\n",
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
    params: { fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78" },
    answer: {
      fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
      status: "active",
      expires_at: null,
      successor_fingerprint: null,
    },
  },
  post_keys_register: {
    body: {
      payload: {
        public_key:
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAjG15U9Ch0D9SbxXTfe9IpwlB01Qc1RmK0LVrpB18ncQ=\n-----END PUBLIC KEY-----\n",
        pseudonym: "Ada",
        key_algorithm: "ed25519",
      },
    },
    answer: {
      fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
      pseudonym: "Ada",
      algorithm: "ed25519",
      log_entry_id: 1,
      leaf_index: 0,
      entry_hash: "61a7b2f1a8aeacbddac6388837eeba8322e3bafaeb1375387d0c1df8fa27dfe1",
    },
  },
  post_keys_succeed: {
    body: {
      payload: {
        old_fingerprint: "sha256:8a80588739bf16faa927a3624566e80e6f53bbda1e450b435c15b969b3e52d95",
        new_public_key:
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAP+WFHTkxLMQOVYb95oBlNC7kEoJelMvnyIB9PkLsFDs=\n-----END PUBLIC KEY-----\n",
        new_algorithm: "ed25519",
      },
      auth: {
        challenge_id: "d22c47b2-b9d6-421f-899f-f1da74e54055",
        challenge_signature: "HW4yElucVkadk5Dmsel34MUCJLgrYJWwqiMeOuu59E8kKpvzVsvLmhkoGPp0ZhibaVH+TfciXUqsbAylgKh0AQ==",
      },
    },
    answer: {
      old_fingerprint: "sha256:8a80588739bf16faa927a3624566e80e6f53bbda1e450b435c15b969b3e52d95",
      new_fingerprint: "sha256:658ad904c0d62704a35fbd0a4684c5c5bc94ad75e2fd17a407f74d8241ce8817",
      log_entry_id: 5,
      leaf_index: 4,
      entry_hash: "d265962460a93f92db054f88c92b746157037a2bf982c1ec916ea2fed7994c48",
    },
  },
  post_keys_revoke: {
    body: {
      payload: { fingerprint: "sha256:658ad904c0d62704a35fbd0a4684c5c5bc94ad75e2fd17a407f74d8241ce8817" },
      auth: {
        challenge_id: "9105893c-c414-4e57-8ce3-0f6d50e32ebf",
        challenge_signature: "BsnDvdwuAWWlQ6TqqJj4p0yLUgUKnSTxmIgMkqoiwi10LTr7VC6hci/HOzH15PXw3/ESIhCKv3nibDxmeloxCg==",
      },
    },
    answer: {
      fingerprint: "sha256:658ad904c0d62704a35fbd0a4684c5c5bc94ad75e2fd17a407f74d8241ce8817",
      status: "revoked",
      log_entry_id: 6,
      leaf_index: 5,
      entry_hash: "8c00817a44a2c47e4a36c550404b4f1874f2900c47b1e5432850a09c538c12ca",
    },
  },
  post_auth_challenge: {
    body: { fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78", purpose: "login" },
    answer: {
      challenge_id: "a383bf4f-c79b-408a-995c-1a6229b24631",
      nonce:
        "service.auth.v1:login:sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78:C8SdURZSVcef91h_Yo3hdRRmRBzjEeJl1MA3DDmvgRU",
      expires_at: "2025-01-01T00:05:00.000000Z",
    },
  },
  post_auth_login: {
    body: {
      challenge_id: "a383bf4f-c79b-408a-995c-1a6229b24631",
      challenge_signature: "W3hWvcca2T30PhStENQlbzD+goAfsJ+nklH6xj0kD0OYD3A+wU5m2ifAZP8+K1GsGuEzdQZ96IeEuQ0g1VNECg==",
    },
    answer: {
      token:
        "eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzaGEyNTY6OGYwMDc2NDZkYmJjMWExZDFkMDliZWZkNzU1YzJiNThmNWY0MGQ5MWI0OGZjOWExOTUyZTZlNGE1NmI2YmY3YiIsInN1YiI6InNoYTI1NjpkZTFmZmMzNGUyYWNkYmM4MDhlYzg4YjZmOGY1ZmJiNWM4N2JkYzZkYThiOTdmMDU1NzUxMjdiNjAxNTk2ZTc4IiwiaWF0IjoxNzM1Njg5NjAwLCJleHAiOjE3MzU2OTMyMDAsImp0aSI6ImU1MmI0NDUzLTc3NDMtNGNiZC1hYjE0LWJlNTZjOTQ1OGZiNyIsInBzZXVkb255bSI6IkFkYSIsInJlY292ZXJ5IjpmYWxzZSwiYXV0aF90aW1lIjoxNzM1Njg5NjAwfQ.VkqqyanbTz7SP1LRz2H7uTsSSbd--qH6llFfI2jLhO3K4UpDz4XesWySP_dGJdkom-poDgRYD2FchgaRu_cMDA",
      fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
      pseudonym: "Ada",
      expires_at: "2025-01-01T01:00:00.000000Z",
    },
  },
  post_auth_renew: {
    answer: {
      token:
        "eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzaGEyNTY6OGYwMDc2NDZkYmJjMWExZDFkMDliZWZkNzU1YzJiNThmNWY0MGQ5MWI0OGZjOWExOTUyZTZlNGE1NmI2YmY3YiIsInN1YiI6InNoYTI1NjpkZTFmZmMzNGUyYWNkYmM4MDhlYzg4YjZmOGY1ZmJiNWM4N2JkYzZkYThiOTdmMDU1NzUxMjdiNjAxNTk2ZTc4IiwiaWF0IjoxNzM1Njg5NjAwLCJleHAiOjE3MzU2OTMyMDAsImp0aSI6IjgxNWUwMDAwLThiOTAtNDA0NS1iN2Y0LWU2NTE3NzJlOGM3OCIsInBzZXVkb255bSI6IkFkYSIsInJlY292ZXJ5IjpmYWxzZSwiYXV0aF90aW1lIjoxNzM1Njg5NjAwfQ.d7VY4CFlfPwa9X_G1pEJiruH60KygDCqbRVCPJq-9f6LTljcWubQIApb0Ng7dQy_skX7JrRAo8K_NlUhaSV-Aw",
      fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
      pseudonym: "Ada",
      expires_at: "2025-01-01T01:00:00.000000Z",
    },
  },
  post_auth_password: {
    body: {
      challenge_id: "f30ff41c-d0f3-4b4e-b1bc-cbe0d988fa41",
      challenge_signature: "52BukDx0pNbZrfOl4JSaFb5o0ATY8Ek2g56YdPzsRC4etiimYatzSWe67vgy3RosONfgn4DStKjNp2Z1+24sCA==",
      password: "correct horse battery",
    },
    answer: {
      fingerprint: "sha256:bd0090952cc636ca6527f504322c9949093f171832f7fa748fb2288b8923e2b2",
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
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAjG15U9Ch0D9SbxXTfe9IpwlB01Qc1RmK0LVrpB18ncQ=\n-----END PUBLIC KEY-----\n",
      signature: "UPtms/yZa4z5sxHqgFtBSnu6smIWnrDe/uRCn+T7dgxb7VAMacmvKMK+A5TJBn558IkF5hZ1OI7pdD6tTlySBw==",
      intent_statement: "I wrote it.",
    },
    answer: {
      attestation: {
        id: "f01995d6-ddb7-4339-94c3-1fc594bec0db",
        type: "authorship",
        scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
        signer_key_fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
        signature_algorithm: "ed25519",
        signature: "UPtms/yZa4z5sxHqgFtBSnu6smIWnrDe/uRCn+T7dgxb7VAMacmvKMK+A5TJBn558IkF5hZ1OI7pdD6tTlySBw==",
        timestamp: "2025-01-01T00:06:00.000000Z",
        intent_statement: "I wrote it.",
      },
      fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
      pseudonym: "Ada",
      log_entry_id: 13,
      leaf_index: 12,
      entry_hash: "7213343573d9cbf3f78eadbd7f3dfb6da19310d9533e46c6a57ea54f4b657558",
      manifest_hash: "38f0c85d6331fd79023d1cd40a3908b665272ec2077277686ac55af17b1b6494",
      sth: {
        tree_size: 13,
        root_hash: "22450b74855e3da23252308417d60cb14502d5c03494394603a5ce64e1893318",
        signature: "/LacFpbOuJM2hKGvnQ0q13XOQUdwZ3MmrXgQ9qf2JEn+rA3BnRFhL0AIxFDtBGJB/Pa24aC2guCacJe/q3fCBQ==",
        timestamp: "2025-01-01T00:06:00.000000Z",
        key_id: "sha256:8f007646dbbc1a1d1d09befd755c2b58f5f40d91b48fc9a1952e6e4a56b6bf7b",
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
        "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEu4jtn1CdqO5a3qbOCHaLO5lQPo8f\nqX1R8x9KRYuHrbOcZHycw5etlocMS1wpspkFTjM8H5Lv7w7fkP0baZf81Q==\n-----END PUBLIC KEY-----\n",
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
        entry_hash: "aa26983fe960ae65350976ad172375b6a6a293f6699a56962fca1eb03eaf362a",
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
        fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
        key_algorithm: "ed25519",
        possession_signature: null,
        pseudonym: "Ada",
        public_key:
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAjG15U9Ch0D9SbxXTfe9IpwlB01Qc1RmK0LVrpB18ncQ=\n-----END PUBLIC KEY-----\n",
      },
      previous_hash: null,
      entry_hash: "61a7b2f1a8aeacbddac6388837eeba8322e3bafaeb1375387d0c1df8fa27dfe1",
      chain_version: 2,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "61a7b2f1a8aeacbddac6388837eeba8322e3bafaeb1375387d0c1df8fa27dfe1",
          is_primary: true,
        },
      ],
    },
  },
  get_log_sth: {
    answer: {
      tree_size: 14,
      root_hash: "ec57fad392634b7daa8229fdef99e34e8ff1e3f2fb2a3392b8a9425f56bae7a4",
      signature: "Ve93mGaSrUVTw9C3WIes8cwVf6aorrlSu5aPQND82INSdGtiCYYhR3j+sE60F5QpYLo4uD3w8oS/jX64kr5wBQ==",
      timestamp: "2025-01-01T00:06:00.000000Z",
      key_id: "sha256:8f007646dbbc1a1d1d09befd755c2b58f5f40d91b48fc9a1952e6e4a56b6bf7b",
      tree_version: 2,
    },
  },
  get_log_sth_tree_size: {
    params: { tree_size: 3 },
    answer: {
      tree_size: 3,
      root_hash: "3cdcc95650458fbe5bb843b17201f7c3bdfda96c38e0b5a605c39449a2defce1",
      signature: "UGYtCdbgUTwziRvYi4xxJFiWwH/jVAFCRToqA88IAWfiEcDGv6/w2MTAzCpQpElYo4hNaMJT0Z7fYCj7Yrj+AQ==",
      timestamp: "2025-01-01T00:00:00.000000Z",
      key_id: "sha256:8f007646dbbc1a1d1d09befd755c2b58f5f40d91b48fc9a1952e6e4a56b6bf7b",
      tree_version: 2,
    },
  },
  get_log_heads: {
    query: { from: 3, limit: 1 },
    answer: {
      heads: [
        {
          tree_size: 3,
          root_hash: "3cdcc95650458fbe5bb843b17201f7c3bdfda96c38e0b5a605c39449a2defce1",
          signature: "UGYtCdbgUTwziRvYi4xxJFiWwH/jVAFCRToqA88IAWfiEcDGv6/w2MTAzCpQpElYo4hNaMJT0Z7fYCj7Yrj+AQ==",
          timestamp: "2025-01-01T00:00:00.000000Z",
          key_id: "sha256:8f007646dbbc1a1d1d09befd755c2b58f5f40d91b48fc9a1952e6e4a56b6bf7b",
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
      leaf_hash: "860810a84146d2a7a9826fff01354fa60f4461a38103ca173303039c353892fe",
      root_hash: "5531a58946947986c2131e67e434eab53622eb1fae08d1d187ce5d18bd43fed3",
      audit_path: [
        "4053139606f5ff5138efa9db1b216777bbb9a692270a4ba918affd65da2b00c0",
        "b4168272f99f7f91f8ec1d722c9b4989a4cf5a98fd10e20108e8c5f41c4546b2",
        "c9ae6c0a53482606c63fdb9e7c8b145a919b52c84ea5346be6d32993a2956001",
      ],
      entry_hash: "a707683e5abe298cafd62688eb18f424143c41e20e871fd2abf624659896aada",
      sth: {
        tree_size: 5,
        root_hash: "5531a58946947986c2131e67e434eab53622eb1fae08d1d187ce5d18bd43fed3",
        signature: "9MxTgro4l0ytM09LfucPdbmJSGx4NrvXQ8KaeeS5bOgM+MyWTzyKp/29DVjztxvCxR4UC/a6ecsOb6BfPXTDCA==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:8f007646dbbc1a1d1d09befd755c2b58f5f40d91b48fc9a1952e6e4a56b6bf7b",
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
      leaf_hash: "860810a84146d2a7a9826fff01354fa60f4461a38103ca173303039c353892fe",
      root_hash: "5531a58946947986c2131e67e434eab53622eb1fae08d1d187ce5d18bd43fed3",
      audit_path: [
        "4053139606f5ff5138efa9db1b216777bbb9a692270a4ba918affd65da2b00c0",
        "b4168272f99f7f91f8ec1d722c9b4989a4cf5a98fd10e20108e8c5f41c4546b2",
        "c9ae6c0a53482606c63fdb9e7c8b145a919b52c84ea5346be6d32993a2956001",
      ],
      entry_hash: "a707683e5abe298cafd62688eb18f424143c41e20e871fd2abf624659896aada",
      sth: {
        tree_size: 5,
        root_hash: "5531a58946947986c2131e67e434eab53622eb1fae08d1d187ce5d18bd43fed3",
        signature: "9MxTgro4l0ytM09LfucPdbmJSGx4NrvXQ8KaeeS5bOgM+MyWTzyKp/29DVjztxvCxR4UC/a6ecsOb6BfPXTDCA==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:8f007646dbbc1a1d1d09befd755c2b58f5f40d91b48fc9a1952e6e4a56b6bf7b",
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
      from_root: "3cdcc95650458fbe5bb843b17201f7c3bdfda96c38e0b5a605c39449a2defce1",
      to_root: "153a475add9c3f6a2f5c5106601eda3ebfd4be1f0ccc8d8f4caab0e5a027d852",
      peaks: [
        "b4168272f99f7f91f8ec1d722c9b4989a4cf5a98fd10e20108e8c5f41c4546b2",
        "860810a84146d2a7a9826fff01354fa60f4461a38103ca173303039c353892fe",
      ],
      extension: [
        "4053139606f5ff5138efa9db1b216777bbb9a692270a4ba918affd65da2b00c0",
        "6796f872bbaa2af65a6c644e3441d61ffd2057cf414a5160b57aee7db5554afd",
      ],
      from_sth: {
        tree_size: 3,
        root_hash: "3cdcc95650458fbe5bb843b17201f7c3bdfda96c38e0b5a605c39449a2defce1",
        signature: "UGYtCdbgUTwziRvYi4xxJFiWwH/jVAFCRToqA88IAWfiEcDGv6/w2MTAzCpQpElYo4hNaMJT0Z7fYCj7Yrj+AQ==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:8f007646dbbc1a1d1d09befd755c2b58f5f40d91b48fc9a1952e6e4a56b6bf7b",
        tree_version: 2,
      },
      to_sth: {
        tree_size: 6,
        root_hash: "153a475add9c3f6a2f5c5106601eda3ebfd4be1f0ccc8d8f4caab0e5a027d852",
        signature: "VKpcqBtypKygysW82bfDeS+FcMYn1c1bGHLlgOuuzQZNX/laPSDk6XSRB+YvS/2M04Y1ONi1UPdgG9fEYzMrDw==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:8f007646dbbc1a1d1d09befd755c2b58f5f40d91b48fc9a1952e6e4a56b6bf7b",
        tree_version: 2,
      },
    },
  },
  post_log_verify: { answer: { valid: true, entry_count: 14, errors: [], warnings: [] } },
  get_log_operator_key: {
    answer: {
      fingerprint: "sha256:8f007646dbbc1a1d1d09befd755c2b58f5f40d91b48fc9a1952e6e4a56b6bf7b",
      algorithm: "ed25519",
      public_key:
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAq4AwrfyfmmjAjhMnbwp+M5xAfwMTVVRvpTTCl/b/1fg=\n-----END PUBLIC KEY-----\n",
      operators: [
        {
          key_id: "sha256:8f007646dbbc1a1d1d09befd755c2b58f5f40d91b48fc9a1952e6e4a56b6bf7b",
          algorithm: "ed25519",
          public_key:
            "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAq4AwrfyfmmjAjhMnbwp+M5xAfwMTVVRvpTTCl/b/1fg=\n-----END PUBLIC KEY-----\n",
          from_size: 1,
          until_size: null,
          rotation: null,
        },
      ],
    },
  },
  get_log_checkpoint: {
    answer:
      "cairnlog/8f007646dbbc1a1d\n14\n7Ff605JjS32qgin975njTo/x4/L7KjOSuKlCX1a656Q=\n\n— cairnlog/8f007646dbbc1a1d 810GviyIA6LKpeWpmVe0RzU4JSEyRCTCFbs4WkIWjyF6LE6iwXPog9EPUtvbOsAmwuvABCF3gYVUCCqzLaHbhOXW6gU=\n",
  },
  get_log_tile_version_level_index: { params: { version: 2, level: 0, index: 0 } },
  get_log_tile_version_level_index_p_width: { params: { version: 2, level: 0, index_p: "1.p", width: 4 } },
  post_log_anchor: {
    answer: {
      anchored_entry_id: 14,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "aa26983fe960ae65350976ad172375b6a6a293f6699a56962fca1eb03eaf362a",
          is_primary: true,
        },
      ],
      ots_proof:
        "AE9wZW5UaW1lc3RhbXBzAABQcm9vZgC/ieLohOiSlAEIqiaYP+lgrmU1CXatFyN1tqaik/ZpmlaWL8oesD6vNirwEGG9SoXPL7UXXd7nFpIlwZ0I8QRlAAAA8AidVmRrIG3EmwCD3+MNLvkMjh0caHR0cHM6Ly9jYWxlbmRhci5leGFtcGxlLm9yZw==",
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
      root_hash: "ec57fad392634b7daa8229fdef99e34e8ff1e3f2fb2a3392b8a9425f56bae7a4",
      signature: "Ve93mGaSrUVTw9C3WIes8cwVf6aorrlSu5aPQND82INSdGtiCYYhR3j+sE60F5QpYLo4uD3w8oS/jX64kr5wBQ==",
      timestamp: "2025-01-01T00:06:00.000000Z",
      key_id: "sha256:8f007646dbbc1a1d1d09befd755c2b58f5f40d91b48fc9a1952e6e4a56b6bf7b",
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
            fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
            key_algorithm: "ed25519",
            possession_signature: null,
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAjG15U9Ch0D9SbxXTfe9IpwlB01Qc1RmK0LVrpB18ncQ=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "61a7b2f1a8aeacbddac6388837eeba8322e3bafaeb1375387d0c1df8fa27dfe1",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "61a7b2f1a8aeacbddac6388837eeba8322e3bafaeb1375387d0c1df8fa27dfe1",
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
    params: { fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78" },
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
            fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
            key_algorithm: "ed25519",
            possession_signature: null,
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAjG15U9Ch0D9SbxXTfe9IpwlB01Qc1RmK0LVrpB18ncQ=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "61a7b2f1a8aeacbddac6388837eeba8322e3bafaeb1375387d0c1df8fa27dfe1",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "61a7b2f1a8aeacbddac6388837eeba8322e3bafaeb1375387d0c1df8fa27dfe1",
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
      fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
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
            fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
            key_algorithm: "ed25519",
            possession_signature: null,
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAjG15U9Ch0D9SbxXTfe9IpwlB01Qc1RmK0LVrpB18ncQ=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "61a7b2f1a8aeacbddac6388837eeba8322e3bafaeb1375387d0c1df8fa27dfe1",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "61a7b2f1a8aeacbddac6388837eeba8322e3bafaeb1375387d0c1df8fa27dfe1",
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
      endorser_fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
      endorsed_fingerprint: "sha256:5e6df39689c4b05a22e395c9a0008936b8a70cdfa069e544549daafdc8711cac",
      category: "x-service:institutional_endorsement",
      valid_until: "2027-01-01",
      institutional_metadata: { name: "University of Example" },
      external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
      auth: {
        challenge_id: "0eef29e6-c047-4b79-a2db-c81e3ae8d938",
        challenge_signature: "xFZMCHkna+1i7gnxov8JXdClOTlmug1XWDuQZmJz7lNNL5Rmbzyvf+JFJzS1exmQZNIXK63i7S+ZQpbudyMLBQ==",
      },
    },
    answer: {
      id: 275,
      timestamp: "2025-01-01T00:06:00.000000Z",
      event_type: "endorsement_offer",
      payload: {
        category: "x-service:institutional_endorsement",
        endorsed_key_fingerprint: "sha256:5e6df39689c4b05a22e395c9a0008936b8a70cdfa069e544549daafdc8711cac",
        endorser_key_fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
        event_type: "endorsement_offer",
        external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
        institutional_metadata: { name: "University of Example" },
        valid_until: "2027-01-01",
      },
      previous_hash: "8156f3cecc60df2dc9f992c5503b16f2884e3e25aa67f9275988dab106f30cb4",
      entry_hash: "984be37f558480224a168947ed7e8246d07b56ae321c0ff619f7c29f1b89e3de",
      chain_version: 2,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "984be37f558480224a168947ed7e8246d07b56ae321c0ff619f7c29f1b89e3de",
          is_primary: true,
        },
      ],
    },
  },
  post_endorsements_accept: {
    body: {
      offer_entry_id: 275,
      endorsed_fingerprint: "sha256:5e6df39689c4b05a22e395c9a0008936b8a70cdfa069e544549daafdc8711cac",
      auth: {
        challenge_id: "3680553c-4974-4fb2-8b98-7435cfa87658",
        challenge_signature:
          "MEUCIDg2OBOp0WRRUoMpi+5meXQLHo69zThaa0AY8PcQcWiwAiEAvauf6hPUjT8Q21OFS4mM0lJUK8qHkrSusuxtALVq5J8=",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 275,
        endorser_fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
        endorsed_fingerprint: "sha256:5e6df39689c4b05a22e395c9a0008936b8a70cdfa069e544549daafdc8711cac",
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
          endorsed_key_fingerprint: "sha256:5e6df39689c4b05a22e395c9a0008936b8a70cdfa069e544549daafdc8711cac",
          endorser_key_fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
          event_type: "endorsement_acceptance",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: null,
          offer_entry_id: 275,
          valid_until: "2027-01-01",
        },
        previous_hash: "984be37f558480224a168947ed7e8246d07b56ae321c0ff619f7c29f1b89e3de",
        entry_hash: "4fe68448d46cfcd518c3e93e3040ec4659af14073d91529256624282334d75e4",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "4fe68448d46cfcd518c3e93e3040ec4659af14073d91529256624282334d75e4",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_withdraw: {
    body: {
      endorser_fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
      endorsed_fingerprint: "sha256:5e6df39689c4b05a22e395c9a0008936b8a70cdfa069e544549daafdc8711cac",
      original_offer_entry_id: 280,
      note: "A mistake.",
      auth: {
        challenge_id: "9e52ae96-43fb-4c9c-9e4c-a13a63511768",
        challenge_signature: "ATZLK802fg1jsbZPZUwjXtQN9olUykwhP2hC/TNl/6b+JdacSGCg5sIuAQnaOQ5Popy+Clsho4s5RNHphCK5Cg==",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 280,
        endorser_fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
        endorsed_fingerprint: "sha256:5e6df39689c4b05a22e395c9a0008936b8a70cdfa069e544549daafdc8711cac",
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
          endorsed_key_fingerprint: "sha256:5e6df39689c4b05a22e395c9a0008936b8a70cdfa069e544549daafdc8711cac",
          endorser_key_fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
          event_type: "endorsement_withdrawal",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: "A mistake.",
          offer_entry_id: 280,
          valid_until: "2027-01-01",
        },
        previous_hash: "f9c800228fcb3e088e394043c9e42b56cb38a14095f154ba9b6cc0249142d571",
        entry_hash: "bf17e2e3ebf787b0d27a513a62b3fb26a083a3ff319cdc202422f5a172fb0f2e",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "bf17e2e3ebf787b0d27a513a62b3fb26a083a3ff319cdc202422f5a172fb0f2e",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_revoke_acceptance: {
    body: {
      endorsed_fingerprint: "sha256:5e6df39689c4b05a22e395c9a0008936b8a70cdfa069e544549daafdc8711cac",
      original_offer_entry_id: 275,
      note: "We no longer work together.",
      auth: {
        challenge_id: "f5dae0be-309b-4643-8768-09a2d48e71d7",
        challenge_signature:
          "MEQCID81vEGd4aiIJWGigQgtsPWScKboemKz7JYDtr/+4FjqAiBl+Eut20v5kWVVf7VO1HDsWqkgEDjawrWPsuMjUoTZwA==",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 275,
        endorser_fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
        endorsed_fingerprint: "sha256:5e6df39689c4b05a22e395c9a0008936b8a70cdfa069e544549daafdc8711cac",
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
          endorsed_key_fingerprint: "sha256:5e6df39689c4b05a22e395c9a0008936b8a70cdfa069e544549daafdc8711cac",
          endorser_key_fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
          event_type: "acceptance_revocation",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: "We no longer work together.",
          offer_entry_id: 275,
          valid_until: "2027-01-01",
        },
        previous_hash: "6752b61ade0ae3a0b6632362172b09e123e68eb9ec609fcec76668f6edfa31d4",
        entry_hash: "9c209a3e016610b6bf4e1ec4eb06155ee5f4539d889ea5508e78fc1881064d9c",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "9c209a3e016610b6bf4e1ec4eb06155ee5f4539d889ea5508e78fc1881064d9c",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_revocation_alert: {
    body: {
      endorser_fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
      compromised_fingerprint: "sha256:5e6df39689c4b05a22e395c9a0008936b8a70cdfa069e544549daafdc8711cac",
      reason: "The laptop with the key was stolen.",
      auth: {
        challenge_id: "2eb0f44c-55ac-4ca9-b793-2625fc156ea4",
        challenge_signature: "iUJzWcb3zlwF8NspHNDnw9aVC8cVSDoqYseJNdei7NQ9QELQC4Y73viG/xy0RuoXW2YEG4/gp6om7D+jxy0ABw==",
      },
    },
    answer: {
      alert: {
        alert_entry_id: 278,
        compromised_fingerprint: "sha256:5e6df39689c4b05a22e395c9a0008936b8a70cdfa069e544549daafdc8711cac",
        endorser_fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
        reason: "The laptop with the key was stolen.",
        evidence: null,
        filed_at: "2025-01-02T00:07:00.000000Z",
      },
      log_entry: {
        id: 278,
        timestamp: "2025-01-02T00:07:00.000000Z",
        event_type: "endorser_revocation_alert",
        payload: {
          compromised_key_fingerprint: "sha256:5e6df39689c4b05a22e395c9a0008936b8a70cdfa069e544549daafdc8711cac",
          endorser_key_fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
          event_type: "endorser_revocation_alert",
          evidence: null,
          reason: "The laptop with the key was stolen.",
        },
        previous_hash: "cb7e0bc1b22e9f0903202bf70760f78704422beab47278e17588070b629de240",
        entry_hash: "6752b61ade0ae3a0b6632362172b09e123e68eb9ec609fcec76668f6edfa31d4",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "6752b61ade0ae3a0b6632362172b09e123e68eb9ec609fcec76668f6edfa31d4",
            is_primary: true,
          },
        ],
      },
    },
  },
  get_endorsements_fingerprint: {
    params: { fingerprint: "sha256:5e6df39689c4b05a22e395c9a0008936b8a70cdfa069e544549daafdc8711cac" },
    answer: {
      endorsements: [
        {
          offer_entry_id: 275,
          endorser_fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
          endorsed_fingerprint: "sha256:5e6df39689c4b05a22e395c9a0008936b8a70cdfa069e544549daafdc8711cac",
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
    params: { fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78" },
    query: { status: "active" },
    answer: {
      endorsements: [
        {
          offer_entry_id: 275,
          endorser_fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
          endorsed_fingerprint: "sha256:5e6df39689c4b05a22e395c9a0008936b8a70cdfa069e544549daafdc8711cac",
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
    params: { fingerprint: "sha256:5e6df39689c4b05a22e395c9a0008936b8a70cdfa069e544549daafdc8711cac" },
    answer: {
      alerts: [
        {
          alert_entry_id: 278,
          compromised_fingerprint: "sha256:5e6df39689c4b05a22e395c9a0008936b8a70cdfa069e544549daafdc8711cac",
          endorser_fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
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
    params: { fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78" },
    query: { max_depth: 2 },
    answer: {
      root: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
      nodes: [
        {
          fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
          pseudonym: "Ada",
          status: "active",
          depth: 0,
        },
        {
          fingerprint: "sha256:5e6df39689c4b05a22e395c9a0008936b8a70cdfa069e544549daafdc8711cac",
          pseudonym: "Grace",
          status: "active",
          depth: 1,
        },
      ],
      edges: [
        {
          from: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
          to: "sha256:5e6df39689c4b05a22e395c9a0008936b8a70cdfa069e544549daafdc8711cac",
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
    params: { fingerprint: "sha256:5e6df39689c4b05a22e395c9a0008936b8a70cdfa069e544549daafdc8711cac" },
    answer: {
      fingerprint: "sha256:5e6df39689c4b05a22e395c9a0008936b8a70cdfa069e544549daafdc8711cac",
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
          fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
          category_weights: { "x-service:institutional_endorsement": 0.8 },
          decay_per_hop: 0.5,
          direct_signer_anchors: [
            { fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78", weight: 1 },
          ],
          endorser_anchors: [
            { fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78", weight: 0.9 },
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
      fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
      direct_signer_anchors: [
        { fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78", weight: 0.9 },
      ],
      minimum_threshold: 0.4,
      category_weights: { "x-service:institutional_endorsement": 0.8 },
    },
    answer: {
      id: 1,
      fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78", weight: 0.9 },
      ],
      max_depth: 4,
      minimum_threshold: 0.4,
      status: "active",
      created_at: "2025-01-02T00:07:00.000000Z",
    },
  },
  get_trust_configs_fingerprint: {
    params: { fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78" },
    answer: {
      id: 1,
      fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78", weight: 0.9 },
      ],
      max_depth: 4,
      minimum_threshold: 0.4,
      status: "active",
      created_at: "2025-01-02T00:07:00.000000Z",
    },
  },
  post_trust_configs_revoke: {
    body: { fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78" },
    answer: {
      id: 1,
      fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78", weight: 0.9 },
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
            id: "f01995d6-ddb7-4339-94c3-1fc594bec0db",
            type: "authorship",
            scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
            signer_key_fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
            signature_algorithm: "ed25519",
            signature: "UPtms/yZa4z5sxHqgFtBSnu6smIWnrDe/uRCn+T7dgxb7VAMacmvKMK+A5TJBn558IkF5hZ1OI7pdD6tTlySBw==",
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
          id: "f01995d6-ddb7-4339-94c3-1fc594bec0db",
          signer_key_fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
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
          { id: "f01995d6-ddb7-4339-94c3-1fc594bec0db", kind: "attestation", type: "authorship", status: "valid" },
          {
            id: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
            kind: "key",
            pseudonym: "Ada",
            status: "active",
          },
        ],
        edges: [
          {
            from: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
            to: "f01995d6-ddb7-4339-94c3-1fc594bec0db",
            kind: "signed",
          },
          {
            from: "f01995d6-ddb7-4339-94c3-1fc594bec0db",
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
                id: "f01995d6-ddb7-4339-94c3-1fc594bec0db",
                type: "authorship",
                scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                signer_key_fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
                signature_algorithm: "ed25519",
                signature: "UPtms/yZa4z5sxHqgFtBSnu6smIWnrDe/uRCn+T7dgxb7VAMacmvKMK+A5TJBn558IkF5hZ1OI7pdD6tTlySBw==",
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
                  id: "f01995d6-ddb7-4339-94c3-1fc594bec0db",
                  type: "authorship",
                  scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                  signer_key_fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
                  signature_algorithm: "ed25519",
                  signature: "UPtms/yZa4z5sxHqgFtBSnu6smIWnrDe/uRCn+T7dgxb7VAMacmvKMK+A5TJBn558IkF5hZ1OI7pdD6tTlySBw==",
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
                  id: "f01995d6-ddb7-4339-94c3-1fc594bec0db",
                  type: "authorship",
                  scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                  signer_key_fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
                  signature_algorithm: "ed25519",
                  signature: "UPtms/yZa4z5sxHqgFtBSnu6smIWnrDe/uRCn+T7dgxb7VAMacmvKMK+A5TJBn558IkF5hZ1OI7pdD6tTlySBw==",
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
                    id: "f01995d6-ddb7-4339-94c3-1fc594bec0db",
                    type: "authorship",
                    scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                    signer_key_fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
                    signature_algorithm: "ed25519",
                    signature:
                      "UPtms/yZa4z5sxHqgFtBSnu6smIWnrDe/uRCn+T7dgxb7VAMacmvKMK+A5TJBn558IkF5hZ1OI7pdD6tTlySBw==",
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
        "eyJhdHRlc3RhdGlvbnMiOltdLCJkb2N1bWVudCI6eyJjb250ZW50X2hhc2giOiJzaGEyNTY6ZjNkNDJlYmY5NjU5YjE2MmUwYmE4YzQwMjM1OTQwMWRlN2VkOGMyODg0M2MwMWY2ZTBiZGIyMzhhY2Q4ZDAzYyIsInBhcnRzIjpbeyJjb250ZW50X2hhc2giOiJzaGEyNTY6NDk4NjNjYzg4YzcxZGU2NjI5MmE5ZjVmMmI5MzJkMWRmMGMxZWQxMDFlYzJiOTc4ODBkZTFhMTEzMzcwOTgxMCIsIm1hbmlmZXN0Ijp7ImF0dGVzdGF0aW9ucyI6W3siaWQiOiJmMDE5OTVkNi1kZGI3LTQzMzktOTRjMy0xZmM1OTRiZWMwZGIiLCJpbnRlbnRfc3RhdGVtZW50IjoiSSB3cm90ZSBpdC4iLCJzY29wZSI6eyJjb250ZW50X2hhc2giOiJzaGEyNTY6NDk4NjNjYzg4YzcxZGU2NjI5MmE5ZjVmMmI5MzJkMWRmMGMxZWQxMDFlYzJiOTc4ODBkZTFhMTEzMzcwOTgxMCJ9LCJzaWduYXR1cmUiOiJVUHRtcy95WmE0ejVzeEhxZ0Z0QlNudTZzbUlXbnJEZS91UkNuK1Q3ZGd4YjdWQU1hY212S01LK0E1VEpCbjU1OElrRjVoWjFPSTdwZEQ2dFRseVNCdz09Iiwic2lnbmF0dXJlX2FsZ29yaXRobSI6ImVkMjU1MTkiLCJzaWduZXJfa2V5X2ZpbmdlcnByaW50Ijoic2hhMjU2OmRlMWZmYzM0ZTJhY2RiYzgwOGVjODhiNmY4ZjVmYmI1Yzg3YmRjNmRhOGI5N2YwNTU3NTEyN2I2MDE1OTZlNzgiLCJ0aW1lc3RhbXAiOiIyMDI1LTAxLTAxVDAwOjA2OjAwLjAwMDAwMFoiLCJ0eXBlIjoiYXV0aG9yc2hpcCJ9XSwiZG9jdW1lbnQiOnsiY29udGVudF9oYXNoIjoic2hhMjU2OjQ5ODYzY2M4OGM3MWRlNjYyOTJhOWY1ZjJiOTMyZDFkZjBjMWVkMTAxZWMyYjk3ODgwZGUxYTExMzM3MDk4MTAiLCJ0YWdzIjpbInJlcG9ydCJdLCJ0aXRsZSI6IkFubnVhbCByZXBvcnQifX0sInJvbGUiOiJjaGFwdGVyIiwidGl0bGUiOiJSZXBvcnQifSx7ImNvbnRlbnRfaGFzaCI6InNoYTI1NjpmMzBjNTM0ZGE5NThhNzUzYWMyMGM2ZDVmZDQwNDFkZTRkOWFlMjQ5N2U3NDQwY2ZlMmQwMzRiMDBiNzFlZDEzIiwidGl0bGUiOiJBcHBlbmRpeCJ9XSwidGl0bGUiOiJSZXBvcnQgYW5kIGFwcGVuZGl4In19",
      manifest_hash: "134cd37331b39ec58b123ce2261c70f6d519208d244e5b6de383485665aaef32",
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
            attestation_id: "776e19c8-d82a-409d-9a0f-2a589602b25f",
            attestation_type: "editorial_review",
            document_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810",
            document_title: "Annual report",
            intent_statement: null,
            manifest_hash: "07a3a261f09eccfd842bc0cc3b0f4d6489cff455701b173ccae85104b6b55285",
            signature:
              "MEYCIQDkRwI3cyJ4LMdjZRea6MeWRtukW3B5VFzbqx0o08IwAQIhAK5CIQezQ8iEPbBF4rDBihUrDQ8osKh4xlWNSdAybyOX",
            signature_algorithm: "ecdsa-p256",
            signer_key_fingerprint: "sha256:5e6df39689c4b05a22e395c9a0008936b8a70cdfa069e544549daafdc8711cac",
            tags: ["report"],
            timestamp: "2025-01-01T00:06:00.000000Z",
          },
          previous_hash: "cf0afc4f32234eab3c4b710051b694aec1fb3f1fd9c69ba369c43e1de2c67a78",
          entry_hash: "e8c09723457a6a0714bbf621d5b587516bc72b2b6e27c5a74f61365a066ddb71",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "e8c09723457a6a0714bbf621d5b587516bc72b2b6e27c5a74f61365a066ddb71",
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
          "BIWSGzrSoVkNDHenyK0PfNddwo63e/XPYVy9/SR2Mnfokiu+ArPa3YVE1Nl4tsTVKOKju4Wk8PGoSGMBhpmICQ0=",
        commitment: "074c64c29303a1a87c545944026240871eb8337f3e129e58e657febbe09bd82b",
        lookup_key: "e9fe87df6b96eca5149f16dd3cfb5ecc759d83146a8b1de0654f3be8f06029ec",
        nonce: "qTihQjd9mtLw2pJ9",
        ciphertext: "r/+zp74naMgqpoaq0sxurMXTA/wNBcjW/d+9BHbueryCQ08M9oGkbVhUSr+i0EAeG3SA",
        recipient_fingerprint: "sha256:ce53aeefc16386bc9f7792f260ed9830ae79393c7169643ebcd21037c4358ce5",
      },
    },
    answer: {
      entry_id: 286,
      commitment: "074c64c29303a1a87c545944026240871eb8337f3e129e58e657febbe09bd82b",
      lookup_key: "e9fe87df6b96eca5149f16dd3cfb5ecc759d83146a8b1de0654f3be8f06029ec",
      leaf_index: 285,
      log_entry_id: 286,
    },
  },
  get_claims: {
    query: { lookup_key: "e9fe87df6b96eca5149f16dd3cfb5ecc759d83146a8b1de0654f3be8f06029ec" },
    answer: {
      entries: [
        {
          id: 286,
          timestamp: "2025-01-02T00:07:00.000000Z",
          event_type: "encrypted_claim",
          payload: {
            ciphertext: "r/+zp74naMgqpoaq0sxurMXTA/wNBcjW/d+9BHbueryCQ08M9oGkbVhUSr+i0EAeG3SA",
            commitment: "074c64c29303a1a87c545944026240871eb8337f3e129e58e657febbe09bd82b",
            commitment_alg: "hmac-sha256-ecdh-v1",
            ephemeral_public_key:
              "BIWSGzrSoVkNDHenyK0PfNddwo63e/XPYVy9/SR2Mnfokiu+ArPa3YVE1Nl4tsTVKOKju4Wk8PGoSGMBhpmICQ0=",
            event_type: "encrypted_claim",
            lookup_key: "e9fe87df6b96eca5149f16dd3cfb5ecc759d83146a8b1de0654f3be8f06029ec",
            nonce: "qTihQjd9mtLw2pJ9",
            recipient_fingerprint: "sha256:ce53aeefc16386bc9f7792f260ed9830ae79393c7169643ebcd21037c4358ce5",
          },
          previous_hashes: [
            { algorithm: "sha2-256", digest_hex: "0aa0c4a370de05c539766fd0dcf9f3f1bd0693f986c553a4a6b839e79f5eb581" },
          ],
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "ee1bf979a098b8c97bb16bdf2bdc75427489af24b1088c3fa10140f8c9cdc01f",
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
      ciphertext: "r/+zp74naMgqpoaq0sxurMXTA/wNBcjW/d+9BHbueryCQ08M9oGkbVhUSr+i0EAeG3SA",
      commitment: "074c64c29303a1a87c545944026240871eb8337f3e129e58e657febbe09bd82b",
      commitment_alg: "hmac-sha256-ecdh-v1",
      ephemeral_public_key: "BIWSGzrSoVkNDHenyK0PfNddwo63e/XPYVy9/SR2Mnfokiu+ArPa3YVE1Nl4tsTVKOKju4Wk8PGoSGMBhpmICQ0=",
      lookup_key: "e9fe87df6b96eca5149f16dd3cfb5ecc759d83146a8b1de0654f3be8f06029ec",
      nonce: "qTihQjd9mtLw2pJ9",
      recipient_fingerprint: "sha256:ce53aeefc16386bc9f7792f260ed9830ae79393c7169643ebcd21037c4358ce5",
    },
  },
  post_claims_entry_id_reveal: {
    params: { entry_id: 286 },
    body: {
      plaintext: { salary: 52000, name: "Zoë 🪨" },
      commitment_key: "78fd65169815cebf7f35f716357e77d0bd419cecfc6d7f4560e572a4abefc1de",
    },
    answer: { valid: true },
  },
  get_log_attestation_requests: {
    query: { target: "sha256:5e6df39689c4b05a22e395c9a0008936b8a70cdfa069e544549daafdc8711cac", status: "open" },
    answer: {
      requests: [
        {
          request_id: "326a2c6e-b876-4732-b546-bc182b69ae08",
          requester_fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
          target_fingerprint: "sha256:5e6df39689c4b05a22e395c9a0008936b8a70cdfa069e544549daafdc8711cac",
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
      target_fingerprint: "sha256:5e6df39689c4b05a22e395c9a0008936b8a70cdfa069e544549daafdc8711cac",
      attestation_type: "peer_review",
      nonce: "request-2025-0001",
      intent_statement: "Please review the annual report.",
      claims: { document_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
    },
    answer: {
      request_id: "326a2c6e-b876-4732-b546-bc182b69ae08",
      requester_fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
      target_fingerprint: "sha256:5e6df39689c4b05a22e395c9a0008936b8a70cdfa069e544549daafdc8711cac",
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
    params: { request_id: "326a2c6e-b876-4732-b546-bc182b69ae08" },
    answer: {
      request_id: "326a2c6e-b876-4732-b546-bc182b69ae08",
      requester_fingerprint: "sha256:de1ffc34e2acdbc808ec88b6f8f5fbb5c87bdc6da8b97f05575127b601596e78",
      target_fingerprint: "sha256:5e6df39689c4b05a22e395c9a0008936b8a70cdfa069e544549daafdc8711cac",
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
        responder_fingerprint: "sha256:5e6df39689c4b05a22e395c9a0008936b8a70cdfa069e544549daafdc8711cac",
        attestation_id: null,
        reason: "No time before summer.",
        responded_at: "2025-01-02T00:07:00.000000Z",
        log_entry_id: 284,
        leaf_index: 283,
      },
    },
  },
  get_log_request_policies_fingerprint: {
    params: { fingerprint: "sha256:5e6df39689c4b05a22e395c9a0008936b8a70cdfa069e544549daafdc8711cac" },
    answer: {
      target_fingerprint: "sha256:5e6df39689c4b05a22e395c9a0008936b8a70cdfa069e544549daafdc8711cac",
      active: {
        target_fingerprint: "sha256:5e6df39689c4b05a22e395c9a0008936b8a70cdfa069e544549daafdc8711cac",
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
    params: { request_id: "326a2c6e-b876-4732-b546-bc182b69ae08" },
    body: { decision: "decline", reason: "No time before summer." },
    answer: {
      request_id: "326a2c6e-b876-4732-b546-bc182b69ae08",
      status: "declined",
      responder_fingerprint: "sha256:5e6df39689c4b05a22e395c9a0008936b8a70cdfa069e544549daafdc8711cac",
      decision: "decline",
      attestation_id: null,
      reason: "No time before summer.",
      log_entry_id: 284,
      leaf_index: 283,
    },
  },
  post_log_request_policies: {
    body: {
      target_fingerprint: "sha256:5e6df39689c4b05a22e395c9a0008936b8a70cdfa069e544549daafdc8711cac",
      predicates: { all: [{ field: "attestation_type", op: "in", value: ["peer_review", "editorial_review"] }] },
      default_action_on_failure: "decline",
    },
    answer: {
      target_fingerprint: "sha256:5e6df39689c4b05a22e395c9a0008936b8a70cdfa069e544549daafdc8711cac",
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
          request_id: "326a2c6e-b876-4732-b546-bc182b69ae08",
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
      request_id: "326a2c6e-b876-4732-b546-bc182b69ae08",
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

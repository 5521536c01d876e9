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
      vkey: "cairnlog/fda6764c6f0873ee/tlog+8e62addb+Aaz8brJWBShNBUYoA5LJnGyzhwpSV8QF3Bkfs9dEqOWJ",
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
      key_fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
      device_label: "Security key",
    },
    answer: {
      user: {
        id: "3bf7c1e5-2d40-48fa-8c40-9b74b5bcd722",
        display_name: "Ada Lovelace",
        created_at: "2025-01-01T00:00:00.000000Z",
      },
      credential: {
        id: "966ddad5-6f58-48ee-8602-cbcd59703189",
        key_fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
        credential_type: "hardware",
        device_label: "Security key",
        status: "active",
        created_at: "2025-01-01T00:00:00.000000Z",
        revoked_at: null,
        hardware_backed: true,
      },
      recovery_key: "AN00B-Z6HFE-RY4YF-JDXER-HE00C-NSCXE-SA4CY-XR2G8",
    },
  },
  post_users_recover: {
    body: {
      pseudonym: "Ada Lovelace",
      recovery_key: "AN00B-Z6HFE-RY4YF-JDXER-HE00C-NSCXE-SA4CY-XR2G8",
      credential_type: "hardware",
      key_fingerprint: "sha256:187e6baedddc4963456bf3b9d0f326bb2014fa1d515f883c91f08580336ecc03",
      device_label: "Security key",
    },
    answer: {
      user: {
        id: "3bf7c1e5-2d40-48fa-8c40-9b74b5bcd722",
        display_name: "Ada Lovelace",
        created_at: "2025-01-01T00:00:00.000000Z",
      },
      credential: {
        id: "2a6c9368-39a8-49b0-a86f-d57ce7eacf7d",
        key_fingerprint: "sha256:187e6baedddc4963456bf3b9d0f326bb2014fa1d515f883c91f08580336ecc03",
        credential_type: "hardware",
        device_label: "Security key",
        status: "active",
        created_at: "2025-01-01T00:06:00.000000Z",
        revoked_at: null,
        hardware_backed: true,
      },
      recovery_key: "80A0H-NG74N-S4Y1K-2AC2F-1C383-N1NAW-BAFZB-SHNVH",
      revoked_credentials: 2,
    },
  },
  post_credentials_enroll: {
    body: {
      challenge_id:
        "AQEABiqZy-4DAPN7RlfT05buq-U9eBlEsTGfURoKnoXN6r3t7O0IOb746oVapFDyn6wAduvvn72rWOldcFZylqTM2ZmNbd9EdBnU2ERdSM77KbrAIwsFrezZJUv-w9YqhDjuiKobAUr20Q",
      issuing_fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
      key_fingerprint: "sha256:f37b4657d3d396eeabe53d781944b1319f511a0a9e85cdeabdedeced0839bef8",
      credential_type: "hardware",
      device_label: "Second security key",
      challenge_signature: "v/SAaiCMWe2NeNpqCv5Zt+cicIztg3gUlJAV1xtogbywx7wBcV+O7ywdk/6Zof+d48aU+DN5Zrbqse9lSOaYCw==",
      chain_signature: "HjsilS4k3U8HWPPvC1bTn7rCPvXf3qQ7DLylyK5r2hchCURKeLi5+XJXd1tZNOZTuao/OdnnxybediJ/o3a7Bw==",
    },
    answer: {
      credential: {
        id: "10eaf0a3-a66e-4e38-b323-35faa8160dd3",
        key_fingerprint: "sha256:f37b4657d3d396eeabe53d781944b1319f511a0a9e85cdeabdedeced0839bef8",
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
          fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
          pseudonym: "Ada",
          algorithm: "ed25519",
          status: "active",
          registered_at: "2025-01-01T00:00:00.000000Z",
          expires_at: null,
          named: false,
        },
        {
          fingerprint: "sha256:5a593527e8279fe180fa4c1b3f6e77a6db50b227bdf701e010968a47f08e506d",
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
          fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
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
    params: { fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84" },
    answer: {
      fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
      public_key:
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAW3MqUBzwXuK/Q9Dn7P5fEPXOXUIo4G7GYEgWaaSZ69Y=\n-----END PUBLIC KEY-----\n",
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
    params: { fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84" },
    answer: {
      fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
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
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAW3MqUBzwXuK/Q9Dn7P5fEPXOXUIo4G7GYEgWaaSZ69Y=\n-----END PUBLIC KEY-----\n",
        pseudonym: "Ada",
        key_algorithm: "ed25519",
      },
    },
    answer: {
      fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
      pseudonym: "Ada",
      algorithm: "ed25519",
      log_entry_id: 1,
      leaf_index: 0,
      entry_hash: "b7df0701692e0bdc6e641310cdefa785d8cd0ade006720313d2b969e7fcf23ef",
    },
  },
  post_keys_succeed: {
    body: {
      payload: {
        old_fingerprint: "sha256:2ecda73a266bc38b89df4b7d2219702839e44b2e5d6d718595813481a0dfbdd6",
        new_public_key:
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA7vpkcBEakIHTsiUBxKDOvTHOfYO+y7aQ3lI5YMKRME8=\n-----END PUBLIC KEY-----\n",
        new_algorithm: "ed25519",
      },
      auth: {
        challenge_id:
          "AQEABiqZy-4DAC7Npzoma8OLid9LfSIZcCg55EsuXW1xhZWBNIGg373WPBd7I17LnAppR_q1sO_J7dTswypSpU6NkTBiw7JcnIEke2ILB21dbSLEoqjS0-BaUHiwf6B1NWMvjqMSB0qFpg",
        challenge_signature: "geuzT0I3VFt1JihXek77Y98KsnLSyCvAmZ1qFemaeEw59EqDu7Zfbj1FPvT6xKm3lV99BdJpKrZz4uj+ncBnBw==",
      },
    },
    answer: {
      old_fingerprint: "sha256:2ecda73a266bc38b89df4b7d2219702839e44b2e5d6d718595813481a0dfbdd6",
      new_fingerprint: "sha256:c9cbb3dd4fc0f31c14e1ef25a57f36bd1a43c04c5aeb6e91402fa606f78a05a0",
      log_entry_id: 5,
      leaf_index: 4,
      entry_hash: "94fb1c12f7ff5ffab27069d95952688a5f581de831d5efeecfc2f8ca2e4fce40",
    },
  },
  post_keys_revoke: {
    body: {
      payload: { fingerprint: "sha256:c9cbb3dd4fc0f31c14e1ef25a57f36bd1a43c04c5aeb6e91402fa606f78a05a0" },
      auth: {
        challenge_id:
          "AQEABiqZy-4DAMnLs91PwPMcFOHvJaV_Nr0aQ8BMWutukUAvpgb3igWgk8bdJhPEyA_z1s-Rl-wnRTSJ3bZKphCqW9x0cFq7gllYpeDhAEq1R1dZc-xaeM80AI4TtcBpVVN-OseM2Mrzrw",
        challenge_signature: "+Zs+LAFc1GF+unMzeeZrD16taSecoEdCRfZLxFgbTdMwSOZuzPp27OCYIJLb1mFTaIjTb03ogYOaz1xHy5jeCg==",
      },
    },
    answer: {
      fingerprint: "sha256:c9cbb3dd4fc0f31c14e1ef25a57f36bd1a43c04c5aeb6e91402fa606f78a05a0",
      status: "revoked",
      log_entry_id: 6,
      leaf_index: 5,
      entry_hash: "c89e060de5979617c7151173d6faf0835b2a77fd28e6e79764cf137ccd7510ba",
    },
  },
  post_auth_challenge: {
    body: { fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84", purpose: "login" },
    answer: {
      challenge_id:
        "AQAABiqZy-4DAG_VKStHqRf2iVowAW2iEh-kVbPIw4S_UgLergojJ52ES0QalW4mJEby9THMHBODd6qn8hw578hZjsG9Mt4kjMfVlaflUQhz5hvqpzLI8HgPNJGoRggo-KX8eN9lwguztQ",
      nonce:
        "service.auth.v1:login:sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84:S0QalW4mJEby9THMHBODd6qn8hw578hZjsG9Mt4kjMc",
      expires_at: "2025-01-01T00:05:00.000000Z",
      origin: "http://127.0.0.1:47625",
      act: null,
    },
  },
  post_auth_login: {
    body: {
      challenge_id:
        "AQAABiqZy-4DAG_VKStHqRf2iVowAW2iEh-kVbPIw4S_UgLergojJ52ES0QalW4mJEby9THMHBODd6qn8hw578hZjsG9Mt4kjMfVlaflUQhz5hvqpzLI8HgPNJGoRggo-KX8eN9lwguztQ",
      challenge_signature: "+S3/5Dk/XkRgxeHRHaiEF26Z03DlIiy3OtHRLdrUmzUR4Cm1afnpeAHjxoJd1WSR052FzOQGa1qhYohLEbtwBw==",
    },
    answer: {
      token:
        "eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzaGEyNTY6ZmRhNjc2NGM2ZjA4NzNlZTgxZmYxNmI1YTY2NTMzYzEwNzgwODRkYmE5ZmJjYjE3MGRhMWJiY2VjYzhiNjQ5ZSIsInN1YiI6InNoYTI1Njo2ZmQ1MjkyYjQ3YTkxN2Y2ODk1YTMwMDE2ZGEyMTIxZmE0NTViM2M4YzM4NGJmNTIwMmRlYWUwYTIzMjc5ZDg0IiwiaWF0IjoxNzM1Njg5NjAwLCJleHAiOjE3MzU2OTMyMDAsImp0aSI6ImUzY2FlZjkwLWU4MDMtNDgzOC1hNTE5LThlMGJkODVkNDIwZiIsInBzZXVkb255bSI6IkFkYSIsInJlY292ZXJ5IjpmYWxzZSwiYXV0aF90aW1lIjoxNzM1Njg5NjAwfQ.OC0TCNNnrmjmsRmHRFfn_bsPBda0j67xQIw5mXv7IvvRPhUfb1tGcobYKYjJBvuYGMsMdy9HVM-sS2iS0mssBw",
      fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
      pseudonym: "Ada",
      expires_at: "2025-01-01T01:00:00.000000Z",
    },
  },
  post_auth_renew: {
    answer: {
      token:
        "eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzaGEyNTY6ZmRhNjc2NGM2ZjA4NzNlZTgxZmYxNmI1YTY2NTMzYzEwNzgwODRkYmE5ZmJjYjE3MGRhMWJiY2VjYzhiNjQ5ZSIsInN1YiI6InNoYTI1Njo2ZmQ1MjkyYjQ3YTkxN2Y2ODk1YTMwMDE2ZGEyMTIxZmE0NTViM2M4YzM4NGJmNTIwMmRlYWUwYTIzMjc5ZDg0IiwiaWF0IjoxNzM1Njg5NjAwLCJleHAiOjE3MzU2OTMyMDAsImp0aSI6ImE4ZDQ4ODM0LTQyZTAtNGVmMy1hZGMzLTM3OWVkNWVjZTdlNyIsInBzZXVkb255bSI6IkFkYSIsInJlY292ZXJ5IjpmYWxzZSwiYXV0aF90aW1lIjoxNzM1Njg5NjAwfQ.JTWJLymYbC7wstNfz3VsWGJLsnxPlMJVT_CuUv9KOHrTWgBblS3zJ-yTDUSeo9xzL5jHQBVE52OR2ozp4HaaCg",
      fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
      pseudonym: "Ada",
      expires_at: "2025-01-01T01:00:00.000000Z",
    },
  },
  post_auth_password: {
    body: {
      challenge_id:
        "AQEABiqZy-4DAImU62P2K3ex9MvptZ29iaR1EB8Gzf7lCaRbMsiqJ76bWuqxHALYqbKDcMBHZ6s7R7V09J4SFt7iFULHvUcvUUUzgi_LxrlqwavAYVofJB8ZBdq0uvnm4ZURvZzVYCXGYA",
      challenge_signature: "QlMK2cm4Gh9jEOeR2Zk6KJIR+PfwiQF5G+UOURSBRotZP7QTEWAJ57FVug235CYElhvxLUN2Mv9KI4jgDWTtBw==",
      password: "correct horse battery",
    },
    answer: {
      fingerprint: "sha256:8994eb63f62b77b1f4cbe9b59dbd89a475101f06cdfee509a45b32c8aa27be9b",
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
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAW3MqUBzwXuK/Q9Dn7P5fEPXOXUIo4G7GYEgWaaSZ69Y=\n-----END PUBLIC KEY-----\n",
      signature: "DkNllRr26SoyisD+UzEoW90qe7DJtLgJc6YTHi31ndX4WozczUXwS+aGzs68YcKBqZj+UsJgkfsysYNnj+EEAg==",
      intent_statement: "I wrote it.",
    },
    answer: {
      attestation: {
        id: "eef1606e-3b96-4daf-be12-a50a54847682",
        type: "authorship",
        scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
        signer_key_fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
        signature_algorithm: "ed25519",
        signature: "DkNllRr26SoyisD+UzEoW90qe7DJtLgJc6YTHi31ndX4WozczUXwS+aGzs68YcKBqZj+UsJgkfsysYNnj+EEAg==",
        timestamp: "2025-01-01T00:06:00.000000Z",
        intent_statement: "I wrote it.",
      },
      fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
      pseudonym: "Ada",
      log_entry_id: 13,
      leaf_index: 12,
      entry_hash: "c6cfeb9b42120f5cac3547b13eee1a17225b4e28bd380e64b64e6951d50b2025",
      manifest_hash: "38f0c85d6331fd79023d1cd40a3908b665272ec2077277686ac55af17b1b6494",
      sth: {
        tree_size: 13,
        root_hash: "e96acf2148942cc7d69ee79957c0722b2bde54a508e3966b54fee0ea16ce32fd",
        signature: "NzC8fOhWE7jOQu1u/Gp8+DkcKsNYJXrFucH0pKKCK1NU9Mzeky+svuiYshgj7gIGDMYm4ExLMQSnrTi83by9Cw==",
        timestamp: "2025-01-01T00:06:00.000000Z",
        key_id: "sha256:fda6764c6f0873ee81ff16b5a66533c1078084dba9fbcb170da1bbcecc8b649e",
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
            "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAW3MqUBzwXuK/Q9Dn7P5fEPXOXUIo4G7GYEgWaaSZ69Y=\n-----END PUBLIC KEY-----\n",
          signature: "xCTBcbyg+R6cCL2SlgFRaeMcGBjdXiqlsi5ILMPN5mNC03VDmk4Tvb9QbGzZMH/MrlRH7V5KBa0ekTZdfHa3Dw==",
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
            "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAW3MqUBzwXuK/Q9Dn7P5fEPXOXUIo4G7GYEgWaaSZ69Y=\n-----END PUBLIC KEY-----\n",
          signature: "W/9heMjH9AGaf5fVwwV39GgnhBRnNBBPNfoC8ttlPzFAGQD9QeDYxVfDuNog1bt8i4VXTagyLi8mGK4d0hbJAw==",
        },
      ],
    },
    answer: {
      results: [
        {
          status: 201,
          receipt: {
            attestation: {
              id: "ff1d9637-722a-4505-a11c-98e4b7b57672",
              type: "authorship",
              scope: { content_hash: "sha256:c74e517559a5ed1b9f8f47889125b5d6b84df309d173fee85585b4c045f5214b" },
              signer_key_fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
              signature_algorithm: "ed25519",
              signature: "xCTBcbyg+R6cCL2SlgFRaeMcGBjdXiqlsi5ILMPN5mNC03VDmk4Tvb9QbGzZMH/MrlRH7V5KBa0ekTZdfHa3Dw==",
              timestamp: "2025-01-01T00:06:00.000000Z",
            },
            fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
            pseudonym: "Ada",
            log_entry_id: 14,
            leaf_index: 13,
            entry_hash: "91b16aca9fd8eca46090ce552158a931d75095aeb86181c65ec174aa92bbddc0",
            manifest_hash: "25367d2d820f2cc8ef80c557f5e4b35bef45d435ae93ee6e3aeffc3e00a05c0e",
            sth: {
              tree_size: 14,
              root_hash: "48de9499118200da8020b4924a202700b321c8f95808ade4255cea2b006bdfe2",
              signature: "zh08KGlu/NYC+fVRyuLpee3rfvRanTqNv0Wa5th3PeK7uGUFzKYq++TQsat1nFfDJTqLi+eTwkFHUzhzGrVvAQ==",
              timestamp: "2025-01-01T00:06:00.000000Z",
              key_id: "sha256:fda6764c6f0873ee81ff16b5a66533c1078084dba9fbcb170da1bbcecc8b649e",
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
        "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEIH2/6WJPxLAqoH72OfPfSU59ylyE\ny9rQltALdRrBt9Q5C6Gl/EkyTGoTmPN9JC7eGk+b4GqGIf22KEaGRSKw7A==\n-----END PUBLIC KEY-----\n",
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
        entry_hash: "77c1fe54445a9d070230ec8d34ada5169e283934b45856791e6e71217a149113",
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
        fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
        key_algorithm: "ed25519",
        possession_signature: null,
        pseudonym: "Ada",
        public_key:
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAW3MqUBzwXuK/Q9Dn7P5fEPXOXUIo4G7GYEgWaaSZ69Y=\n-----END PUBLIC KEY-----\n",
      },
      previous_hash: null,
      entry_hash: "b7df0701692e0bdc6e641310cdefa785d8cd0ade006720313d2b969e7fcf23ef",
      chain_version: 2,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "b7df0701692e0bdc6e641310cdefa785d8cd0ade006720313d2b969e7fcf23ef",
          is_primary: true,
        },
      ],
    },
  },
  get_log_sth: {
    answer: {
      tree_size: 15,
      root_hash: "abf5beffd50c47283c14d57fa81fd2695e85d7956ac8b71bbb4172d404785118",
      signature: "5ml6vzrvXaQPziBpHD1KmaZBHq/YHsaZYdfG5B445zEJuyteV7bMNLRjbukziwR+1qEEgWvooobB3YCXfcLwCQ==",
      timestamp: "2025-01-01T00:06:00.000000Z",
      key_id: "sha256:fda6764c6f0873ee81ff16b5a66533c1078084dba9fbcb170da1bbcecc8b649e",
      tree_version: 2,
    },
  },
  get_log_sth_tree_size: {
    params: { tree_size: 3 },
    answer: {
      tree_size: 3,
      root_hash: "ac20e523d37878f134e372c1be184ff8953aef9af601d249fa8adc8ca4d6435e",
      signature: "tsyHh/lF7sLQzjxUx9pRxTpGEtQ3I8+zcegL0OBQTmVEr2GN35a90VrKU6UtgqwGAK8hdKEFmIwLhM1ZRkSJBQ==",
      timestamp: "2025-01-01T00:00:00.000000Z",
      key_id: "sha256:fda6764c6f0873ee81ff16b5a66533c1078084dba9fbcb170da1bbcecc8b649e",
      tree_version: 2,
    },
  },
  get_log_heads: {
    query: { from: 3, limit: 1 },
    answer: {
      heads: [
        {
          tree_size: 3,
          root_hash: "ac20e523d37878f134e372c1be184ff8953aef9af601d249fa8adc8ca4d6435e",
          signature: "tsyHh/lF7sLQzjxUx9pRxTpGEtQ3I8+zcegL0OBQTmVEr2GN35a90VrKU6UtgqwGAK8hdKEFmIwLhM1ZRkSJBQ==",
          timestamp: "2025-01-01T00:00:00.000000Z",
          key_id: "sha256:fda6764c6f0873ee81ff16b5a66533c1078084dba9fbcb170da1bbcecc8b649e",
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
      leaf_hash: "4cfcec50a0471bf45f14d8bcf0f676ab3c541b3063bf3c9f10bd9fa1d33e0d87",
      root_hash: "52474f427032a35ec7b38495ebdf9246e484776a4a9164139f2f5a9840874c6f",
      audit_path: [
        "3f5f3f5eb5896a3d323ec8b22e789db9e0d11498a31d113f562ded667fea9b04",
        "3cda1d7dafd341ec597f49f29cf37f59281db52d19d4f772fb4fa2163e7d0a18",
        "89d074279033dbd6d2e317e2ff6eed4387e616fa81f25710b09aa1c7bf1c7ee0",
      ],
      entry_hash: "5532711ac84a9738f8cf0329fe34dfa710e8271c1293e075d4507efd713a4697",
      sth: {
        tree_size: 5,
        root_hash: "52474f427032a35ec7b38495ebdf9246e484776a4a9164139f2f5a9840874c6f",
        signature: "JlURQ7iIsTF13e/T+OMzUe7r7YGxXOZFA5PcElM0sN8gZNjJBHTQg3mE1jVei6uE4/F+HMK2DATIOQURlDMEDw==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:fda6764c6f0873ee81ff16b5a66533c1078084dba9fbcb170da1bbcecc8b649e",
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
      leaf_hash: "4cfcec50a0471bf45f14d8bcf0f676ab3c541b3063bf3c9f10bd9fa1d33e0d87",
      root_hash: "52474f427032a35ec7b38495ebdf9246e484776a4a9164139f2f5a9840874c6f",
      audit_path: [
        "3f5f3f5eb5896a3d323ec8b22e789db9e0d11498a31d113f562ded667fea9b04",
        "3cda1d7dafd341ec597f49f29cf37f59281db52d19d4f772fb4fa2163e7d0a18",
        "89d074279033dbd6d2e317e2ff6eed4387e616fa81f25710b09aa1c7bf1c7ee0",
      ],
      entry_hash: "5532711ac84a9738f8cf0329fe34dfa710e8271c1293e075d4507efd713a4697",
      sth: {
        tree_size: 5,
        root_hash: "52474f427032a35ec7b38495ebdf9246e484776a4a9164139f2f5a9840874c6f",
        signature: "JlURQ7iIsTF13e/T+OMzUe7r7YGxXOZFA5PcElM0sN8gZNjJBHTQg3mE1jVei6uE4/F+HMK2DATIOQURlDMEDw==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:fda6764c6f0873ee81ff16b5a66533c1078084dba9fbcb170da1bbcecc8b649e",
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
      from_root: "ac20e523d37878f134e372c1be184ff8953aef9af601d249fa8adc8ca4d6435e",
      to_root: "03576f10b91dbc5b3fa6455a3d5dd7560dd6591d3d0023177048659efcd377ee",
      peaks: [
        "3cda1d7dafd341ec597f49f29cf37f59281db52d19d4f772fb4fa2163e7d0a18",
        "4cfcec50a0471bf45f14d8bcf0f676ab3c541b3063bf3c9f10bd9fa1d33e0d87",
      ],
      extension: [
        "3f5f3f5eb5896a3d323ec8b22e789db9e0d11498a31d113f562ded667fea9b04",
        "66f55eff37c9cb2f4144ef0c14a9c74bba9c3dab39217f7553a88e3941d62854",
      ],
      from_sth: {
        tree_size: 3,
        root_hash: "ac20e523d37878f134e372c1be184ff8953aef9af601d249fa8adc8ca4d6435e",
        signature: "tsyHh/lF7sLQzjxUx9pRxTpGEtQ3I8+zcegL0OBQTmVEr2GN35a90VrKU6UtgqwGAK8hdKEFmIwLhM1ZRkSJBQ==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:fda6764c6f0873ee81ff16b5a66533c1078084dba9fbcb170da1bbcecc8b649e",
        tree_version: 2,
      },
      to_sth: {
        tree_size: 6,
        root_hash: "03576f10b91dbc5b3fa6455a3d5dd7560dd6591d3d0023177048659efcd377ee",
        signature: "37G+19Wy8VPqhJTmyDXnLM1Lbe8Cn9kFN0IXiw7sBUmfbSkbGFYNGvU5sInFcrASfGNIUmzokzjiY+XHz3QoCQ==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:fda6764c6f0873ee81ff16b5a66533c1078084dba9fbcb170da1bbcecc8b649e",
        tree_version: 2,
      },
    },
  },
  post_log_verify: { answer: { valid: true, entry_count: 15, errors: [], warnings: [] } },
  get_log_operator_key: {
    answer: {
      fingerprint: "sha256:fda6764c6f0873ee81ff16b5a66533c1078084dba9fbcb170da1bbcecc8b649e",
      algorithm: "ed25519",
      public_key:
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEArPxuslYFKE0FRigDksmcbLOHClJXxAXcGR+z10So5Yk=\n-----END PUBLIC KEY-----\n",
      operators: [
        {
          key_id: "sha256:fda6764c6f0873ee81ff16b5a66533c1078084dba9fbcb170da1bbcecc8b649e",
          algorithm: "ed25519",
          public_key:
            "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEArPxuslYFKE0FRigDksmcbLOHClJXxAXcGR+z10So5Yk=\n-----END PUBLIC KEY-----\n",
          from_size: 1,
          until_size: null,
          rotation: null,
        },
      ],
    },
  },
  get_log_checkpoint: {
    answer:
      "cairnlog/fda6764c6f0873ee\n15\nq/W+/9UMRyg8FNV/qB/SaV6F15VqyLcbu0Fy1AR4URg=\n\n— cairnlog/fda6764c6f0873ee 8Q+GNO1azemgI7HrydYM/AUW/K/p1p6T7VqoS1e0dWwYsC+8DnZzXtUbApo0tHYEE+OtBoQoIQU2IS3QiJtnw5Z9ogI=\n",
  },
  get_log_tile_version_level_index: { params: { version: 2, level: 0, index: 0 } },
  get_log_tile_version_level_index_p_width: { params: { version: 2, level: 0, index_p: "1.p", width: 4 } },
  get_tlog_checkpoint: {
    answer:
      "cairnlog/fda6764c6f0873ee/tlog\n15\ndmsZutfb+3b8IsJSYkVDl7P6d4d0Js/qsDMaS8KcFNg=\n\n— cairnlog/fda6764c6f0873ee/tlog jmKt23sgXx0fJwsSo5TKMPSt99EcHUw2HuLhEBjqES60uc8UoHY9C4rJuR71Qa3FNpfqhsfi00xY5x30Dw3bM/Y3VQA=\n",
  },
  get_tlog_vkey: { answer: "cairnlog/fda6764c6f0873ee/tlog+8e62addb+Aaz8brJWBShNBUYoA5LJnGyzhwpSV8QF3Bkfs9dEqOWJ\n" },
  get_tlog_tile_level_n1: { params: { level: "entries", n1: "000" } },
  get_tlog_tile_level_n1_n2: { params: { level: "1", n1: "000.p", n2: "1" } },
  post_log_anchor: {
    answer: {
      anchored_entry_id: 15,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "77c1fe54445a9d070230ec8d34ada5169e283934b45856791e6e71217a149113",
          is_primary: true,
        },
      ],
      ots_proof:
        "AE9wZW5UaW1lc3RhbXBzAABQcm9vZgC/ieLohOiSlAEId8H+VERanQcCMOyNNK2lFp4oOTS0WFZ5Hm5xIXoUkRPwEJKkDj4kCuYMNhMLJr6olLoI8QRlAAAA8AjliU6fEw17zACD3+MNLvkMjh0caHR0cHM6Ly9jYWxlbmRhci5leGFtcGxlLm9yZw==",
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
      root_hash: "abf5beffd50c47283c14d57fa81fd2695e85d7956ac8b71bbb4172d404785118",
      signature: "5ml6vzrvXaQPziBpHD1KmaZBHq/YHsaZYdfG5B445zEJuyteV7bMNLRjbukziwR+1qEEgWvooobB3YCXfcLwCQ==",
      timestamp: "2025-01-01T00:06:00.000000Z",
      key_id: "sha256:fda6764c6f0873ee81ff16b5a66533c1078084dba9fbcb170da1bbcecc8b649e",
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
            fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
            key_algorithm: "ed25519",
            possession_signature: null,
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAW3MqUBzwXuK/Q9Dn7P5fEPXOXUIo4G7GYEgWaaSZ69Y=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "b7df0701692e0bdc6e641310cdefa785d8cd0ade006720313d2b969e7fcf23ef",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "b7df0701692e0bdc6e641310cdefa785d8cd0ade006720313d2b969e7fcf23ef",
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
    params: { fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84" },
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
            fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
            key_algorithm: "ed25519",
            possession_signature: null,
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAW3MqUBzwXuK/Q9Dn7P5fEPXOXUIo4G7GYEgWaaSZ69Y=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "b7df0701692e0bdc6e641310cdefa785d8cd0ade006720313d2b969e7fcf23ef",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "b7df0701692e0bdc6e641310cdefa785d8cd0ade006720313d2b969e7fcf23ef",
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
      fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
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
            fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
            key_algorithm: "ed25519",
            possession_signature: null,
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAW3MqUBzwXuK/Q9Dn7P5fEPXOXUIo4G7GYEgWaaSZ69Y=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "b7df0701692e0bdc6e641310cdefa785d8cd0ade006720313d2b969e7fcf23ef",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "b7df0701692e0bdc6e641310cdefa785d8cd0ade006720313d2b969e7fcf23ef",
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
      endorser_fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
      endorsed_fingerprint: "sha256:5a593527e8279fe180fa4c1b3f6e77a6db50b227bdf701e010968a47f08e506d",
      category: "x-service:institutional_endorsement",
      valid_until: "2027-01-01",
      institutional_metadata: { name: "University of Example" },
      external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
      auth: {
        challenge_id:
          "AQEABiqZ4WMtAG_VKStHqRf2iVowAW2iEh-kVbPIw4S_UgLergojJ52ESxCOm01KueRUs_a8oAcB_aCU_h8PKOTFbG0tuaeH7wf5HWO9RpO3KD2o-2OQux9PInTo7qLC9ai7EEiO7yUfoQ",
        challenge_signature: "XPFPrkaalUG2PRdaohuZ9CbhqUlyBt5RCiTOg6m20Dr4FRFYGhVZ+tAXjR0wnL1bowybpbP/UpdRIpVBhzBPDg==",
      },
    },
    answer: {
      id: 276,
      timestamp: "2025-01-01T00:06:00.000000Z",
      event_type: "endorsement_offer",
      payload: {
        category: "x-service:institutional_endorsement",
        endorsed_key_fingerprint: "sha256:5a593527e8279fe180fa4c1b3f6e77a6db50b227bdf701e010968a47f08e506d",
        endorser_key_fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
        event_type: "endorsement_offer",
        external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
        institutional_metadata: { name: "University of Example" },
        valid_until: "2027-01-01",
      },
      previous_hash: "e95dac60b1c6a3a58f1457ca4400e8feb494a030d5b2beb299d850206701807e",
      entry_hash: "24a323968cc2e688c14039f702a5163d9e1be210cf05506fbda0466610ceacb5",
      chain_version: 2,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "24a323968cc2e688c14039f702a5163d9e1be210cf05506fbda0466610ceacb5",
          is_primary: true,
        },
      ],
    },
  },
  post_endorsements_accept: {
    body: {
      offer_entry_id: 276,
      endorsed_fingerprint: "sha256:5a593527e8279fe180fa4c1b3f6e77a6db50b227bdf701e010968a47f08e506d",
      auth: {
        challenge_id:
          "AQEABiqZ4WMtAFpZNSfoJ5_hgPpMGz9ud6bbULInvfcB4BCWikfwjlBtK8HcIzq7WXrBJZ-T3eK1pY8gNuYPQVxgLCsO-dp7KN58BRVrmpsZC66xeA0ol3MVekh9O3dOXtCtGB0TQ1tmKg",
        challenge_signature:
          "MEQCIGOD8mNyzsHgkF2LQGbOX14VBW8EDXbYKCgf33PnxegsAiADXijsE2FeDJ+qLRynHHl3rzQipTBSrI7nat0miRXSbg==",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 276,
        endorser_fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
        endorsed_fingerprint: "sha256:5a593527e8279fe180fa4c1b3f6e77a6db50b227bdf701e010968a47f08e506d",
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
          endorsed_key_fingerprint: "sha256:5a593527e8279fe180fa4c1b3f6e77a6db50b227bdf701e010968a47f08e506d",
          endorser_key_fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
          event_type: "endorsement_acceptance",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: null,
          offer_entry_id: 276,
          valid_until: "2027-01-01",
        },
        previous_hash: "24a323968cc2e688c14039f702a5163d9e1be210cf05506fbda0466610ceacb5",
        entry_hash: "5f4cd44ff14fff5eab75ad147ac9d11d5e2d419f48546ff395d26d7ab8637219",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "5f4cd44ff14fff5eab75ad147ac9d11d5e2d419f48546ff395d26d7ab8637219",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_withdraw: {
    body: {
      endorser_fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
      endorsed_fingerprint: "sha256:5a593527e8279fe180fa4c1b3f6e77a6db50b227bdf701e010968a47f08e506d",
      original_offer_entry_id: 281,
      note: "A mistake.",
      auth: {
        challenge_id:
          "AQEABiquAs4UAG_VKStHqRf2iVowAW2iEh-kVbPIw4S_UgLergojJ52EhSmirYt1K1D4sLpQReP6NsdvpYOjkk50u7WTK7oXqDCF5M3jzbbJ7MPG26EbcT6uaUNSu8OmoYSB7O_FbiwqnA",
        challenge_signature: "CVbZN2FDv+p5xSx8SF8kIZgZcmtVXGvekw6sjvUvdkWXwMUsfztyXPvE9iZHAqlltldpJSy2jbK8/Tfgq57cAA==",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 281,
        endorser_fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
        endorsed_fingerprint: "sha256:5a593527e8279fe180fa4c1b3f6e77a6db50b227bdf701e010968a47f08e506d",
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
          endorsed_key_fingerprint: "sha256:5a593527e8279fe180fa4c1b3f6e77a6db50b227bdf701e010968a47f08e506d",
          endorser_key_fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
          event_type: "endorsement_withdrawal",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: "A mistake.",
          offer_entry_id: 281,
          valid_until: "2027-01-01",
        },
        previous_hash: "43600796d9cd2eb76dfd241a77fa843635ca027e8d59e3fe58a5f7e2b41d8cd0",
        entry_hash: "70a2435d40b807c3f7743f2712fb7c2047ad5f360331441bc5ba0cd321dee3da",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "70a2435d40b807c3f7743f2712fb7c2047ad5f360331441bc5ba0cd321dee3da",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_revoke_acceptance: {
    body: {
      endorsed_fingerprint: "sha256:5a593527e8279fe180fa4c1b3f6e77a6db50b227bdf701e010968a47f08e506d",
      original_offer_entry_id: 276,
      note: "We no longer work together.",
      auth: {
        challenge_id:
          "AQEABiquAs4UAFpZNSfoJ5_hgPpMGz9ud6bbULInvfcB4BCWikfwjlBtl9E1AobHJKBVxB5sGFUD616rrZH9VRe72rQcZUFqyovoC5x-TGERql3Q7G0fA9bSGPwDuB4twdzH_l4wnIzKeQ",
        challenge_signature:
          "MEQCIA6lSrNSvFxOqDollH4/ngzBdlMYJ/IeL0KtgjHSczr9AiBl0NUJU6cS8vEq1vvd453kZ/SrB6mECYDLP3nse+AMNw==",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 276,
        endorser_fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
        endorsed_fingerprint: "sha256:5a593527e8279fe180fa4c1b3f6e77a6db50b227bdf701e010968a47f08e506d",
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
          endorsed_key_fingerprint: "sha256:5a593527e8279fe180fa4c1b3f6e77a6db50b227bdf701e010968a47f08e506d",
          endorser_key_fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
          event_type: "acceptance_revocation",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: "We no longer work together.",
          offer_entry_id: 276,
          valid_until: "2027-01-01",
        },
        previous_hash: "0e12c11ff4a3ba70a05b97b70fd884de3ad7ff905f755975d4bc011e9b0f66d4",
        entry_hash: "d96efd79bb258bdd03478e09746ec628ce01e81d2a531d4dfe36290dac9bbd1e",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "d96efd79bb258bdd03478e09746ec628ce01e81d2a531d4dfe36290dac9bbd1e",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_revocation_alert: {
    body: {
      endorser_fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
      compromised_fingerprint: "sha256:5a593527e8279fe180fa4c1b3f6e77a6db50b227bdf701e010968a47f08e506d",
      reason: "The laptop with the key was stolen.",
      auth: {
        challenge_id:
          "AQEABiquAs4UAG_VKStHqRf2iVowAW2iEh-kVbPIw4S_UgLergojJ52Er5oLw1B-z-XPJRATWTH2-1BfIph_Bx3nJjkOLMfyUMIkJ2Oq_JAb9o82oGCjR0NNjE2-Q5tcYCGg6wx_AibZcw",
        challenge_signature: "N+Ifjat/MV+BUBtamBpWG+HERamiU7bPpyWDx8PyQa76PMFcs4fne54vMWNo/roxMbs6d0XYWKauvYtqpSApAA==",
      },
    },
    answer: {
      alert: {
        alert_entry_id: 279,
        compromised_fingerprint: "sha256:5a593527e8279fe180fa4c1b3f6e77a6db50b227bdf701e010968a47f08e506d",
        endorser_fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
        reason: "The laptop with the key was stolen.",
        evidence: null,
        filed_at: "2025-01-02T00:07:00.000000Z",
      },
      log_entry: {
        id: 279,
        timestamp: "2025-01-02T00:07:00.000000Z",
        event_type: "endorser_revocation_alert",
        payload: {
          compromised_key_fingerprint: "sha256:5a593527e8279fe180fa4c1b3f6e77a6db50b227bdf701e010968a47f08e506d",
          endorser_key_fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
          event_type: "endorser_revocation_alert",
          evidence: null,
          reason: "The laptop with the key was stolen.",
        },
        previous_hash: "e8871508cc3a75e1b6417a97d09c8dd3faee5bb019c84e6fcb95c3a5aae17967",
        entry_hash: "0e12c11ff4a3ba70a05b97b70fd884de3ad7ff905f755975d4bc011e9b0f66d4",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "0e12c11ff4a3ba70a05b97b70fd884de3ad7ff905f755975d4bc011e9b0f66d4",
            is_primary: true,
          },
        ],
      },
    },
  },
  get_endorsements_fingerprint: {
    params: { fingerprint: "sha256:5a593527e8279fe180fa4c1b3f6e77a6db50b227bdf701e010968a47f08e506d" },
    answer: {
      endorsements: [
        {
          offer_entry_id: 276,
          endorser_fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
          endorsed_fingerprint: "sha256:5a593527e8279fe180fa4c1b3f6e77a6db50b227bdf701e010968a47f08e506d",
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
    params: { fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84" },
    query: { status: "active" },
    answer: {
      endorsements: [
        {
          offer_entry_id: 276,
          endorser_fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
          endorsed_fingerprint: "sha256:5a593527e8279fe180fa4c1b3f6e77a6db50b227bdf701e010968a47f08e506d",
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
    params: { fingerprint: "sha256:5a593527e8279fe180fa4c1b3f6e77a6db50b227bdf701e010968a47f08e506d" },
    answer: {
      alerts: [
        {
          alert_entry_id: 279,
          compromised_fingerprint: "sha256:5a593527e8279fe180fa4c1b3f6e77a6db50b227bdf701e010968a47f08e506d",
          endorser_fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
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
    params: { fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84" },
    query: { max_depth: 2 },
    answer: {
      root: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
      nodes: [
        {
          fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
          pseudonym: "Ada",
          status: "active",
          named: false,
          depth: 0,
        },
        {
          fingerprint: "sha256:5a593527e8279fe180fa4c1b3f6e77a6db50b227bdf701e010968a47f08e506d",
          pseudonym: "Grace",
          status: "active",
          named: false,
          depth: 1,
        },
      ],
      edges: [
        {
          from: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
          to: "sha256:5a593527e8279fe180fa4c1b3f6e77a6db50b227bdf701e010968a47f08e506d",
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
    params: { fingerprint: "sha256:5a593527e8279fe180fa4c1b3f6e77a6db50b227bdf701e010968a47f08e506d" },
    answer: {
      fingerprint: "sha256:5a593527e8279fe180fa4c1b3f6e77a6db50b227bdf701e010968a47f08e506d",
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
          fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
          category_weights: { "x-service:institutional_endorsement": 0.8 },
          decay_per_hop: 0.5,
          direct_signer_anchors: [
            { fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84", weight: 1 },
          ],
          endorser_anchors: [
            { fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84", weight: 0.9 },
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
      fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
      direct_signer_anchors: [
        { fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84", weight: 0.9 },
      ],
      minimum_threshold: 0.4,
      category_weights: { "x-service:institutional_endorsement": 0.8 },
    },
    answer: {
      id: 1,
      fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84", weight: 0.9 },
      ],
      max_depth: 4,
      minimum_threshold: 0.4,
      status: "active",
      created_at: "2025-01-02T00:07:00.000000Z",
    },
  },
  get_trust_configs_fingerprint: {
    params: { fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84" },
    answer: {
      id: 1,
      fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84", weight: 0.9 },
      ],
      max_depth: 4,
      minimum_threshold: 0.4,
      status: "active",
      created_at: "2025-01-02T00:07:00.000000Z",
    },
  },
  post_trust_configs_revoke: {
    body: { fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84" },
    answer: {
      id: 1,
      fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84", weight: 0.9 },
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
            id: "eef1606e-3b96-4daf-be12-a50a54847682",
            type: "authorship",
            scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
            signer_key_fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
            signature_algorithm: "ed25519",
            signature: "DkNllRr26SoyisD+UzEoW90qe7DJtLgJc6YTHi31ndX4WozczUXwS+aGzs68YcKBqZj+UsJgkfsysYNnj+EEAg==",
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
          id: "eef1606e-3b96-4daf-be12-a50a54847682",
          signer_key_fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
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
          { id: "eef1606e-3b96-4daf-be12-a50a54847682", kind: "attestation", type: "authorship", status: "valid" },
          {
            id: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
            kind: "key",
            pseudonym: "Ada",
            status: "active",
            named: false,
          },
        ],
        edges: [
          {
            from: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
            to: "eef1606e-3b96-4daf-be12-a50a54847682",
            kind: "signed",
          },
          {
            from: "eef1606e-3b96-4daf-be12-a50a54847682",
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
                id: "eef1606e-3b96-4daf-be12-a50a54847682",
                type: "authorship",
                scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                signer_key_fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
                signature_algorithm: "ed25519",
                signature: "DkNllRr26SoyisD+UzEoW90qe7DJtLgJc6YTHi31ndX4WozczUXwS+aGzs68YcKBqZj+UsJgkfsysYNnj+EEAg==",
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
                  id: "eef1606e-3b96-4daf-be12-a50a54847682",
                  type: "authorship",
                  scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                  signer_key_fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
                  signature_algorithm: "ed25519",
                  signature: "DkNllRr26SoyisD+UzEoW90qe7DJtLgJc6YTHi31ndX4WozczUXwS+aGzs68YcKBqZj+UsJgkfsysYNnj+EEAg==",
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
                  id: "eef1606e-3b96-4daf-be12-a50a54847682",
                  type: "authorship",
                  scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                  signer_key_fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
                  signature_algorithm: "ed25519",
                  signature: "DkNllRr26SoyisD+UzEoW90qe7DJtLgJc6YTHi31ndX4WozczUXwS+aGzs68YcKBqZj+UsJgkfsysYNnj+EEAg==",
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
                    id: "eef1606e-3b96-4daf-be12-a50a54847682",
                    type: "authorship",
                    scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                    signer_key_fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
                    signature_algorithm: "ed25519",
                    signature:
                      "DkNllRr26SoyisD+UzEoW90qe7DJtLgJc6YTHi31ndX4WozczUXwS+aGzs68YcKBqZj+UsJgkfsysYNnj+EEAg==",
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
        "eyJhdHRlc3RhdGlvbnMiOltdLCJkb2N1bWVudCI6eyJjb250ZW50X2hhc2giOiJzaGEyNTY6ZjNkNDJlYmY5NjU5YjE2MmUwYmE4YzQwMjM1OTQwMWRlN2VkOGMyODg0M2MwMWY2ZTBiZGIyMzhhY2Q4ZDAzYyIsInBhcnRzIjpbeyJjb250ZW50X2hhc2giOiJzaGEyNTY6NDk4NjNjYzg4YzcxZGU2NjI5MmE5ZjVmMmI5MzJkMWRmMGMxZWQxMDFlYzJiOTc4ODBkZTFhMTEzMzcwOTgxMCIsIm1hbmlmZXN0Ijp7ImF0dGVzdGF0aW9ucyI6W3siaWQiOiJlZWYxNjA2ZS0zYjk2LTRkYWYtYmUxMi1hNTBhNTQ4NDc2ODIiLCJpbnRlbnRfc3RhdGVtZW50IjoiSSB3cm90ZSBpdC4iLCJzY29wZSI6eyJjb250ZW50X2hhc2giOiJzaGEyNTY6NDk4NjNjYzg4YzcxZGU2NjI5MmE5ZjVmMmI5MzJkMWRmMGMxZWQxMDFlYzJiOTc4ODBkZTFhMTEzMzcwOTgxMCJ9LCJzaWduYXR1cmUiOiJEa05sbFJyMjZTb3lpc0QrVXpFb1c5MHFlN0RKdExnSmM2WVRIaTMxbmRYNFdvemN6VVh3UythR3pzNjhZY0tCcVpqK1VzSmdrZnN5c1lObmorRUVBZz09Iiwic2lnbmF0dXJlX2FsZ29yaXRobSI6ImVkMjU1MTkiLCJzaWduZXJfa2V5X2ZpbmdlcnByaW50Ijoic2hhMjU2OjZmZDUyOTJiNDdhOTE3ZjY4OTVhMzAwMTZkYTIxMjFmYTQ1NWIzYzhjMzg0YmY1MjAyZGVhZTBhMjMyNzlkODQiLCJ0aW1lc3RhbXAiOiIyMDI1LTAxLTAxVDAwOjA2OjAwLjAwMDAwMFoiLCJ0eXBlIjoiYXV0aG9yc2hpcCJ9XSwiZG9jdW1lbnQiOnsiY29udGVudF9oYXNoIjoic2hhMjU2OjQ5ODYzY2M4OGM3MWRlNjYyOTJhOWY1ZjJiOTMyZDFkZjBjMWVkMTAxZWMyYjk3ODgwZGUxYTExMzM3MDk4MTAiLCJ0YWdzIjpbInJlcG9ydCJdLCJ0aXRsZSI6IkFubnVhbCByZXBvcnQifX0sInJvbGUiOiJjaGFwdGVyIiwidGl0bGUiOiJSZXBvcnQifSx7ImNvbnRlbnRfaGFzaCI6InNoYTI1NjpmMzBjNTM0ZGE5NThhNzUzYWMyMGM2ZDVmZDQwNDFkZTRkOWFlMjQ5N2U3NDQwY2ZlMmQwMzRiMDBiNzFlZDEzIiwidGl0bGUiOiJBcHBlbmRpeCJ9XSwidGl0bGUiOiJSZXBvcnQgYW5kIGFwcGVuZGl4In19",
      manifest_hash: "348d27d0c390c903ee802c6d21392f7ec76d69f24a6a93f3e6f9f5d25521a131",
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
            attestation_id: "bc75967e-ee4c-4b74-84bb-2abe498aacaf",
            attestation_type: "editorial_review",
            document_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810",
            document_title: "Annual report",
            intent_statement: null,
            manifest_hash: "07a3a261f09eccfd842bc0cc3b0f4d6489cff455701b173ccae85104b6b55285",
            signature:
              "MEQCICXTQjvjfyRo2ThihzdyL0q3+FVVwgrFQgIbaM8aEK6mAiB6xLvn03PeX3SNELwGdlDYQFj2huDHrmQ8Ry2NnpC60Q==",
            signature_algorithm: "ecdsa-p256",
            signer_key_fingerprint: "sha256:5a593527e8279fe180fa4c1b3f6e77a6db50b227bdf701e010968a47f08e506d",
            tags: ["report"],
            timestamp: "2025-01-01T00:06:00.000000Z",
          },
          previous_hash: "bde0dba29bfa9dc0aa2bc20ac5f455b6487f3aacbcd7b7de66de9205f95aae46",
          entry_hash: "c1fc3b4a6d07cffde324729dc24f9adf46a6d0e7cb0a86d9e8dbaa72cd922b7b",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "c1fc3b4a6d07cffde324729dc24f9adf46a6d0e7cb0a86d9e8dbaa72cd922b7b",
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
          "BPl+CMawBnEnm2S4obvh26Sog+/qYTlyZI94wCQOJyVMWmcNMSkJN4b2NsChuHDrvLYGltiGybml84TGYmq2+WY=",
        commitment: "44a29d875073f42d2d0f27fa4640e826db214e05702645415b1a00b1c01b7de1",
        lookup_key: "2c740d48649624207b6a3e87d289b1441d2c647de1dd7871c72895f74ebea637",
        nonce: "3CxJ6lqNdUZYdHVw",
        ciphertext: "DAD888sKmVC+M1pNv76gXZBom1O0pTVZCwOSgIUGyWqcCFOSvJLDrs92NH6S9U+9gBdm",
        recipient_fingerprint: "sha256:d2380d26d2f0d48fe75b04109bb9190b40ea52ac2c2fe6f3d224932efa9b71ea",
      },
    },
    answer: {
      entry_id: 287,
      commitment: "44a29d875073f42d2d0f27fa4640e826db214e05702645415b1a00b1c01b7de1",
      lookup_key: "2c740d48649624207b6a3e87d289b1441d2c647de1dd7871c72895f74ebea637",
      leaf_index: 286,
      log_entry_id: 287,
    },
  },
  get_claims: {
    query: { lookup_key: "2c740d48649624207b6a3e87d289b1441d2c647de1dd7871c72895f74ebea637" },
    answer: {
      entries: [
        {
          id: 287,
          timestamp: "2025-01-02T00:07:00.000000Z",
          event_type: "encrypted_claim",
          payload: {
            ciphertext: "DAD888sKmVC+M1pNv76gXZBom1O0pTVZCwOSgIUGyWqcCFOSvJLDrs92NH6S9U+9gBdm",
            commitment: "44a29d875073f42d2d0f27fa4640e826db214e05702645415b1a00b1c01b7de1",
            commitment_alg: "hmac-sha256-ecdh-v1",
            ephemeral_public_key:
              "BPl+CMawBnEnm2S4obvh26Sog+/qYTlyZI94wCQOJyVMWmcNMSkJN4b2NsChuHDrvLYGltiGybml84TGYmq2+WY=",
            event_type: "encrypted_claim",
            lookup_key: "2c740d48649624207b6a3e87d289b1441d2c647de1dd7871c72895f74ebea637",
            nonce: "3CxJ6lqNdUZYdHVw",
            recipient_fingerprint: "sha256:d2380d26d2f0d48fe75b04109bb9190b40ea52ac2c2fe6f3d224932efa9b71ea",
          },
          previous_hashes: [
            { algorithm: "sha2-256", digest_hex: "1955847e88bdf46a514e9f79a3a65416bf8fa04ecb87ce84c05f245fca78700c" },
          ],
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "68b923ef3a2b11f8d958068ce013a3bc4d1f5dd0eea84d2795f420cde22b9067",
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
      ciphertext: "DAD888sKmVC+M1pNv76gXZBom1O0pTVZCwOSgIUGyWqcCFOSvJLDrs92NH6S9U+9gBdm",
      commitment: "44a29d875073f42d2d0f27fa4640e826db214e05702645415b1a00b1c01b7de1",
      commitment_alg: "hmac-sha256-ecdh-v1",
      ephemeral_public_key: "BPl+CMawBnEnm2S4obvh26Sog+/qYTlyZI94wCQOJyVMWmcNMSkJN4b2NsChuHDrvLYGltiGybml84TGYmq2+WY=",
      lookup_key: "2c740d48649624207b6a3e87d289b1441d2c647de1dd7871c72895f74ebea637",
      nonce: "3CxJ6lqNdUZYdHVw",
      recipient_fingerprint: "sha256:d2380d26d2f0d48fe75b04109bb9190b40ea52ac2c2fe6f3d224932efa9b71ea",
    },
  },
  post_claims_entry_id_reveal: {
    params: { entry_id: 287 },
    body: {
      plaintext: { salary: 52000, name: "Zoë 🪨" },
      commitment_key: "c4fcf586423154fcee83e58db500201a0a1b6e7988400dcc8bb9759b28df976d",
    },
    answer: { valid: true },
  },
  get_log_attestation_requests: {
    query: { target: "sha256:5a593527e8279fe180fa4c1b3f6e77a6db50b227bdf701e010968a47f08e506d", status: "open" },
    answer: {
      requests: [
        {
          request_id: "25f8870e-d4a1-4af5-8bf0-f04990757a08",
          requester_fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
          target_fingerprint: "sha256:5a593527e8279fe180fa4c1b3f6e77a6db50b227bdf701e010968a47f08e506d",
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
      target_fingerprint: "sha256:5a593527e8279fe180fa4c1b3f6e77a6db50b227bdf701e010968a47f08e506d",
      attestation_type: "peer_review",
      nonce: "request-2025-0001",
      intent_statement: "Please review the annual report.",
      claims: { document_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
    },
    answer: {
      request_id: "25f8870e-d4a1-4af5-8bf0-f04990757a08",
      requester_fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
      target_fingerprint: "sha256:5a593527e8279fe180fa4c1b3f6e77a6db50b227bdf701e010968a47f08e506d",
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
    params: { request_id: "25f8870e-d4a1-4af5-8bf0-f04990757a08" },
    answer: {
      request_id: "25f8870e-d4a1-4af5-8bf0-f04990757a08",
      requester_fingerprint: "sha256:6fd5292b47a917f6895a30016da2121fa455b3c8c384bf5202deae0a23279d84",
      target_fingerprint: "sha256:5a593527e8279fe180fa4c1b3f6e77a6db50b227bdf701e010968a47f08e506d",
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
        responder_fingerprint: "sha256:5a593527e8279fe180fa4c1b3f6e77a6db50b227bdf701e010968a47f08e506d",
        attestation_id: null,
        reason: "No time before summer.",
        responded_at: "2025-01-02T00:07:00.000000Z",
        log_entry_id: 285,
        leaf_index: 284,
      },
    },
  },
  get_log_request_policies_fingerprint: {
    params: { fingerprint: "sha256:5a593527e8279fe180fa4c1b3f6e77a6db50b227bdf701e010968a47f08e506d" },
    answer: {
      target_fingerprint: "sha256:5a593527e8279fe180fa4c1b3f6e77a6db50b227bdf701e010968a47f08e506d",
      active: {
        target_fingerprint: "sha256:5a593527e8279fe180fa4c1b3f6e77a6db50b227bdf701e010968a47f08e506d",
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
    params: { request_id: "25f8870e-d4a1-4af5-8bf0-f04990757a08" },
    body: { decision: "decline", reason: "No time before summer." },
    answer: {
      request_id: "25f8870e-d4a1-4af5-8bf0-f04990757a08",
      status: "declined",
      responder_fingerprint: "sha256:5a593527e8279fe180fa4c1b3f6e77a6db50b227bdf701e010968a47f08e506d",
      decision: "decline",
      attestation_id: null,
      reason: "No time before summer.",
      log_entry_id: 285,
      leaf_index: 284,
    },
  },
  post_log_request_policies: {
    body: {
      target_fingerprint: "sha256:5a593527e8279fe180fa4c1b3f6e77a6db50b227bdf701e010968a47f08e506d",
      predicates: { all: [{ field: "attestation_type", op: "in", value: ["peer_review", "editorial_review"] }] },
      default_action_on_failure: "decline",
    },
    answer: {
      target_fingerprint: "sha256:5a593527e8279fe180fa4c1b3f6e77a6db50b227bdf701e010968a47f08e506d",
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
          request_id: "25f8870e-d4a1-4af5-8bf0-f04990757a08",
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
      request_id: "25f8870e-d4a1-4af5-8bf0-f04990757a08",
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

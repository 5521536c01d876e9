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
      vkey: "cairnlog/3ad8e5db42f4e1a2/tlog+de26c82c+AWm2JTalmZvt6JIvoOBvthDMiwbkB4TULyV2nCNHSAQo",
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
      key_fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
      device_label: "Security key",
    },
    answer: {
      user: {
        id: "556dc7a1-ea01-4df6-8e7e-d4f8e6d35581",
        display_name: "Ada Lovelace",
        created_at: "2025-01-01T00:00:00.000000Z",
      },
      credential: {
        id: "ef5a0ccc-9126-4488-8aaa-1298bcb23ad2",
        key_fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
        credential_type: "hardware",
        device_label: "Security key",
        status: "active",
        created_at: "2025-01-01T00:00:00.000000Z",
        revoked_at: null,
        hardware_backed: true,
      },
      recovery_key: "1ZP0A-G07GN-2BJW5-1P3KF-HFZJ2-ACHNZ-94CHD-WP6YH",
    },
  },
  post_users_recover: {
    body: {
      pseudonym: "Ada Lovelace",
      recovery_key: "1ZP0A-G07GN-2BJW5-1P3KF-HFZJ2-ACHNZ-94CHD-WP6YH",
      credential_type: "hardware",
      key_fingerprint: "sha256:6317f46d0ba98ded1f423c2f5b0939ded632d71b112bf53ae91fc9a70d34241b",
      device_label: "Security key",
    },
    answer: {
      user: {
        id: "556dc7a1-ea01-4df6-8e7e-d4f8e6d35581",
        display_name: "Ada Lovelace",
        created_at: "2025-01-01T00:00:00.000000Z",
      },
      credential: {
        id: "f8dcb97c-89c0-43ed-b30c-dee46d512b8f",
        key_fingerprint: "sha256:6317f46d0ba98ded1f423c2f5b0939ded632d71b112bf53ae91fc9a70d34241b",
        credential_type: "hardware",
        device_label: "Security key",
        status: "active",
        created_at: "2025-01-01T00:06:00.000000Z",
        revoked_at: null,
        hardware_backed: true,
      },
      recovery_key: "Y38YJ-6KV96-NRRA0-246VQ-HMC7G-6A057-5CA90-QKB8F",
      revoked_credentials: 2,
    },
  },
  post_credentials_enroll: {
    body: {
      challenge_id:
        "AQEABiqZy-4DAL4pUcavTa7vLz8PnqPS1EndRLI7QKiCjxw2toS4QCel4EAvSoxyOyoTcYoxAC0wATzDcMWx68CjYfRfvfZJWC52woGHZgMBMnI9FazAeoRPHWHVFbl7RG-hxdyFFT3TpQ",
      issuing_fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
      key_fingerprint: "sha256:be2951c6af4daeef2f3f0f9ea3d2d449dd44b23b40a8828f1c36b684b84027a5",
      credential_type: "hardware",
      device_label: "Second security key",
      challenge_signature: "DjjK6wisJSL3ooEDz+uhmuh514Qef6vnU++RPNUGOCNc/B6Mqc8qctCJiOQddkmEHHxnl8YfnDB6XvQ+V7FzAw==",
      chain_signature: "UWZvtMtb8GUA0fCvDnm+zZfH0KYo9kzF5Xqae5ZLUbhrmwJC6uQY0peqhwxl1IRnlkZUgnaUyD4S1+KciWXvDQ==",
    },
    answer: {
      credential: {
        id: "50f5a26a-1983-4ff1-b9aa-f1a142fa61a3",
        key_fingerprint: "sha256:be2951c6af4daeef2f3f0f9ea3d2d449dd44b23b40a8828f1c36b684b84027a5",
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
          fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
          pseudonym: "Ada",
          algorithm: "ed25519",
          status: "active",
          registered_at: "2025-01-01T00:00:00.000000Z",
          expires_at: null,
          named: false,
        },
        {
          fingerprint: "sha256:d7a06d0465e23c42e4ae8d73178640eb2d40ce8f751a6efb2c66ea6007d849ae",
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
          fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
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
    params: { fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10" },
    answer: {
      fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
      public_key:
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAaImu5nYVid1naRTe6ldP0GuYvYOCNDCN31NlliP3CcQ=\n-----END PUBLIC KEY-----\n",
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
    params: { fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10" },
    answer: {
      fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
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
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAaImu5nYVid1naRTe6ldP0GuYvYOCNDCN31NlliP3CcQ=\n-----END PUBLIC KEY-----\n",
        pseudonym: "Ada",
        key_algorithm: "ed25519",
      },
    },
    answer: {
      fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
      pseudonym: "Ada",
      algorithm: "ed25519",
      log_entry_id: 1,
      leaf_index: 0,
      entry_hash: "28f1c4dacd40b49d4fad166e400a0cbaefca240d92c8f0e3e2cbee1058209fc6",
    },
  },
  post_keys_succeed: {
    body: {
      payload: {
        old_fingerprint: "sha256:7781b48c6529078adb2fd73daa17cd15eee90d88632f840795ba6d237b959f36",
        new_public_key:
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAMx2LKM7JJXo8PohncBev6jELSqA/IkeSnXQMLHpxbWI=\n-----END PUBLIC KEY-----\n",
        new_algorithm: "ed25519",
      },
      auth: {
        challenge_id:
          "AQEABiqZy-4DAHeBtIxlKQeK2y_XPaoXzRXu6Q2IYy-EB5W6bSN7lZ82CmHqiStmsCYj8xv_8Gt0nLg2d5FYzTinCysCrP7ZvuB-F-yAmMcu0c-uLWAEDc21UtcnBWOOvAbb2qtHDLVH6Q",
        challenge_signature: "zRV3MPHexWo4V31+0FgCYk6rofKAEpJoLZwRODXPCaY/CQNStW5OSAFiKuGiWO8Y0fQdvthWtrvwUsY74e+yAw==",
      },
    },
    answer: {
      old_fingerprint: "sha256:7781b48c6529078adb2fd73daa17cd15eee90d88632f840795ba6d237b959f36",
      new_fingerprint: "sha256:83fd3652c56dec49d7599dac8f4102d0da5180ce6dc02d64abcc72c400d173c4",
      log_entry_id: 5,
      leaf_index: 4,
      entry_hash: "db5925afb2592cd8d28268bee3cbb5ac424117f143bb16c6735bd4067adb7725",
    },
  },
  post_keys_revoke: {
    body: {
      payload: { fingerprint: "sha256:83fd3652c56dec49d7599dac8f4102d0da5180ce6dc02d64abcc72c400d173c4" },
      auth: {
        challenge_id:
          "AQEABiqZy-4DAIP9NlLFbexJ11mdrI9BAtDaUYDObcAtZKvMcsQA0XPETJonBxfRxQV_5XGvYi8eiKEDqJUjSMvUWgKWsMfMAhtypOu6S8jienMKh4R0wkf3gvlpCasWiZwH59FgSYLgog",
        challenge_signature: "JOjcYDBEr6RlNQN/Fcn27fIuIR3EdM2w2B0kEbcNUf1lO77HmjaznFzdSFeBjMp271vV3GP8ug0diZJQ29jhAw==",
      },
    },
    answer: {
      fingerprint: "sha256:83fd3652c56dec49d7599dac8f4102d0da5180ce6dc02d64abcc72c400d173c4",
      status: "revoked",
      log_entry_id: 6,
      leaf_index: 5,
      entry_hash: "8ca0ba67044f45834b872aa0e9f0d9a210001d72a769e7b1d71fe9b7dbcb09a9",
    },
  },
  post_auth_challenge: {
    body: { fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10", purpose: "login" },
    answer: {
      challenge_id:
        "AQAABiqZy-4DAOmQKJVWtkiVy1IXocsP_wppkoQk4eoJP8Ez7PM5EzoQLC2iC16IsEKxQH312wMZNqF2YhwuNkxED19ZUeP8tcJW72UipLKaSQGFmZfsu0mB1Caa68xCvWELlEKxilf2Ew",
      nonce:
        "service.auth.v1:login:sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10:LC2iC16IsEKxQH312wMZNqF2YhwuNkxED19ZUeP8tcI",
      expires_at: "2025-01-01T00:05:00.000000Z",
      origin: "http://127.0.0.1:43333",
      act: null,
    },
  },
  post_auth_login: {
    body: {
      challenge_id:
        "AQAABiqZy-4DAOmQKJVWtkiVy1IXocsP_wppkoQk4eoJP8Ez7PM5EzoQLC2iC16IsEKxQH312wMZNqF2YhwuNkxED19ZUeP8tcJW72UipLKaSQGFmZfsu0mB1Caa68xCvWELlEKxilf2Ew",
      challenge_signature: "aU0Q9vgWNjHYI8ySHknqnVskGST8w1uC+0gpJL47jQPymzDNIlbkByLUjvSVi90gxmPpd/tznxYm2FZGV+q+BQ==",
    },
    answer: {
      token:
        "eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzaGEyNTY6M2FkOGU1ZGI0MmY0ZTFhMmVlZWM5MDJiNGM2MjIxNzI0OGZlNmIyYTIzN2RjYjk3OTJhZTk3ZDdkYTU3ODg5NiIsInN1YiI6InNoYTI1NjplOTkwMjg5NTU2YjY0ODk1Y2I1MjE3YTFjYjBmZmYwYTY5OTI4NDI0ZTFlYTA5M2ZjMTMzZWNmMzM5MTMzYTEwIiwiaWF0IjoxNzM1Njg5NjAwLCJleHAiOjE3MzU2OTMyMDAsImp0aSI6IjNhYTBjOTU0LTgzZDctNDZmNy04ZmI4LTgyNDEwM2ZkZDU5NCIsInBzZXVkb255bSI6IkFkYSIsInJlY292ZXJ5IjpmYWxzZSwiYXV0aF90aW1lIjoxNzM1Njg5NjAwfQ.rZ6MlOFL_n9mqURr_FjXkfyDQxLaiwImnN2Cjy9GxKz4_6c_Xbm5k3EbLo1VgUKk23K-f3VdFUltYepYPqPiBA",
      fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
      pseudonym: "Ada",
      expires_at: "2025-01-01T01:00:00.000000Z",
    },
  },
  post_auth_renew: {
    answer: {
      token:
        "eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzaGEyNTY6M2FkOGU1ZGI0MmY0ZTFhMmVlZWM5MDJiNGM2MjIxNzI0OGZlNmIyYTIzN2RjYjk3OTJhZTk3ZDdkYTU3ODg5NiIsInN1YiI6InNoYTI1NjplOTkwMjg5NTU2YjY0ODk1Y2I1MjE3YTFjYjBmZmYwYTY5OTI4NDI0ZTFlYTA5M2ZjMTMzZWNmMzM5MTMzYTEwIiwiaWF0IjoxNzM1Njg5NjAwLCJleHAiOjE3MzU2OTMyMDAsImp0aSI6IjM4NmQ3ZjZmLTc3NzItNDY3Ni05NmMyLTFhMjQzZDljZjkzZSIsInBzZXVkb255bSI6IkFkYSIsInJlY292ZXJ5IjpmYWxzZSwiYXV0aF90aW1lIjoxNzM1Njg5NjAwfQ.id5dravJNTCR9G-Ph0D8GaNGbopAOs6Ev5NGeoVhH4IwU6-kacPUqjLFxw19-HjiKpCvnSHDccUNkB52iJqlAQ",
      fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
      pseudonym: "Ada",
      expires_at: "2025-01-01T01:00:00.000000Z",
    },
  },
  post_auth_password: {
    body: {
      challenge_id:
        "AQEABiqZy-4DADNyVVy2YyjamILf9OCfyL_mmh1vUAzmfYpnwfFJ4M3x43h2Jae7mR6U1QcZje_89YDILYOu3Xtq1SE-Qi6wTbIFdypZrJQ4lY2lQ59K6uH_WY9FlXK-KfwH66tZEwSXcg",
      challenge_signature: "RYDXuW+4pHfiSuO9arKK1ATh0NrPFL3PoqNx6KivwSa4ygtsahvgQmpijsX3b45U1Ed7uW28lkE2iF+WxsUGAg==",
      password: "correct horse battery",
    },
    answer: {
      fingerprint: "sha256:3372555cb66328da9882dff4e09fc8bfe69a1d6f500ce67d8a67c1f149e0cdf1",
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
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAaImu5nYVid1naRTe6ldP0GuYvYOCNDCN31NlliP3CcQ=\n-----END PUBLIC KEY-----\n",
      signature: "GjWYNlHuN9BPdgEd600LjPPq7HXiZOEGLJJsJ/2MizjfItcQujDDqsJRBpIipbQGcX5N7L98K/D+PTNepzgeBQ==",
      intent_statement: "I wrote it.",
    },
    answer: {
      attestation: {
        id: "c88ce911-1852-48a8-ab87-f2c8112eb657",
        type: "authorship",
        scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
        signer_key_fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
        signature_algorithm: "ed25519",
        signature: "GjWYNlHuN9BPdgEd600LjPPq7HXiZOEGLJJsJ/2MizjfItcQujDDqsJRBpIipbQGcX5N7L98K/D+PTNepzgeBQ==",
        timestamp: "2025-01-01T00:06:00.000000Z",
        intent_statement: "I wrote it.",
      },
      fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
      pseudonym: "Ada",
      log_entry_id: 13,
      leaf_index: 12,
      entry_hash: "1a7ae050ec46538f2fbd1568f8954fe31270d4ac023eb87bc7e32d9fd755f7af",
      manifest_hash: "38f0c85d6331fd79023d1cd40a3908b665272ec2077277686ac55af17b1b6494",
      sth: {
        tree_size: 13,
        root_hash: "27aacbe488f115b300af41075dcfda82cf438c149327fd4f55818cb89f0675aa",
        signature: "AMrUcB5mDY3ZgaEVLPVUKtehkeDoUNOZpceXh8yPWknO0G/M+4VxLtHeHGlLG4jc1BrWQ4wrVCIhV4r8Kl+6CQ==",
        timestamp: "2025-01-01T00:06:00.000000Z",
        key_id: "sha256:3ad8e5db42f4e1a2eeec902b4c62217248fe6b2a237dcb9792ae97d7da578896",
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
            "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAaImu5nYVid1naRTe6ldP0GuYvYOCNDCN31NlliP3CcQ=\n-----END PUBLIC KEY-----\n",
          signature: "74GO5Nyq0vvjEbvEc4/0ttEzJI7eTUwKAHKi7if1m+0S6wUbT3S13Tod4xQSEAN3efyXl2Q9zlAvzALtx6P5Bw==",
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
            "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAaImu5nYVid1naRTe6ldP0GuYvYOCNDCN31NlliP3CcQ=\n-----END PUBLIC KEY-----\n",
          signature: "fMYTfAdeVcprooFhjc14xrrWb3EDnvfIdCfArajnZc38kdC/9eOmXDZJqw9ruThV0vkL+369l/+rLwK/6FwhBw==",
        },
      ],
    },
    answer: {
      results: [
        {
          status: 201,
          receipt: {
            attestation: {
              id: "cac6f718-4381-4110-aaf2-59a5142f2f31",
              type: "authorship",
              scope: { content_hash: "sha256:c74e517559a5ed1b9f8f47889125b5d6b84df309d173fee85585b4c045f5214b" },
              signer_key_fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
              signature_algorithm: "ed25519",
              signature: "74GO5Nyq0vvjEbvEc4/0ttEzJI7eTUwKAHKi7if1m+0S6wUbT3S13Tod4xQSEAN3efyXl2Q9zlAvzALtx6P5Bw==",
              timestamp: "2025-01-01T00:06:00.000000Z",
            },
            fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
            pseudonym: "Ada",
            log_entry_id: 14,
            leaf_index: 13,
            entry_hash: "fae2b6bd2993447abb04e86e944a07e61c8dee63d70a36070a74fe1b5b13e7ab",
            manifest_hash: "25367d2d820f2cc8ef80c557f5e4b35bef45d435ae93ee6e3aeffc3e00a05c0e",
            sth: {
              tree_size: 14,
              root_hash: "73169fb9956606aa67a96446bec9f12b08dbfcb984047226cae300defc13789e",
              signature: "xnabktPlZWW0iFYCQcgJB0Dkmk5Z+gKv0pmNO9vGey7L0k5xQQqjwru+3rktm05KJDZ2DVyb5a7MYzVWFVc/CQ==",
              timestamp: "2025-01-01T00:06:00.000000Z",
              key_id: "sha256:3ad8e5db42f4e1a2eeec902b4c62217248fe6b2a237dcb9792ae97d7da578896",
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
        "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE7RXmengOwI1h9vSFvDtr0PvILEx2\nWeiq0K8/JBs3XsePrxMIrqp7GfHOej+TYMPkGoVX/W3LfcKJOAY67JjNmA==\n-----END PUBLIC KEY-----\n",
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
        entry_hash: "b3ea3bf499f940ae9404a7a42c41715408cb95d73fd760ac3319568b454c08c9",
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
        fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
        key_algorithm: "ed25519",
        possession_signature: null,
        pseudonym: "Ada",
        public_key:
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAaImu5nYVid1naRTe6ldP0GuYvYOCNDCN31NlliP3CcQ=\n-----END PUBLIC KEY-----\n",
      },
      previous_hash: null,
      entry_hash: "28f1c4dacd40b49d4fad166e400a0cbaefca240d92c8f0e3e2cbee1058209fc6",
      chain_version: 2,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "28f1c4dacd40b49d4fad166e400a0cbaefca240d92c8f0e3e2cbee1058209fc6",
          is_primary: true,
        },
      ],
    },
  },
  get_log_sth: {
    answer: {
      tree_size: 15,
      root_hash: "bd1dc80042560e8b2d81aff2c1e22f7bdea50d5077c24b66f2103df9772ede6a",
      signature: "FneN0983GY455uzjcE7GKlGESXI9InOpAU2yLnnul7esZ9Qa7QNUNQUCEBQwlYhXsTz7s7MPWiUj0jv51jQTCw==",
      timestamp: "2025-01-01T00:06:00.000000Z",
      key_id: "sha256:3ad8e5db42f4e1a2eeec902b4c62217248fe6b2a237dcb9792ae97d7da578896",
      tree_version: 2,
    },
  },
  get_log_sth_tree_size: {
    params: { tree_size: 3 },
    answer: {
      tree_size: 3,
      root_hash: "ca3423a099cdfa37c6f5852dac73eb7d6c69ab9fa473ff5ffb41a5fe0d491cab",
      signature: "5fEU8FfTkK0MZRYebo/lKAts3BjzD2RUcopsnxO/eB0Qi6ClyF4APyVRHFn4bUugoZvBCWR/lK7EiUfyZsc4Ag==",
      timestamp: "2025-01-01T00:00:00.000000Z",
      key_id: "sha256:3ad8e5db42f4e1a2eeec902b4c62217248fe6b2a237dcb9792ae97d7da578896",
      tree_version: 2,
    },
  },
  get_log_heads: {
    query: { from: 3, limit: 1 },
    answer: {
      heads: [
        {
          tree_size: 3,
          root_hash: "ca3423a099cdfa37c6f5852dac73eb7d6c69ab9fa473ff5ffb41a5fe0d491cab",
          signature: "5fEU8FfTkK0MZRYebo/lKAts3BjzD2RUcopsnxO/eB0Qi6ClyF4APyVRHFn4bUugoZvBCWR/lK7EiUfyZsc4Ag==",
          timestamp: "2025-01-01T00:00:00.000000Z",
          key_id: "sha256:3ad8e5db42f4e1a2eeec902b4c62217248fe6b2a237dcb9792ae97d7da578896",
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
      leaf_hash: "f570189951e9aa9cf3ce08bef283f4e6620908f22238020056c79b0c588a9348",
      root_hash: "7d2b0d51348d6198ea569ffc361289cce15011c3a99d5d9c6ceba6b9d6b8eb53",
      audit_path: [
        "ec03d3eb41c9c2960e5f4ea91888991e4cd3692408b69b3eae518e028b828eb2",
        "b19b6ce7f262a85b579e3771019c3a98a59de7f535ffce54b8dd1c4a9eb740d6",
        "0e8e40043cfbc411f657123d284006ff14a37aa2b02119e0357d384a4bdd23f9",
      ],
      entry_hash: "cbc53783238ec527978feba23bc982709101d54026f6124dc4e9fb4988b77090",
      sth: {
        tree_size: 5,
        root_hash: "7d2b0d51348d6198ea569ffc361289cce15011c3a99d5d9c6ceba6b9d6b8eb53",
        signature: "j2vW/8GOnG7K4OHQgNSTqDO0+UWzxPhNFfzWiJQPzdhP0BWl+RfHW2b0yvpUIWs2/ULI9GRTInHe7lwPJpGuCQ==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:3ad8e5db42f4e1a2eeec902b4c62217248fe6b2a237dcb9792ae97d7da578896",
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
      leaf_hash: "f570189951e9aa9cf3ce08bef283f4e6620908f22238020056c79b0c588a9348",
      root_hash: "7d2b0d51348d6198ea569ffc361289cce15011c3a99d5d9c6ceba6b9d6b8eb53",
      audit_path: [
        "ec03d3eb41c9c2960e5f4ea91888991e4cd3692408b69b3eae518e028b828eb2",
        "b19b6ce7f262a85b579e3771019c3a98a59de7f535ffce54b8dd1c4a9eb740d6",
        "0e8e40043cfbc411f657123d284006ff14a37aa2b02119e0357d384a4bdd23f9",
      ],
      entry_hash: "cbc53783238ec527978feba23bc982709101d54026f6124dc4e9fb4988b77090",
      sth: {
        tree_size: 5,
        root_hash: "7d2b0d51348d6198ea569ffc361289cce15011c3a99d5d9c6ceba6b9d6b8eb53",
        signature: "j2vW/8GOnG7K4OHQgNSTqDO0+UWzxPhNFfzWiJQPzdhP0BWl+RfHW2b0yvpUIWs2/ULI9GRTInHe7lwPJpGuCQ==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:3ad8e5db42f4e1a2eeec902b4c62217248fe6b2a237dcb9792ae97d7da578896",
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
      from_root: "ca3423a099cdfa37c6f5852dac73eb7d6c69ab9fa473ff5ffb41a5fe0d491cab",
      to_root: "755f8a943ff8b8a043874fd94383a7569f85003fc77810186f04353f22b4fff1",
      peaks: [
        "b19b6ce7f262a85b579e3771019c3a98a59de7f535ffce54b8dd1c4a9eb740d6",
        "f570189951e9aa9cf3ce08bef283f4e6620908f22238020056c79b0c588a9348",
      ],
      extension: [
        "ec03d3eb41c9c2960e5f4ea91888991e4cd3692408b69b3eae518e028b828eb2",
        "4013c5538d401d64ce01b3e177a55a2610c8758607e0a7d9e465438bcd03f2cf",
      ],
      from_sth: {
        tree_size: 3,
        root_hash: "ca3423a099cdfa37c6f5852dac73eb7d6c69ab9fa473ff5ffb41a5fe0d491cab",
        signature: "5fEU8FfTkK0MZRYebo/lKAts3BjzD2RUcopsnxO/eB0Qi6ClyF4APyVRHFn4bUugoZvBCWR/lK7EiUfyZsc4Ag==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:3ad8e5db42f4e1a2eeec902b4c62217248fe6b2a237dcb9792ae97d7da578896",
        tree_version: 2,
      },
      to_sth: {
        tree_size: 6,
        root_hash: "755f8a943ff8b8a043874fd94383a7569f85003fc77810186f04353f22b4fff1",
        signature: "BglvBJiHVI3+MUJs7L/IUAfiAvud5oEKgv+FgHqGEEkFiFlu4Id/r5wUqDv0JzpHVW6YJSchrDPG18UfVXAYAQ==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:3ad8e5db42f4e1a2eeec902b4c62217248fe6b2a237dcb9792ae97d7da578896",
        tree_version: 2,
      },
    },
  },
  post_log_verify: { answer: { valid: true, entry_count: 15, errors: [], warnings: [] } },
  get_log_operator_key: {
    answer: {
      fingerprint: "sha256:3ad8e5db42f4e1a2eeec902b4c62217248fe6b2a237dcb9792ae97d7da578896",
      algorithm: "ed25519",
      public_key:
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAabYlNqWZm+3oki+g4G+2EMyLBuQHhNQvJXacI0dIBCg=\n-----END PUBLIC KEY-----\n",
      operators: [
        {
          key_id: "sha256:3ad8e5db42f4e1a2eeec902b4c62217248fe6b2a237dcb9792ae97d7da578896",
          algorithm: "ed25519",
          public_key:
            "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAabYlNqWZm+3oki+g4G+2EMyLBuQHhNQvJXacI0dIBCg=\n-----END PUBLIC KEY-----\n",
          from_size: 1,
          until_size: null,
          rotation: null,
        },
      ],
    },
  },
  get_log_checkpoint: {
    answer:
      "cairnlog/3ad8e5db42f4e1a2\n15\nvR3IAEJWDostga/yweIve96lDVB3wktm8hA9+Xcu3mo=\n\n— cairnlog/3ad8e5db42f4e1a2 3B94GRzF26njBiUhIafugUJaecgdbT/uWUtuHNucAh7nOe48zAqWk3SLpNYM/gcQXdq+o78oFLfeVISoN6W9m1562gQ=\n",
  },
  get_log_tile_version_level_index: { params: { version: 2, level: 0, index: 0 } },
  get_log_tile_version_level_index_p_width: { params: { version: 2, level: 0, index_p: "1.p", width: 4 } },
  get_tlog_checkpoint: {
    answer:
      "cairnlog/3ad8e5db42f4e1a2/tlog\n15\nX6DHrG/5+IjvsOK2h0TQLbQ2HXfEXknNg52fm3Ok8Bw=\n\n— cairnlog/3ad8e5db42f4e1a2/tlog 3ibILNduVTf+0zXsxQ0yqS3wRfHcpfA6JfKFuSRnsKlXvIGLu7g8meyRpmnPyRd25KxNH6ZrIUO23HOgeNLAULxVAgw=\n",
  },
  get_tlog_vkey: { answer: "cairnlog/3ad8e5db42f4e1a2/tlog+de26c82c+AWm2JTalmZvt6JIvoOBvthDMiwbkB4TULyV2nCNHSAQo\n" },
  get_tlog_tile_level_n1: { params: { level: "entries", n1: "000" } },
  get_tlog_tile_level_n1_n2: { params: { level: "1", n1: "000.p", n2: "1" } },
  post_log_anchor: {
    answer: {
      anchored_entry_id: 15,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "b3ea3bf499f940ae9404a7a42c41715408cb95d73fd760ac3319568b454c08c9",
          is_primary: true,
        },
      ],
      ots_proof:
        "AE9wZW5UaW1lc3RhbXBzAABQcm9vZgC/ieLohOiSlAEIs+o79Jn5QK6UBKekLEFxVAjLldc/12CsMxlWi0VMCMnwEE3ZFmLqwxVMTVanjaxpqYII8QRlAAAA8Ag1cqTDH2PIugCD3+MNLvkMjh0caHR0cHM6Ly9jYWxlbmRhci5leGFtcGxlLm9yZw==",
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
      root_hash: "bd1dc80042560e8b2d81aff2c1e22f7bdea50d5077c24b66f2103df9772ede6a",
      signature: "FneN0983GY455uzjcE7GKlGESXI9InOpAU2yLnnul7esZ9Qa7QNUNQUCEBQwlYhXsTz7s7MPWiUj0jv51jQTCw==",
      timestamp: "2025-01-01T00:06:00.000000Z",
      key_id: "sha256:3ad8e5db42f4e1a2eeec902b4c62217248fe6b2a237dcb9792ae97d7da578896",
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
            fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
            key_algorithm: "ed25519",
            possession_signature: null,
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAaImu5nYVid1naRTe6ldP0GuYvYOCNDCN31NlliP3CcQ=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "28f1c4dacd40b49d4fad166e400a0cbaefca240d92c8f0e3e2cbee1058209fc6",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "28f1c4dacd40b49d4fad166e400a0cbaefca240d92c8f0e3e2cbee1058209fc6",
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
    params: { fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10" },
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
            fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
            key_algorithm: "ed25519",
            possession_signature: null,
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAaImu5nYVid1naRTe6ldP0GuYvYOCNDCN31NlliP3CcQ=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "28f1c4dacd40b49d4fad166e400a0cbaefca240d92c8f0e3e2cbee1058209fc6",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "28f1c4dacd40b49d4fad166e400a0cbaefca240d92c8f0e3e2cbee1058209fc6",
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
      fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
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
            fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
            key_algorithm: "ed25519",
            possession_signature: null,
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAaImu5nYVid1naRTe6ldP0GuYvYOCNDCN31NlliP3CcQ=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "28f1c4dacd40b49d4fad166e400a0cbaefca240d92c8f0e3e2cbee1058209fc6",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "28f1c4dacd40b49d4fad166e400a0cbaefca240d92c8f0e3e2cbee1058209fc6",
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
      endorser_fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
      endorsed_fingerprint: "sha256:d7a06d0465e23c42e4ae8d73178640eb2d40ce8f751a6efb2c66ea6007d849ae",
      category: "x-service:institutional_endorsement",
      valid_until: "2027-01-01",
      institutional_metadata: { name: "University of Example" },
      external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
      auth: {
        challenge_id:
          "AQEABiqZ4WMtAOmQKJVWtkiVy1IXocsP_wppkoQk4eoJP8Ez7PM5EzoQ_sb5CS9yku3oRIISVEIkjz1K5lv-BiZrbuj3c65-mkFzZP8TpsG1PQML6feoawDlF3Ie3Fah3PjEoIxNx-ACEg",
        challenge_signature: "HWrLNcB9ujYYmaMHZqfsakhaZOXRYKUdN4f6lUPYMNZkANuhUmldolwhfMeq8eTMXc0K4Jshjasd3c8gzx/iBQ==",
      },
    },
    answer: {
      id: 276,
      timestamp: "2025-01-01T00:06:00.000000Z",
      event_type: "endorsement_offer",
      payload: {
        category: "x-service:institutional_endorsement",
        endorsed_key_fingerprint: "sha256:d7a06d0465e23c42e4ae8d73178640eb2d40ce8f751a6efb2c66ea6007d849ae",
        endorser_key_fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
        event_type: "endorsement_offer",
        external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
        institutional_metadata: { name: "University of Example" },
        valid_until: "2027-01-01",
      },
      previous_hash: "c4991d7545b0a1fbf17c431fb62aef78bb4b49847b717f1cbb4cb5363739939a",
      entry_hash: "b080eb0031875337f8d7faf45fdd52faf8eb39e49374598237b6ae3b6778ac6a",
      chain_version: 2,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "b080eb0031875337f8d7faf45fdd52faf8eb39e49374598237b6ae3b6778ac6a",
          is_primary: true,
        },
      ],
    },
  },
  post_endorsements_accept: {
    body: {
      offer_entry_id: 276,
      endorsed_fingerprint: "sha256:d7a06d0465e23c42e4ae8d73178640eb2d40ce8f751a6efb2c66ea6007d849ae",
      auth: {
        challenge_id:
          "AQEABiqZ4WMtANegbQRl4jxC5K6NcxeGQOstQM6PdRpu-yxm6mAH2Emuwns0G-PicehXnPneyHkkuDjGkRYd2-zfucIlKXRq_7Hl9K7aKn96LCeKo98i6fCbr94s-Hmd9c_UoTrsAQSg4w",
        challenge_signature:
          "MEYCIQDlXLRGFQz6HlJRclJamemOgza8YIH0Rag5v94PTR1BFgIhAPLfRkChIj/dwHCqJmKqUHNdgbv0RVgxwGoDgw5ZBZ4P",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 276,
        endorser_fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
        endorsed_fingerprint: "sha256:d7a06d0465e23c42e4ae8d73178640eb2d40ce8f751a6efb2c66ea6007d849ae",
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
          endorsed_key_fingerprint: "sha256:d7a06d0465e23c42e4ae8d73178640eb2d40ce8f751a6efb2c66ea6007d849ae",
          endorser_key_fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
          event_type: "endorsement_acceptance",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: null,
          offer_entry_id: 276,
          valid_until: "2027-01-01",
        },
        previous_hash: "b080eb0031875337f8d7faf45fdd52faf8eb39e49374598237b6ae3b6778ac6a",
        entry_hash: "6279deb1cadd7086ce16d021aa410564ebef6f4a3225fd325ec35c96d2032c45",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "6279deb1cadd7086ce16d021aa410564ebef6f4a3225fd325ec35c96d2032c45",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_withdraw: {
    body: {
      endorser_fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
      endorsed_fingerprint: "sha256:d7a06d0465e23c42e4ae8d73178640eb2d40ce8f751a6efb2c66ea6007d849ae",
      original_offer_entry_id: 281,
      note: "A mistake.",
      auth: {
        challenge_id:
          "AQEABiquAs4UAOmQKJVWtkiVy1IXocsP_wppkoQk4eoJP8Ez7PM5EzoQEWty8faW_CIql8mZ6Erjf5KFQl1VmbS2sIDTkux24SHiwjEPEaln2D0xW0Z-z09KjA5c7g5wRj-O_Gi9Ur-KCA",
        challenge_signature: "MyC09sEZ7+nLZMtXz9271DMWgECRBUMBE6WHn7DnouPkH3zw96m8O5l1FGbDEan+uLEi4UK8U6y+9CiPfb1/Cw==",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 281,
        endorser_fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
        endorsed_fingerprint: "sha256:d7a06d0465e23c42e4ae8d73178640eb2d40ce8f751a6efb2c66ea6007d849ae",
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
          endorsed_key_fingerprint: "sha256:d7a06d0465e23c42e4ae8d73178640eb2d40ce8f751a6efb2c66ea6007d849ae",
          endorser_key_fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
          event_type: "endorsement_withdrawal",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: "A mistake.",
          offer_entry_id: 281,
          valid_until: "2027-01-01",
        },
        previous_hash: "92df505839c4ef974187bb70d254e4c76f053717a8989cef4a9964f4e3d3a5ef",
        entry_hash: "1dab9a400325e877b773212caa50c5ff48998e18b509b9c62749b3bd886de508",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "1dab9a400325e877b773212caa50c5ff48998e18b509b9c62749b3bd886de508",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_revoke_acceptance: {
    body: {
      endorsed_fingerprint: "sha256:d7a06d0465e23c42e4ae8d73178640eb2d40ce8f751a6efb2c66ea6007d849ae",
      original_offer_entry_id: 276,
      note: "We no longer work together.",
      auth: {
        challenge_id:
          "AQEABiquAs4UANegbQRl4jxC5K6NcxeGQOstQM6PdRpu-yxm6mAH2EmuRhMjPXVn741e5lnTzKxaz05ZpvitUx39Omd0OSTZGj0Nx34Bas9D3rXch8Ptd29ttv0s-_JlDPqNYiScAzNn4Q",
        challenge_signature:
          "MEYCIQDL/UPrKWMnQU9QP+uIe4dhFUmZKjnOzi1d4Q3EySZHJAIhALvgo6RcHmVAQvbaiDyzHz87rr9NZu6ICpMjVy2/rz+u",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 276,
        endorser_fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
        endorsed_fingerprint: "sha256:d7a06d0465e23c42e4ae8d73178640eb2d40ce8f751a6efb2c66ea6007d849ae",
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
          endorsed_key_fingerprint: "sha256:d7a06d0465e23c42e4ae8d73178640eb2d40ce8f751a6efb2c66ea6007d849ae",
          endorser_key_fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
          event_type: "acceptance_revocation",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: "We no longer work together.",
          offer_entry_id: 276,
          valid_until: "2027-01-01",
        },
        previous_hash: "64b6bb5e285ffbc973c70c3e799ff23af1ba9f4a4b60a7c2f14edfdd7af7c81c",
        entry_hash: "4a08b1b7433339b92b7209362a853b89a7e7184088e783d635ba59f259ace4b8",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "4a08b1b7433339b92b7209362a853b89a7e7184088e783d635ba59f259ace4b8",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_revocation_alert: {
    body: {
      endorser_fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
      compromised_fingerprint: "sha256:d7a06d0465e23c42e4ae8d73178640eb2d40ce8f751a6efb2c66ea6007d849ae",
      reason: "The laptop with the key was stolen.",
      auth: {
        challenge_id:
          "AQEABiquAs4UAOmQKJVWtkiVy1IXocsP_wppkoQk4eoJP8Ez7PM5EzoQVxDETnVG4qkOz5NB_DkrbL0ViyqJA3zo7ilfx9Filo4zYSIspPLVW05FpGfos_B1tP10c7GjlXxBF_tInJqScQ",
        challenge_signature: "W7oQJmxIL8UosirEDgytoUVd4DcmzHG0Shjs+7cKaLPBcOa5igCDbgpBCvLIRaWNNCpoQFjhlLH9sJL0vIMUBA==",
      },
    },
    answer: {
      alert: {
        alert_entry_id: 279,
        compromised_fingerprint: "sha256:d7a06d0465e23c42e4ae8d73178640eb2d40ce8f751a6efb2c66ea6007d849ae",
        endorser_fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
        reason: "The laptop with the key was stolen.",
        evidence: null,
        filed_at: "2025-01-02T00:07:00.000000Z",
      },
      log_entry: {
        id: 279,
        timestamp: "2025-01-02T00:07:00.000000Z",
        event_type: "endorser_revocation_alert",
        payload: {
          compromised_key_fingerprint: "sha256:d7a06d0465e23c42e4ae8d73178640eb2d40ce8f751a6efb2c66ea6007d849ae",
          endorser_key_fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
          event_type: "endorser_revocation_alert",
          evidence: null,
          reason: "The laptop with the key was stolen.",
        },
        previous_hash: "f6b378b3e15347c919d5e4084f0b0f562bf3d5b57da36f4951fc757ff3525af6",
        entry_hash: "64b6bb5e285ffbc973c70c3e799ff23af1ba9f4a4b60a7c2f14edfdd7af7c81c",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "64b6bb5e285ffbc973c70c3e799ff23af1ba9f4a4b60a7c2f14edfdd7af7c81c",
            is_primary: true,
          },
        ],
      },
    },
  },
  get_endorsements_fingerprint: {
    params: { fingerprint: "sha256:d7a06d0465e23c42e4ae8d73178640eb2d40ce8f751a6efb2c66ea6007d849ae" },
    answer: {
      endorsements: [
        {
          offer_entry_id: 276,
          endorser_fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
          endorsed_fingerprint: "sha256:d7a06d0465e23c42e4ae8d73178640eb2d40ce8f751a6efb2c66ea6007d849ae",
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
    params: { fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10" },
    query: { status: "active" },
    answer: {
      endorsements: [
        {
          offer_entry_id: 276,
          endorser_fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
          endorsed_fingerprint: "sha256:d7a06d0465e23c42e4ae8d73178640eb2d40ce8f751a6efb2c66ea6007d849ae",
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
    params: { fingerprint: "sha256:d7a06d0465e23c42e4ae8d73178640eb2d40ce8f751a6efb2c66ea6007d849ae" },
    answer: {
      alerts: [
        {
          alert_entry_id: 279,
          compromised_fingerprint: "sha256:d7a06d0465e23c42e4ae8d73178640eb2d40ce8f751a6efb2c66ea6007d849ae",
          endorser_fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
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
    params: { fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10" },
    query: { max_depth: 2 },
    answer: {
      root: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
      nodes: [
        {
          fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
          pseudonym: "Ada",
          status: "active",
          named: false,
          depth: 0,
        },
        {
          fingerprint: "sha256:d7a06d0465e23c42e4ae8d73178640eb2d40ce8f751a6efb2c66ea6007d849ae",
          pseudonym: "Grace",
          status: "active",
          named: false,
          depth: 1,
        },
      ],
      edges: [
        {
          from: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
          to: "sha256:d7a06d0465e23c42e4ae8d73178640eb2d40ce8f751a6efb2c66ea6007d849ae",
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
    params: { fingerprint: "sha256:d7a06d0465e23c42e4ae8d73178640eb2d40ce8f751a6efb2c66ea6007d849ae" },
    answer: {
      fingerprint: "sha256:d7a06d0465e23c42e4ae8d73178640eb2d40ce8f751a6efb2c66ea6007d849ae",
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
          fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
          category_weights: { "x-service:institutional_endorsement": 0.8 },
          decay_per_hop: 0.5,
          direct_signer_anchors: [
            { fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10", weight: 1 },
          ],
          endorser_anchors: [
            { fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10", weight: 0.9 },
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
      fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
      direct_signer_anchors: [
        { fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10", weight: 0.9 },
      ],
      minimum_threshold: 0.4,
      category_weights: { "x-service:institutional_endorsement": 0.8 },
    },
    answer: {
      id: 1,
      fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10", weight: 0.9 },
      ],
      max_depth: 4,
      minimum_threshold: 0.4,
      status: "active",
      created_at: "2025-01-02T00:07:00.000000Z",
    },
  },
  get_trust_configs_fingerprint: {
    params: { fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10" },
    answer: {
      id: 1,
      fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10", weight: 0.9 },
      ],
      max_depth: 4,
      minimum_threshold: 0.4,
      status: "active",
      created_at: "2025-01-02T00:07:00.000000Z",
    },
  },
  post_trust_configs_revoke: {
    body: { fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10" },
    answer: {
      id: 1,
      fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10", weight: 0.9 },
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
            id: "c88ce911-1852-48a8-ab87-f2c8112eb657",
            type: "authorship",
            scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
            signer_key_fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
            signature_algorithm: "ed25519",
            signature: "GjWYNlHuN9BPdgEd600LjPPq7HXiZOEGLJJsJ/2MizjfItcQujDDqsJRBpIipbQGcX5N7L98K/D+PTNepzgeBQ==",
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
          id: "c88ce911-1852-48a8-ab87-f2c8112eb657",
          signer_key_fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
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
          { id: "c88ce911-1852-48a8-ab87-f2c8112eb657", kind: "attestation", type: "authorship", status: "valid" },
          {
            id: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
            kind: "key",
            pseudonym: "Ada",
            status: "active",
            named: false,
          },
        ],
        edges: [
          {
            from: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
            to: "c88ce911-1852-48a8-ab87-f2c8112eb657",
            kind: "signed",
          },
          {
            from: "c88ce911-1852-48a8-ab87-f2c8112eb657",
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
                id: "c88ce911-1852-48a8-ab87-f2c8112eb657",
                type: "authorship",
                scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                signer_key_fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
                signature_algorithm: "ed25519",
                signature: "GjWYNlHuN9BPdgEd600LjPPq7HXiZOEGLJJsJ/2MizjfItcQujDDqsJRBpIipbQGcX5N7L98K/D+PTNepzgeBQ==",
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
                  id: "c88ce911-1852-48a8-ab87-f2c8112eb657",
                  type: "authorship",
                  scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                  signer_key_fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
                  signature_algorithm: "ed25519",
                  signature: "GjWYNlHuN9BPdgEd600LjPPq7HXiZOEGLJJsJ/2MizjfItcQujDDqsJRBpIipbQGcX5N7L98K/D+PTNepzgeBQ==",
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
                  id: "c88ce911-1852-48a8-ab87-f2c8112eb657",
                  type: "authorship",
                  scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                  signer_key_fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
                  signature_algorithm: "ed25519",
                  signature: "GjWYNlHuN9BPdgEd600LjPPq7HXiZOEGLJJsJ/2MizjfItcQujDDqsJRBpIipbQGcX5N7L98K/D+PTNepzgeBQ==",
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
                    id: "c88ce911-1852-48a8-ab87-f2c8112eb657",
                    type: "authorship",
                    scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                    signer_key_fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
                    signature_algorithm: "ed25519",
                    signature:
                      "GjWYNlHuN9BPdgEd600LjPPq7HXiZOEGLJJsJ/2MizjfItcQujDDqsJRBpIipbQGcX5N7L98K/D+PTNepzgeBQ==",
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
        "eyJhdHRlc3RhdGlvbnMiOltdLCJkb2N1bWVudCI6eyJjb250ZW50X2hhc2giOiJzaGEyNTY6ZjNkNDJlYmY5NjU5YjE2MmUwYmE4YzQwMjM1OTQwMWRlN2VkOGMyODg0M2MwMWY2ZTBiZGIyMzhhY2Q4ZDAzYyIsInBhcnRzIjpbeyJjb250ZW50X2hhc2giOiJzaGEyNTY6NDk4NjNjYzg4YzcxZGU2NjI5MmE5ZjVmMmI5MzJkMWRmMGMxZWQxMDFlYzJiOTc4ODBkZTFhMTEzMzcwOTgxMCIsIm1hbmlmZXN0Ijp7ImF0dGVzdGF0aW9ucyI6W3siaWQiOiJjODhjZTkxMS0xODUyLTQ4YTgtYWI4Ny1mMmM4MTEyZWI2NTciLCJpbnRlbnRfc3RhdGVtZW50IjoiSSB3cm90ZSBpdC4iLCJzY29wZSI6eyJjb250ZW50X2hhc2giOiJzaGEyNTY6NDk4NjNjYzg4YzcxZGU2NjI5MmE5ZjVmMmI5MzJkMWRmMGMxZWQxMDFlYzJiOTc4ODBkZTFhMTEzMzcwOTgxMCJ9LCJzaWduYXR1cmUiOiJHaldZTmxIdU45QlBkZ0VkNjAwTGpQUHE3SFhpWk9FR0xKSnNKLzJNaXpqZkl0Y1F1akREcXNKUkJwSWlwYlFHY1g1TjdMOThLL0QrUFROZXB6Z2VCUT09Iiwic2lnbmF0dXJlX2FsZ29yaXRobSI6ImVkMjU1MTkiLCJzaWduZXJfa2V5X2ZpbmdlcnByaW50Ijoic2hhMjU2OmU5OTAyODk1NTZiNjQ4OTVjYjUyMTdhMWNiMGZmZjBhNjk5Mjg0MjRlMWVhMDkzZmMxMzNlY2YzMzkxMzNhMTAiLCJ0aW1lc3RhbXAiOiIyMDI1LTAxLTAxVDAwOjA2OjAwLjAwMDAwMFoiLCJ0eXBlIjoiYXV0aG9yc2hpcCJ9XSwiZG9jdW1lbnQiOnsiY29udGVudF9oYXNoIjoic2hhMjU2OjQ5ODYzY2M4OGM3MWRlNjYyOTJhOWY1ZjJiOTMyZDFkZjBjMWVkMTAxZWMyYjk3ODgwZGUxYTExMzM3MDk4MTAiLCJ0YWdzIjpbInJlcG9ydCJdLCJ0aXRsZSI6IkFubnVhbCByZXBvcnQifX0sInJvbGUiOiJjaGFwdGVyIiwidGl0bGUiOiJSZXBvcnQifSx7ImNvbnRlbnRfaGFzaCI6InNoYTI1NjpmMzBjNTM0ZGE5NThhNzUzYWMyMGM2ZDVmZDQwNDFkZTRkOWFlMjQ5N2U3NDQwY2ZlMmQwMzRiMDBiNzFlZDEzIiwidGl0bGUiOiJBcHBlbmRpeCJ9XSwidGl0bGUiOiJSZXBvcnQgYW5kIGFwcGVuZGl4In19",
      manifest_hash: "b53e8d3b68dc32d461cbbe2259ab25817c99dd9ad4d597a04482a3daa95da452",
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
            attestation_id: "819b6eb3-ee2c-4fde-9766-1f8cd6b22a29",
            attestation_type: "editorial_review",
            document_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810",
            document_title: "Annual report",
            intent_statement: null,
            manifest_hash: "07a3a261f09eccfd842bc0cc3b0f4d6489cff455701b173ccae85104b6b55285",
            signature:
              "MEYCIQDZpA1EcjSIPWm5NUjsVZP2o8z4+LaERLEMZx6T9iH9DgIhAIQG7XwvsYOI6HPymwpZvYFt2cyzTD39JibeW9fm2jRf",
            signature_algorithm: "ecdsa-p256",
            signer_key_fingerprint: "sha256:d7a06d0465e23c42e4ae8d73178640eb2d40ce8f751a6efb2c66ea6007d849ae",
            tags: ["report"],
            timestamp: "2025-01-01T00:06:00.000000Z",
          },
          previous_hash: "7c3c5300fbdd663abb90ab14b47d85f6df69504cdced60b5efcb67d59b3e1c68",
          entry_hash: "244024577a54b29389700cd849ebb323601ac0d005196c9c02c869db3c5329fa",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "244024577a54b29389700cd849ebb323601ac0d005196c9c02c869db3c5329fa",
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
          "BMCtnFRJwS+JkBeMDMDQnNcwIDOwI7hDYVuZ5S+4JDONhfzmyQyy46AZ4YV2WDnceyeBLebxy9Z9Q8jAUPWpdYc=",
        commitment: "f35bc00e6e7bb9f0cf47a53e9bdcf6cfd4eb03c313123d3d05bbf68dc1139621",
        lookup_key: "78b635b5d38ee83ef458925f4fae0562d680986369bb46860e29151da887a3c7",
        nonce: "oF3zGA2Fhe5i5Ccw",
        ciphertext: "TUpxIJx7/lKXkzrMoazGXqN/hqK5LXjGT7q19K07iAotaj4bAEN36sWjaUqTuKqiTCxJ",
        recipient_fingerprint: "sha256:b6a433360adfd636398afc71a9264848dd24710e63dd951eb3811fe51de692ba",
      },
    },
    answer: {
      entry_id: 287,
      commitment: "f35bc00e6e7bb9f0cf47a53e9bdcf6cfd4eb03c313123d3d05bbf68dc1139621",
      lookup_key: "78b635b5d38ee83ef458925f4fae0562d680986369bb46860e29151da887a3c7",
      leaf_index: 286,
      log_entry_id: 287,
    },
  },
  get_claims: {
    query: { lookup_key: "78b635b5d38ee83ef458925f4fae0562d680986369bb46860e29151da887a3c7" },
    answer: {
      entries: [
        {
          id: 287,
          timestamp: "2025-01-02T00:07:00.000000Z",
          event_type: "encrypted_claim",
          payload: {
            ciphertext: "TUpxIJx7/lKXkzrMoazGXqN/hqK5LXjGT7q19K07iAotaj4bAEN36sWjaUqTuKqiTCxJ",
            commitment: "f35bc00e6e7bb9f0cf47a53e9bdcf6cfd4eb03c313123d3d05bbf68dc1139621",
            commitment_alg: "hmac-sha256-ecdh-v1",
            ephemeral_public_key:
              "BMCtnFRJwS+JkBeMDMDQnNcwIDOwI7hDYVuZ5S+4JDONhfzmyQyy46AZ4YV2WDnceyeBLebxy9Z9Q8jAUPWpdYc=",
            event_type: "encrypted_claim",
            lookup_key: "78b635b5d38ee83ef458925f4fae0562d680986369bb46860e29151da887a3c7",
            nonce: "oF3zGA2Fhe5i5Ccw",
            recipient_fingerprint: "sha256:b6a433360adfd636398afc71a9264848dd24710e63dd951eb3811fe51de692ba",
          },
          previous_hashes: [
            { algorithm: "sha2-256", digest_hex: "b7adc33662562dfc0a45ff16ce3925b83ebe2d2d274300d446121a197668f569" },
          ],
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "aca09bfb1846a40a157b010aa0771be2ff501ce53b92a0e8a76a9b04ed06e640",
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
      ciphertext: "TUpxIJx7/lKXkzrMoazGXqN/hqK5LXjGT7q19K07iAotaj4bAEN36sWjaUqTuKqiTCxJ",
      commitment: "f35bc00e6e7bb9f0cf47a53e9bdcf6cfd4eb03c313123d3d05bbf68dc1139621",
      commitment_alg: "hmac-sha256-ecdh-v1",
      ephemeral_public_key: "BMCtnFRJwS+JkBeMDMDQnNcwIDOwI7hDYVuZ5S+4JDONhfzmyQyy46AZ4YV2WDnceyeBLebxy9Z9Q8jAUPWpdYc=",
      lookup_key: "78b635b5d38ee83ef458925f4fae0562d680986369bb46860e29151da887a3c7",
      nonce: "oF3zGA2Fhe5i5Ccw",
      recipient_fingerprint: "sha256:b6a433360adfd636398afc71a9264848dd24710e63dd951eb3811fe51de692ba",
    },
  },
  post_claims_entry_id_reveal: {
    params: { entry_id: 287 },
    body: {
      plaintext: { salary: 52000, name: "Zoë 🪨" },
      commitment_key: "f980210ae175996f0948cd92eb28381ff3107ce756fff46139882652cfbe49da",
    },
    answer: { valid: true },
  },
  get_log_attestation_requests: {
    query: { target: "sha256:d7a06d0465e23c42e4ae8d73178640eb2d40ce8f751a6efb2c66ea6007d849ae", status: "open" },
    answer: {
      requests: [
        {
          request_id: "48fb37f5-efb0-40af-b036-372d653167d6",
          requester_fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
          target_fingerprint: "sha256:d7a06d0465e23c42e4ae8d73178640eb2d40ce8f751a6efb2c66ea6007d849ae",
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
      target_fingerprint: "sha256:d7a06d0465e23c42e4ae8d73178640eb2d40ce8f751a6efb2c66ea6007d849ae",
      attestation_type: "peer_review",
      nonce: "request-2025-0001",
      intent_statement: "Please review the annual report.",
      claims: { document_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
    },
    answer: {
      request_id: "48fb37f5-efb0-40af-b036-372d653167d6",
      requester_fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
      target_fingerprint: "sha256:d7a06d0465e23c42e4ae8d73178640eb2d40ce8f751a6efb2c66ea6007d849ae",
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
    params: { request_id: "48fb37f5-efb0-40af-b036-372d653167d6" },
    answer: {
      request_id: "48fb37f5-efb0-40af-b036-372d653167d6",
      requester_fingerprint: "sha256:e990289556b64895cb5217a1cb0fff0a69928424e1ea093fc133ecf339133a10",
      target_fingerprint: "sha256:d7a06d0465e23c42e4ae8d73178640eb2d40ce8f751a6efb2c66ea6007d849ae",
      attestation_type: "peer_review",
      status: "declined",
      deadline: "2025-01-16T00:07:00.000000Z",
      created_at: "2025-01-02T00:07:00.000000Z",
      log_entry_id: 284,
      leaf_index: 283,
      responses: [
        {
          decision: "decline",
          responder_fingerprint: "sha256:d7a06d0465e23c42e4ae8d73178640eb2d40ce8f751a6efb2c66ea6007d849ae",
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
        responder_fingerprint: "sha256:d7a06d0465e23c42e4ae8d73178640eb2d40ce8f751a6efb2c66ea6007d849ae",
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
    params: { fingerprint: "sha256:d7a06d0465e23c42e4ae8d73178640eb2d40ce8f751a6efb2c66ea6007d849ae" },
    answer: {
      target_fingerprint: "sha256:d7a06d0465e23c42e4ae8d73178640eb2d40ce8f751a6efb2c66ea6007d849ae",
      active: {
        target_fingerprint: "sha256:d7a06d0465e23c42e4ae8d73178640eb2d40ce8f751a6efb2c66ea6007d849ae",
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
    params: { request_id: "48fb37f5-efb0-40af-b036-372d653167d6" },
    body: { decision: "decline", reason: "No time before summer." },
    answer: {
      request_id: "48fb37f5-efb0-40af-b036-372d653167d6",
      status: "declined",
      responder_fingerprint: "sha256:d7a06d0465e23c42e4ae8d73178640eb2d40ce8f751a6efb2c66ea6007d849ae",
      decision: "decline",
      attestation_id: null,
      reason: "No time before summer.",
      log_entry_id: 285,
      leaf_index: 284,
    },
  },
  post_log_request_policies: {
    body: {
      target_fingerprint: "sha256:d7a06d0465e23c42e4ae8d73178640eb2d40ce8f751a6efb2c66ea6007d849ae",
      predicates: { all: [{ field: "attestation_type", op: "in", value: ["peer_review", "editorial_review"] }] },
      default_action_on_failure: "decline",
    },
    answer: {
      target_fingerprint: "sha256:d7a06d0465e23c42e4ae8d73178640eb2d40ce8f751a6efb2c66ea6007d849ae",
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
          request_id: "48fb37f5-efb0-40af-b036-372d653167d6",
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
      request_id: "48fb37f5-efb0-40af-b036-372d653167d6",
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

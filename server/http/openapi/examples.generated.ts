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
      '# HELP cairnlog_http_requests_total Requests answered.\n# TYPE cairnlog_http_requests_total counter\ncairnlog_http_requests_total{method="GET",route="/api/v1/openapi.json",status="200"} 1\ncairnlog_http_requests_total{method="GET",route="/api/v1/log/sth",status="404"} 1\ncairnlog_http_requests_total{method="GET",route="/api/v1/log/checkpoint",status="404"} 1\ncairnlog_http_requests_total{method="POST",route="/api/v1/auth/challenge",status="200"} 2',
  },
  post_users: {
    body: {
      display_name: "Ada Lovelace",
      email: "ada@example.org",
      credential_type: "hardware",
      key_fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
      device_label: "Security key",
    },
    answer: {
      user: {
        id: "60a259f5-fcca-4292-84a8-06ad107730e9",
        display_name: "Ada Lovelace",
        created_at: "2025-01-01T00:00:00.000000Z",
      },
      credential: {
        id: "679cea48-1e2c-410b-b6d2-77f9ba29aacd",
        key_fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
        credential_type: "hardware",
        device_label: "Security key",
        status: "active",
        created_at: "2025-01-01T00:00:00.000000Z",
        revoked_at: null,
        hardware_backed: true,
      },
      recovery_key: "170FQ-W2RZD-EF19J-HV0V3-EHX52-ZCD31-VF9ZK-5SW09",
    },
  },
  post_users_recover: {
    body: {
      pseudonym: "Ada Lovelace",
      recovery_key: "170FQ-W2RZD-EF19J-HV0V3-EHX52-ZCD31-VF9ZK-5SW09",
      credential_type: "hardware",
      key_fingerprint: "sha256:a6ab0e0df0c95b8e0613601e983b380b8df0c11aef5c59ac756666d3654c3484",
      device_label: "Security key",
    },
    answer: {
      user: {
        id: "60a259f5-fcca-4292-84a8-06ad107730e9",
        display_name: "Ada Lovelace",
        created_at: "2025-01-01T00:00:00.000000Z",
      },
      credential: {
        id: "ca0e3d5a-ea62-4000-b34d-f4d1d81c1f0b",
        key_fingerprint: "sha256:a6ab0e0df0c95b8e0613601e983b380b8df0c11aef5c59ac756666d3654c3484",
        credential_type: "hardware",
        device_label: "Security key",
        status: "active",
        created_at: "2025-01-01T00:06:00.000000Z",
        revoked_at: null,
        hardware_backed: true,
      },
      recovery_key: "12MF4-CV678-ZY9TW-5BH70-EWEZ8-KF2GW-WA4PC-68WE2",
      revoked_credentials: 2,
    },
  },
  post_credentials_enroll: {
    body: {
      challenge_id: "08b0095f-89a7-404b-9234-9ee4d7cd4a8f",
      issuing_fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
      key_fingerprint: "sha256:3884491f1d62fbb793c1efe2cbda32eabd3f5e4c65d9647f712d3cdd892b575c",
      credential_type: "hardware",
      device_label: "Second security key",
      challenge_signature: "QkJlqWfIv7MZfPebbTrUCaTDm/Tg5OWxSXPaLGGiJbgDD3Ehvh1UPITlaUpJ5c4WtUEKtPW18kzFSQXq29IzBw==",
      chain_signature: "ZvfeewISCjiEvClLLKReedFCUy5f82DZZF0l1g6/ymkl/xwrdv6TDyxgY4gGR252NItkVeZfOKWcmkMANBl3Dg==",
    },
    answer: {
      credential: {
        id: "676c1e03-7860-488c-bbee-7a8ab82c565d",
        key_fingerprint: "sha256:3884491f1d62fbb793c1efe2cbda32eabd3f5e4c65d9647f712d3cdd892b575c",
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
          fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
          pseudonym: "Ada",
          algorithm: "ed25519",
          status: "active",
          registered_at: "2025-01-01T00:00:00.000000Z",
          expires_at: null,
        },
        {
          fingerprint: "sha256:3f5ac445dae5325da298036937b02bb023c23dadcf369af68aa3204171675521",
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
          fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
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
    params: { fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519" },
    answer: {
      fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
      public_key:
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAEqFUePWEihwZY340iJ7Bgrhup8owEXWUE2mojHL6sgc=\n-----END PUBLIC KEY-----\n",
      pseudonym: "Ada",
      algorithm: "ed25519",
      status: "active",
      registered_at: "2025-01-01T00:00:00.000000Z",
      expires_at: null,
      log_entry_id: 1,
      successor_fingerprint: null,
      predecessor_fingerprint: null,
    },
  },
  get_keys_fingerprint_status: {
    params: { fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519" },
    answer: {
      fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
      status: "active",
      expires_at: null,
      successor_fingerprint: null,
    },
  },
  post_keys_register: {
    body: {
      payload: {
        public_key:
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAEqFUePWEihwZY340iJ7Bgrhup8owEXWUE2mojHL6sgc=\n-----END PUBLIC KEY-----\n",
        pseudonym: "Ada",
        key_algorithm: "ed25519",
      },
    },
    answer: {
      fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
      pseudonym: "Ada",
      algorithm: "ed25519",
      log_entry_id: 1,
      leaf_index: 0,
      entry_hash: "73c9472836405365a725a8b51bd02967ab05dd28c391187b4a257f3d4fcff0d2",
    },
  },
  post_keys_succeed: {
    body: {
      payload: {
        old_fingerprint: "sha256:0ee240a78dd1178b4f8bab22bd29be18aadede429c3f046349b9ea24fcc655fb",
        new_public_key:
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAA7z1UgJzBEj0PXcFY4kJM5YLnyIw2xBiXQANhUKS+R8=\n-----END PUBLIC KEY-----\n",
        new_algorithm: "ed25519",
      },
      auth: {
        challenge_id: "40f3f146-3cc2-496f-bb64-ec152453e63b",
        challenge_signature: "i4Aou7drSKtlwifs2XNg3kjbPTvsyE72rTjjWsGds5FbLG6z4GR4FC8FYy6TFRM6HxDbzT9eHKv/3CbkR3lbCg==",
      },
    },
    answer: {
      old_fingerprint: "sha256:0ee240a78dd1178b4f8bab22bd29be18aadede429c3f046349b9ea24fcc655fb",
      new_fingerprint: "sha256:8159ba42f1bec3521bd02776947ca61b6c17105da98b9399c70c19f1fd24807e",
      log_entry_id: 5,
      leaf_index: 4,
      entry_hash: "6f0eda552ef654788a737329c1e2f4d7ac1a03e29bac8bdd3fc271c6dee37a6c",
    },
  },
  post_keys_revoke: {
    body: {
      payload: { fingerprint: "sha256:8159ba42f1bec3521bd02776947ca61b6c17105da98b9399c70c19f1fd24807e" },
      auth: {
        challenge_id: "37e04e37-8486-4c50-9dd2-f72b62c716e4",
        challenge_signature: "8WWIP7BBaFUI/WTEgtQLf2lzqd7lCVVDHVCvC+BsVepF6K4lKMwm1deeGjQHX05Z56h6hz2jyGiPCp7PHMuHBQ==",
      },
    },
    answer: {
      fingerprint: "sha256:8159ba42f1bec3521bd02776947ca61b6c17105da98b9399c70c19f1fd24807e",
      status: "revoked",
      log_entry_id: 6,
      leaf_index: 5,
      entry_hash: "69470bc74aef4d8361928133fd76639f5ccf9c6da081e164de1b09e2a260ee8e",
    },
  },
  post_auth_challenge: {
    body: { fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519", purpose: "login" },
    answer: {
      challenge_id: "3b4c00b7-1950-439b-9610-457209a91c89",
      nonce:
        "service.auth.v1:login:sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519:B0h69ZFQgLrE6Wa5gRpvGNVJJUNeU6Q1U8NA8is9hqk",
      expires_at: "2025-01-01T00:05:00.000000Z",
    },
  },
  post_auth_login: {
    body: {
      challenge_id: "3b4c00b7-1950-439b-9610-457209a91c89",
      challenge_signature: "PnYUOn/xb5jmAUG+uSYmNzeR6nq0Sc/jLxmXus+gXSYBQZ9HDQfwmubjtm3KE8v0oauow3XY9IUIKYWGDM9mBw==",
    },
    answer: {
      token:
        "eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzaGEyNTY6ZTc0ZDI0OWY1M2Q3Y2Y2MzdjMDBkNjA4YWJmMmMyY2Y2ZTQzMGEwYzMxOGJjYzcxYzVlMjNhYjVlNjg2OGY3YSIsInN1YiI6InNoYTI1Njo2NmNmNzhhOWU5ZGMxNzZjMDFjMGNkODgzNDg0ZmVlNzFmYWFkZmI5ZmFkNWUwNjE3MDc3NDBkYmI5NzcwNTE5IiwiaWF0IjoxNzM1Njg5NjAwLCJleHAiOjE3MzU2OTMyMDAsImp0aSI6IjU1M2YxMzI2LTQ3NWMtNDlmMC1iMmRiLTZkMGQ3MjYzNmU4YSIsInBzZXVkb255bSI6IkFkYSIsInJlY292ZXJ5IjpmYWxzZSwiYXV0aF90aW1lIjoxNzM1Njg5NjAwfQ.OtOQGI0wfoo7XSfV7lbf5MXycBNWu7jxcfBLBqs8ihoqsYw-iPzp4NScEgkfVHSLrOrfzMPQ3uTO11eOldYfBw",
      fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
      pseudonym: "Ada",
      expires_at: "2025-01-01T01:00:00.000000Z",
    },
  },
  post_auth_renew: {
    answer: {
      token:
        "eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzaGEyNTY6ZTc0ZDI0OWY1M2Q3Y2Y2MzdjMDBkNjA4YWJmMmMyY2Y2ZTQzMGEwYzMxOGJjYzcxYzVlMjNhYjVlNjg2OGY3YSIsInN1YiI6InNoYTI1Njo2NmNmNzhhOWU5ZGMxNzZjMDFjMGNkODgzNDg0ZmVlNzFmYWFkZmI5ZmFkNWUwNjE3MDc3NDBkYmI5NzcwNTE5IiwiaWF0IjoxNzM1Njg5NjAwLCJleHAiOjE3MzU2OTMyMDAsImp0aSI6IjM0Y2VlZDM2LTQ0NjQtNDY4My1iMzFhLTdiMDkwZTQzMGI2MSIsInBzZXVkb255bSI6IkFkYSIsInJlY292ZXJ5IjpmYWxzZSwiYXV0aF90aW1lIjoxNzM1Njg5NjAwfQ.GptSn_3CCzEd7xeSaW2Yhh70crElCvaVjxS2_MLXJi5Dx3gywvfS5rjfRLKqmDZJC_hVv-xFT3aJYBJyIj9QCQ",
      fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
      pseudonym: "Ada",
      expires_at: "2025-01-01T01:00:00.000000Z",
    },
  },
  post_auth_password: {
    body: {
      challenge_id: "99487111-fadd-4529-b91b-c06e6c2d09d4",
      challenge_signature: "19RU8CG1Xe7Ro4yeOZGg23s4RVdtcrBqqzEzWGH09/L1zZhGKo6gl8tXfdBunEN3I3sF0cTKjC1P1qgYvqYCBw==",
      password: "correct horse battery",
    },
    answer: {
      fingerprint: "sha256:09c0f1d4476a751392ff1712aad4bec64f4d784a93c18bdf2e17619ec399cda4",
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
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAEqFUePWEihwZY340iJ7Bgrhup8owEXWUE2mojHL6sgc=\n-----END PUBLIC KEY-----\n",
      signature: "j0CeyQsWs0dFZwWxK/Zg7SglQz22K04KTBNnfTXMQ8AAsTUqyqOP/dakb1tZRpKrws/Zkeql2+HW6Eh6mfmDDA==",
      intent_statement: "I wrote it.",
    },
    answer: {
      attestation: {
        id: "209fce80-4aad-4f4d-b8db-a5500ba7a3f1",
        type: "authorship",
        scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
        signer_key_fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
        signature_algorithm: "ed25519",
        signature: "j0CeyQsWs0dFZwWxK/Zg7SglQz22K04KTBNnfTXMQ8AAsTUqyqOP/dakb1tZRpKrws/Zkeql2+HW6Eh6mfmDDA==",
        timestamp: "2025-01-01T00:06:00.000000Z",
        intent_statement: "I wrote it.",
      },
      fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
      pseudonym: "Ada",
      log_entry_id: 13,
      leaf_index: 12,
      entry_hash: "1ba6c1f3d896b97d7239b2e2587b33f939d9f21af5a63e984b0934fd8a53354f",
      manifest_hash: "38f0c85d6331fd79023d1cd40a3908b665272ec2077277686ac55af17b1b6494",
      sth: {
        tree_size: 13,
        root_hash: "d0dee6499c028fa4ced3d1e8a7fbd4b852f1a200154023a6ab3ace290b1e684b",
        signature: "XV4Fu3Ssie7SeHQn+LOhaHKDYwfocaTpfnNXg3cVgpupgkTRvq7kavKOGKFl2RzBudJNKBQSeltKr1URGSdCCw==",
        timestamp: "2025-01-01T00:06:00.000000Z",
        key_id: "sha256:e74d249f53d7cf637c00d608abf2c2cf6e430a0c318bcc71c5e23ab5e6868f7a",
        tree_version: 2,
      },
      duplicate: false,
    },
  },
  post_documents_sign: {
    body: {
      title: "Annual report",
      content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810",
      tags: ["report"],
      public_key_pem:
        "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEnhpuwuBy6xwak9XfZI36lH3xhJ4O\nLULqNY012uux8SJ2TTGlUyxdHWVMJviKS1M9BfSrjWC0gzlJh8zdUkhmYw==\n-----END PUBLIC KEY-----\n",
      attestation_type: "editorial_review",
    },
    answer: {
      manifest: {
        attestations: [],
        document: {
          content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810",
          title: "Annual report",
          tags: ["report"],
        },
      },
      signing_payload:
        "eyJhdHRlc3RhdGlvbnMiOltdLCJkb2N1bWVudCI6eyJjb250ZW50X2hhc2giOiJzaGEyNTY6NDk4NjNjYzg4YzcxZGU2NjI5MmE5ZjVmMmI5MzJkMWRmMGMxZWQxMDFlYzJiOTc4ODBkZTFhMTEzMzcwOTgxMCIsInRhZ3MiOlsicmVwb3J0Il0sInRpdGxlIjoiQW5udWFsIHJlcG9ydCJ9fQ==",
      manifest_hash: "38f0c85d6331fd79023d1cd40a3908b665272ec2077277686ac55af17b1b6494",
    },
  },
  get_log_head: {
    answer: {
      head: {
        id: 14,
        entry_hash: "a6a194da02d462bfe4b3c6c55bd6bc61b378a6cd2586edd40d6b544267c27640",
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
        expiration_date: null,
        fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
        key_algorithm: "ed25519",
        pseudonym: "Ada",
        public_key:
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAEqFUePWEihwZY340iJ7Bgrhup8owEXWUE2mojHL6sgc=\n-----END PUBLIC KEY-----\n",
      },
      previous_hash: null,
      entry_hash: "73c9472836405365a725a8b51bd02967ab05dd28c391187b4a257f3d4fcff0d2",
      chain_version: 2,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "73c9472836405365a725a8b51bd02967ab05dd28c391187b4a257f3d4fcff0d2",
          is_primary: true,
        },
      ],
    },
  },
  get_log_sth: {
    answer: {
      tree_size: 14,
      root_hash: "003e5fa6005d0cd1b88f19eb66c904666545d68f76af49d2c3f2530430734856",
      signature: "6fnE9/6Fz5WNOdreLxxREQjeJpXtsRAfrpIJS9KvG4IQcLzsGboL4a31FSYd8EJbwS816mWzek5e/ExLG6PmAQ==",
      timestamp: "2025-01-01T00:06:00.000000Z",
      key_id: "sha256:e74d249f53d7cf637c00d608abf2c2cf6e430a0c318bcc71c5e23ab5e6868f7a",
      tree_version: 2,
    },
  },
  get_log_sth_tree_size: {
    params: { tree_size: 3 },
    answer: {
      tree_size: 3,
      root_hash: "c41de7190098d0fec4988e6e1c5ae23a6ef56208a96530d482b6052de5b69cb2",
      signature: "kzM5tLt1dpVzaTVn9q1TvghkLPtSJVHdTsYaERwpFpWr+p+mszEETmPEApRMbQtyrO07jMR6sFk/4inPQ992Dw==",
      timestamp: "2025-01-01T00:00:00.000000Z",
      key_id: "sha256:e74d249f53d7cf637c00d608abf2c2cf6e430a0c318bcc71c5e23ab5e6868f7a",
      tree_version: 2,
    },
  },
  get_log_heads: {
    query: { from: 3, limit: 1 },
    answer: {
      heads: [
        {
          tree_size: 3,
          root_hash: "c41de7190098d0fec4988e6e1c5ae23a6ef56208a96530d482b6052de5b69cb2",
          signature: "kzM5tLt1dpVzaTVn9q1TvghkLPtSJVHdTsYaERwpFpWr+p+mszEETmPEApRMbQtyrO07jMR6sFk/4inPQ992Dw==",
          timestamp: "2025-01-01T00:00:00.000000Z",
          key_id: "sha256:e74d249f53d7cf637c00d608abf2c2cf6e430a0c318bcc71c5e23ab5e6868f7a",
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
      leaf_hash: "7e2c3fd9a1c890860585e65760fd7b46933cc3978c01d7770ebd43c02164dace",
      root_hash: "1b992151f4c059fa82194bddb9e222a6915df8b7c969ab0d57886c9687b40b4d",
      audit_path: [
        "500376989b4a456a9adbd9f182b8e3a06b3f22c00d87e6ae17632db2087cc1ab",
        "17e1cbc5064aecfe53dcb7aa8a5412abb6dfb4d7d42e507c1408efb65a038e91",
        "76cbc9099426b2d7927ce7c8fc9a5f02d3344285dbe56b0baf3bc5a0ae02c205",
      ],
      entry_hash: "e4d81428b7179b62f61c3a38a0ecf401bedd7a4de8d5436b91b1477a6bfff324",
      sth: {
        tree_size: 5,
        root_hash: "1b992151f4c059fa82194bddb9e222a6915df8b7c969ab0d57886c9687b40b4d",
        signature: "qZIPkVT3/qaemzFmueEElOL7JDeIPPBcCcTpcTNV4jgij5Rq4JWTg1XJdUrxBVJC7VywT+iQVQjt/yJKmEHTBg==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:e74d249f53d7cf637c00d608abf2c2cf6e430a0c318bcc71c5e23ab5e6868f7a",
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
      leaf_hash: "7e2c3fd9a1c890860585e65760fd7b46933cc3978c01d7770ebd43c02164dace",
      root_hash: "1b992151f4c059fa82194bddb9e222a6915df8b7c969ab0d57886c9687b40b4d",
      audit_path: [
        "500376989b4a456a9adbd9f182b8e3a06b3f22c00d87e6ae17632db2087cc1ab",
        "17e1cbc5064aecfe53dcb7aa8a5412abb6dfb4d7d42e507c1408efb65a038e91",
        "76cbc9099426b2d7927ce7c8fc9a5f02d3344285dbe56b0baf3bc5a0ae02c205",
      ],
      entry_hash: "e4d81428b7179b62f61c3a38a0ecf401bedd7a4de8d5436b91b1477a6bfff324",
      sth: {
        tree_size: 5,
        root_hash: "1b992151f4c059fa82194bddb9e222a6915df8b7c969ab0d57886c9687b40b4d",
        signature: "qZIPkVT3/qaemzFmueEElOL7JDeIPPBcCcTpcTNV4jgij5Rq4JWTg1XJdUrxBVJC7VywT+iQVQjt/yJKmEHTBg==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:e74d249f53d7cf637c00d608abf2c2cf6e430a0c318bcc71c5e23ab5e6868f7a",
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
      from_root: "c41de7190098d0fec4988e6e1c5ae23a6ef56208a96530d482b6052de5b69cb2",
      to_root: "7550208c2602ca1ecda8703bb04175eec396033125965ce47c45151a44e4d87a",
      peaks: [
        "17e1cbc5064aecfe53dcb7aa8a5412abb6dfb4d7d42e507c1408efb65a038e91",
        "7e2c3fd9a1c890860585e65760fd7b46933cc3978c01d7770ebd43c02164dace",
      ],
      extension: [
        "500376989b4a456a9adbd9f182b8e3a06b3f22c00d87e6ae17632db2087cc1ab",
        "8cb56959b72968806a2cdb6eacdcbad3a4b97613563261dea250f0c3957524af",
      ],
      from_sth: {
        tree_size: 3,
        root_hash: "c41de7190098d0fec4988e6e1c5ae23a6ef56208a96530d482b6052de5b69cb2",
        signature: "kzM5tLt1dpVzaTVn9q1TvghkLPtSJVHdTsYaERwpFpWr+p+mszEETmPEApRMbQtyrO07jMR6sFk/4inPQ992Dw==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:e74d249f53d7cf637c00d608abf2c2cf6e430a0c318bcc71c5e23ab5e6868f7a",
        tree_version: 2,
      },
      to_sth: {
        tree_size: 6,
        root_hash: "7550208c2602ca1ecda8703bb04175eec396033125965ce47c45151a44e4d87a",
        signature: "KufkBzi6oZyZvI1b+WBBysZHIbzzMk57bNAToxkV8PBD+5LdBujp1QeAsQ8wfA4IYvOgzMP8Uenf3CatRr7JDA==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:e74d249f53d7cf637c00d608abf2c2cf6e430a0c318bcc71c5e23ab5e6868f7a",
        tree_version: 2,
      },
    },
  },
  post_log_verify: { answer: { valid: true, entry_count: 14, errors: [], warnings: [] } },
  get_log_operator_key: {
    answer: {
      fingerprint: "sha256:e74d249f53d7cf637c00d608abf2c2cf6e430a0c318bcc71c5e23ab5e6868f7a",
      algorithm: "ed25519",
      public_key:
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAoVI+NDmJTxjhQnUhUBTN/IgvBobEcTNrvhTmaxkQuXs=\n-----END PUBLIC KEY-----\n",
    },
  },
  get_log_checkpoint: {
    answer:
      "cairnlog/e74d249f53d7cf63\n14\nAD5fpgBdDNG4jxnrZskEZmVF1o92r0nSw/JTBDBzSFY=\n\n— cairnlog/e74d249f53d7cf63 Z8xUnXtN98gz3SOJQxIo4vfyKmNc2CUGRJtqj+whmYfSj0K6S0hA9rulRZ5LzDWtWGXdCT1MifrSw9t6+g1b/Vd7swg=\n",
  },
  get_log_tile_version_level_index: { params: { version: 2, level: 0, index: 0 } },
  get_log_tile_version_level_index_p_width: { params: { version: 2, level: 0, index_p: "1.p", width: 4 } },
  post_log_anchor: {
    answer: {
      anchored_entry_id: 14,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "a6a194da02d462bfe4b3c6c55bd6bc61b378a6cd2586edd40d6b544267c27640",
          is_primary: true,
        },
      ],
      ots_proof:
        "AE9wZW5UaW1lc3RhbXBzAABQcm9vZgC/ieLohOiSlAEIpqGU2gLUYr/ks8bFW9a8YbN4ps0lhu3UDWtUQmfCdkDwEGXNCt0IlNoF4k7xWZ+oRloI8QRlAAAA8AjHwRzRdAw+RQCD3+MNLvkMjh0caHR0cHM6Ly9jYWxlbmRhci5leGFtcGxlLm9yZw==",
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
      root_hash: "003e5fa6005d0cd1b88f19eb66c904666545d68f76af49d2c3f2530430734856",
      signature: "6fnE9/6Fz5WNOdreLxxREQjeJpXtsRAfrpIJS9KvG4IQcLzsGboL4a31FSYd8EJbwS816mWzek5e/ExLG6PmAQ==",
      timestamp: "2025-01-01T00:06:00.000000Z",
      key_id: "sha256:e74d249f53d7cf637c00d608abf2c2cf6e430a0c318bcc71c5e23ab5e6868f7a",
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
            expiration_date: null,
            fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
            key_algorithm: "ed25519",
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAEqFUePWEihwZY340iJ7Bgrhup8owEXWUE2mojHL6sgc=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "73c9472836405365a725a8b51bd02967ab05dd28c391187b4a257f3d4fcff0d2",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "73c9472836405365a725a8b51bd02967ab05dd28c391187b4a257f3d4fcff0d2",
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
    params: { fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519" },
    query: { per_page: 1 },
    answer: {
      entries: [
        {
          id: 1,
          timestamp: "2025-01-01T00:00:00.000000Z",
          event_type: "key_registration",
          payload: {
            expiration_date: null,
            fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
            key_algorithm: "ed25519",
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAEqFUePWEihwZY340iJ7Bgrhup8owEXWUE2mojHL6sgc=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "73c9472836405365a725a8b51bd02967ab05dd28c391187b4a257f3d4fcff0d2",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "73c9472836405365a725a8b51bd02967ab05dd28c391187b4a257f3d4fcff0d2",
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
      fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
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
            expiration_date: null,
            fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
            key_algorithm: "ed25519",
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAEqFUePWEihwZY340iJ7Bgrhup8owEXWUE2mojHL6sgc=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "73c9472836405365a725a8b51bd02967ab05dd28c391187b4a257f3d4fcff0d2",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "73c9472836405365a725a8b51bd02967ab05dd28c391187b4a257f3d4fcff0d2",
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
      endorser_fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
      endorsed_fingerprint: "sha256:3f5ac445dae5325da298036937b02bb023c23dadcf369af68aa3204171675521",
      category: "x-service:institutional_endorsement",
      valid_until: "2027-01-01",
      institutional_metadata: { name: "University of Example" },
      external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
      auth: {
        challenge_id: "40babd4a-31f3-4a00-ae29-284b96eb5aac",
        challenge_signature: "GB/N/AWQ9bC/nHBttY1Gp27X9TSunsZhgUa23WOJEK1787eWNlOOWl6H0wzENPQC0up0Jc/BCl0dkZekOtxIDQ==",
      },
    },
    answer: {
      id: 275,
      timestamp: "2025-01-01T00:06:00.000000Z",
      event_type: "endorsement_offer",
      payload: {
        category: "x-service:institutional_endorsement",
        endorsed_key_fingerprint: "sha256:3f5ac445dae5325da298036937b02bb023c23dadcf369af68aa3204171675521",
        endorser_key_fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
        external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
        institutional_metadata: { name: "University of Example" },
        valid_until: "2027-01-01",
      },
      previous_hash: "0f17293cad528607ecf855e97e369e1fe8ff3a91128513346de5a11bced20ec5",
      entry_hash: "0fb467a1a1e7317032cf32af2443ff7e22f1da902dae1046411577d63a8f518f",
      chain_version: 2,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "0fb467a1a1e7317032cf32af2443ff7e22f1da902dae1046411577d63a8f518f",
          is_primary: true,
        },
      ],
    },
  },
  post_endorsements_accept: {
    body: {
      offer_entry_id: 275,
      endorsed_fingerprint: "sha256:3f5ac445dae5325da298036937b02bb023c23dadcf369af68aa3204171675521",
      auth: {
        challenge_id: "30183775-80fb-4144-ab78-af244b5ad241",
        challenge_signature:
          "MEQCIAfN86B+6ZmCh2WYCKeCN+QrFspfsyAJTrT/uX4gvfQqAiADCxT+1mouxwMt5FbwoOa5sY96zLOxejZgmW/FaZQpgA==",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 275,
        endorser_fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
        endorsed_fingerprint: "sha256:3f5ac445dae5325da298036937b02bb023c23dadcf369af68aa3204171675521",
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
          endorsed_key_fingerprint: "sha256:3f5ac445dae5325da298036937b02bb023c23dadcf369af68aa3204171675521",
          endorser_key_fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: null,
          offer_entry_id: 275,
          valid_until: "2027-01-01",
        },
        previous_hash: "0fb467a1a1e7317032cf32af2443ff7e22f1da902dae1046411577d63a8f518f",
        entry_hash: "f6c6d027046ac86681f07f3df43b1703cf620c51812aaca1cd07f68af607455d",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "f6c6d027046ac86681f07f3df43b1703cf620c51812aaca1cd07f68af607455d",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_withdraw: {
    body: {
      endorser_fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
      endorsed_fingerprint: "sha256:3f5ac445dae5325da298036937b02bb023c23dadcf369af68aa3204171675521",
      original_offer_entry_id: 280,
      note: "A mistake.",
      auth: {
        challenge_id: "039b828e-092e-4063-8784-43f4fac359b2",
        challenge_signature: "pI+dpegMJOpAapI9UUDYhI8xM02IIBV789aVMiDBSJVBRpdfiYbwnrTZR/sV7HbSSBQN3BkNyDfhHnJch8nKDA==",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 280,
        endorser_fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
        endorsed_fingerprint: "sha256:3f5ac445dae5325da298036937b02bb023c23dadcf369af68aa3204171675521",
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
          endorsed_key_fingerprint: "sha256:3f5ac445dae5325da298036937b02bb023c23dadcf369af68aa3204171675521",
          endorser_key_fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: "A mistake.",
          offer_entry_id: 280,
          valid_until: "2027-01-01",
        },
        previous_hash: "f8b8f764b57792b1ea0c7edd363d930a21ba9742f01b55ca59bbc2ef8e6ecb05",
        entry_hash: "d3eb70ae95419e1a433ab308139c517293461cf7db33e71825e7778aca75076a",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "d3eb70ae95419e1a433ab308139c517293461cf7db33e71825e7778aca75076a",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_revoke_acceptance: {
    body: {
      endorsed_fingerprint: "sha256:3f5ac445dae5325da298036937b02bb023c23dadcf369af68aa3204171675521",
      original_offer_entry_id: 275,
      note: "We no longer work together.",
      auth: {
        challenge_id: "07b80b34-47d9-4d98-a0f9-7cedb055eefd",
        challenge_signature:
          "MEQCIEW2/1n9xAF2RBkzlWfu4YAm2Wcm04ZxIwF0jySHhXDPAiBmmpcSYC0IjdtIZeB92sGMeZ6fAPsw/ubgSvZldZtRJA==",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 275,
        endorser_fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
        endorsed_fingerprint: "sha256:3f5ac445dae5325da298036937b02bb023c23dadcf369af68aa3204171675521",
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
          endorsed_key_fingerprint: "sha256:3f5ac445dae5325da298036937b02bb023c23dadcf369af68aa3204171675521",
          endorser_key_fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: "We no longer work together.",
          offer_entry_id: 275,
          valid_until: "2027-01-01",
        },
        previous_hash: "dac101b50ae60689c6800a54fa7563f649c2e40d9d3c496c404ae3751c579ec5",
        entry_hash: "805cbaea16b026c60ee022e8c9f288f43f2c65816d8446060657205ec2686935",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "805cbaea16b026c60ee022e8c9f288f43f2c65816d8446060657205ec2686935",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_revocation_alert: {
    body: {
      endorser_fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
      compromised_fingerprint: "sha256:3f5ac445dae5325da298036937b02bb023c23dadcf369af68aa3204171675521",
      reason: "The laptop with the key was stolen.",
      auth: {
        challenge_id: "d1c9edc5-45a9-492c-90bc-bca22f36cb6c",
        challenge_signature: "NDkr7zoMwpNqEZhGvK7B8FTeweVrIYTHZ78TcaTK6VJGVB5XINsHFlN/9x5H1FQV0xTadU1Ea4zv9uTNz0kTBg==",
      },
    },
    answer: {
      alert: {
        alert_entry_id: 278,
        compromised_fingerprint: "sha256:3f5ac445dae5325da298036937b02bb023c23dadcf369af68aa3204171675521",
        endorser_fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
        reason: "The laptop with the key was stolen.",
        evidence: null,
        filed_at: "2025-01-02T00:07:00.000000Z",
      },
      log_entry: {
        id: 278,
        timestamp: "2025-01-02T00:07:00.000000Z",
        event_type: "endorser_revocation_alert",
        payload: {
          compromised_key_fingerprint: "sha256:3f5ac445dae5325da298036937b02bb023c23dadcf369af68aa3204171675521",
          endorser_key_fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
          evidence: null,
          reason: "The laptop with the key was stolen.",
        },
        previous_hash: "ed7cd06f5a6c9e04ea154d72a3afa87d891c8a2e3ff9528a01a8319f9784b621",
        entry_hash: "dac101b50ae60689c6800a54fa7563f649c2e40d9d3c496c404ae3751c579ec5",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "dac101b50ae60689c6800a54fa7563f649c2e40d9d3c496c404ae3751c579ec5",
            is_primary: true,
          },
        ],
      },
    },
  },
  get_endorsements_fingerprint: {
    params: { fingerprint: "sha256:3f5ac445dae5325da298036937b02bb023c23dadcf369af68aa3204171675521" },
    answer: {
      endorsements: [
        {
          offer_entry_id: 275,
          endorser_fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
          endorsed_fingerprint: "sha256:3f5ac445dae5325da298036937b02bb023c23dadcf369af68aa3204171675521",
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
    params: { fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519" },
    query: { status: "active" },
    answer: {
      endorsements: [
        {
          offer_entry_id: 275,
          endorser_fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
          endorsed_fingerprint: "sha256:3f5ac445dae5325da298036937b02bb023c23dadcf369af68aa3204171675521",
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
    params: { fingerprint: "sha256:3f5ac445dae5325da298036937b02bb023c23dadcf369af68aa3204171675521" },
    answer: {
      alerts: [
        {
          alert_entry_id: 278,
          compromised_fingerprint: "sha256:3f5ac445dae5325da298036937b02bb023c23dadcf369af68aa3204171675521",
          endorser_fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
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
    params: { fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519" },
    query: { max_depth: 2 },
    answer: {
      root: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
      nodes: [
        {
          fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
          pseudonym: "Ada",
          status: "active",
          depth: 0,
        },
        {
          fingerprint: "sha256:3f5ac445dae5325da298036937b02bb023c23dadcf369af68aa3204171675521",
          pseudonym: "Grace",
          status: "active",
          depth: 1,
        },
      ],
      edges: [
        {
          from: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
          to: "sha256:3f5ac445dae5325da298036937b02bb023c23dadcf369af68aa3204171675521",
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
    params: { fingerprint: "sha256:3f5ac445dae5325da298036937b02bb023c23dadcf369af68aa3204171675521" },
    answer: {
      fingerprint: "sha256:3f5ac445dae5325da298036937b02bb023c23dadcf369af68aa3204171675521",
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
          fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
          category_weights: { "x-service:institutional_endorsement": 0.8 },
          decay_per_hop: 0.5,
          direct_signer_anchors: [
            { fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519", weight: 1 },
          ],
          endorser_anchors: [
            { fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519", weight: 0.9 },
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
      fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
      direct_signer_anchors: [
        { fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519", weight: 0.9 },
      ],
      minimum_threshold: 0.4,
      category_weights: { "x-service:institutional_endorsement": 0.8 },
    },
    answer: {
      id: 1,
      fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519", weight: 0.9 },
      ],
      max_depth: 4,
      minimum_threshold: 0.4,
      status: "active",
      created_at: "2025-01-02T00:07:00.000000Z",
    },
  },
  get_trust_configs_fingerprint: {
    params: { fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519" },
    answer: {
      id: 1,
      fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519", weight: 0.9 },
      ],
      max_depth: 4,
      minimum_threshold: 0.4,
      status: "active",
      created_at: "2025-01-02T00:07:00.000000Z",
    },
  },
  post_trust_configs_revoke: {
    body: { fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519" },
    answer: {
      id: 1,
      fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519", weight: 0.9 },
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
            id: "209fce80-4aad-4f4d-b8db-a5500ba7a3f1",
            type: "authorship",
            scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
            signer_key_fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
            signature_algorithm: "ed25519",
            signature: "j0CeyQsWs0dFZwWxK/Zg7SglQz22K04KTBNnfTXMQ8AAsTUqyqOP/dakb1tZRpKrws/Zkeql2+HW6Eh6mfmDDA==",
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
          id: "209fce80-4aad-4f4d-b8db-a5500ba7a3f1",
          signer_key_fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
          layer1: { status: "valid", details: "The signature verifies; it covers the document." },
          layer2: { status: "valid", details: "The key is active, and was when the attestation was made." },
          covers: "document",
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
          { id: "209fce80-4aad-4f4d-b8db-a5500ba7a3f1", kind: "attestation", type: "authorship", status: "valid" },
          {
            id: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
            kind: "key",
            pseudonym: "Ada",
            status: "active",
          },
        ],
        edges: [
          {
            from: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
            to: "209fce80-4aad-4f4d-b8db-a5500ba7a3f1",
            kind: "signed",
          },
          {
            from: "209fce80-4aad-4f4d-b8db-a5500ba7a3f1",
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
                id: "209fce80-4aad-4f4d-b8db-a5500ba7a3f1",
                type: "authorship",
                scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                signer_key_fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
                signature_algorithm: "ed25519",
                signature: "j0CeyQsWs0dFZwWxK/Zg7SglQz22K04KTBNnfTXMQ8AAsTUqyqOP/dakb1tZRpKrws/Zkeql2+HW6Eh6mfmDDA==",
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
                  id: "209fce80-4aad-4f4d-b8db-a5500ba7a3f1",
                  type: "authorship",
                  scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                  signer_key_fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
                  signature_algorithm: "ed25519",
                  signature: "j0CeyQsWs0dFZwWxK/Zg7SglQz22K04KTBNnfTXMQ8AAsTUqyqOP/dakb1tZRpKrws/Zkeql2+HW6Eh6mfmDDA==",
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
                  id: "209fce80-4aad-4f4d-b8db-a5500ba7a3f1",
                  type: "authorship",
                  scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                  signer_key_fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
                  signature_algorithm: "ed25519",
                  signature: "j0CeyQsWs0dFZwWxK/Zg7SglQz22K04KTBNnfTXMQ8AAsTUqyqOP/dakb1tZRpKrws/Zkeql2+HW6Eh6mfmDDA==",
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
                    id: "209fce80-4aad-4f4d-b8db-a5500ba7a3f1",
                    type: "authorship",
                    scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                    signer_key_fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
                    signature_algorithm: "ed25519",
                    signature:
                      "j0CeyQsWs0dFZwWxK/Zg7SglQz22K04KTBNnfTXMQ8AAsTUqyqOP/dakb1tZRpKrws/Zkeql2+HW6Eh6mfmDDA==",
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
        "eyJhdHRlc3RhdGlvbnMiOltdLCJkb2N1bWVudCI6eyJjb250ZW50X2hhc2giOiJzaGEyNTY6ZjNkNDJlYmY5NjU5YjE2MmUwYmE4YzQwMjM1OTQwMWRlN2VkOGMyODg0M2MwMWY2ZTBiZGIyMzhhY2Q4ZDAzYyIsInBhcnRzIjpbeyJjb250ZW50X2hhc2giOiJzaGEyNTY6NDk4NjNjYzg4YzcxZGU2NjI5MmE5ZjVmMmI5MzJkMWRmMGMxZWQxMDFlYzJiOTc4ODBkZTFhMTEzMzcwOTgxMCIsIm1hbmlmZXN0Ijp7ImF0dGVzdGF0aW9ucyI6W3siaWQiOiIyMDlmY2U4MC00YWFkLTRmNGQtYjhkYi1hNTUwMGJhN2EzZjEiLCJpbnRlbnRfc3RhdGVtZW50IjoiSSB3cm90ZSBpdC4iLCJzY29wZSI6eyJjb250ZW50X2hhc2giOiJzaGEyNTY6NDk4NjNjYzg4YzcxZGU2NjI5MmE5ZjVmMmI5MzJkMWRmMGMxZWQxMDFlYzJiOTc4ODBkZTFhMTEzMzcwOTgxMCJ9LCJzaWduYXR1cmUiOiJqMENleVFzV3MwZEZad1d4Sy9aZzdTZ2xRejIySzA0S1RCTm5mVFhNUThBQXNUVXF5cU9QL2Rha2IxdFpScEtyd3MvWmtlcWwyK0hXNkVoNm1mbUREQT09Iiwic2lnbmF0dXJlX2FsZ29yaXRobSI6ImVkMjU1MTkiLCJzaWduZXJfa2V5X2ZpbmdlcnByaW50Ijoic2hhMjU2OjY2Y2Y3OGE5ZTlkYzE3NmMwMWMwY2Q4ODM0ODRmZWU3MWZhYWRmYjlmYWQ1ZTA2MTcwNzc0MGRiYjk3NzA1MTkiLCJ0aW1lc3RhbXAiOiIyMDI1LTAxLTAxVDAwOjA2OjAwLjAwMDAwMFoiLCJ0eXBlIjoiYXV0aG9yc2hpcCJ9XSwiZG9jdW1lbnQiOnsiY29udGVudF9oYXNoIjoic2hhMjU2OjQ5ODYzY2M4OGM3MWRlNjYyOTJhOWY1ZjJiOTMyZDFkZjBjMWVkMTAxZWMyYjk3ODgwZGUxYTExMzM3MDk4MTAiLCJ0YWdzIjpbInJlcG9ydCJdLCJ0aXRsZSI6IkFubnVhbCByZXBvcnQifX0sInJvbGUiOiJjaGFwdGVyIiwidGl0bGUiOiJSZXBvcnQifSx7ImNvbnRlbnRfaGFzaCI6InNoYTI1NjpmMzBjNTM0ZGE5NThhNzUzYWMyMGM2ZDVmZDQwNDFkZTRkOWFlMjQ5N2U3NDQwY2ZlMmQwMzRiMDBiNzFlZDEzIiwidGl0bGUiOiJBcHBlbmRpeCJ9XSwidGl0bGUiOiJSZXBvcnQgYW5kIGFwcGVuZGl4In19",
      manifest_hash: "958ad127e496b7ae29cad5a2042f93e5f28a0dfdc0b5762b3b2fe77137a5a745",
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
            attestation_id: "d68e7490-b972-4783-88f9-0b194ef75faf",
            attestation_type: "editorial_review",
            document_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810",
            document_title: "Annual report",
            intent_statement: null,
            manifest_hash: "38f0c85d6331fd79023d1cd40a3908b665272ec2077277686ac55af17b1b6494",
            signature:
              "MEUCIAis7va3tlT3moDXsGvrrWWJNBiM/BJ1bebWNNqe8k2RAiEAl+9q3XVfl2BSpfDbfFsVpyhsiCLiK8w4yiUBzqbBceU=",
            signature_algorithm: "ecdsa-p256",
            signer_key_fingerprint: "sha256:3f5ac445dae5325da298036937b02bb023c23dadcf369af68aa3204171675521",
            tags: ["report"],
            timestamp: "2025-01-01T00:06:00.000000Z",
          },
          previous_hash: "ecf9ea64ee26110421224565762c14ff23fcbe3c1ad0ac1f1949b3d3eeafefa1",
          entry_hash: "68f5af42a5b9fc4648d53ffa381c5ebc4e9cfbfc05e44d65a1e2fa27a24da136",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "68f5af42a5b9fc4648d53ffa381c5ebc4e9cfbfc05e44d65a1e2fa27a24da136",
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
          "BD19Yzx68vbdDDGfT7xPRipRKxQKOA6gMa6f0HTqdQFX3l41GB/fE6ZA6C6mXyX/mCDwmgIqpn16XlXBgVik/Fs=",
        commitment: "584920d67e17743dd4d5f7f2fcb31cdab88479c8cf65c42544e6cfc8d20a12dd",
        lookup_key: "28430ad960e82c91cfe5e213582d66438b8875014f4a0ffa47ce20d579d45c1f",
        nonce: "EfH4vmNirKXvJu/N",
        ciphertext: "Bj2OSu7m+ph8Oc2ArN4ctJH5Iq67I5HM2EkUcxfPN8BmcU5iBM5MjkDjTRE+RMu7PIHx",
        recipient_fingerprint: "sha256:9dad9366bb1b74cb21fa45e0a3fc11256a0e3df85f3d426de8ddf6a4912cb22e",
      },
    },
    answer: {
      entry_id: 286,
      commitment: "584920d67e17743dd4d5f7f2fcb31cdab88479c8cf65c42544e6cfc8d20a12dd",
      lookup_key: "28430ad960e82c91cfe5e213582d66438b8875014f4a0ffa47ce20d579d45c1f",
      leaf_index: 285,
      log_entry_id: 286,
    },
  },
  get_claims: {
    query: { lookup_key: "28430ad960e82c91cfe5e213582d66438b8875014f4a0ffa47ce20d579d45c1f" },
    answer: {
      entries: [
        {
          id: 286,
          timestamp: "2025-01-02T00:07:00.000000Z",
          event_type: "encrypted_claim",
          payload: {
            ciphertext: "Bj2OSu7m+ph8Oc2ArN4ctJH5Iq67I5HM2EkUcxfPN8BmcU5iBM5MjkDjTRE+RMu7PIHx",
            commitment: "584920d67e17743dd4d5f7f2fcb31cdab88479c8cf65c42544e6cfc8d20a12dd",
            commitment_alg: "hmac-sha256-ecdh-v1",
            ephemeral_public_key:
              "BD19Yzx68vbdDDGfT7xPRipRKxQKOA6gMa6f0HTqdQFX3l41GB/fE6ZA6C6mXyX/mCDwmgIqpn16XlXBgVik/Fs=",
            lookup_key: "28430ad960e82c91cfe5e213582d66438b8875014f4a0ffa47ce20d579d45c1f",
            nonce: "EfH4vmNirKXvJu/N",
            recipient_fingerprint: "sha256:9dad9366bb1b74cb21fa45e0a3fc11256a0e3df85f3d426de8ddf6a4912cb22e",
          },
          previous_hashes: [
            { algorithm: "sha2-256", digest_hex: "678b20e1405b3b720f113ed710520ba0fb316b2f18cfc7efce1906eb42a22468" },
          ],
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "8cd4b0f75a4688a74cf4304e21dec93fda79e0b2a73f33abe7701fc404ad82e2",
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
      ciphertext: "Bj2OSu7m+ph8Oc2ArN4ctJH5Iq67I5HM2EkUcxfPN8BmcU5iBM5MjkDjTRE+RMu7PIHx",
      commitment: "584920d67e17743dd4d5f7f2fcb31cdab88479c8cf65c42544e6cfc8d20a12dd",
      commitment_alg: "hmac-sha256-ecdh-v1",
      ephemeral_public_key: "BD19Yzx68vbdDDGfT7xPRipRKxQKOA6gMa6f0HTqdQFX3l41GB/fE6ZA6C6mXyX/mCDwmgIqpn16XlXBgVik/Fs=",
      lookup_key: "28430ad960e82c91cfe5e213582d66438b8875014f4a0ffa47ce20d579d45c1f",
      nonce: "EfH4vmNirKXvJu/N",
      recipient_fingerprint: "sha256:9dad9366bb1b74cb21fa45e0a3fc11256a0e3df85f3d426de8ddf6a4912cb22e",
    },
  },
  post_claims_entry_id_reveal: {
    params: { entry_id: 286 },
    body: {
      plaintext: { salary: 52000, name: "Zoë 🪨" },
      commitment_key: "d840081254c039091963d619f1209c0cf48686a1bc059ce370f7e37b02c1064d",
    },
    answer: { valid: true },
  },
  get_log_attestation_requests: {
    query: { target: "sha256:3f5ac445dae5325da298036937b02bb023c23dadcf369af68aa3204171675521", status: "open" },
    answer: {
      requests: [
        {
          request_id: "9d2fad37-4f9b-49f5-970f-c2b9be1ef48f",
          requester_fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
          target_fingerprint: "sha256:3f5ac445dae5325da298036937b02bb023c23dadcf369af68aa3204171675521",
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
      target_fingerprint: "sha256:3f5ac445dae5325da298036937b02bb023c23dadcf369af68aa3204171675521",
      attestation_type: "peer_review",
      nonce: "request-2025-0001",
      intent_statement: "Please review the annual report.",
      claims: { document_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
    },
    answer: {
      request_id: "9d2fad37-4f9b-49f5-970f-c2b9be1ef48f",
      requester_fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
      target_fingerprint: "sha256:3f5ac445dae5325da298036937b02bb023c23dadcf369af68aa3204171675521",
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
    params: { request_id: "9d2fad37-4f9b-49f5-970f-c2b9be1ef48f" },
    answer: {
      request_id: "9d2fad37-4f9b-49f5-970f-c2b9be1ef48f",
      requester_fingerprint: "sha256:66cf78a9e9dc176c01c0cd883484fee71faadfb9fad5e061707740dbb9770519",
      target_fingerprint: "sha256:3f5ac445dae5325da298036937b02bb023c23dadcf369af68aa3204171675521",
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
        responder_fingerprint: "sha256:3f5ac445dae5325da298036937b02bb023c23dadcf369af68aa3204171675521",
        attestation_id: null,
        reason: "No time before summer.",
        responded_at: "2025-01-02T00:07:00.000000Z",
        log_entry_id: 284,
        leaf_index: 283,
      },
    },
  },
  get_log_request_policies_fingerprint: {
    params: { fingerprint: "sha256:3f5ac445dae5325da298036937b02bb023c23dadcf369af68aa3204171675521" },
    answer: {
      target_fingerprint: "sha256:3f5ac445dae5325da298036937b02bb023c23dadcf369af68aa3204171675521",
      active: {
        target_fingerprint: "sha256:3f5ac445dae5325da298036937b02bb023c23dadcf369af68aa3204171675521",
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
    params: { request_id: "9d2fad37-4f9b-49f5-970f-c2b9be1ef48f" },
    body: { decision: "decline", reason: "No time before summer." },
    answer: {
      request_id: "9d2fad37-4f9b-49f5-970f-c2b9be1ef48f",
      status: "declined",
      responder_fingerprint: "sha256:3f5ac445dae5325da298036937b02bb023c23dadcf369af68aa3204171675521",
      decision: "decline",
      attestation_id: null,
      reason: "No time before summer.",
      log_entry_id: 284,
      leaf_index: 283,
    },
  },
  post_log_request_policies: {
    body: {
      target_fingerprint: "sha256:3f5ac445dae5325da298036937b02bb023c23dadcf369af68aa3204171675521",
      predicates: { all: [{ field: "attestation_type", op: "in", value: ["peer_review", "editorial_review"] }] },
      default_action_on_failure: "decline",
    },
    answer: {
      target_fingerprint: "sha256:3f5ac445dae5325da298036937b02bb023c23dadcf369af68aa3204171675521",
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
          request_id: "9d2fad37-4f9b-49f5-970f-c2b9be1ef48f",
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
      request_id: "9d2fad37-4f9b-49f5-970f-c2b9be1ef48f",
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

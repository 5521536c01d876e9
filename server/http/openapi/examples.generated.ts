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
      key_fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
      device_label: "Security key",
    },
    answer: {
      user: {
        id: "2846acfd-dae3-40cf-a304-5ce32e7dee57",
        display_name: "Ada Lovelace",
        created_at: "2025-01-01T00:00:00.000000Z",
      },
      credential: {
        id: "819156a1-326e-4b1a-b17b-ee1e1265811a",
        key_fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
        credential_type: "hardware",
        device_label: "Security key",
        status: "active",
        created_at: "2025-01-01T00:00:00.000000Z",
        revoked_at: null,
        hardware_backed: true,
      },
      recovery_key: "CJ747-H4BQY-EDJ4C-0EDQC-F4SVM-96JYS-3E6FE-5HK2Q",
    },
  },
  post_users_recover: {
    body: {
      pseudonym: "Ada Lovelace",
      recovery_key: "CJ747-H4BQY-EDJ4C-0EDQC-F4SVM-96JYS-3E6FE-5HK2Q",
      credential_type: "hardware",
      key_fingerprint: "sha256:d8b3e921015bcf6c97b7f45bc7541f94743b040c6a9d013361560491a945889c",
      device_label: "Security key",
    },
    answer: {
      user: {
        id: "2846acfd-dae3-40cf-a304-5ce32e7dee57",
        display_name: "Ada Lovelace",
        created_at: "2025-01-01T00:00:00.000000Z",
      },
      credential: {
        id: "dee457de-0e15-463c-9bca-35762b75b22a",
        key_fingerprint: "sha256:d8b3e921015bcf6c97b7f45bc7541f94743b040c6a9d013361560491a945889c",
        credential_type: "hardware",
        device_label: "Security key",
        status: "active",
        created_at: "2025-01-01T00:06:00.000000Z",
        revoked_at: null,
        hardware_backed: true,
      },
      recovery_key: "V8SA5-7WFE9-P56WB-EDW8E-JE5PR-XX2ZX-M8JPZ-5R4TQ",
      revoked_credentials: 2,
    },
  },
  post_credentials_enroll: {
    body: {
      challenge_id: "8b126fde-c6ef-48be-a127-4c321800b140",
      issuing_fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
      key_fingerprint: "sha256:0543a3ffaf61de99047a33b75573bdc798bc891ee327f6167fbd7d21973b05d8",
      credential_type: "hardware",
      device_label: "Second security key",
      challenge_signature: "baEa1i2aH1ls8POJTCRDNdLm6KKwKMLjKQLV54+/Ny5QixwCtj/qAwn1+hEhz1h8OYZ6eQ1NfTQ5BXk0BFKTBw==",
      chain_signature: "tvLoaWU/E+flru12NuhFr/HXivTJl32iSe4XGD0kqn1/+QP+qNYXWq2NUNoG/53CqMvaFnmW9n+I2DYNLCL3DA==",
    },
    answer: {
      credential: {
        id: "3312958f-1ac8-4a28-8f76-3a504e283abe",
        key_fingerprint: "sha256:0543a3ffaf61de99047a33b75573bdc798bc891ee327f6167fbd7d21973b05d8",
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
          fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
          pseudonym: "Ada",
          algorithm: "ed25519",
          status: "active",
          registered_at: "2025-01-01T00:00:00.000000Z",
          expires_at: null,
        },
        {
          fingerprint: "sha256:4d4a9906e5eb1f822bd959b51a6bc9228eb5f08b897035e9e0a4e9542f8c26fb",
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
          fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
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
    params: { fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819" },
    answer: {
      fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
      public_key:
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAOeS++Q3VZzUMJAsOohph6BD+nyFO7uf6m6WjnOvzigU=\n-----END PUBLIC KEY-----\n",
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
    params: { fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819" },
    answer: {
      fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
      status: "active",
      expires_at: null,
      successor_fingerprint: null,
    },
  },
  post_keys_register: {
    body: {
      payload: {
        public_key:
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAOeS++Q3VZzUMJAsOohph6BD+nyFO7uf6m6WjnOvzigU=\n-----END PUBLIC KEY-----\n",
        pseudonym: "Ada",
        key_algorithm: "ed25519",
      },
    },
    answer: {
      fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
      pseudonym: "Ada",
      algorithm: "ed25519",
      log_entry_id: 1,
      leaf_index: 0,
      entry_hash: "349b0feeb8822c0a4a47f02c813cbe2053bf00e15968af45e4395a08c28efdc4",
    },
  },
  post_keys_succeed: {
    body: {
      payload: {
        old_fingerprint: "sha256:6cbccc0c078cd2ce01463f3b47abeb779c68b83a0ed2d58208cb17ba2c8fb8b7",
        new_public_key:
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA0DSa/lHd1rgQiTSIS/wriWCF9g5/b2PubgoEwoBquSs=\n-----END PUBLIC KEY-----\n",
        new_algorithm: "ed25519",
      },
      auth: {
        challenge_id: "c122d02f-8dac-4bde-b9a5-5aec3a7f6891",
        challenge_signature: "gM3xVgfTZoMb5HbVF6BGpzt6uAcbugtg8AvmtzLy4Qtb3jH09TDdKydYv40YbDsIWM6HXzQXdEHXJr1D+gq6Dg==",
      },
    },
    answer: {
      old_fingerprint: "sha256:6cbccc0c078cd2ce01463f3b47abeb779c68b83a0ed2d58208cb17ba2c8fb8b7",
      new_fingerprint: "sha256:5a67bae481c6137d10df238e8cae3c7cc3d533d5de5a4c238ed36faf5baeaa54",
      log_entry_id: 5,
      leaf_index: 4,
      entry_hash: "fe7a5264f4a8d19efc094ff3c412454b003e9c7d2d76eab8d1c7911839b54d4f",
    },
  },
  post_keys_revoke: {
    body: {
      payload: { fingerprint: "sha256:5a67bae481c6137d10df238e8cae3c7cc3d533d5de5a4c238ed36faf5baeaa54" },
      auth: {
        challenge_id: "055a635f-3e5e-41e3-9c07-668885fa9211",
        challenge_signature: "elH6+AFn5YhmHpHdDsPel9SloLz+bRc5KdbRoZFMB0uXWN7UBbyWTc4VTLck+0ruI3Hu/tqqPWDeQ0qIrAIBBQ==",
      },
    },
    answer: {
      fingerprint: "sha256:5a67bae481c6137d10df238e8cae3c7cc3d533d5de5a4c238ed36faf5baeaa54",
      status: "revoked",
      log_entry_id: 6,
      leaf_index: 5,
      entry_hash: "d9a1ce51ae87f872b2eb0a88a20d28a732064894f5f5bae17db2f4e4b53277a0",
    },
  },
  post_auth_challenge: {
    body: { fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819", purpose: "login" },
    answer: {
      challenge_id: "d9ef83e7-d2e9-4d7f-8f3d-e03f63b7d84f",
      nonce:
        "service.auth.v1:login:sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819:kfYRIZaBlxdaaHTSztGJ8t-ZfFx_vPtPDazlEgfhFs4",
      expires_at: "2025-01-01T00:05:00.000000Z",
    },
  },
  post_auth_login: {
    body: {
      challenge_id: "d9ef83e7-d2e9-4d7f-8f3d-e03f63b7d84f",
      challenge_signature: "Y/oQGQiHqXHYISFOxfdxgs4bj+zbHIrtOMk2d0DtOvbFlpWGDBl3WcKvBzZoi0qMvLgXnauZz7f2Au7FoR9FDg==",
    },
    answer: {
      token:
        "eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzaGEyNTY6YWNjNmE0ZTUyMDM4N2ZlZTIyZjBkMjAxZTdkMTgzYTYwOGFkNGJkMWQ5YWQ0OGIwNDg0NjkzM2YwZTVlMjNlNSIsInN1YiI6InNoYTI1Njo1MWI3MWEyNjFkMWNhNDMwZWEyYTE3YjExOGFjMDMzY2Y4YTk0N2I0OGYwY2QzMTM4MTBmMzlkZWI5OTM0ODE5IiwiaWF0IjoxNzM1Njg5NjAwLCJleHAiOjE3MzU2OTMyMDAsImp0aSI6Ijk5OTZhZGJmLTMzMzctNGU4MC04Mzk0LWZkMDQ5Zjc0MTUyMSIsInBzZXVkb255bSI6IkFkYSIsInJlY292ZXJ5IjpmYWxzZSwiYXV0aF90aW1lIjoxNzM1Njg5NjAwfQ.Pv4VxcSYVr4DTTwBfi2_QmooU1UW2UAAVU9RnpQUvdO-E9N-coWgokdzdY2UgsTwJ4VPcya8MfB5bDPuVCHxBg",
      fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
      pseudonym: "Ada",
      expires_at: "2025-01-01T01:00:00.000000Z",
    },
  },
  post_auth_renew: {
    answer: {
      token:
        "eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzaGEyNTY6YWNjNmE0ZTUyMDM4N2ZlZTIyZjBkMjAxZTdkMTgzYTYwOGFkNGJkMWQ5YWQ0OGIwNDg0NjkzM2YwZTVlMjNlNSIsInN1YiI6InNoYTI1Njo1MWI3MWEyNjFkMWNhNDMwZWEyYTE3YjExOGFjMDMzY2Y4YTk0N2I0OGYwY2QzMTM4MTBmMzlkZWI5OTM0ODE5IiwiaWF0IjoxNzM1Njg5NjAwLCJleHAiOjE3MzU2OTMyMDAsImp0aSI6ImQ5ZGUxZGRmLWJmZWQtNDEwYS1hOGJhLWEyZDVhM2FkN2RkOCIsInBzZXVkb255bSI6IkFkYSIsInJlY292ZXJ5IjpmYWxzZSwiYXV0aF90aW1lIjoxNzM1Njg5NjAwfQ.ZxHtsjJ2zqsgbzp4ydfIbbPMgfOq1EtuRNp4w-gUGcJCwDqAfHr5Ly5ZbiKvWIKh1fNWkdFZOQ1wevLlkUiADg",
      fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
      pseudonym: "Ada",
      expires_at: "2025-01-01T01:00:00.000000Z",
    },
  },
  post_auth_password: {
    body: {
      challenge_id: "834080e8-b9f1-4b74-bf94-3298c69e27e6",
      challenge_signature: "vxzzL/DIMiaKmhBvdlaINqb5/3LeXnY582OxGKtz3E5yYFHtaErNaYqjXqtn0Em1pquY/kp6WrEB15oWgZxoBA==",
      password: "correct horse battery",
    },
    answer: {
      fingerprint: "sha256:27c1e2bde9494dc878e266aed54659b49562e24edbdae83ba4c1461a8a1d673f",
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
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAOeS++Q3VZzUMJAsOohph6BD+nyFO7uf6m6WjnOvzigU=\n-----END PUBLIC KEY-----\n",
      signature: "Imq2bIRlr6/4pF8uCSXJaIhQkBIyXfK3Mql+DZKJZExmP5ADVJiQ9Qt8+TI6iYoJuoEiUR84vMO2yNlILSzODg==",
      intent_statement: "I wrote it.",
    },
    answer: {
      attestation: {
        id: "84f28d9a-78bb-4022-90d4-961891880eca",
        type: "authorship",
        scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
        signer_key_fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
        signature_algorithm: "ed25519",
        signature: "Imq2bIRlr6/4pF8uCSXJaIhQkBIyXfK3Mql+DZKJZExmP5ADVJiQ9Qt8+TI6iYoJuoEiUR84vMO2yNlILSzODg==",
        timestamp: "2025-01-01T00:06:00.000000Z",
        intent_statement: "I wrote it.",
      },
      fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
      pseudonym: "Ada",
      log_entry_id: 13,
      leaf_index: 12,
      entry_hash: "488725053a9f4456bf9223f2deb0b77d45781e638a34a4811b1fe2e95e3c904f",
      manifest_hash: "38f0c85d6331fd79023d1cd40a3908b665272ec2077277686ac55af17b1b6494",
      sth: {
        tree_size: 13,
        root_hash: "9b99bc9b2f3ac90e7b7b8a387e3055f2f7eedf17e7d51ad5b7ba012b1c37b2fc",
        signature: "LXyhhca1znHgjJP6OjG+KXbcChacB3FgscSHqK9apZ/y0FKXEdSWHIb3gZMqB4wwX/oQeszpeN++g8Ce+Qw7BQ==",
        timestamp: "2025-01-01T00:06:00.000000Z",
        key_id: "sha256:acc6a4e520387fee22f0d201e7d183a608ad4bd1d9ad48b04846933f0e5e23e5",
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
        "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEOHdneSXleqREtLJUkpzpp5ehuapF\nvY/Ulb7dCHwO9UJZiegnVR2FoDDqGqEWNl2cG5Phtjp6qnR7a1CRCV4OZQ==\n-----END PUBLIC KEY-----\n",
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
        entry_hash: "f7fb0502166302963dfa68cc2af6b994ebed11c553f8b5a2e6653aa7b7632e26",
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
        fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
        key_algorithm: "ed25519",
        possession_signature: null,
        pseudonym: "Ada",
        public_key:
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAOeS++Q3VZzUMJAsOohph6BD+nyFO7uf6m6WjnOvzigU=\n-----END PUBLIC KEY-----\n",
      },
      previous_hash: null,
      entry_hash: "349b0feeb8822c0a4a47f02c813cbe2053bf00e15968af45e4395a08c28efdc4",
      chain_version: 2,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "349b0feeb8822c0a4a47f02c813cbe2053bf00e15968af45e4395a08c28efdc4",
          is_primary: true,
        },
      ],
    },
  },
  get_log_sth: {
    answer: {
      tree_size: 14,
      root_hash: "cd5397806e8142678c1fbb6e8ae959dd73bce4026937231a03e64ba6062a9ef3",
      signature: "QT1jlAzADx8OUipwv3GaAlqImX70i8tJSf62+ffgqX+WL9fnE/+f3OTmro7QKFEVuTAMVrA5d69lw4WaTDlJDQ==",
      timestamp: "2025-01-01T00:06:00.000000Z",
      key_id: "sha256:acc6a4e520387fee22f0d201e7d183a608ad4bd1d9ad48b04846933f0e5e23e5",
      tree_version: 2,
    },
  },
  get_log_sth_tree_size: {
    params: { tree_size: 3 },
    answer: {
      tree_size: 3,
      root_hash: "7f5e77d0c7ae7b4613a8e1336a229cec666eda3644f49ec90fa1d0a1b101d769",
      signature: "k0z2EpdL7LIysVtIc4fZvrbYiZELbI5HThf6SSuiAu+/i0mSD3xPrj3jUznWyTdYaigLYQuOdOGUz6mkBFmcBQ==",
      timestamp: "2025-01-01T00:00:00.000000Z",
      key_id: "sha256:acc6a4e520387fee22f0d201e7d183a608ad4bd1d9ad48b04846933f0e5e23e5",
      tree_version: 2,
    },
  },
  get_log_heads: {
    query: { from: 3, limit: 1 },
    answer: {
      heads: [
        {
          tree_size: 3,
          root_hash: "7f5e77d0c7ae7b4613a8e1336a229cec666eda3644f49ec90fa1d0a1b101d769",
          signature: "k0z2EpdL7LIysVtIc4fZvrbYiZELbI5HThf6SSuiAu+/i0mSD3xPrj3jUznWyTdYaigLYQuOdOGUz6mkBFmcBQ==",
          timestamp: "2025-01-01T00:00:00.000000Z",
          key_id: "sha256:acc6a4e520387fee22f0d201e7d183a608ad4bd1d9ad48b04846933f0e5e23e5",
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
      leaf_hash: "bf7e6c5047d3ceb052f738b51f785b94cd79ae1ca3c8861d95045402c05c86db",
      root_hash: "d9e1d721401b6ce2cc478335686f851ab74005d3c078521bd6cd2a5a17db877e",
      audit_path: [
        "6e306f48f83587636e9e7a54752b2fba53cd61bafb070e972a5c3b2fbb6eb8a6",
        "a19123d19d2c51b0b4bb77bd5fb0016d07178d063ed69377a930a319f258dc1b",
        "a76badd6bf650f65c1e0a0d3fc1bef606a93312c43def9283b149960c7c5e7e9",
      ],
      entry_hash: "b1c3895706e5be5884ffff96a61b736fb040eb75919e48867e098c196bca01be",
      sth: {
        tree_size: 5,
        root_hash: "d9e1d721401b6ce2cc478335686f851ab74005d3c078521bd6cd2a5a17db877e",
        signature: "/BamoD0vZapM+eOqa28RxLlpfovXT/Yx7cOdSVlV3rfU49ilZr0VbM/IA/3Fk7MeutikBca3pzgHBrdA1YMODg==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:acc6a4e520387fee22f0d201e7d183a608ad4bd1d9ad48b04846933f0e5e23e5",
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
      leaf_hash: "bf7e6c5047d3ceb052f738b51f785b94cd79ae1ca3c8861d95045402c05c86db",
      root_hash: "d9e1d721401b6ce2cc478335686f851ab74005d3c078521bd6cd2a5a17db877e",
      audit_path: [
        "6e306f48f83587636e9e7a54752b2fba53cd61bafb070e972a5c3b2fbb6eb8a6",
        "a19123d19d2c51b0b4bb77bd5fb0016d07178d063ed69377a930a319f258dc1b",
        "a76badd6bf650f65c1e0a0d3fc1bef606a93312c43def9283b149960c7c5e7e9",
      ],
      entry_hash: "b1c3895706e5be5884ffff96a61b736fb040eb75919e48867e098c196bca01be",
      sth: {
        tree_size: 5,
        root_hash: "d9e1d721401b6ce2cc478335686f851ab74005d3c078521bd6cd2a5a17db877e",
        signature: "/BamoD0vZapM+eOqa28RxLlpfovXT/Yx7cOdSVlV3rfU49ilZr0VbM/IA/3Fk7MeutikBca3pzgHBrdA1YMODg==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:acc6a4e520387fee22f0d201e7d183a608ad4bd1d9ad48b04846933f0e5e23e5",
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
      from_root: "7f5e77d0c7ae7b4613a8e1336a229cec666eda3644f49ec90fa1d0a1b101d769",
      to_root: "16da477ab8286675bb054bb006e64bc19481f0ec9b2877ebb04b14fd3d681932",
      peaks: [
        "a19123d19d2c51b0b4bb77bd5fb0016d07178d063ed69377a930a319f258dc1b",
        "bf7e6c5047d3ceb052f738b51f785b94cd79ae1ca3c8861d95045402c05c86db",
      ],
      extension: [
        "6e306f48f83587636e9e7a54752b2fba53cd61bafb070e972a5c3b2fbb6eb8a6",
        "42c10638b145ce7dc334205fbe42325379dfd2bed6e663926d327413e9a8d72b",
      ],
      from_sth: {
        tree_size: 3,
        root_hash: "7f5e77d0c7ae7b4613a8e1336a229cec666eda3644f49ec90fa1d0a1b101d769",
        signature: "k0z2EpdL7LIysVtIc4fZvrbYiZELbI5HThf6SSuiAu+/i0mSD3xPrj3jUznWyTdYaigLYQuOdOGUz6mkBFmcBQ==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:acc6a4e520387fee22f0d201e7d183a608ad4bd1d9ad48b04846933f0e5e23e5",
        tree_version: 2,
      },
      to_sth: {
        tree_size: 6,
        root_hash: "16da477ab8286675bb054bb006e64bc19481f0ec9b2877ebb04b14fd3d681932",
        signature: "OrJx/yhFqsZrBnIzH7A+gCeTtlh2omPqWuc3JckKoeXwCCbzP2KzDbttObJwwk2mw7DcBiA6gAxaumYDBD0IBQ==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:acc6a4e520387fee22f0d201e7d183a608ad4bd1d9ad48b04846933f0e5e23e5",
        tree_version: 2,
      },
    },
  },
  post_log_verify: { answer: { valid: true, entry_count: 14, errors: [], warnings: [] } },
  get_log_operator_key: {
    answer: {
      fingerprint: "sha256:acc6a4e520387fee22f0d201e7d183a608ad4bd1d9ad48b04846933f0e5e23e5",
      algorithm: "ed25519",
      public_key:
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEALbzxGXObvfdKXeEWrZF1wFW9tc2WiwZS8qIAEhQoGlI=\n-----END PUBLIC KEY-----\n",
    },
  },
  get_log_checkpoint: {
    answer:
      "cairnlog/acc6a4e520387fee\n14\nzVOXgG6BQmeMH7tuiulZ3XO85AJpNyMaA+ZLpgYqnvM=\n\n— cairnlog/acc6a4e520387fee 3++Pwg5n/QPnakBAv5cNspv0ll54qRKMecmHetibXceRPxvPtk1vFqaMCtPSAieFDam2aMi23AFtnm6vHvKxkCy2Og4=\n",
  },
  get_log_tile_version_level_index: { params: { version: 2, level: 0, index: 0 } },
  get_log_tile_version_level_index_p_width: { params: { version: 2, level: 0, index_p: "1.p", width: 4 } },
  post_log_anchor: {
    answer: {
      anchored_entry_id: 14,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "f7fb0502166302963dfa68cc2af6b994ebed11c553f8b5a2e6653aa7b7632e26",
          is_primary: true,
        },
      ],
      ots_proof:
        "AE9wZW5UaW1lc3RhbXBzAABQcm9vZgC/ieLohOiSlAEI9/sFAhZjApY9+mjMKva5lOvtEcVT+LWi5mU6p7djLibwEDSW/I2AfFfZYIGih60tmk4I8QRlAAAA8Ag3x0va83gzGQCD3+MNLvkMjh0caHR0cHM6Ly9jYWxlbmRhci5leGFtcGxlLm9yZw==",
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
      root_hash: "cd5397806e8142678c1fbb6e8ae959dd73bce4026937231a03e64ba6062a9ef3",
      signature: "QT1jlAzADx8OUipwv3GaAlqImX70i8tJSf62+ffgqX+WL9fnE/+f3OTmro7QKFEVuTAMVrA5d69lw4WaTDlJDQ==",
      timestamp: "2025-01-01T00:06:00.000000Z",
      key_id: "sha256:acc6a4e520387fee22f0d201e7d183a608ad4bd1d9ad48b04846933f0e5e23e5",
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
            fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
            key_algorithm: "ed25519",
            possession_signature: null,
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAOeS++Q3VZzUMJAsOohph6BD+nyFO7uf6m6WjnOvzigU=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "349b0feeb8822c0a4a47f02c813cbe2053bf00e15968af45e4395a08c28efdc4",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "349b0feeb8822c0a4a47f02c813cbe2053bf00e15968af45e4395a08c28efdc4",
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
    params: { fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819" },
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
            fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
            key_algorithm: "ed25519",
            possession_signature: null,
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAOeS++Q3VZzUMJAsOohph6BD+nyFO7uf6m6WjnOvzigU=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "349b0feeb8822c0a4a47f02c813cbe2053bf00e15968af45e4395a08c28efdc4",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "349b0feeb8822c0a4a47f02c813cbe2053bf00e15968af45e4395a08c28efdc4",
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
      fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
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
            fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
            key_algorithm: "ed25519",
            possession_signature: null,
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAOeS++Q3VZzUMJAsOohph6BD+nyFO7uf6m6WjnOvzigU=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "349b0feeb8822c0a4a47f02c813cbe2053bf00e15968af45e4395a08c28efdc4",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "349b0feeb8822c0a4a47f02c813cbe2053bf00e15968af45e4395a08c28efdc4",
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
      endorser_fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
      endorsed_fingerprint: "sha256:4d4a9906e5eb1f822bd959b51a6bc9228eb5f08b897035e9e0a4e9542f8c26fb",
      category: "x-service:institutional_endorsement",
      valid_until: "2027-01-01",
      institutional_metadata: { name: "University of Example" },
      external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
      auth: {
        challenge_id: "84ff2671-92af-4216-8f96-a966d903b512",
        challenge_signature: "REbpW+2ACPt00D5BuWomAmOv7ufJubj0UiIzYz8YqSeqBcMJC1EZn5NWlDlSRUcyp0MC5m+ceC9eRXpi2Wz9Bw==",
      },
    },
    answer: {
      id: 275,
      timestamp: "2025-01-01T00:06:00.000000Z",
      event_type: "endorsement_offer",
      payload: {
        category: "x-service:institutional_endorsement",
        endorsed_key_fingerprint: "sha256:4d4a9906e5eb1f822bd959b51a6bc9228eb5f08b897035e9e0a4e9542f8c26fb",
        endorser_key_fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
        event_type: "endorsement_offer",
        external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
        institutional_metadata: { name: "University of Example" },
        valid_until: "2027-01-01",
      },
      previous_hash: "0a4cd65a147d6287c8faee3514e18dd2c85e8e30079768a8276922e640d46376",
      entry_hash: "9e9408e88ccbe3ec564278e37ee0aa82fcd732bd96ad2990bd153828aadbfeb1",
      chain_version: 2,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "9e9408e88ccbe3ec564278e37ee0aa82fcd732bd96ad2990bd153828aadbfeb1",
          is_primary: true,
        },
      ],
    },
  },
  post_endorsements_accept: {
    body: {
      offer_entry_id: 275,
      endorsed_fingerprint: "sha256:4d4a9906e5eb1f822bd959b51a6bc9228eb5f08b897035e9e0a4e9542f8c26fb",
      auth: {
        challenge_id: "ec1361b5-f2bd-419a-aa1a-bf1e985ea96a",
        challenge_signature:
          "MEQCIEtjtQlTaBKkIcg/2KTAK9prO6KyogcUg111ReuwFAuWAiBgpHAeEMpvV0h1ZThn3Cv+Gjc9ti1F1mAzNeMDxPwP3Q==",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 275,
        endorser_fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
        endorsed_fingerprint: "sha256:4d4a9906e5eb1f822bd959b51a6bc9228eb5f08b897035e9e0a4e9542f8c26fb",
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
          endorsed_key_fingerprint: "sha256:4d4a9906e5eb1f822bd959b51a6bc9228eb5f08b897035e9e0a4e9542f8c26fb",
          endorser_key_fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
          event_type: "endorsement_acceptance",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: null,
          offer_entry_id: 275,
          valid_until: "2027-01-01",
        },
        previous_hash: "9e9408e88ccbe3ec564278e37ee0aa82fcd732bd96ad2990bd153828aadbfeb1",
        entry_hash: "f2ebc8305c785c1dc146dee1d209967a0055365b917277db86ef65ab3d9c8dd7",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "f2ebc8305c785c1dc146dee1d209967a0055365b917277db86ef65ab3d9c8dd7",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_withdraw: {
    body: {
      endorser_fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
      endorsed_fingerprint: "sha256:4d4a9906e5eb1f822bd959b51a6bc9228eb5f08b897035e9e0a4e9542f8c26fb",
      original_offer_entry_id: 280,
      note: "A mistake.",
      auth: {
        challenge_id: "cc9c1581-11fd-4680-be58-813305fc9f4d",
        challenge_signature: "yrYpmzoBzrPZvwUk4CynmoADmgUg14yQOBvvl3w/t5qD64zOxuGNYmR04vb5K2xtzxdd+La+kl6Fbju/1VoLAQ==",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 280,
        endorser_fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
        endorsed_fingerprint: "sha256:4d4a9906e5eb1f822bd959b51a6bc9228eb5f08b897035e9e0a4e9542f8c26fb",
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
          endorsed_key_fingerprint: "sha256:4d4a9906e5eb1f822bd959b51a6bc9228eb5f08b897035e9e0a4e9542f8c26fb",
          endorser_key_fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
          event_type: "endorsement_withdrawal",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: "A mistake.",
          offer_entry_id: 280,
          valid_until: "2027-01-01",
        },
        previous_hash: "9e2471a067d2996e691823d01c460f872f3ace7372b0e09d7a4e0af338884ff7",
        entry_hash: "595582c4eb636e1adfd6bdf5c2a8263bfe18fca792cbe9b339eb88f5524075e4",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "595582c4eb636e1adfd6bdf5c2a8263bfe18fca792cbe9b339eb88f5524075e4",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_revoke_acceptance: {
    body: {
      endorsed_fingerprint: "sha256:4d4a9906e5eb1f822bd959b51a6bc9228eb5f08b897035e9e0a4e9542f8c26fb",
      original_offer_entry_id: 275,
      note: "We no longer work together.",
      auth: {
        challenge_id: "81723409-9d13-495a-933f-9fc5704fa47f",
        challenge_signature:
          "MEUCIQDGNN6VzBcqqNKfxjaaFJpwVwaCcc4dhi3SG4FjNqI87AIgKgYtg7yIy0IbtpciNAZuH6oK7GRPxyoAabl4XMkkL+Q=",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 275,
        endorser_fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
        endorsed_fingerprint: "sha256:4d4a9906e5eb1f822bd959b51a6bc9228eb5f08b897035e9e0a4e9542f8c26fb",
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
          endorsed_key_fingerprint: "sha256:4d4a9906e5eb1f822bd959b51a6bc9228eb5f08b897035e9e0a4e9542f8c26fb",
          endorser_key_fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
          event_type: "acceptance_revocation",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: "We no longer work together.",
          offer_entry_id: 275,
          valid_until: "2027-01-01",
        },
        previous_hash: "4492ad3e3e7d4e4683ce5745277b69dae50b34fdd89b8fa5a86b97fbad43687d",
        entry_hash: "232538f139a78dff7474e8a87faf3359d43176e4f7736bd33be2aa69dc4b9c40",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "232538f139a78dff7474e8a87faf3359d43176e4f7736bd33be2aa69dc4b9c40",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_revocation_alert: {
    body: {
      endorser_fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
      compromised_fingerprint: "sha256:4d4a9906e5eb1f822bd959b51a6bc9228eb5f08b897035e9e0a4e9542f8c26fb",
      reason: "The laptop with the key was stolen.",
      auth: {
        challenge_id: "7065330a-9554-4499-bc0c-37870e01dd89",
        challenge_signature: "jOMaw7UgiuYKp7WIBEPhN3msmALIe4gxGyynqxnUhFYVY1RtrBZoyalVZxEYC/HTgCTsnPsMuKvKDUb6XRd7Cg==",
      },
    },
    answer: {
      alert: {
        alert_entry_id: 278,
        compromised_fingerprint: "sha256:4d4a9906e5eb1f822bd959b51a6bc9228eb5f08b897035e9e0a4e9542f8c26fb",
        endorser_fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
        reason: "The laptop with the key was stolen.",
        evidence: null,
        filed_at: "2025-01-02T00:07:00.000000Z",
      },
      log_entry: {
        id: 278,
        timestamp: "2025-01-02T00:07:00.000000Z",
        event_type: "endorser_revocation_alert",
        payload: {
          compromised_key_fingerprint: "sha256:4d4a9906e5eb1f822bd959b51a6bc9228eb5f08b897035e9e0a4e9542f8c26fb",
          endorser_key_fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
          event_type: "endorser_revocation_alert",
          evidence: null,
          reason: "The laptop with the key was stolen.",
        },
        previous_hash: "760f70ff1053b0bfc798f4e829804b6a098770c1862341f2fb692dc181ee4da7",
        entry_hash: "4492ad3e3e7d4e4683ce5745277b69dae50b34fdd89b8fa5a86b97fbad43687d",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "4492ad3e3e7d4e4683ce5745277b69dae50b34fdd89b8fa5a86b97fbad43687d",
            is_primary: true,
          },
        ],
      },
    },
  },
  get_endorsements_fingerprint: {
    params: { fingerprint: "sha256:4d4a9906e5eb1f822bd959b51a6bc9228eb5f08b897035e9e0a4e9542f8c26fb" },
    answer: {
      endorsements: [
        {
          offer_entry_id: 275,
          endorser_fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
          endorsed_fingerprint: "sha256:4d4a9906e5eb1f822bd959b51a6bc9228eb5f08b897035e9e0a4e9542f8c26fb",
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
    params: { fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819" },
    query: { status: "active" },
    answer: {
      endorsements: [
        {
          offer_entry_id: 275,
          endorser_fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
          endorsed_fingerprint: "sha256:4d4a9906e5eb1f822bd959b51a6bc9228eb5f08b897035e9e0a4e9542f8c26fb",
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
    params: { fingerprint: "sha256:4d4a9906e5eb1f822bd959b51a6bc9228eb5f08b897035e9e0a4e9542f8c26fb" },
    answer: {
      alerts: [
        {
          alert_entry_id: 278,
          compromised_fingerprint: "sha256:4d4a9906e5eb1f822bd959b51a6bc9228eb5f08b897035e9e0a4e9542f8c26fb",
          endorser_fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
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
    params: { fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819" },
    query: { max_depth: 2 },
    answer: {
      root: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
      nodes: [
        {
          fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
          pseudonym: "Ada",
          status: "active",
          depth: 0,
        },
        {
          fingerprint: "sha256:4d4a9906e5eb1f822bd959b51a6bc9228eb5f08b897035e9e0a4e9542f8c26fb",
          pseudonym: "Grace",
          status: "active",
          depth: 1,
        },
      ],
      edges: [
        {
          from: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
          to: "sha256:4d4a9906e5eb1f822bd959b51a6bc9228eb5f08b897035e9e0a4e9542f8c26fb",
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
    params: { fingerprint: "sha256:4d4a9906e5eb1f822bd959b51a6bc9228eb5f08b897035e9e0a4e9542f8c26fb" },
    answer: {
      fingerprint: "sha256:4d4a9906e5eb1f822bd959b51a6bc9228eb5f08b897035e9e0a4e9542f8c26fb",
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
          fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
          category_weights: { "x-service:institutional_endorsement": 0.8 },
          decay_per_hop: 0.5,
          direct_signer_anchors: [
            { fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819", weight: 1 },
          ],
          endorser_anchors: [
            { fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819", weight: 0.9 },
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
      fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
      direct_signer_anchors: [
        { fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819", weight: 0.9 },
      ],
      minimum_threshold: 0.4,
      category_weights: { "x-service:institutional_endorsement": 0.8 },
    },
    answer: {
      id: 1,
      fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819", weight: 0.9 },
      ],
      max_depth: 4,
      minimum_threshold: 0.4,
      status: "active",
      created_at: "2025-01-02T00:07:00.000000Z",
    },
  },
  get_trust_configs_fingerprint: {
    params: { fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819" },
    answer: {
      id: 1,
      fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819", weight: 0.9 },
      ],
      max_depth: 4,
      minimum_threshold: 0.4,
      status: "active",
      created_at: "2025-01-02T00:07:00.000000Z",
    },
  },
  post_trust_configs_revoke: {
    body: { fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819" },
    answer: {
      id: 1,
      fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819", weight: 0.9 },
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
            id: "84f28d9a-78bb-4022-90d4-961891880eca",
            type: "authorship",
            scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
            signer_key_fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
            signature_algorithm: "ed25519",
            signature: "Imq2bIRlr6/4pF8uCSXJaIhQkBIyXfK3Mql+DZKJZExmP5ADVJiQ9Qt8+TI6iYoJuoEiUR84vMO2yNlILSzODg==",
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
          id: "84f28d9a-78bb-4022-90d4-961891880eca",
          signer_key_fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
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
          { id: "84f28d9a-78bb-4022-90d4-961891880eca", kind: "attestation", type: "authorship", status: "valid" },
          {
            id: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
            kind: "key",
            pseudonym: "Ada",
            status: "active",
          },
        ],
        edges: [
          {
            from: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
            to: "84f28d9a-78bb-4022-90d4-961891880eca",
            kind: "signed",
          },
          {
            from: "84f28d9a-78bb-4022-90d4-961891880eca",
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
                id: "84f28d9a-78bb-4022-90d4-961891880eca",
                type: "authorship",
                scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                signer_key_fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
                signature_algorithm: "ed25519",
                signature: "Imq2bIRlr6/4pF8uCSXJaIhQkBIyXfK3Mql+DZKJZExmP5ADVJiQ9Qt8+TI6iYoJuoEiUR84vMO2yNlILSzODg==",
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
                  id: "84f28d9a-78bb-4022-90d4-961891880eca",
                  type: "authorship",
                  scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                  signer_key_fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
                  signature_algorithm: "ed25519",
                  signature: "Imq2bIRlr6/4pF8uCSXJaIhQkBIyXfK3Mql+DZKJZExmP5ADVJiQ9Qt8+TI6iYoJuoEiUR84vMO2yNlILSzODg==",
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
                  id: "84f28d9a-78bb-4022-90d4-961891880eca",
                  type: "authorship",
                  scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                  signer_key_fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
                  signature_algorithm: "ed25519",
                  signature: "Imq2bIRlr6/4pF8uCSXJaIhQkBIyXfK3Mql+DZKJZExmP5ADVJiQ9Qt8+TI6iYoJuoEiUR84vMO2yNlILSzODg==",
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
                    id: "84f28d9a-78bb-4022-90d4-961891880eca",
                    type: "authorship",
                    scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                    signer_key_fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
                    signature_algorithm: "ed25519",
                    signature:
                      "Imq2bIRlr6/4pF8uCSXJaIhQkBIyXfK3Mql+DZKJZExmP5ADVJiQ9Qt8+TI6iYoJuoEiUR84vMO2yNlILSzODg==",
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
        "eyJhdHRlc3RhdGlvbnMiOltdLCJkb2N1bWVudCI6eyJjb250ZW50X2hhc2giOiJzaGEyNTY6ZjNkNDJlYmY5NjU5YjE2MmUwYmE4YzQwMjM1OTQwMWRlN2VkOGMyODg0M2MwMWY2ZTBiZGIyMzhhY2Q4ZDAzYyIsInBhcnRzIjpbeyJjb250ZW50X2hhc2giOiJzaGEyNTY6NDk4NjNjYzg4YzcxZGU2NjI5MmE5ZjVmMmI5MzJkMWRmMGMxZWQxMDFlYzJiOTc4ODBkZTFhMTEzMzcwOTgxMCIsIm1hbmlmZXN0Ijp7ImF0dGVzdGF0aW9ucyI6W3siaWQiOiI4NGYyOGQ5YS03OGJiLTQwMjItOTBkNC05NjE4OTE4ODBlY2EiLCJpbnRlbnRfc3RhdGVtZW50IjoiSSB3cm90ZSBpdC4iLCJzY29wZSI6eyJjb250ZW50X2hhc2giOiJzaGEyNTY6NDk4NjNjYzg4YzcxZGU2NjI5MmE5ZjVmMmI5MzJkMWRmMGMxZWQxMDFlYzJiOTc4ODBkZTFhMTEzMzcwOTgxMCJ9LCJzaWduYXR1cmUiOiJJbXEyYklSbHI2LzRwRjh1Q1NYSmFJaFFrQkl5WGZLM01xbCtEWktKWkV4bVA1QURWSmlROVF0OCtUSTZpWW9KdW9FaVVSODR2TU8yeU5sSUxTek9EZz09Iiwic2lnbmF0dXJlX2FsZ29yaXRobSI6ImVkMjU1MTkiLCJzaWduZXJfa2V5X2ZpbmdlcnByaW50Ijoic2hhMjU2OjUxYjcxYTI2MWQxY2E0MzBlYTJhMTdiMTE4YWMwMzNjZjhhOTQ3YjQ4ZjBjZDMxMzgxMGYzOWRlYjk5MzQ4MTkiLCJ0aW1lc3RhbXAiOiIyMDI1LTAxLTAxVDAwOjA2OjAwLjAwMDAwMFoiLCJ0eXBlIjoiYXV0aG9yc2hpcCJ9XSwiZG9jdW1lbnQiOnsiY29udGVudF9oYXNoIjoic2hhMjU2OjQ5ODYzY2M4OGM3MWRlNjYyOTJhOWY1ZjJiOTMyZDFkZjBjMWVkMTAxZWMyYjk3ODgwZGUxYTExMzM3MDk4MTAiLCJ0YWdzIjpbInJlcG9ydCJdLCJ0aXRsZSI6IkFubnVhbCByZXBvcnQifX0sInJvbGUiOiJjaGFwdGVyIiwidGl0bGUiOiJSZXBvcnQifSx7ImNvbnRlbnRfaGFzaCI6InNoYTI1NjpmMzBjNTM0ZGE5NThhNzUzYWMyMGM2ZDVmZDQwNDFkZTRkOWFlMjQ5N2U3NDQwY2ZlMmQwMzRiMDBiNzFlZDEzIiwidGl0bGUiOiJBcHBlbmRpeCJ9XSwidGl0bGUiOiJSZXBvcnQgYW5kIGFwcGVuZGl4In19",
      manifest_hash: "0126b3cc33ef4411c87f289bf131a79f8f9c0b6eb8f390759cd5e136848fabef",
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
            attestation_id: "86b2adf4-2493-46a5-85c5-16008d1221e3",
            attestation_type: "editorial_review",
            document_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810",
            document_title: "Annual report",
            intent_statement: null,
            manifest_hash: "07a3a261f09eccfd842bc0cc3b0f4d6489cff455701b173ccae85104b6b55285",
            signature:
              "MEUCIH6gKq1vTgrgH3PUOWJI9CLWxdwU74wIDFPTGbGKc9Y2AiEAguxMU2/GjEB5G8Psk1pje9QgJbLUYfzEKZ+adb+9ecI=",
            signature_algorithm: "ecdsa-p256",
            signer_key_fingerprint: "sha256:4d4a9906e5eb1f822bd959b51a6bc9228eb5f08b897035e9e0a4e9542f8c26fb",
            tags: ["report"],
            timestamp: "2025-01-01T00:06:00.000000Z",
          },
          previous_hash: "74438927b5aeeb4e1039e76ac3bd9b2a4282c683da0a228db3ff429e52263fc0",
          entry_hash: "81ccaa0706389a6f45841cdbb54174ae405568f172689d99a65518408893dcb6",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "81ccaa0706389a6f45841cdbb54174ae405568f172689d99a65518408893dcb6",
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
          "BH8fdm0k1gvXKglHPx4p+djoRQeNY074Hx40Nkm3C59pOLYcPPL3/ppdA9NzeDgUkTtcdDgcZpwl9GgNo1rcND8=",
        commitment: "6f76b8cf509a4a0ec72f04451a1308e90d7b580de8db5d1da9a5ff2af6c4459c",
        lookup_key: "ea9cd036e38a4eb5b1af45fd9e8d65805c2a2651b684a11a38a4582fc7018131",
        nonce: "x+hKg34cO4W60WM7",
        ciphertext: "2kmeF4sMpdjtmtUp9KmU3C8DkuC+Y9Gerujytl9N6oTEJxh+pijNN4eMwdJgSb9n6nI9",
        recipient_fingerprint: "sha256:b626818a5602a8e2cccdde4b2c83a295a631c05a690f8cde8498512fbddc7758",
      },
    },
    answer: {
      entry_id: 286,
      commitment: "6f76b8cf509a4a0ec72f04451a1308e90d7b580de8db5d1da9a5ff2af6c4459c",
      lookup_key: "ea9cd036e38a4eb5b1af45fd9e8d65805c2a2651b684a11a38a4582fc7018131",
      leaf_index: 285,
      log_entry_id: 286,
    },
  },
  get_claims: {
    query: { lookup_key: "ea9cd036e38a4eb5b1af45fd9e8d65805c2a2651b684a11a38a4582fc7018131" },
    answer: {
      entries: [
        {
          id: 286,
          timestamp: "2025-01-02T00:07:00.000000Z",
          event_type: "encrypted_claim",
          payload: {
            ciphertext: "2kmeF4sMpdjtmtUp9KmU3C8DkuC+Y9Gerujytl9N6oTEJxh+pijNN4eMwdJgSb9n6nI9",
            commitment: "6f76b8cf509a4a0ec72f04451a1308e90d7b580de8db5d1da9a5ff2af6c4459c",
            commitment_alg: "hmac-sha256-ecdh-v1",
            ephemeral_public_key:
              "BH8fdm0k1gvXKglHPx4p+djoRQeNY074Hx40Nkm3C59pOLYcPPL3/ppdA9NzeDgUkTtcdDgcZpwl9GgNo1rcND8=",
            event_type: "encrypted_claim",
            lookup_key: "ea9cd036e38a4eb5b1af45fd9e8d65805c2a2651b684a11a38a4582fc7018131",
            nonce: "x+hKg34cO4W60WM7",
            recipient_fingerprint: "sha256:b626818a5602a8e2cccdde4b2c83a295a631c05a690f8cde8498512fbddc7758",
          },
          previous_hashes: [
            { algorithm: "sha2-256", digest_hex: "8fed75021a2731073b6cb92b475e0b70be10b76a277ca9a6810f88d3fcd2dfe9" },
          ],
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "c1aa4e64a01dff03ffa599e5360d3a00f32bdb30c2c46da301e19783cc6dab53",
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
      ciphertext: "2kmeF4sMpdjtmtUp9KmU3C8DkuC+Y9Gerujytl9N6oTEJxh+pijNN4eMwdJgSb9n6nI9",
      commitment: "6f76b8cf509a4a0ec72f04451a1308e90d7b580de8db5d1da9a5ff2af6c4459c",
      commitment_alg: "hmac-sha256-ecdh-v1",
      ephemeral_public_key: "BH8fdm0k1gvXKglHPx4p+djoRQeNY074Hx40Nkm3C59pOLYcPPL3/ppdA9NzeDgUkTtcdDgcZpwl9GgNo1rcND8=",
      lookup_key: "ea9cd036e38a4eb5b1af45fd9e8d65805c2a2651b684a11a38a4582fc7018131",
      nonce: "x+hKg34cO4W60WM7",
      recipient_fingerprint: "sha256:b626818a5602a8e2cccdde4b2c83a295a631c05a690f8cde8498512fbddc7758",
    },
  },
  post_claims_entry_id_reveal: {
    params: { entry_id: 286 },
    body: {
      plaintext: { salary: 52000, name: "Zoë 🪨" },
      commitment_key: "6a4848f140514430d3a2b49e3d657b356ab4ec8d5369317d0c665797148b09c0",
    },
    answer: { valid: true },
  },
  get_log_attestation_requests: {
    query: { target: "sha256:4d4a9906e5eb1f822bd959b51a6bc9228eb5f08b897035e9e0a4e9542f8c26fb", status: "open" },
    answer: {
      requests: [
        {
          request_id: "3ae01901-09db-45cc-a7f3-69297624bea2",
          requester_fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
          target_fingerprint: "sha256:4d4a9906e5eb1f822bd959b51a6bc9228eb5f08b897035e9e0a4e9542f8c26fb",
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
      target_fingerprint: "sha256:4d4a9906e5eb1f822bd959b51a6bc9228eb5f08b897035e9e0a4e9542f8c26fb",
      attestation_type: "peer_review",
      nonce: "request-2025-0001",
      intent_statement: "Please review the annual report.",
      claims: { document_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
    },
    answer: {
      request_id: "3ae01901-09db-45cc-a7f3-69297624bea2",
      requester_fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
      target_fingerprint: "sha256:4d4a9906e5eb1f822bd959b51a6bc9228eb5f08b897035e9e0a4e9542f8c26fb",
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
    params: { request_id: "3ae01901-09db-45cc-a7f3-69297624bea2" },
    answer: {
      request_id: "3ae01901-09db-45cc-a7f3-69297624bea2",
      requester_fingerprint: "sha256:51b71a261d1ca430ea2a17b118ac033cf8a947b48f0cd313810f39deb9934819",
      target_fingerprint: "sha256:4d4a9906e5eb1f822bd959b51a6bc9228eb5f08b897035e9e0a4e9542f8c26fb",
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
        responder_fingerprint: "sha256:4d4a9906e5eb1f822bd959b51a6bc9228eb5f08b897035e9e0a4e9542f8c26fb",
        attestation_id: null,
        reason: "No time before summer.",
        responded_at: "2025-01-02T00:07:00.000000Z",
        log_entry_id: 284,
        leaf_index: 283,
      },
    },
  },
  get_log_request_policies_fingerprint: {
    params: { fingerprint: "sha256:4d4a9906e5eb1f822bd959b51a6bc9228eb5f08b897035e9e0a4e9542f8c26fb" },
    answer: {
      target_fingerprint: "sha256:4d4a9906e5eb1f822bd959b51a6bc9228eb5f08b897035e9e0a4e9542f8c26fb",
      active: {
        target_fingerprint: "sha256:4d4a9906e5eb1f822bd959b51a6bc9228eb5f08b897035e9e0a4e9542f8c26fb",
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
    params: { request_id: "3ae01901-09db-45cc-a7f3-69297624bea2" },
    body: { decision: "decline", reason: "No time before summer." },
    answer: {
      request_id: "3ae01901-09db-45cc-a7f3-69297624bea2",
      status: "declined",
      responder_fingerprint: "sha256:4d4a9906e5eb1f822bd959b51a6bc9228eb5f08b897035e9e0a4e9542f8c26fb",
      decision: "decline",
      attestation_id: null,
      reason: "No time before summer.",
      log_entry_id: 284,
      leaf_index: 283,
    },
  },
  post_log_request_policies: {
    body: {
      target_fingerprint: "sha256:4d4a9906e5eb1f822bd959b51a6bc9228eb5f08b897035e9e0a4e9542f8c26fb",
      predicates: { all: [{ field: "attestation_type", op: "in", value: ["peer_review", "editorial_review"] }] },
      default_action_on_failure: "decline",
    },
    answer: {
      target_fingerprint: "sha256:4d4a9906e5eb1f822bd959b51a6bc9228eb5f08b897035e9e0a4e9542f8c26fb",
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
          request_id: "3ae01901-09db-45cc-a7f3-69297624bea2",
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
      request_id: "3ae01901-09db-45cc-a7f3-69297624bea2",
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

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
      key_fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
      device_label: "Security key",
    },
    answer: {
      user: {
        id: "708b3b1e-5fba-4230-8b5e-f4f171c9c828",
        display_name: "Ada Lovelace",
        created_at: "2025-01-01T00:00:00.000000Z",
      },
      credential: {
        id: "8c59fab0-8c7b-489d-893b-0183af6fa943",
        key_fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
        credential_type: "hardware",
        device_label: "Security key",
        status: "active",
        created_at: "2025-01-01T00:00:00.000000Z",
        revoked_at: null,
        hardware_backed: true,
      },
      recovery_key: "12DW5-14CY8-RQ4QT-0KD79-5YSBC-22MEM-96BAS-SN85H",
    },
  },
  post_users_recover: {
    body: {
      pseudonym: "Ada Lovelace",
      recovery_key: "12DW5-14CY8-RQ4QT-0KD79-5YSBC-22MEM-96BAS-SN85H",
      credential_type: "hardware",
      key_fingerprint: "sha256:14d7264d3b74090b5a33b2d152b98a2a907447a5f0d16353818929d5f19b33c5",
      device_label: "Security key",
    },
    answer: {
      user: {
        id: "708b3b1e-5fba-4230-8b5e-f4f171c9c828",
        display_name: "Ada Lovelace",
        created_at: "2025-01-01T00:00:00.000000Z",
      },
      credential: {
        id: "3410f0da-266e-4ce2-a6d6-841156b902fa",
        key_fingerprint: "sha256:14d7264d3b74090b5a33b2d152b98a2a907447a5f0d16353818929d5f19b33c5",
        credential_type: "hardware",
        device_label: "Security key",
        status: "active",
        created_at: "2025-01-01T00:06:00.000000Z",
        revoked_at: null,
        hardware_backed: true,
      },
      recovery_key: "PMXW1-TWD1F-3EEPY-S2G1F-NB51A-MDJ6N-3J708-02A3P",
      revoked_credentials: 2,
    },
  },
  post_credentials_enroll: {
    body: {
      challenge_id: "288f3a34-e66d-40e1-af1c-d0abc069c287",
      issuing_fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
      key_fingerprint: "sha256:ca760c1d8a15da6627bf943171d574dd2b32fa9bcdf31cb324c2e817eeea1cb3",
      credential_type: "hardware",
      device_label: "Second security key",
      challenge_signature: "kV2S3o3jQj7FI38ulU5bZ55aXO1bC9UMhC+nN9m5PKP9UWjh1ry4EW/kse8R/gB4tL9tq3j5hTMsr8Ov+x72CA==",
      chain_signature: "PsfcWGbfd3G0yPi9L1pDE8jM36POfqeVxTGhBnlfzIYx/HPQqdBzuV78K3tkGXbtfFoKU+p0wdftzG2Y15ijBw==",
    },
    answer: {
      credential: {
        id: "f9b333c9-c088-4adf-845d-6250db145d70",
        key_fingerprint: "sha256:ca760c1d8a15da6627bf943171d574dd2b32fa9bcdf31cb324c2e817eeea1cb3",
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
          fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
          pseudonym: "Ada",
          algorithm: "ed25519",
          status: "active",
          registered_at: "2025-01-01T00:00:00.000000Z",
          expires_at: null,
        },
        {
          fingerprint: "sha256:23d93d0719f1afacb55aeacebe3dcc52a523c0e5177734d2a5a93056129a55e7",
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
          fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
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
    params: { fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60" },
    answer: {
      fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
      public_key:
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAYnjTfqNW4MJtZYwJ2Vocfj/JwhkdHCf0Zi+joh5hP8E=\n-----END PUBLIC KEY-----\n",
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
    params: { fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60" },
    answer: {
      fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
      status: "active",
      expires_at: null,
      successor_fingerprint: null,
    },
  },
  post_keys_register: {
    body: {
      payload: {
        public_key:
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAYnjTfqNW4MJtZYwJ2Vocfj/JwhkdHCf0Zi+joh5hP8E=\n-----END PUBLIC KEY-----\n",
        pseudonym: "Ada",
        key_algorithm: "ed25519",
      },
    },
    answer: {
      fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
      pseudonym: "Ada",
      algorithm: "ed25519",
      log_entry_id: 1,
      leaf_index: 0,
      entry_hash: "f9a5219e0695a1a5dec53f048d0a64589604b01476715f99971817932ac839ca",
    },
  },
  post_keys_succeed: {
    body: {
      payload: {
        old_fingerprint: "sha256:8da796dd674572fbffd2484ca8b317b1d2cf120227bfad70e446c59da4c89944",
        new_public_key:
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAX/mZanjBtajbztAzgnWhmRbX8ovZPwdPdITnyrpYM74=\n-----END PUBLIC KEY-----\n",
        new_algorithm: "ed25519",
      },
      auth: {
        challenge_id: "01e0ca7d-39b4-4061-8743-78c0b038abfb",
        challenge_signature: "ywxV9/XOWMVCYgMW2MQ6LJajROXojUruDEThrmQtziCNrHorpR5Rjxkdj87nu29GmSFeXIDRO/0/5cZyTGBZAQ==",
      },
    },
    answer: {
      old_fingerprint: "sha256:8da796dd674572fbffd2484ca8b317b1d2cf120227bfad70e446c59da4c89944",
      new_fingerprint: "sha256:0bdfe125cfab0b3b8ffaa02a2ba9afdaeb90163ab815cc1364e9f7f58648d038",
      log_entry_id: 5,
      leaf_index: 4,
      entry_hash: "b039ef51f4353bde05e4424210ca3971ce40efd4e2acca85177bf30aee915971",
    },
  },
  post_keys_revoke: {
    body: {
      payload: { fingerprint: "sha256:0bdfe125cfab0b3b8ffaa02a2ba9afdaeb90163ab815cc1364e9f7f58648d038" },
      auth: {
        challenge_id: "1be31ee2-bccb-4d55-9d44-5a8d306bede0",
        challenge_signature: "1V5apeQt90/O6hXILtAx3wZTo6x0ng2dWh7n1FO0roV4Gv/5mgWvWsSDJakFL+aKlFbkzR62Syjrm0888xobBw==",
      },
    },
    answer: {
      fingerprint: "sha256:0bdfe125cfab0b3b8ffaa02a2ba9afdaeb90163ab815cc1364e9f7f58648d038",
      status: "revoked",
      log_entry_id: 6,
      leaf_index: 5,
      entry_hash: "fc094d2a94f637df62d65c05774a6802604a3caae7efdcf1cd3adc75ac6e3c4c",
    },
  },
  post_auth_challenge: {
    body: { fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60", purpose: "login" },
    answer: {
      challenge_id: "e83f5961-ec2c-4444-8955-714ec16d18ed",
      nonce:
        "service.auth.v1:login:sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60:_W83dtt26uKfcu4kghg0RT8jf0uliFf9a4sWc1L3kFk",
      expires_at: "2025-01-01T00:05:00.000000Z",
    },
  },
  post_auth_login: {
    body: {
      challenge_id: "e83f5961-ec2c-4444-8955-714ec16d18ed",
      challenge_signature: "WPYLfjGm8bMLVHIZESGVRQBkFRv9gPWavsQETP5Dalgg2GuASgNSftZW10oFPjT+fmbsHgLeEmY8wLnfrQutDA==",
    },
    answer: {
      token:
        "eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzaGEyNTY6ZmZiZGI1MDUxMWYzODQyYjc4N2FjNDJkY2U5OGFhYmNlN2U2ODlhZWEwOTgyNDU4ODk0ZTQ5NWVmM2MwMDMzZiIsInN1YiI6InNoYTI1NjpiODY1MDFjN2JhYjJkYjVlNTZhNmU5NGE4YzNiYjMxMGE5MjY4NzI5MTY4MDJiZTBkYzc5YjlkMjlkNDA4YTYwIiwiaWF0IjoxNzM1Njg5NjAwLCJleHAiOjE3MzU2OTMyMDAsImp0aSI6ImI2MWJhN2E4LTU5MWUtNGI3YS1iODBhLWQ5MTJmNTcxMTc2MiIsInBzZXVkb255bSI6IkFkYSIsInJlY292ZXJ5IjpmYWxzZSwiYXV0aF90aW1lIjoxNzM1Njg5NjAwfQ.fnojzgu1bQh0cJtAaxwji4XtrOSV0rkLuDg9BT2Yz6lhEHPDmPOE6D5p1aTmgTE2KIvqU0ZnNLngPZLGMECADg",
      fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
      pseudonym: "Ada",
      expires_at: "2025-01-01T01:00:00.000000Z",
    },
  },
  post_auth_renew: {
    answer: {
      token:
        "eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzaGEyNTY6ZmZiZGI1MDUxMWYzODQyYjc4N2FjNDJkY2U5OGFhYmNlN2U2ODlhZWEwOTgyNDU4ODk0ZTQ5NWVmM2MwMDMzZiIsInN1YiI6InNoYTI1NjpiODY1MDFjN2JhYjJkYjVlNTZhNmU5NGE4YzNiYjMxMGE5MjY4NzI5MTY4MDJiZTBkYzc5YjlkMjlkNDA4YTYwIiwiaWF0IjoxNzM1Njg5NjAwLCJleHAiOjE3MzU2OTMyMDAsImp0aSI6IjQ3ODIyYTFkLTVhNDYtNGJmMC05NDZlLWE5ZGEyODkxNWE4YyIsInBzZXVkb255bSI6IkFkYSIsInJlY292ZXJ5IjpmYWxzZSwiYXV0aF90aW1lIjoxNzM1Njg5NjAwfQ.0Hon8N6NkJie6bpFG9HnzrQK2oDOXOLJf8KryaUaCheB3JumjiMqkSw61__TKEl4RkCmL40vmp1fhRj0EkaIDw",
      fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
      pseudonym: "Ada",
      expires_at: "2025-01-01T01:00:00.000000Z",
    },
  },
  post_auth_password: {
    body: {
      challenge_id: "68375871-377a-46b9-adc4-d9238bd271e8",
      challenge_signature: "ebpuTpc5GWKHNYccZ+TPjF39ZN5ugKTN3MiW0ZIQKrs0x0g/qrDQj4gRnLcYwUB+k19jZQE8yg4+QLxPIuFGAA==",
      password: "correct horse battery",
    },
    answer: {
      fingerprint: "sha256:0281b6a44c9619f75d0fcee7c919f9a07ddc10f3e5224415d3954319c18fc71b",
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
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAYnjTfqNW4MJtZYwJ2Vocfj/JwhkdHCf0Zi+joh5hP8E=\n-----END PUBLIC KEY-----\n",
      signature: "tHhJPmR+vfYv41OH3zOWwIul/0+zhRwcsnl6rA+fAEQoXX7BdFbeeErQuUDk1EyPzSEaDdk/muj8U+yqMKuBBw==",
      intent_statement: "I wrote it.",
    },
    answer: {
      attestation: {
        id: "33a28421-b73b-4677-aff7-cfbdefb93b1b",
        type: "authorship",
        scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
        signer_key_fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
        signature_algorithm: "ed25519",
        signature: "tHhJPmR+vfYv41OH3zOWwIul/0+zhRwcsnl6rA+fAEQoXX7BdFbeeErQuUDk1EyPzSEaDdk/muj8U+yqMKuBBw==",
        timestamp: "2025-01-01T00:06:00.000000Z",
        intent_statement: "I wrote it.",
      },
      fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
      pseudonym: "Ada",
      log_entry_id: 13,
      leaf_index: 12,
      entry_hash: "a7064776b2b4c3fbb6752c92de452c78eeada05f255493580e7af6c257185e29",
      manifest_hash: "38f0c85d6331fd79023d1cd40a3908b665272ec2077277686ac55af17b1b6494",
      sth: {
        tree_size: 13,
        root_hash: "b99eaf43ec1026fbcfa80c081191b5829e57ec307b8b887074a21a3c2dce4e23",
        signature: "dUvRu8S6h6ePqD+QtT1FNUaNZAK4ZFrTe/Cf8K80uCktjNjXiEAuip6tHpc5MV+1G3bdYLz3jLurWhBAfXU9Dw==",
        timestamp: "2025-01-01T00:06:00.000000Z",
        key_id: "sha256:ffbdb50511f3842b787ac42dce98aabce7e689aea0982458894e495ef3c0033f",
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
            "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAYnjTfqNW4MJtZYwJ2Vocfj/JwhkdHCf0Zi+joh5hP8E=\n-----END PUBLIC KEY-----\n",
          signature: "e5yB2RzaCZxtuJSAb65eVFt5het9XpsHHC8grMheyUFWyniDCFAInrNguiStl/WPwW1XgX0Li/ODdZ4/MCpOBA==",
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
            "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAYnjTfqNW4MJtZYwJ2Vocfj/JwhkdHCf0Zi+joh5hP8E=\n-----END PUBLIC KEY-----\n",
          signature: "r5cU1gDcpIHHIEHnQ3fDJ5Ti3mhaTbD3EJWEnSBdCZLiB+MVsLvXkweXAM8tvo+RkmJ6lL1QIYAje9ZPAkmxCA==",
        },
      ],
    },
    answer: {
      results: [
        {
          status: 201,
          receipt: {
            attestation: {
              id: "c77ce8b8-ec2b-412f-bd59-f33a54d7bdfb",
              type: "authorship",
              scope: { content_hash: "sha256:c74e517559a5ed1b9f8f47889125b5d6b84df309d173fee85585b4c045f5214b" },
              signer_key_fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
              signature_algorithm: "ed25519",
              signature: "e5yB2RzaCZxtuJSAb65eVFt5het9XpsHHC8grMheyUFWyniDCFAInrNguiStl/WPwW1XgX0Li/ODdZ4/MCpOBA==",
              timestamp: "2025-01-01T00:06:00.000000Z",
            },
            fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
            pseudonym: "Ada",
            log_entry_id: 14,
            leaf_index: 13,
            entry_hash: "e1841d23c4d64da5a500d13b6a8e9d7cbbe6559bc4996dc8a73f50bbf0f53154",
            manifest_hash: "25367d2d820f2cc8ef80c557f5e4b35bef45d435ae93ee6e3aeffc3e00a05c0e",
            sth: {
              tree_size: 14,
              root_hash: "16160c0d87ddac090f0a2232ab2cd89db13fc577e848a6a27c2c9343d99fa8c3",
              signature: "2SvjAW9nDyctrsu+VUaHlywJxnQwWfp51YIGHVRqMzOSA1O+Iui6z2YC9R0vmdtjY70DQkvTQ1J6/+wsB9d9CQ==",
              timestamp: "2025-01-01T00:06:00.000000Z",
              key_id: "sha256:ffbdb50511f3842b787ac42dce98aabce7e689aea0982458894e495ef3c0033f",
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
        "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE3jWsDEU9pibClIZfiW4Xe63av8CF\nq4W/spaYFbGfdwXBW01qQzYUAcFZNmxJMPD9ivtVEDGlfkwjGV5xYbv7ow==\n-----END PUBLIC KEY-----\n",
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
        entry_hash: "58b587cd213c362db8949554bd1b28be13a81cff906bc529e187954fd5750749",
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
        fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
        key_algorithm: "ed25519",
        possession_signature: null,
        pseudonym: "Ada",
        public_key:
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAYnjTfqNW4MJtZYwJ2Vocfj/JwhkdHCf0Zi+joh5hP8E=\n-----END PUBLIC KEY-----\n",
      },
      previous_hash: null,
      entry_hash: "f9a5219e0695a1a5dec53f048d0a64589604b01476715f99971817932ac839ca",
      chain_version: 2,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "f9a5219e0695a1a5dec53f048d0a64589604b01476715f99971817932ac839ca",
          is_primary: true,
        },
      ],
    },
  },
  get_log_sth: {
    answer: {
      tree_size: 15,
      root_hash: "fc2d0ecab71f6ed5030177581719eaa359f7cf412c2054b043d0611319caf42f",
      signature: "JCM6oX8kDzgROB5iKjvVqbjT39Ly2wU7oMCHkcTtXvgoauM7VVnHFBJzbKQdSb8aV5JZEuuaXgeFyXCTlbZACw==",
      timestamp: "2025-01-01T00:06:00.000000Z",
      key_id: "sha256:ffbdb50511f3842b787ac42dce98aabce7e689aea0982458894e495ef3c0033f",
      tree_version: 2,
    },
  },
  get_log_sth_tree_size: {
    params: { tree_size: 3 },
    answer: {
      tree_size: 3,
      root_hash: "54019cf582ba74ff263e09cd316193a9f1909e16249b63f1dbde6951a081b796",
      signature: "TXXwyPiQeHh6/ust8QczgSMFe/OPH7GnTZp+wQx7BN1SIIs126CfJmEzaeEo7zjb12WtrV5X8fbts5VV7Wm3BA==",
      timestamp: "2025-01-01T00:00:00.000000Z",
      key_id: "sha256:ffbdb50511f3842b787ac42dce98aabce7e689aea0982458894e495ef3c0033f",
      tree_version: 2,
    },
  },
  get_log_heads: {
    query: { from: 3, limit: 1 },
    answer: {
      heads: [
        {
          tree_size: 3,
          root_hash: "54019cf582ba74ff263e09cd316193a9f1909e16249b63f1dbde6951a081b796",
          signature: "TXXwyPiQeHh6/ust8QczgSMFe/OPH7GnTZp+wQx7BN1SIIs126CfJmEzaeEo7zjb12WtrV5X8fbts5VV7Wm3BA==",
          timestamp: "2025-01-01T00:00:00.000000Z",
          key_id: "sha256:ffbdb50511f3842b787ac42dce98aabce7e689aea0982458894e495ef3c0033f",
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
      leaf_hash: "ac659ca183fcf0cb9795699b77af978747b64b668eec62d60b04b39a7c062878",
      root_hash: "2784b3191aad6c489d3e2f972447b92f313d8c3cfaea3066952e86258e0ea242",
      audit_path: [
        "9b0e14800e0fc096d9342bd13889af63f53c6ae27f43cbdf1e9960c4b15ec6f3",
        "e1cae957ab2598be48fde3d81d0973ad9caae30d2cb791eec1f0326968309fa2",
        "c53cea1d4d4cb5686572c3b87d2b2dc368f19b675eb946fcabb8371596bd9f43",
      ],
      entry_hash: "b4dd62c55905135c0c98d8107c9bf6465c4863027b18754b7c4671816f24e0ee",
      sth: {
        tree_size: 5,
        root_hash: "2784b3191aad6c489d3e2f972447b92f313d8c3cfaea3066952e86258e0ea242",
        signature: "XOURooAPBdEbTm38iUhg18fmUqfAXfMRXAfXLTOTloilJA2pc2Fj+6r1OIa5Bjgzz89ND/Fgcca8GYFFXU40Bw==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:ffbdb50511f3842b787ac42dce98aabce7e689aea0982458894e495ef3c0033f",
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
      leaf_hash: "ac659ca183fcf0cb9795699b77af978747b64b668eec62d60b04b39a7c062878",
      root_hash: "2784b3191aad6c489d3e2f972447b92f313d8c3cfaea3066952e86258e0ea242",
      audit_path: [
        "9b0e14800e0fc096d9342bd13889af63f53c6ae27f43cbdf1e9960c4b15ec6f3",
        "e1cae957ab2598be48fde3d81d0973ad9caae30d2cb791eec1f0326968309fa2",
        "c53cea1d4d4cb5686572c3b87d2b2dc368f19b675eb946fcabb8371596bd9f43",
      ],
      entry_hash: "b4dd62c55905135c0c98d8107c9bf6465c4863027b18754b7c4671816f24e0ee",
      sth: {
        tree_size: 5,
        root_hash: "2784b3191aad6c489d3e2f972447b92f313d8c3cfaea3066952e86258e0ea242",
        signature: "XOURooAPBdEbTm38iUhg18fmUqfAXfMRXAfXLTOTloilJA2pc2Fj+6r1OIa5Bjgzz89ND/Fgcca8GYFFXU40Bw==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:ffbdb50511f3842b787ac42dce98aabce7e689aea0982458894e495ef3c0033f",
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
      from_root: "54019cf582ba74ff263e09cd316193a9f1909e16249b63f1dbde6951a081b796",
      to_root: "dc3922202831416878b49c901e9052d0570ff37669f824d6fd69817c6eac38e7",
      peaks: [
        "e1cae957ab2598be48fde3d81d0973ad9caae30d2cb791eec1f0326968309fa2",
        "ac659ca183fcf0cb9795699b77af978747b64b668eec62d60b04b39a7c062878",
      ],
      extension: [
        "9b0e14800e0fc096d9342bd13889af63f53c6ae27f43cbdf1e9960c4b15ec6f3",
        "580451600ab37a5bcde48f9d0283946c6db22b42a42962b3e18a5f46abf46db0",
      ],
      from_sth: {
        tree_size: 3,
        root_hash: "54019cf582ba74ff263e09cd316193a9f1909e16249b63f1dbde6951a081b796",
        signature: "TXXwyPiQeHh6/ust8QczgSMFe/OPH7GnTZp+wQx7BN1SIIs126CfJmEzaeEo7zjb12WtrV5X8fbts5VV7Wm3BA==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:ffbdb50511f3842b787ac42dce98aabce7e689aea0982458894e495ef3c0033f",
        tree_version: 2,
      },
      to_sth: {
        tree_size: 6,
        root_hash: "dc3922202831416878b49c901e9052d0570ff37669f824d6fd69817c6eac38e7",
        signature: "C2eCFoviI0nP8rLETzq3JH56759150zx+1It1W0GN3zeNhQ2dDm+4npFFqFVAZkm/kVvTf47WMdZuy1ZCF0PBg==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:ffbdb50511f3842b787ac42dce98aabce7e689aea0982458894e495ef3c0033f",
        tree_version: 2,
      },
    },
  },
  post_log_verify: { answer: { valid: true, entry_count: 15, errors: [], warnings: [] } },
  get_log_operator_key: {
    answer: {
      fingerprint: "sha256:ffbdb50511f3842b787ac42dce98aabce7e689aea0982458894e495ef3c0033f",
      algorithm: "ed25519",
      public_key:
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA0d1ZkNAPZuGBl8zdn0PzZ0nXI0nPa0JN4vwEtVxOGcw=\n-----END PUBLIC KEY-----\n",
      operators: [
        {
          key_id: "sha256:ffbdb50511f3842b787ac42dce98aabce7e689aea0982458894e495ef3c0033f",
          algorithm: "ed25519",
          public_key:
            "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA0d1ZkNAPZuGBl8zdn0PzZ0nXI0nPa0JN4vwEtVxOGcw=\n-----END PUBLIC KEY-----\n",
          from_size: 1,
          until_size: null,
          rotation: null,
        },
      ],
    },
  },
  get_log_checkpoint: {
    answer:
      "cairnlog/ffbdb50511f3842b\n15\n/C0OyrcfbtUDAXdYFxnqo1n3z0EsIFSwQ9BhExnK9C8=\n\n— cairnlog/ffbdb50511f3842b PcKH6gkEgPuW0Cunm6Or+kUrQoOdSTQ53mmEjvgcPR+JDRWjFkcAoeKYx4jGx00MeFfqjTI8wzS/KSloJJXlmiJd2w0=\n",
  },
  get_log_tile_version_level_index: { params: { version: 2, level: 0, index: 0 } },
  get_log_tile_version_level_index_p_width: { params: { version: 2, level: 0, index_p: "1.p", width: 4 } },
  post_log_anchor: {
    answer: {
      anchored_entry_id: 15,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "58b587cd213c362db8949554bd1b28be13a81cff906bc529e187954fd5750749",
          is_primary: true,
        },
      ],
      ots_proof:
        "AE9wZW5UaW1lc3RhbXBzAABQcm9vZgC/ieLohOiSlAEIWLWHzSE8Ni24lJVUvRsovhOoHP+Qa8Up4YeVT9V1B0nwEEESuv50IhxRBq0DfNFb4QoI8QRlAAAA8AhQJ3cFR3p8lACD3+MNLvkMjh0caHR0cHM6Ly9jYWxlbmRhci5leGFtcGxlLm9yZw==",
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
      root_hash: "fc2d0ecab71f6ed5030177581719eaa359f7cf412c2054b043d0611319caf42f",
      signature: "JCM6oX8kDzgROB5iKjvVqbjT39Ly2wU7oMCHkcTtXvgoauM7VVnHFBJzbKQdSb8aV5JZEuuaXgeFyXCTlbZACw==",
      timestamp: "2025-01-01T00:06:00.000000Z",
      key_id: "sha256:ffbdb50511f3842b787ac42dce98aabce7e689aea0982458894e495ef3c0033f",
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
            fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
            key_algorithm: "ed25519",
            possession_signature: null,
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAYnjTfqNW4MJtZYwJ2Vocfj/JwhkdHCf0Zi+joh5hP8E=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "f9a5219e0695a1a5dec53f048d0a64589604b01476715f99971817932ac839ca",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "f9a5219e0695a1a5dec53f048d0a64589604b01476715f99971817932ac839ca",
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
    params: { fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60" },
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
            fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
            key_algorithm: "ed25519",
            possession_signature: null,
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAYnjTfqNW4MJtZYwJ2Vocfj/JwhkdHCf0Zi+joh5hP8E=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "f9a5219e0695a1a5dec53f048d0a64589604b01476715f99971817932ac839ca",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "f9a5219e0695a1a5dec53f048d0a64589604b01476715f99971817932ac839ca",
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
      fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
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
            fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
            key_algorithm: "ed25519",
            possession_signature: null,
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAYnjTfqNW4MJtZYwJ2Vocfj/JwhkdHCf0Zi+joh5hP8E=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "f9a5219e0695a1a5dec53f048d0a64589604b01476715f99971817932ac839ca",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "f9a5219e0695a1a5dec53f048d0a64589604b01476715f99971817932ac839ca",
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
      endorser_fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
      endorsed_fingerprint: "sha256:23d93d0719f1afacb55aeacebe3dcc52a523c0e5177734d2a5a93056129a55e7",
      category: "x-service:institutional_endorsement",
      valid_until: "2027-01-01",
      institutional_metadata: { name: "University of Example" },
      external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
      auth: {
        challenge_id: "36c0fc60-92f1-4292-9a1d-b20a4c6ffe5e",
        challenge_signature: "dvk353UaeOOq7DeaFhwBAj0mibgwSRTbnP4KtLniIw55Q7oP/e7PcIVzgqiLCIPu4uAiEUHiL2gfuHQkgzYeCQ==",
      },
    },
    answer: {
      id: 276,
      timestamp: "2025-01-01T00:06:00.000000Z",
      event_type: "endorsement_offer",
      payload: {
        category: "x-service:institutional_endorsement",
        endorsed_key_fingerprint: "sha256:23d93d0719f1afacb55aeacebe3dcc52a523c0e5177734d2a5a93056129a55e7",
        endorser_key_fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
        event_type: "endorsement_offer",
        external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
        institutional_metadata: { name: "University of Example" },
        valid_until: "2027-01-01",
      },
      previous_hash: "0885e4dac08da50fc6b78a2c308bf446afaf8efed289bc330a55540e0c5e21ca",
      entry_hash: "3c62f42800f1e008fe9fe3806fa9df581bfef0c727466859b41064f415973170",
      chain_version: 2,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "3c62f42800f1e008fe9fe3806fa9df581bfef0c727466859b41064f415973170",
          is_primary: true,
        },
      ],
    },
  },
  post_endorsements_accept: {
    body: {
      offer_entry_id: 276,
      endorsed_fingerprint: "sha256:23d93d0719f1afacb55aeacebe3dcc52a523c0e5177734d2a5a93056129a55e7",
      auth: {
        challenge_id: "22e2a123-2868-4b78-b5c5-20f86e8e597f",
        challenge_signature:
          "MEUCIQCsUk78Ka+IJ6aEq4J/LzHSF6GAQVl8TQ1tRGdL8MnYhgIgDNJh4SaYfOSQwkrD3g6KCd62AgFeykxhzR5KMEUf1Sg=",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 276,
        endorser_fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
        endorsed_fingerprint: "sha256:23d93d0719f1afacb55aeacebe3dcc52a523c0e5177734d2a5a93056129a55e7",
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
          endorsed_key_fingerprint: "sha256:23d93d0719f1afacb55aeacebe3dcc52a523c0e5177734d2a5a93056129a55e7",
          endorser_key_fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
          event_type: "endorsement_acceptance",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: null,
          offer_entry_id: 276,
          valid_until: "2027-01-01",
        },
        previous_hash: "3c62f42800f1e008fe9fe3806fa9df581bfef0c727466859b41064f415973170",
        entry_hash: "105b1ccc1807046300b872ff91e011873999012cba180722cb5a36d9363026d5",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "105b1ccc1807046300b872ff91e011873999012cba180722cb5a36d9363026d5",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_withdraw: {
    body: {
      endorser_fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
      endorsed_fingerprint: "sha256:23d93d0719f1afacb55aeacebe3dcc52a523c0e5177734d2a5a93056129a55e7",
      original_offer_entry_id: 281,
      note: "A mistake.",
      auth: {
        challenge_id: "433f079b-6c79-4a46-8a57-2062001849fd",
        challenge_signature: "1+JoKUCkQ0D4V4aw34s4sOlEzUIcY+7BP/fS/HBmKBeqYJKBdnDUjcD7+ll5GaLJ5uTgIkUSqeCcjDSqT0n5Aw==",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 281,
        endorser_fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
        endorsed_fingerprint: "sha256:23d93d0719f1afacb55aeacebe3dcc52a523c0e5177734d2a5a93056129a55e7",
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
          endorsed_key_fingerprint: "sha256:23d93d0719f1afacb55aeacebe3dcc52a523c0e5177734d2a5a93056129a55e7",
          endorser_key_fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
          event_type: "endorsement_withdrawal",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: "A mistake.",
          offer_entry_id: 281,
          valid_until: "2027-01-01",
        },
        previous_hash: "0b2aaf134822f2c37e6aa0a05c902b8ea763dab1dac5b004c068f1d399f8a8d8",
        entry_hash: "35c4b6571b8f06f8a3147e9dd37bcb630479a6999b3143bb95cd2b2c37497be8",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "35c4b6571b8f06f8a3147e9dd37bcb630479a6999b3143bb95cd2b2c37497be8",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_revoke_acceptance: {
    body: {
      endorsed_fingerprint: "sha256:23d93d0719f1afacb55aeacebe3dcc52a523c0e5177734d2a5a93056129a55e7",
      original_offer_entry_id: 276,
      note: "We no longer work together.",
      auth: {
        challenge_id: "4e1277cd-8755-4a75-8e24-59760c2ebf35",
        challenge_signature:
          "MEUCIQDmh+Q2gNWFUNAJbSfolN5ef9+WSg/4aJ8yZcTi0sFT+wIgP6sqcXAVAxtCM2+gnqGD1P0wOCGDaWUzvWQtpPMqQmU=",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 276,
        endorser_fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
        endorsed_fingerprint: "sha256:23d93d0719f1afacb55aeacebe3dcc52a523c0e5177734d2a5a93056129a55e7",
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
          endorsed_key_fingerprint: "sha256:23d93d0719f1afacb55aeacebe3dcc52a523c0e5177734d2a5a93056129a55e7",
          endorser_key_fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
          event_type: "acceptance_revocation",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: "We no longer work together.",
          offer_entry_id: 276,
          valid_until: "2027-01-01",
        },
        previous_hash: "201cf57e964682605e88aacb2678b7358d94b75839889eadc6073b64fe184891",
        entry_hash: "e0ded2b1d976c011e23b8483335de61b2595b70d41850edfc2b9fa6d627eace4",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "e0ded2b1d976c011e23b8483335de61b2595b70d41850edfc2b9fa6d627eace4",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_revocation_alert: {
    body: {
      endorser_fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
      compromised_fingerprint: "sha256:23d93d0719f1afacb55aeacebe3dcc52a523c0e5177734d2a5a93056129a55e7",
      reason: "The laptop with the key was stolen.",
      auth: {
        challenge_id: "f7395f1c-9123-483d-9403-bfebc5a5d02d",
        challenge_signature: "2E3iS9zaGCYJRpagTQM+2fp/iWCIVGIQS31dAso3Xmim9hiJLipOx9w4xC3idMcu+up9ODMW65axwq1l/mCSAw==",
      },
    },
    answer: {
      alert: {
        alert_entry_id: 279,
        compromised_fingerprint: "sha256:23d93d0719f1afacb55aeacebe3dcc52a523c0e5177734d2a5a93056129a55e7",
        endorser_fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
        reason: "The laptop with the key was stolen.",
        evidence: null,
        filed_at: "2025-01-02T00:07:00.000000Z",
      },
      log_entry: {
        id: 279,
        timestamp: "2025-01-02T00:07:00.000000Z",
        event_type: "endorser_revocation_alert",
        payload: {
          compromised_key_fingerprint: "sha256:23d93d0719f1afacb55aeacebe3dcc52a523c0e5177734d2a5a93056129a55e7",
          endorser_key_fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
          event_type: "endorser_revocation_alert",
          evidence: null,
          reason: "The laptop with the key was stolen.",
        },
        previous_hash: "97c1737a7ff2a6535ee974c24199c6daf501a045fb9fe42eb4757a1bbeab2dd5",
        entry_hash: "201cf57e964682605e88aacb2678b7358d94b75839889eadc6073b64fe184891",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "201cf57e964682605e88aacb2678b7358d94b75839889eadc6073b64fe184891",
            is_primary: true,
          },
        ],
      },
    },
  },
  get_endorsements_fingerprint: {
    params: { fingerprint: "sha256:23d93d0719f1afacb55aeacebe3dcc52a523c0e5177734d2a5a93056129a55e7" },
    answer: {
      endorsements: [
        {
          offer_entry_id: 276,
          endorser_fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
          endorsed_fingerprint: "sha256:23d93d0719f1afacb55aeacebe3dcc52a523c0e5177734d2a5a93056129a55e7",
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
    params: { fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60" },
    query: { status: "active" },
    answer: {
      endorsements: [
        {
          offer_entry_id: 276,
          endorser_fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
          endorsed_fingerprint: "sha256:23d93d0719f1afacb55aeacebe3dcc52a523c0e5177734d2a5a93056129a55e7",
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
    params: { fingerprint: "sha256:23d93d0719f1afacb55aeacebe3dcc52a523c0e5177734d2a5a93056129a55e7" },
    answer: {
      alerts: [
        {
          alert_entry_id: 279,
          compromised_fingerprint: "sha256:23d93d0719f1afacb55aeacebe3dcc52a523c0e5177734d2a5a93056129a55e7",
          endorser_fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
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
    params: { fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60" },
    query: { max_depth: 2 },
    answer: {
      root: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
      nodes: [
        {
          fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
          pseudonym: "Ada",
          status: "active",
          depth: 0,
        },
        {
          fingerprint: "sha256:23d93d0719f1afacb55aeacebe3dcc52a523c0e5177734d2a5a93056129a55e7",
          pseudonym: "Grace",
          status: "active",
          depth: 1,
        },
      ],
      edges: [
        {
          from: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
          to: "sha256:23d93d0719f1afacb55aeacebe3dcc52a523c0e5177734d2a5a93056129a55e7",
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
    params: { fingerprint: "sha256:23d93d0719f1afacb55aeacebe3dcc52a523c0e5177734d2a5a93056129a55e7" },
    answer: {
      fingerprint: "sha256:23d93d0719f1afacb55aeacebe3dcc52a523c0e5177734d2a5a93056129a55e7",
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
          fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
          category_weights: { "x-service:institutional_endorsement": 0.8 },
          decay_per_hop: 0.5,
          direct_signer_anchors: [
            { fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60", weight: 1 },
          ],
          endorser_anchors: [
            { fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60", weight: 0.9 },
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
      fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
      direct_signer_anchors: [
        { fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60", weight: 0.9 },
      ],
      minimum_threshold: 0.4,
      category_weights: { "x-service:institutional_endorsement": 0.8 },
    },
    answer: {
      id: 1,
      fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60", weight: 0.9 },
      ],
      max_depth: 4,
      minimum_threshold: 0.4,
      status: "active",
      created_at: "2025-01-02T00:07:00.000000Z",
    },
  },
  get_trust_configs_fingerprint: {
    params: { fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60" },
    answer: {
      id: 1,
      fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60", weight: 0.9 },
      ],
      max_depth: 4,
      minimum_threshold: 0.4,
      status: "active",
      created_at: "2025-01-02T00:07:00.000000Z",
    },
  },
  post_trust_configs_revoke: {
    body: { fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60" },
    answer: {
      id: 1,
      fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60", weight: 0.9 },
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
            id: "33a28421-b73b-4677-aff7-cfbdefb93b1b",
            type: "authorship",
            scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
            signer_key_fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
            signature_algorithm: "ed25519",
            signature: "tHhJPmR+vfYv41OH3zOWwIul/0+zhRwcsnl6rA+fAEQoXX7BdFbeeErQuUDk1EyPzSEaDdk/muj8U+yqMKuBBw==",
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
          id: "33a28421-b73b-4677-aff7-cfbdefb93b1b",
          signer_key_fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
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
          { id: "33a28421-b73b-4677-aff7-cfbdefb93b1b", kind: "attestation", type: "authorship", status: "valid" },
          {
            id: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
            kind: "key",
            pseudonym: "Ada",
            status: "active",
          },
        ],
        edges: [
          {
            from: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
            to: "33a28421-b73b-4677-aff7-cfbdefb93b1b",
            kind: "signed",
          },
          {
            from: "33a28421-b73b-4677-aff7-cfbdefb93b1b",
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
                id: "33a28421-b73b-4677-aff7-cfbdefb93b1b",
                type: "authorship",
                scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                signer_key_fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
                signature_algorithm: "ed25519",
                signature: "tHhJPmR+vfYv41OH3zOWwIul/0+zhRwcsnl6rA+fAEQoXX7BdFbeeErQuUDk1EyPzSEaDdk/muj8U+yqMKuBBw==",
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
                  id: "33a28421-b73b-4677-aff7-cfbdefb93b1b",
                  type: "authorship",
                  scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                  signer_key_fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
                  signature_algorithm: "ed25519",
                  signature: "tHhJPmR+vfYv41OH3zOWwIul/0+zhRwcsnl6rA+fAEQoXX7BdFbeeErQuUDk1EyPzSEaDdk/muj8U+yqMKuBBw==",
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
                  id: "33a28421-b73b-4677-aff7-cfbdefb93b1b",
                  type: "authorship",
                  scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                  signer_key_fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
                  signature_algorithm: "ed25519",
                  signature: "tHhJPmR+vfYv41OH3zOWwIul/0+zhRwcsnl6rA+fAEQoXX7BdFbeeErQuUDk1EyPzSEaDdk/muj8U+yqMKuBBw==",
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
                    id: "33a28421-b73b-4677-aff7-cfbdefb93b1b",
                    type: "authorship",
                    scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                    signer_key_fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
                    signature_algorithm: "ed25519",
                    signature:
                      "tHhJPmR+vfYv41OH3zOWwIul/0+zhRwcsnl6rA+fAEQoXX7BdFbeeErQuUDk1EyPzSEaDdk/muj8U+yqMKuBBw==",
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
        "eyJhdHRlc3RhdGlvbnMiOltdLCJkb2N1bWVudCI6eyJjb250ZW50X2hhc2giOiJzaGEyNTY6ZjNkNDJlYmY5NjU5YjE2MmUwYmE4YzQwMjM1OTQwMWRlN2VkOGMyODg0M2MwMWY2ZTBiZGIyMzhhY2Q4ZDAzYyIsInBhcnRzIjpbeyJjb250ZW50X2hhc2giOiJzaGEyNTY6NDk4NjNjYzg4YzcxZGU2NjI5MmE5ZjVmMmI5MzJkMWRmMGMxZWQxMDFlYzJiOTc4ODBkZTFhMTEzMzcwOTgxMCIsIm1hbmlmZXN0Ijp7ImF0dGVzdGF0aW9ucyI6W3siaWQiOiIzM2EyODQyMS1iNzNiLTQ2NzctYWZmNy1jZmJkZWZiOTNiMWIiLCJpbnRlbnRfc3RhdGVtZW50IjoiSSB3cm90ZSBpdC4iLCJzY29wZSI6eyJjb250ZW50X2hhc2giOiJzaGEyNTY6NDk4NjNjYzg4YzcxZGU2NjI5MmE5ZjVmMmI5MzJkMWRmMGMxZWQxMDFlYzJiOTc4ODBkZTFhMTEzMzcwOTgxMCJ9LCJzaWduYXR1cmUiOiJ0SGhKUG1SK3ZmWXY0MU9IM3pPV3dJdWwvMCt6aFJ3Y3NubDZyQStmQUVRb1hYN0JkRmJlZUVyUXVVRGsxRXlQelNFYURkay9tdWo4VSt5cU1LdUJCdz09Iiwic2lnbmF0dXJlX2FsZ29yaXRobSI6ImVkMjU1MTkiLCJzaWduZXJfa2V5X2ZpbmdlcnByaW50Ijoic2hhMjU2OmI4NjUwMWM3YmFiMmRiNWU1NmE2ZTk0YThjM2JiMzEwYTkyNjg3MjkxNjgwMmJlMGRjNzliOWQyOWQ0MDhhNjAiLCJ0aW1lc3RhbXAiOiIyMDI1LTAxLTAxVDAwOjA2OjAwLjAwMDAwMFoiLCJ0eXBlIjoiYXV0aG9yc2hpcCJ9XSwiZG9jdW1lbnQiOnsiY29udGVudF9oYXNoIjoic2hhMjU2OjQ5ODYzY2M4OGM3MWRlNjYyOTJhOWY1ZjJiOTMyZDFkZjBjMWVkMTAxZWMyYjk3ODgwZGUxYTExMzM3MDk4MTAiLCJ0YWdzIjpbInJlcG9ydCJdLCJ0aXRsZSI6IkFubnVhbCByZXBvcnQifX0sInJvbGUiOiJjaGFwdGVyIiwidGl0bGUiOiJSZXBvcnQifSx7ImNvbnRlbnRfaGFzaCI6InNoYTI1NjpmMzBjNTM0ZGE5NThhNzUzYWMyMGM2ZDVmZDQwNDFkZTRkOWFlMjQ5N2U3NDQwY2ZlMmQwMzRiMDBiNzFlZDEzIiwidGl0bGUiOiJBcHBlbmRpeCJ9XSwidGl0bGUiOiJSZXBvcnQgYW5kIGFwcGVuZGl4In19",
      manifest_hash: "bcb299e924350c0168b1f586d302f1add444f51db161361c8a065c9b36312911",
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
            attestation_id: "8407fb50-313e-494b-b2ae-5a0f1d78e6fc",
            attestation_type: "editorial_review",
            document_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810",
            document_title: "Annual report",
            intent_statement: null,
            manifest_hash: "07a3a261f09eccfd842bc0cc3b0f4d6489cff455701b173ccae85104b6b55285",
            signature:
              "MEUCIQCdRSTityLL1ifgiN4UzW0uxmaSqHnumRn8DD4CRuF+nAIgTOCk11yECbkAtqBPJTfag/saUHxP25GzKNyr87peURs=",
            signature_algorithm: "ecdsa-p256",
            signer_key_fingerprint: "sha256:23d93d0719f1afacb55aeacebe3dcc52a523c0e5177734d2a5a93056129a55e7",
            tags: ["report"],
            timestamp: "2025-01-01T00:06:00.000000Z",
          },
          previous_hash: "caec1765859bfb5bc90d6962402e4194ac71ccf1fea213d502ffea87e995bca0",
          entry_hash: "125a6fab4bf251b9d9953c19d0ada556262ea6eae699290cab477e337de57e05",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "125a6fab4bf251b9d9953c19d0ada556262ea6eae699290cab477e337de57e05",
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
          "BHUCTswHw6nlqnQvkWxwO9Yys8gSoXgW5dPF2wWqEJm+8mdXCjojbDn7DJ2IophpCECMvzP+eQj9MxdWyNOa804=",
        commitment: "f63908334edd83e6e937c2c9f6a49abc476260e668d3d0ec19a08d36ee305a05",
        lookup_key: "e435e6aef2b7d3ac42c52e132fb20c189a79cccbb2fbc1f74fe0289234ed0cb4",
        nonce: "jVhK8nlIfuCDsBYo",
        ciphertext: "dQvFg+PffTJJc6BInmJLsq6rKBT+OhJlp3WkRnwfnVhkT1HFacKIWGv+/w+qEyS0qmjC",
        recipient_fingerprint: "sha256:fb12dfaf0d548127c49b362a2e0eee6b6faa4096ea84f5a46ea6e19b163761b6",
      },
    },
    answer: {
      entry_id: 287,
      commitment: "f63908334edd83e6e937c2c9f6a49abc476260e668d3d0ec19a08d36ee305a05",
      lookup_key: "e435e6aef2b7d3ac42c52e132fb20c189a79cccbb2fbc1f74fe0289234ed0cb4",
      leaf_index: 286,
      log_entry_id: 287,
    },
  },
  get_claims: {
    query: { lookup_key: "e435e6aef2b7d3ac42c52e132fb20c189a79cccbb2fbc1f74fe0289234ed0cb4" },
    answer: {
      entries: [
        {
          id: 287,
          timestamp: "2025-01-02T00:07:00.000000Z",
          event_type: "encrypted_claim",
          payload: {
            ciphertext: "dQvFg+PffTJJc6BInmJLsq6rKBT+OhJlp3WkRnwfnVhkT1HFacKIWGv+/w+qEyS0qmjC",
            commitment: "f63908334edd83e6e937c2c9f6a49abc476260e668d3d0ec19a08d36ee305a05",
            commitment_alg: "hmac-sha256-ecdh-v1",
            ephemeral_public_key:
              "BHUCTswHw6nlqnQvkWxwO9Yys8gSoXgW5dPF2wWqEJm+8mdXCjojbDn7DJ2IophpCECMvzP+eQj9MxdWyNOa804=",
            event_type: "encrypted_claim",
            lookup_key: "e435e6aef2b7d3ac42c52e132fb20c189a79cccbb2fbc1f74fe0289234ed0cb4",
            nonce: "jVhK8nlIfuCDsBYo",
            recipient_fingerprint: "sha256:fb12dfaf0d548127c49b362a2e0eee6b6faa4096ea84f5a46ea6e19b163761b6",
          },
          previous_hashes: [
            { algorithm: "sha2-256", digest_hex: "23a2267c9736254df16fb04255ec318064d1b4faea78e6db0a5acda6aa24eb9a" },
          ],
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "b7da9229c2d9ade6f2362d909d1a124177fffc5840c0199184c86d936958ff37",
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
      ciphertext: "dQvFg+PffTJJc6BInmJLsq6rKBT+OhJlp3WkRnwfnVhkT1HFacKIWGv+/w+qEyS0qmjC",
      commitment: "f63908334edd83e6e937c2c9f6a49abc476260e668d3d0ec19a08d36ee305a05",
      commitment_alg: "hmac-sha256-ecdh-v1",
      ephemeral_public_key: "BHUCTswHw6nlqnQvkWxwO9Yys8gSoXgW5dPF2wWqEJm+8mdXCjojbDn7DJ2IophpCECMvzP+eQj9MxdWyNOa804=",
      lookup_key: "e435e6aef2b7d3ac42c52e132fb20c189a79cccbb2fbc1f74fe0289234ed0cb4",
      nonce: "jVhK8nlIfuCDsBYo",
      recipient_fingerprint: "sha256:fb12dfaf0d548127c49b362a2e0eee6b6faa4096ea84f5a46ea6e19b163761b6",
    },
  },
  post_claims_entry_id_reveal: {
    params: { entry_id: 287 },
    body: {
      plaintext: { salary: 52000, name: "Zoë 🪨" },
      commitment_key: "1697b756a32230b29acf9950750b589219b5454b8e114277d92874521a3cd007",
    },
    answer: { valid: true },
  },
  get_log_attestation_requests: {
    query: { target: "sha256:23d93d0719f1afacb55aeacebe3dcc52a523c0e5177734d2a5a93056129a55e7", status: "open" },
    answer: {
      requests: [
        {
          request_id: "c8739366-9f73-47d2-aede-7557cb645df5",
          requester_fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
          target_fingerprint: "sha256:23d93d0719f1afacb55aeacebe3dcc52a523c0e5177734d2a5a93056129a55e7",
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
      target_fingerprint: "sha256:23d93d0719f1afacb55aeacebe3dcc52a523c0e5177734d2a5a93056129a55e7",
      attestation_type: "peer_review",
      nonce: "request-2025-0001",
      intent_statement: "Please review the annual report.",
      claims: { document_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
    },
    answer: {
      request_id: "c8739366-9f73-47d2-aede-7557cb645df5",
      requester_fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
      target_fingerprint: "sha256:23d93d0719f1afacb55aeacebe3dcc52a523c0e5177734d2a5a93056129a55e7",
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
    params: { request_id: "c8739366-9f73-47d2-aede-7557cb645df5" },
    answer: {
      request_id: "c8739366-9f73-47d2-aede-7557cb645df5",
      requester_fingerprint: "sha256:b86501c7bab2db5e56a6e94a8c3bb310a926872916802be0dc79b9d29d408a60",
      target_fingerprint: "sha256:23d93d0719f1afacb55aeacebe3dcc52a523c0e5177734d2a5a93056129a55e7",
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
        responder_fingerprint: "sha256:23d93d0719f1afacb55aeacebe3dcc52a523c0e5177734d2a5a93056129a55e7",
        attestation_id: null,
        reason: "No time before summer.",
        responded_at: "2025-01-02T00:07:00.000000Z",
        log_entry_id: 285,
        leaf_index: 284,
      },
    },
  },
  get_log_request_policies_fingerprint: {
    params: { fingerprint: "sha256:23d93d0719f1afacb55aeacebe3dcc52a523c0e5177734d2a5a93056129a55e7" },
    answer: {
      target_fingerprint: "sha256:23d93d0719f1afacb55aeacebe3dcc52a523c0e5177734d2a5a93056129a55e7",
      active: {
        target_fingerprint: "sha256:23d93d0719f1afacb55aeacebe3dcc52a523c0e5177734d2a5a93056129a55e7",
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
    params: { request_id: "c8739366-9f73-47d2-aede-7557cb645df5" },
    body: { decision: "decline", reason: "No time before summer." },
    answer: {
      request_id: "c8739366-9f73-47d2-aede-7557cb645df5",
      status: "declined",
      responder_fingerprint: "sha256:23d93d0719f1afacb55aeacebe3dcc52a523c0e5177734d2a5a93056129a55e7",
      decision: "decline",
      attestation_id: null,
      reason: "No time before summer.",
      log_entry_id: 285,
      leaf_index: 284,
    },
  },
  post_log_request_policies: {
    body: {
      target_fingerprint: "sha256:23d93d0719f1afacb55aeacebe3dcc52a523c0e5177734d2a5a93056129a55e7",
      predicates: { all: [{ field: "attestation_type", op: "in", value: ["peer_review", "editorial_review"] }] },
      default_action_on_failure: "decline",
    },
    answer: {
      target_fingerprint: "sha256:23d93d0719f1afacb55aeacebe3dcc52a523c0e5177734d2a5a93056129a55e7",
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
          request_id: "c8739366-9f73-47d2-aede-7557cb645df5",
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
      request_id: "c8739366-9f73-47d2-aede-7557cb645df5",
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

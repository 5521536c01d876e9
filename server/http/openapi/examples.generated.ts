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
      vkey: "cairnlog/f8d5ffaf72257889/tlog+201a6adb+ATdrQHHmkn1ZBJOwK/aqOEtzKzcI5L1xiSYvrbS1I7z0",
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
      key_fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
      device_label: "Security key",
    },
    answer: {
      user: {
        id: "3650019e-8cb1-4d05-9ab6-e6e255a60967",
        display_name: "Ada Lovelace",
        created_at: "2025-01-01T00:00:00.000000Z",
      },
      credential: {
        id: "b693848f-1070-4748-9917-e1245d5d3984",
        key_fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
        credential_type: "hardware",
        device_label: "Security key",
        status: "active",
        created_at: "2025-01-01T00:00:00.000000Z",
        revoked_at: null,
        hardware_backed: true,
      },
      recovery_key: "HXTZT-1C50Q-TCW49-0E6ZF-KQVJ3-DK5Z3-8NA9K-TGG9H",
    },
  },
  post_users_recover: {
    body: {
      pseudonym: "Ada Lovelace",
      recovery_key: "HXTZT-1C50Q-TCW49-0E6ZF-KQVJ3-DK5Z3-8NA9K-TGG9H",
      credential_type: "hardware",
      key_fingerprint: "sha256:834fe2f44e35fd55dbb9548413065bdc315b6882327fa1a5658952eea4d0f160",
      device_label: "Security key",
    },
    answer: {
      user: {
        id: "3650019e-8cb1-4d05-9ab6-e6e255a60967",
        display_name: "Ada Lovelace",
        created_at: "2025-01-01T00:00:00.000000Z",
      },
      credential: {
        id: "b26697d9-ad77-456d-8732-b3f55d0bf530",
        key_fingerprint: "sha256:834fe2f44e35fd55dbb9548413065bdc315b6882327fa1a5658952eea4d0f160",
        credential_type: "hardware",
        device_label: "Security key",
        status: "active",
        created_at: "2025-01-01T00:06:00.000000Z",
        revoked_at: null,
        hardware_backed: true,
      },
      recovery_key: "8D09A-QPTR2-PJWN4-J3XQH-ER29F-B8NGF-JTCMX-PSB3E",
      revoked_credentials: 2,
    },
  },
  post_credentials_enroll: {
    body: {
      challenge_id:
        "AQEABiqZy-4DAKG4SmtRWHQz6NWwD7fNfXa2fui8MPo3MCt33TBfc0c8xe7C9tXpN2VVOy20dzxsKL1oc9s1RGtucv0h_elNsplsHWgvCXDB2A72UyKpvXMZyqH6URM-uBIlzrvV9DuIxQ",
      issuing_fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
      key_fingerprint: "sha256:a1b84a6b51587433e8d5b00fb7cd7d76b67ee8bc30fa37302b77dd305f73473c",
      credential_type: "hardware",
      device_label: "Second security key",
      challenge_signature: "fveOkAsbpJujzZpFknH/awRxdZh284bvGHeurdVkvfBjpoMeEMgswbtSkshTb5yQJItZdikgGF1r/zUqmviIAg==",
      chain_signature: "fP7+/C3THnmAfhQ9aNYxOQWSiI/G+AS8P+V6IbBafqVFLHhTQTsd3y0N4US/+3/xFmlzRgufXphpFJwGF6DlBw==",
    },
    answer: {
      credential: {
        id: "29bf68d4-52ef-4b94-a8d7-91c75a70c6de",
        key_fingerprint: "sha256:a1b84a6b51587433e8d5b00fb7cd7d76b67ee8bc30fa37302b77dd305f73473c",
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
          fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
          pseudonym: "Ada",
          algorithm: "ed25519",
          status: "active",
          registered_at: "2025-01-01T00:00:00.000000Z",
          expires_at: null,
          named: false,
        },
        {
          fingerprint: "sha256:a80baee9c50db27017b41fe8ccff2e49dd9464c07ea85e0ac751cc09bdd07dd6",
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
          fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
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
    params: { fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada" },
    answer: {
      fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
      public_key:
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAT7D0oJmoiiH+mOctO/rlwekVCvaSTUNMivGpBMWBZkk=\n-----END PUBLIC KEY-----\n",
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
    params: { fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada" },
    answer: {
      fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
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
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAT7D0oJmoiiH+mOctO/rlwekVCvaSTUNMivGpBMWBZkk=\n-----END PUBLIC KEY-----\n",
        pseudonym: "Ada",
        key_algorithm: "ed25519",
      },
    },
    answer: {
      fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
      pseudonym: "Ada",
      algorithm: "ed25519",
      log_entry_id: 1,
      leaf_index: 0,
      entry_hash: "c4e2be92c8aa4025b4363c7f03854c686b05b637d5595b62422eea4142a5b6c3",
    },
  },
  post_keys_succeed: {
    body: {
      payload: {
        old_fingerprint: "sha256:edcab6e5b75aa81756b2816a8278bcf91f4ed69f69ddc8e10cb828ea386d6198",
        new_public_key:
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEATdg2E9FNRIs8em8Ba7SX42rUW7X9yu3aBWpY4NCHS2c=\n-----END PUBLIC KEY-----\n",
        new_algorithm: "ed25519",
      },
      auth: {
        challenge_id:
          "AQEABiqZy-4DAO3KtuW3WqgXVrKBaoJ4vPkfTtafad3I4Qy4KOo4bWGY9T5x8v2uCDghQDBy89fl-X_VQw9gBEi-BndYszp-vZPxD9fDA0ee0YY9d0uYKtAOzd1LOBRYByqpqanPwoxlmw",
        challenge_signature: "Q+/0uwQptPU2n76Tvu4ia/cNaxh4Ht3xnoG4Wda8LVN6cW4VeaWyo2hiAcMJ+LUU7ZvlVS1NmMHYcdtkD6vQCw==",
      },
    },
    answer: {
      old_fingerprint: "sha256:edcab6e5b75aa81756b2816a8278bcf91f4ed69f69ddc8e10cb828ea386d6198",
      new_fingerprint: "sha256:216502b777b165b4b1835979b28e885a5c57ea44cbeb820dd12872bba1384980",
      log_entry_id: 5,
      leaf_index: 4,
      entry_hash: "47b5dd412d3c9abb9d7cf3c57bc7053956684c4c652227cada3699b319fe9126",
    },
  },
  post_keys_revoke: {
    body: {
      payload: { fingerprint: "sha256:216502b777b165b4b1835979b28e885a5c57ea44cbeb820dd12872bba1384980" },
      auth: {
        challenge_id:
          "AQEABiqZy-4DACFlArd3sWW0sYNZebKOiFpcV-pEy-uCDdEocruhOEmAEMhsrIFWjHD4F5JJYaqY8oyqSiS_TZQkicNo7MUar9ZiB7nQrjUFC2hqJe906qwpZ-th42MUjebmfPaYJ3mTWQ",
        challenge_signature: "k/sdL3A3kD6C+qUHcXPUG2F81yLYlSkX6eg2xixXL3Jh1VtwJmn3+Sflj5+mZgc865RzKxJ0tyY53mUzIwnSDA==",
      },
    },
    answer: {
      fingerprint: "sha256:216502b777b165b4b1835979b28e885a5c57ea44cbeb820dd12872bba1384980",
      status: "revoked",
      log_entry_id: 6,
      leaf_index: 5,
      entry_hash: "80857d47f35202b5adbb282a6453b7649c904c82ca4cc38165e5a251899b9ec8",
    },
  },
  post_auth_challenge: {
    body: { fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada", purpose: "login" },
    answer: {
      challenge_id:
        "AQAABiqZy-4DAK9chzqhulRDunRHG2ZWFPMkkl-kOJjboUZsTyAAGZraEf-NFhceGjEg0XNhFiXrZCOQ1pT-ngnlh6_mpq_R2IFzGqu6zFswUFHkuzIXuVCGRJnkRZJd5QKmB-LtOF_ZKw",
      nonce:
        "service.auth.v1:login:sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada:Ef-NFhceGjEg0XNhFiXrZCOQ1pT-ngnlh6_mpq_R2IE",
      expires_at: "2025-01-01T00:05:00.000000Z",
      origin: "http://127.0.0.1:36593",
      act: null,
    },
  },
  post_auth_login: {
    body: {
      challenge_id:
        "AQAABiqZy-4DAK9chzqhulRDunRHG2ZWFPMkkl-kOJjboUZsTyAAGZraEf-NFhceGjEg0XNhFiXrZCOQ1pT-ngnlh6_mpq_R2IFzGqu6zFswUFHkuzIXuVCGRJnkRZJd5QKmB-LtOF_ZKw",
      challenge_signature: "rzuyC7NE57UTwpQuJTP6UHO75vu6qT28qkDJsafy1u5MuYvE7+wmPgCJOdECqYmAgYQPAHUZV+Bfg1GWF59qCg==",
    },
    answer: {
      token:
        "eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzaGEyNTY6ZjhkNWZmYWY3MjI1Nzg4OTllYjdhN2ZkY2ViY2M3NWQyMmMyNjk4MzgyZTk4YmIzNDk3MTAwNWY5ZWMzZjFiNCIsInN1YiI6InNoYTI1NjphZjVjODczYWExYmE1NDQzYmE3NDQ3MWI2NjU2MTRmMzI0OTI1ZmE0Mzg5OGRiYTE0NjZjNGYyMDAwMTk5YWRhIiwiaWF0IjoxNzM1Njg5NjAwLCJleHAiOjE3MzU2OTMyMDAsImp0aSI6ImNmY2NiN2JlLTExNWQtNDkzOS1hNTE0LTkzZjQ5MmViYmU1NCIsInBzZXVkb255bSI6IkFkYSIsInJlY292ZXJ5IjpmYWxzZSwiYXV0aF90aW1lIjoxNzM1Njg5NjAwfQ.N6Tbu0UiSbBG3kggV7fp6TAi1U3B1byn68Xg0fiZ9kze3zO9RAVeHY972o5sE5YtqJvwX4085HU5vBwgyxv-Ag",
      fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
      pseudonym: "Ada",
      expires_at: "2025-01-01T01:00:00.000000Z",
    },
  },
  post_auth_renew: {
    answer: {
      token:
        "eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzaGEyNTY6ZjhkNWZmYWY3MjI1Nzg4OTllYjdhN2ZkY2ViY2M3NWQyMmMyNjk4MzgyZTk4YmIzNDk3MTAwNWY5ZWMzZjFiNCIsInN1YiI6InNoYTI1NjphZjVjODczYWExYmE1NDQzYmE3NDQ3MWI2NjU2MTRmMzI0OTI1ZmE0Mzg5OGRiYTE0NjZjNGYyMDAwMTk5YWRhIiwiaWF0IjoxNzM1Njg5NjAwLCJleHAiOjE3MzU2OTMyMDAsImp0aSI6ImNlNDY2ODYxLTg4M2MtNDk2Yy04ZjM4LTM3YTNiMWVhY2VlNSIsInBzZXVkb255bSI6IkFkYSIsInJlY292ZXJ5IjpmYWxzZSwiYXV0aF90aW1lIjoxNzM1Njg5NjAwfQ.nndob2R2acXZyBWYKuiIfdpj8LZkrKMIu8QK2ioG9lyAL5ETnWFzLRb0xIps9RZtpva7f3g-ym1X_6HsUWCSCQ",
      fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
      pseudonym: "Ada",
      expires_at: "2025-01-01T01:00:00.000000Z",
    },
  },
  post_auth_password: {
    body: {
      challenge_id:
        "AQEABiqZy-4DAO9phTbX9QOC54yAmu2SOXvU-NbxXUvouygblPVNVf4IUHzGVfMbvyEIN7pi1YdwyFyya-bjagHG1FTRLmKwTLnrf4rlJ9Ogr9op0qGRBPTXOjHGibHe6GdwgANIGNWiqw",
      challenge_signature: "yn4cEdkHGljW6zBbZlzgwacUEtdE6USxoeJxWOxbkRzbRrlcFXeBxbl3XK3d39nB7Sm0BNU1kIjpeSqf++rDBQ==",
      password: "correct horse battery",
    },
    answer: {
      fingerprint: "sha256:ef698536d7f50382e78c809aed92397bd4f8d6f15d4be8bb281b94f54d55fe08",
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
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAT7D0oJmoiiH+mOctO/rlwekVCvaSTUNMivGpBMWBZkk=\n-----END PUBLIC KEY-----\n",
      signature: "w6f88CuCm6lXbaSeAlicHDEqzIlN00ovEMgI4UNPPB3LNnvVIrzD5/5ZlWFNW3MULitJvw8UupHKSXm4+ciHCg==",
      intent_statement: "I wrote it.",
    },
    answer: {
      attestation: {
        id: "b53060fd-486c-4fe0-9195-0b60ed772142",
        type: "authorship",
        scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
        signer_key_fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
        signature_algorithm: "ed25519",
        signature: "w6f88CuCm6lXbaSeAlicHDEqzIlN00ovEMgI4UNPPB3LNnvVIrzD5/5ZlWFNW3MULitJvw8UupHKSXm4+ciHCg==",
        timestamp: "2025-01-01T00:06:00.000000Z",
        intent_statement: "I wrote it.",
      },
      fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
      pseudonym: "Ada",
      log_entry_id: 13,
      leaf_index: 12,
      entry_hash: "fb403311dfe705d1738e7819571dfeac438fd9d1654442f48d4e7c481abace75",
      manifest_hash: "38f0c85d6331fd79023d1cd40a3908b665272ec2077277686ac55af17b1b6494",
      sth: {
        tree_size: 13,
        root_hash: "01758953e803d6e4c9e65597c04810df0c38c79adf6f7707e7ddd1636bc819c9",
        signature: "taeni6UHyCFZqogDGG01M974K8jRdV2pUmfCr3y9tvy9Vu7r043kPnyP9t8BnNUfVVtbsPaLUPvHPuUqjVBaDw==",
        timestamp: "2025-01-01T00:06:00.000000Z",
        key_id: "sha256:f8d5ffaf722578899eb7a7fdcebcc75d22c2698382e98bb34971005f9ec3f1b4",
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
            "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAT7D0oJmoiiH+mOctO/rlwekVCvaSTUNMivGpBMWBZkk=\n-----END PUBLIC KEY-----\n",
          signature: "dw7LvsJsHjHrpNbcfif0Kl2PvquI0gRw7KpQ++xnU7ghc49TroP4KtjLZubtSW1PpSL+x6WNc51gSjK8dHqsAA==",
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
            "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAT7D0oJmoiiH+mOctO/rlwekVCvaSTUNMivGpBMWBZkk=\n-----END PUBLIC KEY-----\n",
          signature: "99p3xJH92Bw8JKKupuXfomvsPO62Yz016mkqLmtGIgxlj9gKoCWsLY5tOfce0SKP0KoPMCxMUSn4P7c8Wa7XDw==",
        },
      ],
    },
    answer: {
      results: [
        {
          status: 201,
          receipt: {
            attestation: {
              id: "f3c613e2-2974-4b3f-8489-24e719f45244",
              type: "authorship",
              scope: { content_hash: "sha256:c74e517559a5ed1b9f8f47889125b5d6b84df309d173fee85585b4c045f5214b" },
              signer_key_fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
              signature_algorithm: "ed25519",
              signature: "dw7LvsJsHjHrpNbcfif0Kl2PvquI0gRw7KpQ++xnU7ghc49TroP4KtjLZubtSW1PpSL+x6WNc51gSjK8dHqsAA==",
              timestamp: "2025-01-01T00:06:00.000000Z",
            },
            fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
            pseudonym: "Ada",
            log_entry_id: 14,
            leaf_index: 13,
            entry_hash: "3f91040b4a667c6e060087241a2cf7eb3586b3b77846e1d005084bebc6befb64",
            manifest_hash: "25367d2d820f2cc8ef80c557f5e4b35bef45d435ae93ee6e3aeffc3e00a05c0e",
            sth: {
              tree_size: 14,
              root_hash: "79129912839ebe8d7c760d3bcd8a35d9c7af7d36c3ef51761319022b94d8dc62",
              signature: "sbCDFXOeiIwql+obqV6EJdZa10jQem+qu++lEBH8SbQToFueIDlkY7Jo6abgEfR9bkn5JWca0pzX2eDEx8jZDQ==",
              timestamp: "2025-01-01T00:06:00.000000Z",
              key_id: "sha256:f8d5ffaf722578899eb7a7fdcebcc75d22c2698382e98bb34971005f9ec3f1b4",
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
            request_id: "ff22234d-22eb-4ff0-aa5c-000000000049",
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
        "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE0+dsZ/4vf6FCkRqbVqW1t2grCRHS\njD2cDGlRre8No5uPU81R7nWgp2oaqX1E6iSABptYWp/9DZIThby08iencA==\n-----END PUBLIC KEY-----\n",
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
        entry_hash: "accc7d89491db1f4b2c603d4f87bfabba61b1c39459f680ace1b233b852e008a",
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
        fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
        key_algorithm: "ed25519",
        possession_signature: null,
        pseudonym: "Ada",
        public_key:
          "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAT7D0oJmoiiH+mOctO/rlwekVCvaSTUNMivGpBMWBZkk=\n-----END PUBLIC KEY-----\n",
      },
      previous_hash: null,
      entry_hash: "c4e2be92c8aa4025b4363c7f03854c686b05b637d5595b62422eea4142a5b6c3",
      chain_version: 2,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "c4e2be92c8aa4025b4363c7f03854c686b05b637d5595b62422eea4142a5b6c3",
          is_primary: true,
        },
      ],
    },
  },
  get_log_sth: {
    answer: {
      tree_size: 15,
      root_hash: "a2b1c2420657b187cab21d9c3cfd8d19a75788fb6426716bd642adcb69d29082",
      signature: "BR4Ed/tEiH4XxM6g/BeM7xmg7GXZmjw1vVYEUAejBwwgXn7Ymw2Lm1Sx0LocNMTRjejXGObwAvgetsoL2Ki9DA==",
      timestamp: "2025-01-01T00:06:00.000000Z",
      key_id: "sha256:f8d5ffaf722578899eb7a7fdcebcc75d22c2698382e98bb34971005f9ec3f1b4",
      tree_version: 2,
    },
  },
  get_log_sth_tree_size: {
    params: { tree_size: 3 },
    answer: {
      tree_size: 3,
      root_hash: "f03ceb1e37a0f9d2f95895dbac8da16646094889db2dace1797c7c09cf50cba5",
      signature: "OC7gu2hu3YS8P1CejIK3X4aPtHg2iKHz3FPyncjhFxQij4GAJEnRH/Ct5ygFkjnA89gySL6PRYY3RRg68Hl5Ag==",
      timestamp: "2025-01-01T00:00:00.000000Z",
      key_id: "sha256:f8d5ffaf722578899eb7a7fdcebcc75d22c2698382e98bb34971005f9ec3f1b4",
      tree_version: 2,
    },
  },
  get_log_heads: {
    query: { from: 3, limit: 1 },
    answer: {
      heads: [
        {
          tree_size: 3,
          root_hash: "f03ceb1e37a0f9d2f95895dbac8da16646094889db2dace1797c7c09cf50cba5",
          signature: "OC7gu2hu3YS8P1CejIK3X4aPtHg2iKHz3FPyncjhFxQij4GAJEnRH/Ct5ygFkjnA89gySL6PRYY3RRg68Hl5Ag==",
          timestamp: "2025-01-01T00:00:00.000000Z",
          key_id: "sha256:f8d5ffaf722578899eb7a7fdcebcc75d22c2698382e98bb34971005f9ec3f1b4",
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
      leaf_hash: "52eadeddba844b8cbb74e76e83448160f31999e0581934eb059d2b5d0f94cfd6",
      root_hash: "367d9c95548e72fa14d3a391b799a2be7c213de8bdb99643a38d2c72deb4a6bf",
      audit_path: [
        "4e45cbdff9b30196ab2173c7f7a704511fb82197f74b109f6162faae5e4540a5",
        "bc889779257311265a6544f470e0cd2416564c4b996c6f37f0ef915918ce4622",
        "4f6ddd99cc65a16978f9cebf2389646c0e962b953451c54200e8646085ab591a",
      ],
      entry_hash: "8e5d181d6d3bacd5197748d81e85b760f12ca4f5fe934b35e3eeef478b9c864f",
      sth: {
        tree_size: 5,
        root_hash: "367d9c95548e72fa14d3a391b799a2be7c213de8bdb99643a38d2c72deb4a6bf",
        signature: "9SkihUcVRLoo7tJmK0J9DhuU5nycuG5LnxMlmsLSun2gvQuv/hHMY7GFb45j7rJYmCuYTLWuPzAvteJfHkRlDw==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:f8d5ffaf722578899eb7a7fdcebcc75d22c2698382e98bb34971005f9ec3f1b4",
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
      leaf_hash: "52eadeddba844b8cbb74e76e83448160f31999e0581934eb059d2b5d0f94cfd6",
      root_hash: "367d9c95548e72fa14d3a391b799a2be7c213de8bdb99643a38d2c72deb4a6bf",
      audit_path: [
        "4e45cbdff9b30196ab2173c7f7a704511fb82197f74b109f6162faae5e4540a5",
        "bc889779257311265a6544f470e0cd2416564c4b996c6f37f0ef915918ce4622",
        "4f6ddd99cc65a16978f9cebf2389646c0e962b953451c54200e8646085ab591a",
      ],
      entry_hash: "8e5d181d6d3bacd5197748d81e85b760f12ca4f5fe934b35e3eeef478b9c864f",
      sth: {
        tree_size: 5,
        root_hash: "367d9c95548e72fa14d3a391b799a2be7c213de8bdb99643a38d2c72deb4a6bf",
        signature: "9SkihUcVRLoo7tJmK0J9DhuU5nycuG5LnxMlmsLSun2gvQuv/hHMY7GFb45j7rJYmCuYTLWuPzAvteJfHkRlDw==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:f8d5ffaf722578899eb7a7fdcebcc75d22c2698382e98bb34971005f9ec3f1b4",
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
      from_root: "f03ceb1e37a0f9d2f95895dbac8da16646094889db2dace1797c7c09cf50cba5",
      to_root: "b3415abb4e94755f798305f791fa8b87149eee1109640b1b11b5d84a3736bd89",
      peaks: [
        "bc889779257311265a6544f470e0cd2416564c4b996c6f37f0ef915918ce4622",
        "52eadeddba844b8cbb74e76e83448160f31999e0581934eb059d2b5d0f94cfd6",
      ],
      extension: [
        "4e45cbdff9b30196ab2173c7f7a704511fb82197f74b109f6162faae5e4540a5",
        "2f68797e15684b95d49425bbc0e89b10c291a09180089d329eb245fcc5d5367b",
      ],
      from_sth: {
        tree_size: 3,
        root_hash: "f03ceb1e37a0f9d2f95895dbac8da16646094889db2dace1797c7c09cf50cba5",
        signature: "OC7gu2hu3YS8P1CejIK3X4aPtHg2iKHz3FPyncjhFxQij4GAJEnRH/Ct5ygFkjnA89gySL6PRYY3RRg68Hl5Ag==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:f8d5ffaf722578899eb7a7fdcebcc75d22c2698382e98bb34971005f9ec3f1b4",
        tree_version: 2,
      },
      to_sth: {
        tree_size: 6,
        root_hash: "b3415abb4e94755f798305f791fa8b87149eee1109640b1b11b5d84a3736bd89",
        signature: "45EUAClfBI7e4H9RBPLqCcIPky7B0AstdGWNiN7DpN1pnRUKJj40FUOn+200d8LKmbPFPRulartvkx03HzSLCw==",
        timestamp: "2025-01-01T00:00:00.000000Z",
        key_id: "sha256:f8d5ffaf722578899eb7a7fdcebcc75d22c2698382e98bb34971005f9ec3f1b4",
        tree_version: 2,
      },
    },
  },
  post_log_verify: { answer: { valid: true, entry_count: 15, errors: [], warnings: [] } },
  get_log_operator_key: {
    answer: {
      fingerprint: "sha256:f8d5ffaf722578899eb7a7fdcebcc75d22c2698382e98bb34971005f9ec3f1b4",
      algorithm: "ed25519",
      public_key:
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAN2tAceaSfVkEk7Ar9qo4S3MrNwjkvXGJJi+ttLUjvPQ=\n-----END PUBLIC KEY-----\n",
      operators: [
        {
          key_id: "sha256:f8d5ffaf722578899eb7a7fdcebcc75d22c2698382e98bb34971005f9ec3f1b4",
          algorithm: "ed25519",
          public_key:
            "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAN2tAceaSfVkEk7Ar9qo4S3MrNwjkvXGJJi+ttLUjvPQ=\n-----END PUBLIC KEY-----\n",
          from_size: 1,
          until_size: null,
          rotation: null,
        },
      ],
    },
  },
  get_log_checkpoint: {
    answer:
      "cairnlog/f8d5ffaf72257889\n15\norHCQgZXsYfKsh2cPP2NGadXiPtkJnFr1kKty2nSkII=\n\n— cairnlog/f8d5ffaf72257889 sm6gEiiZhfCxXdNgBwE1yzdnocGLN6gs2scUyw+Nalz+8ypS5dzMDGnB9rrm38N1461ya8K5K1LQpZtHM96L0u5u/g8=\n",
  },
  get_log_tile_version_level_index: { params: { version: 2, level: 0, index: 0 } },
  get_log_tile_version_level_index_p_width: { params: { version: 2, level: 0, index_p: "1.p", width: 4 } },
  get_tlog_checkpoint: {
    answer:
      "cairnlog/f8d5ffaf72257889/tlog\n15\nTvujpSiAS1V9vREZ99hLZECOX6GS1M2JEMDnF6hIdoY=\n\n— cairnlog/f8d5ffaf72257889/tlog IBpq24+gpn6pKJoZBc1IjM0P21NhcKG+0dY2N8sWBZK+ilUk7W4suVB3p48g3ZBE1UF+0LX7+zkvEqGq8mGgOR53TQU=\n",
  },
  get_tlog_vkey: { answer: "cairnlog/f8d5ffaf72257889/tlog+201a6adb+ATdrQHHmkn1ZBJOwK/aqOEtzKzcI5L1xiSYvrbS1I7z0\n" },
  get_tlog_tile_level_n1: { params: { level: "entries", n1: "000" } },
  get_tlog_tile_level_n1_n2: { params: { level: "1", n1: "000.p", n2: "1" } },
  post_log_anchor: {
    answer: {
      anchored_entry_id: 15,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "accc7d89491db1f4b2c603d4f87bfabba61b1c39459f680ace1b233b852e008a",
          is_primary: true,
        },
      ],
      ots_proof:
        "AE9wZW5UaW1lc3RhbXBzAABQcm9vZgC/ieLohOiSlAEIrMx9iUkdsfSyxgPU+Hv6u6YbHDlFn2gKzhsjO4UuAIrwEHHKJW5A+s/VjKXA2Ntmc7sI8QRlAAAA8AjtWg7FgaznDgCD3+MNLvkMjh0caHR0cHM6Ly9jYWxlbmRhci5leGFtcGxlLm9yZw==",
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
      root_hash: "a2b1c2420657b187cab21d9c3cfd8d19a75788fb6426716bd642adcb69d29082",
      signature: "BR4Ed/tEiH4XxM6g/BeM7xmg7GXZmjw1vVYEUAejBwwgXn7Ymw2Lm1Sx0LocNMTRjejXGObwAvgetsoL2Ki9DA==",
      timestamp: "2025-01-01T00:06:00.000000Z",
      key_id: "sha256:f8d5ffaf722578899eb7a7fdcebcc75d22c2698382e98bb34971005f9ec3f1b4",
      tree_version: 2,
    },
  },
  get_log_shards: { answer: { predecessor: null, frozen: null } },
  post_log_freeze: {
    body: {
      reason: "The log goes on with a new one every year.",
      successor: {
        url: "https://2027.log.example",
        vkey: "cairnlog/f8d5ffaf72257889/tlog+201a6adb+ATdrQHHmkn1ZBJOwK/aqOEtzKzcI5L1xiSYvrbS1I7z0",
      },
    },
    answer: {
      log_entry_id: 328,
      leaf_index: 327,
      entry_hash: "45ce9a9bc3c85150ee353d0696b45d9b5ad85da6e78b522854b107a45f8f55bb",
      sth: {
        tree_size: 328,
        root_hash: "cf5f8e900f53196e5e8d3133004a72da03879d94476e6e6423a86dcc336c2d9f",
        signature: "g2OavKdCPeJyAySmRL9tuzll+eVmhou0XKXU9O3/Ar1W7ZsAIL1JwHZGe4tGRbw2Kgl57JlnTqGzLdzrUO3YBg==",
        timestamp: "2025-01-02T02:27:00.000000Z",
        key_id: "sha256:f8d5ffaf722578899eb7a7fdcebcc75d22c2698382e98bb34971005f9ec3f1b4",
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
            fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
            key_algorithm: "ed25519",
            possession_signature: null,
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAT7D0oJmoiiH+mOctO/rlwekVCvaSTUNMivGpBMWBZkk=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "c4e2be92c8aa4025b4363c7f03854c686b05b637d5595b62422eea4142a5b6c3",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "c4e2be92c8aa4025b4363c7f03854c686b05b637d5595b62422eea4142a5b6c3",
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
    params: { fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada" },
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
            fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
            key_algorithm: "ed25519",
            possession_signature: null,
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAT7D0oJmoiiH+mOctO/rlwekVCvaSTUNMivGpBMWBZkk=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "c4e2be92c8aa4025b4363c7f03854c686b05b637d5595b62422eea4142a5b6c3",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "c4e2be92c8aa4025b4363c7f03854c686b05b637d5595b62422eea4142a5b6c3",
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
      fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
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
            fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
            key_algorithm: "ed25519",
            possession_signature: null,
            pseudonym: "Ada",
            public_key:
              "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAT7D0oJmoiiH+mOctO/rlwekVCvaSTUNMivGpBMWBZkk=\n-----END PUBLIC KEY-----\n",
          },
          previous_hash: null,
          entry_hash: "c4e2be92c8aa4025b4363c7f03854c686b05b637d5595b62422eea4142a5b6c3",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "c4e2be92c8aa4025b4363c7f03854c686b05b637d5595b62422eea4142a5b6c3",
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
      endorser_fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
      endorsed_fingerprint: "sha256:a80baee9c50db27017b41fe8ccff2e49dd9464c07ea85e0ac751cc09bdd07dd6",
      category: "x-service:institutional_endorsement",
      valid_until: "2027-01-01",
      institutional_metadata: { name: "University of Example" },
      external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
      auth: {
        challenge_id:
          "AQEABiqZ4WMtAK9chzqhulRDunRHG2ZWFPMkkl-kOJjboUZsTyAAGZradomNRbfbtpVFF3khR3KtWDKfLI79LoLliIiElBJqmUWsD7SvJXBraNQQnegqPh5_P3EKMnXf2D9v3W5SP8v8gA",
        challenge_signature: "BD4+Lid2Y5Tpg/fuPQMeedzddyQapqziqFPtWdNRyrW2e9emD7aWzUcpsuDgo389RFWmVlGq+b3N63c5RDTKCw==",
      },
    },
    answer: {
      id: 276,
      timestamp: "2025-01-01T00:06:00.000000Z",
      event_type: "endorsement_offer",
      payload: {
        category: "x-service:institutional_endorsement",
        endorsed_key_fingerprint: "sha256:a80baee9c50db27017b41fe8ccff2e49dd9464c07ea85e0ac751cc09bdd07dd6",
        endorser_key_fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
        event_type: "endorsement_offer",
        external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
        institutional_metadata: { name: "University of Example" },
        valid_until: "2027-01-01",
      },
      previous_hash: "c62c19578a8d9b7082a5ca7ae0526f61608150b75278f61a48bde78511190557",
      entry_hash: "d9d43b9f14affae4d6642bb2b9f016f66082de8dd325a692433c4f111ceeb70a",
      chain_version: 2,
      entry_hashes: [
        {
          algorithm: "sha2-256",
          digest_hex: "d9d43b9f14affae4d6642bb2b9f016f66082de8dd325a692433c4f111ceeb70a",
          is_primary: true,
        },
      ],
    },
  },
  post_endorsements_accept: {
    body: {
      offer_entry_id: 276,
      endorsed_fingerprint: "sha256:a80baee9c50db27017b41fe8ccff2e49dd9464c07ea85e0ac751cc09bdd07dd6",
      auth: {
        challenge_id:
          "AQEABiqZ4WMtAKgLrunFDbJwF7Qf6Mz_LkndlGTAfqheCsdRzAm90H3WSEEKcTeTPSVX2EtPG9hAuct1LdpDGtA_wtvzVWTh4wWw1Foa902PwD0Vo2tDA1r9B4awyOrTtacu8RTp7DYJpA",
        challenge_signature:
          "MEUCIQDHchurA1+/lJn9u3U0GwiN15PlxRtCq9Gh0SEmPR1/ugIgFONESLPuYEiTuc484FO2m2mkMisVNISZAWjTZ7Z+MF8=",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 276,
        endorser_fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
        endorsed_fingerprint: "sha256:a80baee9c50db27017b41fe8ccff2e49dd9464c07ea85e0ac751cc09bdd07dd6",
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
          endorsed_key_fingerprint: "sha256:a80baee9c50db27017b41fe8ccff2e49dd9464c07ea85e0ac751cc09bdd07dd6",
          endorser_key_fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
          event_type: "endorsement_acceptance",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: null,
          offer_entry_id: 276,
          valid_until: "2027-01-01",
        },
        previous_hash: "d9d43b9f14affae4d6642bb2b9f016f66082de8dd325a692433c4f111ceeb70a",
        entry_hash: "98189bea63a1fa70e09d0f1d5a268bb087946c111b673da8ebff21034a79b40a",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "98189bea63a1fa70e09d0f1d5a268bb087946c111b673da8ebff21034a79b40a",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_withdraw: {
    body: {
      endorser_fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
      endorsed_fingerprint: "sha256:a80baee9c50db27017b41fe8ccff2e49dd9464c07ea85e0ac751cc09bdd07dd6",
      original_offer_entry_id: 281,
      note: "A mistake.",
      auth: {
        challenge_id:
          "AQEABiquAs4UAK9chzqhulRDunRHG2ZWFPMkkl-kOJjboUZsTyAAGZraaKCyRlakzgYh_3YovtnMxfOPZTcyEGJpjdQY--l0hCGZA3ousnLLScBEdTAutc31Ob6VvmDhAszE2VLtUj0HRg",
        challenge_signature: "2STG9opot/U2c0h/k4pmP+Ey7KaZkvF5pZeR0a39ESrxUeBrvTsaE/qeBuE283zqk31FdlHEfh/bKgj6QyyhBQ==",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 281,
        endorser_fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
        endorsed_fingerprint: "sha256:a80baee9c50db27017b41fe8ccff2e49dd9464c07ea85e0ac751cc09bdd07dd6",
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
          endorsed_key_fingerprint: "sha256:a80baee9c50db27017b41fe8ccff2e49dd9464c07ea85e0ac751cc09bdd07dd6",
          endorser_key_fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
          event_type: "endorsement_withdrawal",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: "A mistake.",
          offer_entry_id: 281,
          valid_until: "2027-01-01",
        },
        previous_hash: "781b910d66989b4e4943d06337e19d0e266b46573a16cd4bfc0d12092c50ef8a",
        entry_hash: "632f2590c2c280c5586d23c87779975024e6b478b0a318716c3bbb3c04fcfb20",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "632f2590c2c280c5586d23c87779975024e6b478b0a318716c3bbb3c04fcfb20",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_revoke_acceptance: {
    body: {
      endorsed_fingerprint: "sha256:a80baee9c50db27017b41fe8ccff2e49dd9464c07ea85e0ac751cc09bdd07dd6",
      original_offer_entry_id: 276,
      note: "We no longer work together.",
      auth: {
        challenge_id:
          "AQEABiquAs4UAKgLrunFDbJwF7Qf6Mz_LkndlGTAfqheCsdRzAm90H3WKMrHbwk8oEfOnls0PRj3LXRn4TtOiaAuE2W285StZqbEZsXpvCxKCphmYvW8-o5WQmvr2EGOnL3LWcBrQyiycA",
        challenge_signature:
          "MEQCIC+8i9vRe26PYD6UA0A5bOLrbcP2n81hXproeZnMU+p8AiAPBE3SGNnhdhNxyzN2kOdWZYKK9zAcn9Vcw74nb8o6VA==",
      },
    },
    answer: {
      endorsement: {
        offer_entry_id: 276,
        endorser_fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
        endorsed_fingerprint: "sha256:a80baee9c50db27017b41fe8ccff2e49dd9464c07ea85e0ac751cc09bdd07dd6",
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
          endorsed_key_fingerprint: "sha256:a80baee9c50db27017b41fe8ccff2e49dd9464c07ea85e0ac751cc09bdd07dd6",
          endorser_key_fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
          event_type: "acceptance_revocation",
          external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
          institutional_metadata: { name: "University of Example" },
          note: "We no longer work together.",
          offer_entry_id: 276,
          valid_until: "2027-01-01",
        },
        previous_hash: "dd477d8040e8d9574d4fa990c2d2c3d8618981f51d5068ec6747387d16548e6d",
        entry_hash: "0630130b6b7fc7e4fffbbd7a7447bd352d6b49fb098d79da4c7ac4355c799eed",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "0630130b6b7fc7e4fffbbd7a7447bd352d6b49fb098d79da4c7ac4355c799eed",
            is_primary: true,
          },
        ],
      },
    },
  },
  post_endorsements_revocation_alert: {
    body: {
      endorser_fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
      compromised_fingerprint: "sha256:a80baee9c50db27017b41fe8ccff2e49dd9464c07ea85e0ac751cc09bdd07dd6",
      reason: "The laptop with the key was stolen.",
      auth: {
        challenge_id:
          "AQEABiquAs4UAK9chzqhulRDunRHG2ZWFPMkkl-kOJjboUZsTyAAGZrarrCBm5AeR9lltALOCDZcbldcEJZYi8Oje0NGo4kHPE_E3fiJzvTH2LwAFgOMrvPOYzNJ99q1NZb3ZEKyRyUd8w",
        challenge_signature: "as2nzX1DtrbZvefq3E+zOT2xlwlXuL/70Tmvcl6lpGdgGNcqE8AUNZuTLOPx5gzfybqJq1+orUZRY+SbhfsSCg==",
      },
    },
    answer: {
      alert: {
        alert_entry_id: 279,
        compromised_fingerprint: "sha256:a80baee9c50db27017b41fe8ccff2e49dd9464c07ea85e0ac751cc09bdd07dd6",
        endorser_fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
        reason: "The laptop with the key was stolen.",
        evidence: null,
        filed_at: "2025-01-02T00:07:00.000000Z",
      },
      log_entry: {
        id: 279,
        timestamp: "2025-01-02T00:07:00.000000Z",
        event_type: "endorser_revocation_alert",
        payload: {
          compromised_key_fingerprint: "sha256:a80baee9c50db27017b41fe8ccff2e49dd9464c07ea85e0ac751cc09bdd07dd6",
          endorser_key_fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
          event_type: "endorser_revocation_alert",
          evidence: null,
          reason: "The laptop with the key was stolen.",
        },
        previous_hash: "2ed3b1399f3df064bf3b7a5f051c9c5a72064abdbf9bf57c1b12701ecf95c27a",
        entry_hash: "dd477d8040e8d9574d4fa990c2d2c3d8618981f51d5068ec6747387d16548e6d",
        chain_version: 2,
        entry_hashes: [
          {
            algorithm: "sha2-256",
            digest_hex: "dd477d8040e8d9574d4fa990c2d2c3d8618981f51d5068ec6747387d16548e6d",
            is_primary: true,
          },
        ],
      },
    },
  },
  get_endorsements_fingerprint: {
    params: { fingerprint: "sha256:a80baee9c50db27017b41fe8ccff2e49dd9464c07ea85e0ac751cc09bdd07dd6" },
    answer: {
      endorsements: [
        {
          offer_entry_id: 276,
          endorser_fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
          endorsed_fingerprint: "sha256:a80baee9c50db27017b41fe8ccff2e49dd9464c07ea85e0ac751cc09bdd07dd6",
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
    params: { fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada" },
    query: { status: "active" },
    answer: {
      endorsements: [
        {
          offer_entry_id: 276,
          endorser_fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
          endorsed_fingerprint: "sha256:a80baee9c50db27017b41fe8ccff2e49dd9464c07ea85e0ac751cc09bdd07dd6",
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
    params: { fingerprint: "sha256:a80baee9c50db27017b41fe8ccff2e49dd9464c07ea85e0ac751cc09bdd07dd6" },
    answer: {
      alerts: [
        {
          alert_entry_id: 279,
          compromised_fingerprint: "sha256:a80baee9c50db27017b41fe8ccff2e49dd9464c07ea85e0ac751cc09bdd07dd6",
          endorser_fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
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
    params: { fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada" },
    query: { max_depth: 2 },
    answer: {
      root: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
      nodes: [
        {
          fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
          pseudonym: "Ada",
          status: "active",
          named: false,
          depth: 0,
        },
        {
          fingerprint: "sha256:a80baee9c50db27017b41fe8ccff2e49dd9464c07ea85e0ac751cc09bdd07dd6",
          pseudonym: "Grace",
          status: "active",
          named: false,
          depth: 1,
        },
      ],
      edges: [
        {
          from: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
          to: "sha256:a80baee9c50db27017b41fe8ccff2e49dd9464c07ea85e0ac751cc09bdd07dd6",
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
    params: { fingerprint: "sha256:a80baee9c50db27017b41fe8ccff2e49dd9464c07ea85e0ac751cc09bdd07dd6" },
    answer: {
      fingerprint: "sha256:a80baee9c50db27017b41fe8ccff2e49dd9464c07ea85e0ac751cc09bdd07dd6",
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
          fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
          category_weights: { "x-service:institutional_endorsement": 0.8 },
          decay_per_hop: 0.5,
          direct_signer_anchors: [
            { fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada", weight: 1 },
          ],
          endorser_anchors: [
            { fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada", weight: 0.9 },
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
      fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
      direct_signer_anchors: [
        { fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada", weight: 0.9 },
      ],
      minimum_threshold: 0.4,
      category_weights: { "x-service:institutional_endorsement": 0.8 },
    },
    answer: {
      id: 1,
      fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada", weight: 0.9 },
      ],
      max_depth: 4,
      minimum_threshold: 0.4,
      status: "active",
      created_at: "2025-01-02T00:07:00.000000Z",
    },
  },
  get_trust_configs_fingerprint: {
    params: { fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada" },
    answer: {
      id: 1,
      fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada", weight: 0.9 },
      ],
      max_depth: 4,
      minimum_threshold: 0.4,
      status: "active",
      created_at: "2025-01-02T00:07:00.000000Z",
    },
  },
  post_trust_configs_revoke: {
    body: { fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada" },
    answer: {
      id: 1,
      fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
      category_weights: { "x-service:institutional_endorsement": 0.8 },
      decay_per_hop: 0.5,
      direct_signer_anchors: [
        { fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada", weight: 1 },
      ],
      endorser_anchors: [
        { fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada", weight: 0.9 },
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
            id: "b53060fd-486c-4fe0-9195-0b60ed772142",
            type: "authorship",
            scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
            signer_key_fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
            signature_algorithm: "ed25519",
            signature: "w6f88CuCm6lXbaSeAlicHDEqzIlN00ovEMgI4UNPPB3LNnvVIrzD5/5ZlWFNW3MULitJvw8UupHKSXm4+ciHCg==",
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
          id: "b53060fd-486c-4fe0-9195-0b60ed772142",
          signer_key_fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
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
          { id: "b53060fd-486c-4fe0-9195-0b60ed772142", kind: "attestation", type: "authorship", status: "valid" },
          {
            id: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
            kind: "key",
            pseudonym: "Ada",
            status: "active",
            named: false,
          },
        ],
        edges: [
          {
            from: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
            to: "b53060fd-486c-4fe0-9195-0b60ed772142",
            kind: "signed",
          },
          {
            from: "b53060fd-486c-4fe0-9195-0b60ed772142",
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
                id: "b53060fd-486c-4fe0-9195-0b60ed772142",
                type: "authorship",
                scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                signer_key_fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
                signature_algorithm: "ed25519",
                signature: "w6f88CuCm6lXbaSeAlicHDEqzIlN00ovEMgI4UNPPB3LNnvVIrzD5/5ZlWFNW3MULitJvw8UupHKSXm4+ciHCg==",
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
                  id: "b53060fd-486c-4fe0-9195-0b60ed772142",
                  type: "authorship",
                  scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                  signer_key_fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
                  signature_algorithm: "ed25519",
                  signature: "w6f88CuCm6lXbaSeAlicHDEqzIlN00ovEMgI4UNPPB3LNnvVIrzD5/5ZlWFNW3MULitJvw8UupHKSXm4+ciHCg==",
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
                  id: "b53060fd-486c-4fe0-9195-0b60ed772142",
                  type: "authorship",
                  scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                  signer_key_fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
                  signature_algorithm: "ed25519",
                  signature: "w6f88CuCm6lXbaSeAlicHDEqzIlN00ovEMgI4UNPPB3LNnvVIrzD5/5ZlWFNW3MULitJvw8UupHKSXm4+ciHCg==",
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
                    id: "b53060fd-486c-4fe0-9195-0b60ed772142",
                    type: "authorship",
                    scope: { content_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
                    signer_key_fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
                    signature_algorithm: "ed25519",
                    signature:
                      "w6f88CuCm6lXbaSeAlicHDEqzIlN00ovEMgI4UNPPB3LNnvVIrzD5/5ZlWFNW3MULitJvw8UupHKSXm4+ciHCg==",
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
        "eyJhdHRlc3RhdGlvbnMiOltdLCJkb2N1bWVudCI6eyJjb250ZW50X2hhc2giOiJzaGEyNTY6ZjNkNDJlYmY5NjU5YjE2MmUwYmE4YzQwMjM1OTQwMWRlN2VkOGMyODg0M2MwMWY2ZTBiZGIyMzhhY2Q4ZDAzYyIsInBhcnRzIjpbeyJjb250ZW50X2hhc2giOiJzaGEyNTY6NDk4NjNjYzg4YzcxZGU2NjI5MmE5ZjVmMmI5MzJkMWRmMGMxZWQxMDFlYzJiOTc4ODBkZTFhMTEzMzcwOTgxMCIsIm1hbmlmZXN0Ijp7ImF0dGVzdGF0aW9ucyI6W3siaWQiOiJiNTMwNjBmZC00ODZjLTRmZTAtOTE5NS0wYjYwZWQ3NzIxNDIiLCJpbnRlbnRfc3RhdGVtZW50IjoiSSB3cm90ZSBpdC4iLCJzY29wZSI6eyJjb250ZW50X2hhc2giOiJzaGEyNTY6NDk4NjNjYzg4YzcxZGU2NjI5MmE5ZjVmMmI5MzJkMWRmMGMxZWQxMDFlYzJiOTc4ODBkZTFhMTEzMzcwOTgxMCJ9LCJzaWduYXR1cmUiOiJ3NmY4OEN1Q202bFhiYVNlQWxpY0hERXF6SWxOMDBvdkVNZ0k0VU5QUEIzTE5udlZJcnpENS81WmxXRk5XM01VTGl0SnZ3OFV1cEhLU1htNCtjaUhDZz09Iiwic2lnbmF0dXJlX2FsZ29yaXRobSI6ImVkMjU1MTkiLCJzaWduZXJfa2V5X2ZpbmdlcnByaW50Ijoic2hhMjU2OmFmNWM4NzNhYTFiYTU0NDNiYTc0NDcxYjY2NTYxNGYzMjQ5MjVmYTQzODk4ZGJhMTQ2NmM0ZjIwMDAxOTlhZGEiLCJ0aW1lc3RhbXAiOiIyMDI1LTAxLTAxVDAwOjA2OjAwLjAwMDAwMFoiLCJ0eXBlIjoiYXV0aG9yc2hpcCJ9XSwiZG9jdW1lbnQiOnsiY29udGVudF9oYXNoIjoic2hhMjU2OjQ5ODYzY2M4OGM3MWRlNjYyOTJhOWY1ZjJiOTMyZDFkZjBjMWVkMTAxZWMyYjk3ODgwZGUxYTExMzM3MDk4MTAiLCJ0YWdzIjpbInJlcG9ydCJdLCJ0aXRsZSI6IkFubnVhbCByZXBvcnQifX0sInJvbGUiOiJjaGFwdGVyIiwidGl0bGUiOiJSZXBvcnQifSx7ImNvbnRlbnRfaGFzaCI6InNoYTI1NjpmMzBjNTM0ZGE5NThhNzUzYWMyMGM2ZDVmZDQwNDFkZTRkOWFlMjQ5N2U3NDQwY2ZlMmQwMzRiMDBiNzFlZDEzIiwidGl0bGUiOiJBcHBlbmRpeCJ9XSwidGl0bGUiOiJSZXBvcnQgYW5kIGFwcGVuZGl4In19",
      manifest_hash: "b6cbd86913559de82edaf0d286824f73d1f395453ed3ebc733f04b4732799780",
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
            attestation_id: "7605d072-c823-4dcd-87c5-36022d9d6bfc",
            attestation_type: "editorial_review",
            document_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810",
            document_title: "Annual report",
            intent_statement: null,
            manifest_hash: "07a3a261f09eccfd842bc0cc3b0f4d6489cff455701b173ccae85104b6b55285",
            signature:
              "MEUCIQC+y1X2zi7Cx3h19mHbz+bjLVyvB4TgFLDDcTlmxVo08QIganuRkgXfEpTjYhCU3vWrjDL43cXpl7oGSQnHTE3LrlI=",
            signature_algorithm: "ecdsa-p256",
            signer_key_fingerprint: "sha256:a80baee9c50db27017b41fe8ccff2e49dd9464c07ea85e0ac751cc09bdd07dd6",
            tags: ["report"],
            timestamp: "2025-01-01T00:06:00.000000Z",
          },
          previous_hash: "c129bb7200e5d8fe6639777b016a851dfa4d795b64db22d768c4117985095563",
          entry_hash: "8ce8ab454d898d9709d98fa748cd68026f11310c4bdd502d31fc7e245615692d",
          chain_version: 2,
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "8ce8ab454d898d9709d98fa748cd68026f11310c4bdd502d31fc7e245615692d",
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
          "BD4Bd3bY7NB6RiasxriQFER+IE1CY2qaSty8HvK3zYhNhcpY4VbEI0q6ds8AiQXKP3eBs9sZmtUGV/LwDcG22bY=",
        commitment: "0ad68e69d1791321aa4ba99d06b5af0128083c32c3d50eb53e1c08df5302df5f",
        lookup_key: "42f811487c7d91aad26f27a8d6381e6fdf4e05f02ef688d9dac89700d93a352f",
        nonce: "UV75kL3XN1zd+60h",
        ciphertext: "UaxmQRFjDi2Wge4iZCTHvpVbrCCj53uAueE+FRO3qy0SziMEpwxtx18fW43VOst2vYqW",
        recipient_fingerprint: "sha256:b4e06d9c8cd6d44f01ad0f22d163a46c6a0f821189161f18d1d8f75f0d5fce5a",
      },
    },
    answer: {
      entry_id: 287,
      commitment: "0ad68e69d1791321aa4ba99d06b5af0128083c32c3d50eb53e1c08df5302df5f",
      lookup_key: "42f811487c7d91aad26f27a8d6381e6fdf4e05f02ef688d9dac89700d93a352f",
      leaf_index: 286,
      log_entry_id: 287,
    },
  },
  get_claims: {
    query: { lookup_key: "42f811487c7d91aad26f27a8d6381e6fdf4e05f02ef688d9dac89700d93a352f" },
    answer: {
      entries: [
        {
          id: 287,
          timestamp: "2025-01-02T00:07:00.000000Z",
          event_type: "encrypted_claim",
          payload: {
            ciphertext: "UaxmQRFjDi2Wge4iZCTHvpVbrCCj53uAueE+FRO3qy0SziMEpwxtx18fW43VOst2vYqW",
            commitment: "0ad68e69d1791321aa4ba99d06b5af0128083c32c3d50eb53e1c08df5302df5f",
            commitment_alg: "hmac-sha256-ecdh-v1",
            ephemeral_public_key:
              "BD4Bd3bY7NB6RiasxriQFER+IE1CY2qaSty8HvK3zYhNhcpY4VbEI0q6ds8AiQXKP3eBs9sZmtUGV/LwDcG22bY=",
            event_type: "encrypted_claim",
            lookup_key: "42f811487c7d91aad26f27a8d6381e6fdf4e05f02ef688d9dac89700d93a352f",
            nonce: "UV75kL3XN1zd+60h",
            recipient_fingerprint: "sha256:b4e06d9c8cd6d44f01ad0f22d163a46c6a0f821189161f18d1d8f75f0d5fce5a",
          },
          previous_hashes: [
            { algorithm: "sha2-256", digest_hex: "9dbb3c57294d1bc78e681e0419c3b784e17d882b9c82aef5c87ab97f72036975" },
          ],
          entry_hashes: [
            {
              algorithm: "sha2-256",
              digest_hex: "b2fde1a29baf6eaa86b469093323231b906ae49da9823ae3b0a789694cb427f6",
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
      ciphertext: "UaxmQRFjDi2Wge4iZCTHvpVbrCCj53uAueE+FRO3qy0SziMEpwxtx18fW43VOst2vYqW",
      commitment: "0ad68e69d1791321aa4ba99d06b5af0128083c32c3d50eb53e1c08df5302df5f",
      commitment_alg: "hmac-sha256-ecdh-v1",
      ephemeral_public_key: "BD4Bd3bY7NB6RiasxriQFER+IE1CY2qaSty8HvK3zYhNhcpY4VbEI0q6ds8AiQXKP3eBs9sZmtUGV/LwDcG22bY=",
      lookup_key: "42f811487c7d91aad26f27a8d6381e6fdf4e05f02ef688d9dac89700d93a352f",
      nonce: "UV75kL3XN1zd+60h",
      recipient_fingerprint: "sha256:b4e06d9c8cd6d44f01ad0f22d163a46c6a0f821189161f18d1d8f75f0d5fce5a",
    },
  },
  post_claims_entry_id_reveal: {
    params: { entry_id: 287 },
    body: {
      plaintext: { salary: 52000, name: "Zoë 🪨" },
      commitment_key: "da7c3010f3e127e231d62dbc7053da220d74a378024e3bd161a94e6abcc67f83",
    },
    answer: { valid: true },
  },
  get_log_attestation_requests: {
    query: { target: "sha256:a80baee9c50db27017b41fe8ccff2e49dd9464c07ea85e0ac751cc09bdd07dd6", status: "open" },
    answer: {
      requests: [
        {
          request_id: "b5e96c6f-9aed-4f6c-b092-2d31c941a25b",
          requester_fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
          target_fingerprint: "sha256:a80baee9c50db27017b41fe8ccff2e49dd9464c07ea85e0ac751cc09bdd07dd6",
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
      target_fingerprint: "sha256:a80baee9c50db27017b41fe8ccff2e49dd9464c07ea85e0ac751cc09bdd07dd6",
      attestation_type: "peer_review",
      nonce: "request-2025-0001",
      intent_statement: "Please review the annual report.",
      claims: { document_hash: "sha256:49863cc88c71de66292a9f5f2b932d1df0c1ed101ec2b97880de1a1133709810" },
    },
    answer: {
      request_id: "b5e96c6f-9aed-4f6c-b092-2d31c941a25b",
      requester_fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
      target_fingerprint: "sha256:a80baee9c50db27017b41fe8ccff2e49dd9464c07ea85e0ac751cc09bdd07dd6",
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
    params: { request_id: "b5e96c6f-9aed-4f6c-b092-2d31c941a25b" },
    answer: {
      request_id: "b5e96c6f-9aed-4f6c-b092-2d31c941a25b",
      requester_fingerprint: "sha256:af5c873aa1ba5443ba74471b665614f324925fa43898dba1466c4f2000199ada",
      target_fingerprint: "sha256:a80baee9c50db27017b41fe8ccff2e49dd9464c07ea85e0ac751cc09bdd07dd6",
      attestation_type: "peer_review",
      status: "declined",
      deadline: "2025-01-16T00:07:00.000000Z",
      created_at: "2025-01-02T00:07:00.000000Z",
      log_entry_id: 284,
      leaf_index: 283,
      responses: [
        {
          decision: "decline",
          responder_fingerprint: "sha256:a80baee9c50db27017b41fe8ccff2e49dd9464c07ea85e0ac751cc09bdd07dd6",
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
        responder_fingerprint: "sha256:a80baee9c50db27017b41fe8ccff2e49dd9464c07ea85e0ac751cc09bdd07dd6",
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
    params: { fingerprint: "sha256:a80baee9c50db27017b41fe8ccff2e49dd9464c07ea85e0ac751cc09bdd07dd6" },
    answer: {
      target_fingerprint: "sha256:a80baee9c50db27017b41fe8ccff2e49dd9464c07ea85e0ac751cc09bdd07dd6",
      active: {
        target_fingerprint: "sha256:a80baee9c50db27017b41fe8ccff2e49dd9464c07ea85e0ac751cc09bdd07dd6",
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
    params: { request_id: "b5e96c6f-9aed-4f6c-b092-2d31c941a25b" },
    body: { decision: "decline", reason: "No time before summer." },
    answer: {
      request_id: "b5e96c6f-9aed-4f6c-b092-2d31c941a25b",
      status: "declined",
      responder_fingerprint: "sha256:a80baee9c50db27017b41fe8ccff2e49dd9464c07ea85e0ac751cc09bdd07dd6",
      decision: "decline",
      attestation_id: null,
      reason: "No time before summer.",
      log_entry_id: 285,
      leaf_index: 284,
    },
  },
  post_log_request_policies: {
    body: {
      target_fingerprint: "sha256:a80baee9c50db27017b41fe8ccff2e49dd9464c07ea85e0ac751cc09bdd07dd6",
      predicates: { all: [{ field: "attestation_type", op: "in", value: ["peer_review", "editorial_review"] }] },
      default_action_on_failure: "decline",
    },
    answer: {
      target_fingerprint: "sha256:a80baee9c50db27017b41fe8ccff2e49dd9464c07ea85e0ac751cc09bdd07dd6",
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
          request_id: "b5e96c6f-9aed-4f6c-b092-2d31c941a25b",
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
      request_id: "b5e96c6f-9aed-4f6c-b092-2d31c941a25b",
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

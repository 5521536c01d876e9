/** Bundles: genuine ones of every kind pass, and each change of one is refused with a sentence. */
import { generateKeyPairSync } from "node:crypto";
import { describe, expect, it } from "vitest";
import { verifyBundle } from "#cairnlog/engine/verify/bundle/bundle.js";
import type { AttestationBundle } from "#cairnlog/engine/verify/bundle/format.js";
import { parseIJson } from "#cairnlog/engine/verify/json/canonical.js";
import { parsePublicKey } from "#cairnlog/engine/verify/keys/publickey.js";
import { sha256 } from "../keys/keys.js";
import { detached, hex, pending } from "../ots/otsbytes.js";
import { canonical, FILE, failures, genuine, PREDICATES, publicPem, type Recipe, trust } from "./genuine.js";

/** Every changed copy of a JSON value, with the JSON Pointer of the change. */
function* mutations(value: unknown, path = ""): Generator<[string, unknown]> {
  if (typeof value === "string") {
    // Each kind of place, but not every character: ends, middle and the whole.
    for (const at of new Set([0, value.length >> 1, value.length - 1])) {
      const flipped = String.fromCharCode(value.charCodeAt(at) ^ 1);
      yield [`${path} [${at}]`, value.slice(0, at) + flipped + value.slice(at + 1)];
    }
    yield [`${path} longer`, `${value} `];
    yield [`${path} empty`, ""];
    if (value !== value.toUpperCase()) yield [`${path} upper case`, value.toUpperCase()];
  } else if (typeof value === "number") {
    yield [`${path} + 1`, value + 1];
    yield [`${path} − 1`, value - 1];
    yield [`${path} as text`, String(value)];
  } else if (typeof value === "boolean") {
    yield [`${path} negated`, !value];
  } else if (value === null) {
    yield [`${path} not null`, "x"];
  } else if (Array.isArray(value)) {
    yield [`${path} with an item more`, [...value, value.at(-1) ?? {}]];
    for (let i = 0; i < value.length; i++) {
      yield [`${path}/${i} deleted`, value.toSpliced(i, 1)];
      for (const [where, item] of mutations(value[i], `${path}/${i}`)) yield [where, value.with(i, item)];
    }
  } else {
    const object = value as Record<string, unknown>;
    yield [`${path} with a member more`, { ...object, unknown_member: true }];
    for (const [name, member] of Object.entries(object)) {
      const { [name]: _, ...others } = object;
      yield [`${path}/${name} deleted`, others];
      if (member !== null) yield [`${path}/${name} nulled`, { ...object, [name]: null }];
      for (const [where, changed] of mutations(member, `${path}/${name}`))
        yield [where, { ...object, [name]: changed }];
    }
  }
}

describe("a genuine bundle", () => {
  const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const p256 = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
  const https = "https://other.example/reproduced/v2";

  it.each<[string, Recipe]>([
    ["as usual", {}],
    ["of a P-256 key", { signer: p256, algorithm: "ecdsa-p256" }],
    ["of an RSA key", { signer: rsa, algorithm: "rsa-2048" }],
    ["as the log's first entry", { index: 0 }],
    ["with a predicate of one's own", { type: https, eventType: https }],
    ["without intent statement", { statement: null }],
    ["with tags that the log does not take over", { tags: "one" }],
    ["with as many tags, as long, as the log takes over", { tags: Array(32).fill("🪨".repeat(64)) }],
    ["with a tag that is too long", { tags: ["one", "🪨".repeat(65)], loggedTags: [] }],
    ["with too many tags", { tags: Array(33).fill("one"), loggedTags: [] }],
    ["after other attestations", { prior: [{ id: "a-0" }] }],
    ["beside other attestations", { prior: [{ id: "a-0" }], covers: "document" }],
  ])("passes %s", async (_, recipe) => {
    const bundle = parseIJson(JSON.stringify(genuine(recipe)));
    expect(await failures(bundle)).toEqual([]);
    const verdict = await verifyBundle(bundle, trust);
    expect(verdict.valid).toBe(true);
    expect(verdict.checks.map((check) => check.name)).toEqual([
      "format",
      "file",
      "manifest",
      "signature",
      "attestation",
      "entry",
      "inclusion",
      "tree-head",
    ]);
  });

  it("says what the signature covers", async () => {
    const detail = async (recipe: Recipe) => (await verifyBundle(genuine(recipe), trust)).checks[3]!.detail;
    const unchecked = "whose own signatures are not checked here.";
    expect(await detail({})).toMatch(
      / covers the manifest\. The signer signed neither type nor statement: both are the log's word\.$/,
    );
    expect(await detail({ prior: [{ id: "a-0" }] })).toContain(
      `the manifest with the 1 attestation(s) in it, ${unchecked}`,
    );
    expect(await detail({ prior: [{ id: "a-0" }], covers: "document" })).toContain(
      `the manifest without the 1 attestation(s) in it, ${unchecked}`,
    );
  });

  it.each<[Recipe["named"], boolean, boolean, string]>([
    [{}, false, false, "neither type nor statement: both are the log's word."],
    [{ attestation_type: "editorial_review" }, true, false, "the type; the statement is the log's word."],
    [{ intent_statement: "I reviewed it." }, false, true, "the statement; the type is the log's word."],
    [
      { attestation_type: "editorial_review", intent_statement: "I reviewed it." },
      true,
      true,
      "the type and the statement.",
    ],
    // Values that these members cannot have now: an older manifest may have had other members of the same names.
    [
      { attestation_type: 7, intent_statement: {} },
      false,
      false,
      "neither type nor statement: both are the log's word.",
    ],
  ])("says whose words type and statement are: %j", async (named, attestation_type, intent_statement, words) => {
    const { valid, signed, checks } = await verifyBundle(genuine({ named }), trust);
    expect({ valid, signed }).toEqual({ valid: true, signed: { attestation_type, intent_statement } });
    expect(checks[3]!.detail).toContain(`The signer signed ${words}`);
  });

  it("of a statement that was signed as none has none", async () => {
    const named = { intent_statement: null };
    expect(await failures(genuine({ named, statement: null }))).toEqual([]);
    expect(await failures(genuine({ named }))).toEqual([
      "attestation: The intent statement is not the one that the signer signed.",
    ]);
  });

  it("is refused under another type or statement than the signer signed, whatever the log says", async () => {
    expect(await failures(genuine({ named: { attestation_type: "publication" } }))).toEqual([
      "attestation: The attestation type is not the one that the signer signed.",
    ]);
    expect(await failures(genuine({ named: { intent_statement: "I read it." } }))).toEqual([
      "attestation: The intent statement is not the one that the signer signed.",
    ]);
  });

  it("says nothing of what was signed where the signature does not hold", async () => {
    const bundle = genuine({ named: { attestation_type: "editorial_review" } });
    const other = { ...bundle, public_key: publicPem(generateKeyPairSync("ed25519").publicKey) };
    expect((await verifyBundle(other, trust)).signed).toBeNull();
    expect((await verifyBundle({}, trust)).signed).toBeNull();
  });

  it("names the hash of what was signed rightly, where it names it", async () => {
    const prior = [{ id: "a-0" }];
    const recipe: Recipe = { prior, covers: "document" };
    const { manifest } = genuine(recipe);
    const signedPayloadHash = sha256(canonical({ ...manifest, attestations: [] }));
    expect(await failures(genuine({ ...recipe, signedPayloadHash }))).toEqual([]);
    const wrong = "signature: The hash in the log entry is not that of what was signed.";
    expect(await failures(genuine({ ...recipe, signedPayloadHash: sha256("x") }))).toEqual([wrong]);
    expect(await failures(genuine({ prior, signedPayloadHash }))).toEqual([wrong]);
  });

  it.each([
    ["authorship", "authorship/v1"],
    ["editorial_review", "editorial-review/v1"],
    ["peer_review", "peer-review/v1"],
    ["publication", "publication/v1"],
  ])("of the type %s has the predicate %s and no other", async (type, path) => {
    const { predicateBase: _, ...without } = trust;
    const right = genuine({ type, eventType: `${PREDICATES}/${path}` });
    for (const against of [trust, without]) expect(await failures(right, against)).toEqual([]);
    const misfit = "entry: The entry's event type is not the predicate of the attestation's type.";
    const other = path === "authorship/v1" ? "publication/v1" : "authorship/v1";
    for (const eventType of [`${PREDICATES}/${other}`, `${PREDICATES}/`, "", `${PREDICATES}/${path}/`, path])
      for (const against of [trust, without])
        expect(await failures(genuine({ type, eventType }), against)).toEqual([misfit]);
    expect(await failures(genuine({ type, eventType: `https://else.example/${path}` }))).toEqual([misfit]);
    expect(await failures(genuine({ type, eventType: `https://else.example/${path}` }), without)).toEqual([]);
  });

  it.each([
    ["32 tags", Array.from({ length: 32 }, (_, i) => `tag ${i}`), true],
    ["33 tags", Array.from({ length: 33 }, (_, i) => `tag ${i}`), false],
    ["a tag of 64 characters", ["x".repeat(64)], true],
    ["a tag of 65 characters", ["x".repeat(65)], false],
    ["a tag that is no text", ["one", 2], false],
    ["an array for a tag", [["one"]], false],
    ["no tags", [], true],
    ["tags of another kind", { length: 0 }, false],
  ])("with %s has those of them that the log takes over", async (_, tags, isTaken) => {
    const taken = isTaken ? (tags as string[]) : [];
    expect(await failures(genuine({ tags, loggedTags: taken }))).toEqual([]);
    const wrong = "manifest: The tags in the log entry are not the manifest's.";
    const others = isTaken ? [...taken, "more"] : ["one"];
    expect(await failures(genuine({ tags, loggedTags: others }))).toEqual([wrong]);
  });

  it("passes with the file's hash prefixed, and without a known predicate base", async () => {
    const { fileHash, operatorKey } = trust;
    expect(await failures(genuine(), { fileHash: `sha256:${fileHash}`, operatorKey })).toEqual([]);
  });
});

describe("a bundle whose entry is anchored", () => {
  const anchoredBy = (bundle: AttestationBundle, file: Uint8Array) => {
    const ots_proof = Buffer.from(file).toString("base64");
    return { ...bundle, entry: { ...bundle.entry, ots_proof } };
  };
  const promise = hex("00", pending("https://calendar.example"));

  it("passes, with a check that tells what the proof comes down to", async () => {
    const bundle = genuine();
    const file = detached(Buffer.from(bundle.entry.entry_hash, "hex"), promise);
    const { valid, checks } = await verifyBundle(anchoredBy(bundle, file), trust);
    expect(valid).toBe(true);
    expect(checks.at(-1)).toMatchObject({ name: "anchor", ok: true });
    expect(checks.at(-1)!.detail).toContain("https://calendar.example");
  });

  it("is refused with the proof of another entry", async () => {
    const file = detached(Buffer.from(sha256("another"), "hex"), promise);
    expect(await failures(anchoredBy(genuine(), file))).toEqual([
      "anchor: The anchoring proof is about another digest than the entry's hash.",
    ]);
  });
});

describe("who may have signed", () => {
  const signer = generateKeyPairSync("ed25519");
  const fingerprint = parsePublicKey(publicPem(signer.publicKey)).fingerprint;
  const other = parsePublicKey(publicPem(generateKeyPairSync("ed25519").publicKey)).fingerprint;
  const bundle = genuine({ signer });
  const at = bundle.entry.timestamp;
  const [before, after] = ["2025-03-01T12:00:00.249999Z", "2025-03-01T12:00:00.250001Z"];
  /** Periods, and whether the entry's time is in them. */
  const PERIODS = [
    [{}, true],
    [{ validAfter: null, validBefore: null }, true],
    [{ validAfter: at }, true],
    [{ validAfter: after }, false],
    [{ validBefore: after }, true],
    [{ validBefore: at }, true],
    [{ validBefore: before }, false],
    [{ validAfter: before, validBefore: after }, true],
    [{ validAfter: "2024-01-01T00:00:00.000000Z", validBefore: before }, false],
  ] as const;

  it("is whoever is listed for the entry's time, in whichever of several lines", async () => {
    for (const [i, [first, isFirst]] of PERIODS.entries())
      for (const [j, [second, isSecond]] of PERIODS.slice(4, 6).entries())
        for (const key of [fingerprint, other]) {
          const signers = [
            { fingerprint: other, name: "another" },
            { fingerprint: key, name: "first", ...first },
            { fingerprint, name: "second", ...second },
          ];
          const { valid, checks } = await verifyBundle(bundle, { ...trust, signers });
          const isOwn = key === fingerprint && isFirst;
          const name = isOwn ? "first" : isSecond ? "second" : null;
          expect({ valid, check: checks.at(-1) }, `${i} ${j} ${key === fingerprint}`).toEqual({
            valid: name !== null,
            check: {
              name: "signer",
              ok: name !== null,
              detail: name ? `The signer is ${name}.` : "The signer was not allowed to sign at the entry's time.",
            },
          });
        }
  });

  it("is nobody where nobody is listed, or others are", async () => {
    for (const signers of [[], [{ fingerprint: other }]])
      expect(await failures(bundle, { ...trust, signers })).toEqual([
        "signer: The signer is none of those that you named.",
      ]);
  });
});

describe("a changed bundle", () => {
  it.each([0, 4])("is refused wherever it is changed (leaf %i)", async (index) => {
    // No hash covers an entry's id, which only has a lower bound, and nothing says how many further digests there were.
    const uncovered = ["/entry/id + 1", "/entry/entry_hashes/1 deleted"];
    const passed: string[] = [];
    let changes = 0;
    for (const [where, changed] of mutations(genuine({ index }))) {
      changes++;
      const verdict = await verifyBundle(changed, trust);
      if (verdict.valid) passed.push(where);
      else expect(verdict.checks.some((check) => !check.ok && check.detail !== "")).toBe(true);
    }
    expect(changes).toBeGreaterThan(400);
    expect(passed.sort()).toEqual(uncovered.sort());
  });

  it("is refused with the place of a member that is missing or of another kind, and nothing else is judged", async () => {
    const free = /^\/manifest\/(note|document\/tags)/;
    for (const [where, changed] of mutations(genuine({ prior: [{}] }))) {
      const [path, deed] = where.split(" ");
      if (free.test(path!) || !(deed === "deleted" || deed === "nulled" || where.endsWith("as text"))) continue;
      // Members that may be absent or null, and items of arrays, which may be fewer.
      if (/intent_statement|tags|previous_hash|\/\d+$/.test(path!) || where === "/entry/payload nulled") continue;
      const expected = deed === "deleted" ? /is missing\.$/ : /must be (a|an|true|"|1|2|64) ?.*\.$/;
      const { valid, checks } = await verifyBundle(changed, trust);
      expect({ valid, checks }, where).toEqual({
        valid: false,
        checks: [{ name: "format", ok: false, detail: expect.stringMatching(expected) }],
      });
      expect(checks[0]!.detail.startsWith(`${path} `), where).toBe(true);
    }
  });

  it("is refused with a sentence that says what is wrong", async () => {
    const bundle = genuine();
    const { entry, proof, attestation, tree_head } = bundle;
    const other = generateKeyPairSync("ed25519").publicKey;
    const cases: [object, string][] = [
      [{ entry: { ...entry, ots_proof: "AA==" } }, "anchor: The OpenTimestamps proof ends too early."],
      [{ entry: { ...entry, chain_version: 1 } }, "format: /entry/chain_version must be 2."],
      [{ proof: { ...proof, sth: null } }, "format: /proof/sth must be an object."],
      [{ format: "cairnlog-attestation/v2" }, 'format: /format must be "cairnlog-attestation/v1".'],
      [
        { entry: { ...entry, timestamp: "2025-03-01T12:00:00.25Z" } },
        "entry: The entry's timestamp is not in its canonical spelling.",
      ],
      [
        { proof: { ...proof, audit_path: [...proof.audit_path, proof.leaf_hash] } },
        "inclusion: The audit path does not lead",
      ],
      [{ attestation: { ...attestation, type: "authorship" } }, "attestation: The attestation type is not the one"],
      [{ public_key: publicPem(other) }, "signature: The signer's fingerprint is not that of the public key."],
      [
        { public_key: bundle.public_key.replaceAll("\n", "\r\n") },
        "signature: The public key is not in its normal PEM spelling.",
      ],
      [
        { tree_head: { ...tree_head, tree_version: 1 } },
        "tree-head: The tree head in the proof is not the bundle's tree head.",
      ],
    ];
    for (const [change, sentence] of cases) {
      expect((await failures({ ...bundle, ...change })).join("\n")).toContain(sentence);
    }
  });

  it("is refused against another file, operator or predicate base", async () => {
    const bundle = genuine();
    const stranger = parsePublicKey(publicPem(generateKeyPairSync("ed25519").publicKey));
    expect(await failures(bundle, { ...trust, fileHash: sha256("another") })).toEqual([
      "file: The file is not the one that was attested.",
    ]);
    expect((await failures(bundle, { ...trust, fileHash: "abc" }))[0]).toContain("not a SHA-256");
    expect((await failures(bundle, { ...trust, operatorKey: stranger }))[0]).toContain("another key than the pinned");
    expect((await failures(bundle, { ...trust, predicateBase: "https://x.example" }))[0]).toContain(
      "not the predicate",
    );
  });

  it("is refused when the log signed something inconsistent", async () => {
    const cases: [Recipe, string][] = [
      [{ loggedTags: ["one"] }, "manifest: The tags in the log entry are not the manifest's."],
      [{ tags: "one", loggedTags: ["one"] }, "manifest: The tags in the log entry are not the manifest's."],
      [{ tags: ["x".repeat(65)] }, "manifest: The tags in the log entry are not the manifest's."],
      [{ tags: Array(33).fill("one") }, "manifest: The tags in the log entry are not the manifest's."],
      [{ previous: null }, "entry: The first entry of a log alone has no previous hash."],
      [{ index: 0, previous: FILE }, "entry: The first entry of a log alone has no previous hash."],
      [{ headTime: "2025-03-01T12:00:00.249999Z" }, "tree-head: The tree head is older than the entry it covers."],
    ];
    for (const [recipe, sentence] of cases) expect(await failures(genuine(recipe))).toEqual([sentence]);
  });

  it("is refused when the event type does not fit the attestation's type", async () => {
    const { predicateBase: _, ...without } = trust;
    for (const eventType of [`${PREDICATES}/authorship/v1`, "http://log.example/editorial-review/v1", "attestation"]) {
      expect((await failures(genuine({ eventType }), without)).join()).toContain(
        "not the predicate of the attestation's type",
      );
    }
    expect(await failures(genuine({ type: "toString", eventType: "https://toString" }))).not.toEqual([]);
  });

  it("is refused without an exception, whatever it is", async () => {
    const endless: Record<string, unknown> = {};
    endless.self = endless;
    const throwing = Object.defineProperty({ ...genuine() }, "entry", {
      enumerable: true,
      get: () => {
        throw new Error("trap");
      },
    });
    const cyclic = genuine();
    for (const value of [
      undefined,
      null,
      0,
      "bundle",
      [],
      {},
      endless,
      throwing,
      { ...cyclic, manifest: { ...cyclic.manifest, endless } },
    ]) {
      const { valid, checks } = await verifyBundle(value, trust);
      expect({ valid, checks }).toEqual({
        valid: false,
        checks: [{ name: "format", ok: false, detail: expect.stringMatching(/\.$|trap/) }],
      });
    }
  });
});

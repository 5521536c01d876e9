import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { jsonValues } from "../texts.js";
import type { Submission } from "./attestations/manifests.js";
import { closeWorlds, failure, HASH, manifestOf, nodeSigner, openWorld, submission, type World } from "./world.js";

afterAll(closeWorlds);

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
const submit = (input: unknown) => world.registry.attestations.submit(input as Submission);

describe("a malformed submission", () => {
  const hash = { content_hash: HASH };
  const good = {
    id: "x",
    type: "authorship",
    scope: hash,
    signer_key_fingerprint: `sha256:${HASH}`,
    signature_algorithm: "ed25519",
    signature: "",
    timestamp: "2025-01-01T00:00:00Z",
  };
  const document = { title: "T", ...hash };
  const manifests: [string, unknown, string][] = [
    ["absent", undefined, ""],
    ["null", null, ""],
    ["an array", [], ""],
    ["text", "{}", ""],
    ["without document", { attestations: [] }, "/document"],
    ["with a document that is none", { document: [], attestations: [] }, "/document"],
    ["without title", { document: hash, attestations: [] }, "/document/title"],
    ["with an empty title", { document: { ...document, title: "" }, attestations: [] }, "/document/title"],
    [
      "with 501 characters of title",
      { document: { ...document, title: "🪨".repeat(501) }, attestations: [] },
      "/document/title",
    ],
    ["with a number for a title", { document: { ...document, title: 5 }, attestations: [] }, "/document/title"],
    [
      "with half a surrogate in the title",
      { document: { ...document, title: "\udead" }, attestations: [] },
      "/document/title",
    ],
    ["without hash", { document: { title: "T" }, attestations: [] }, "/document/content_hash"],
    ["with a short hash", { document: { title: "T", content_hash: "ab" }, attestations: [] }, "/document/content_hash"],
    [
      "with another hash",
      { document: { title: "T", content_hash: `sha1:${HASH}` }, attestations: [] },
      "/document/content_hash",
    ],
    ["with 33 tags", { document: { ...document, tags: Array(33).fill("a") }, attestations: [] }, "/document/tags"],
    [
      "with a tag of 65 characters",
      { document: { ...document, tags: ["a", "b".repeat(65)] }, attestations: [] },
      "/document/tags/1",
    ],
    ["without attestations", { document }, "/attestations"],
    ["with attestations that are no array", { document, attestations: {} }, "/attestations"],
    [
      "with 257 attestations",
      { document, attestations: Array.from({ length: 257 }, (_, i) => ({ ...good, id: `${i}` })) },
      "/attestations",
    ],
    ["with an attestation that is none", { document, attestations: [good, null] }, "/attestations/1"],
    ["with one id twice", { document, attestations: [good, { ...good, type: "publication" }] }, "/attestations/1/id"],
    ...(
      [
        ["id", "", 7, null, "x".repeat(129), `sha256:${HASH}`],
        ["type", "", 7, null, "x".repeat(513)],
        ["signer_key_fingerprint", "", 7, HASH, `sha256:${"A".repeat(64)}`, `x:sha256:${HASH}`, `sha256:${HASH}0`],
        ["signature_algorithm", "", 7, "rsa", null],
        ["signature", 7, null, []],
        ["timestamp", "", 7, null, "2025-01-01", "2025-01-01T00:00:00"],
        ["intent_statement", 7, "🪨".repeat(4097), {}],
      ] as [string, ...unknown[]][]
    ).flatMap(([member, ...values]) =>
      values.map((value): [string, unknown, string] => [
        `with ${member} ${String(value).slice(0, 12)}`,
        { document, attestations: [{ ...good, [member]: value }] },
        `/attestations/0/${member}`,
      ]),
    ),
    [
      "with a scope that is none",
      { document, attestations: [{ ...good, scope: HASH }] },
      "/attestations/0/scope/content_hash",
    ],
    [
      "with a scope without hash",
      { document, attestations: [{ ...good, scope: {} }] },
      "/attestations/0/scope/content_hash",
    ],
  ];

  it.each(manifests)("manifest %s", async (_, manifest, path) => {
    const input = { manifest, public_key_pem: nodeSigner().pem, signature: "AAAA" };
    const submitting = await failure(() => submit(input));
    expect(submitting).toMatchObject({ code: "invalid-input", paths: [`/manifest${path}`] });
    const verifying = await failure(() => world.registry.verification.verify({ manifest, source_hash: HASH }));
    expect(verifying).toMatchObject({ code: "invalid-input", paths: [`/manifest${path}`] });
  });

  it("accepts values at the limits", async () => {
    const attestations = [
      { ...good, id: "🪨".repeat(128), intent_statement: "🪨".repeat(4096), type: "x".repeat(512) },
    ];
    const manifest = { document: { title: "🪨".repeat(500), ...hash }, attestations };
    const more = { intent_statement: "🪨".repeat(4096), pseudonym: "🪨".repeat(200) };
    const receipt = await submit(submission(nodeSigner(), manifest, more));
    expect(receipt.attestation.intent_statement).toBe(more.intent_statement);
    const many = Array.from({ length: 256 }, (_, i) => ({ ...good, id: `${i}` }));
    expect((await submit(submission(nodeSigner(), manifestOf("T", many)))).duplicate).toBe(false);
  });

  it.each([
    ["/intent_statement", { intent_statement: "🪨".repeat(4097) }],
    ["/intent_statement", { intent_statement: 7 }],
    ["/intent_statement", { intent_statement: "\ud800" }],
    ["/pseudonym", { pseudonym: "" }],
    ["/pseudonym", { pseudonym: "🪨".repeat(201) }],
    ["/pseudonym", { pseudonym: "a\tb" }],
    ["/attestation_type", { attestation_type: "approval" }],
    ["/attestation_type", { attestation_type: 7 }],
    ["/attestation_type", { attestation_type: "" }],
  ])("%s of %j", async (path, more) => {
    const error = await failure(() => submit(submission(nodeSigner(), manifestOf(), more)));
    expect(error).toMatchObject({ code: "invalid-input", paths: [path] });
  });

  it("refuses values without a canonical form", async () => {
    const manifest = { ...manifestOf(), extra: "\ud800" };
    const input = { manifest, public_key_pem: nodeSigner().pem, signature: "AAAA" };
    expect((await failure(() => submit(input))).code).toBe("not-i-json");
    const deep = { ...manifestOf(), extra: JSON.parse(`${"[".repeat(100_000)}${"]".repeat(100_000)}`) as unknown };
    expect((await failure(() => submit({ ...input, manifest: deep }))).code).toBe("not-i-json");
    expect((await failure(() => world.registry.verification.verify({ manifest, source_hash: HASH }))).code).toBe(
      "not-i-json",
    );
  });

  it("ends in a coded error for any JSON", async () => {
    const signer = nodeSigner();
    const valid: Record<string, unknown> = submission(signer, manifestOf());
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...Object.keys(valid), "attestation_type", "pseudonym"),
        jsonValues(),
        async (member, value) => {
          fc.pre(value !== null);
          fc.pre(!(typeof value === "string" && member === "pseudonym"));
          for (const input of [{ ...valid, [member]: value }, value])
            expect((await failure(() => submit(input))).message).toMatch(/\.$/);
        },
      ),
      { numRuns: 150 },
    );
  });
});

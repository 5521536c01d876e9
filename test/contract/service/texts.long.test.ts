/**
 * Texts that readers could interpret differently, sent to every route that takes texts: bytes that are not UTF-8, JSON
 * that is not I-JSON, member names that all objects have, unusual spellings of paths and queries. Each gets a clear
 * 4xx, and no entry is made.
 */
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { expectProblem, startTestService, type TestService } from "../../server/harness.js";
import { canonical, newManifest, newSigner, registration, submission } from "../../server/signers.js";

let service: TestService;
let before: number;
const signer = newSigner();
let authorization: string;
/** Path templates, by method. */
const routes: Record<"GET" | "POST", { path: string; query: string[] }[]> = { GET: [], POST: [] };

beforeAll(async () => {
  service = await startTestService();
  await service.post("/keys/register", registration(signer));
  const { body: challenge } = await service.post("/auth/challenge", { fingerprint: signer.fingerprint });
  const { challenge_id, nonce } = challenge;
  const login = await service.post("/auth/login", { challenge_id, challenge_signature: signer.sign(nonce) });
  authorization = `Bearer ${login.body.token}`;
  const { paths } = await service.openApi();
  for (const [path, { get, post }] of Object.entries<Record<string, Record<string, unknown>>>(paths)) {
    const parameters = (get?.parameters ?? []) as { name: string; in: string }[];
    const query = parameters.filter((one) => one.in === "query").map(({ name }) => name);
    if (get) routes.GET.push({ path, query });
    if ((post?.requestBody as { required: boolean } | undefined)?.required) routes.POST.push({ path, query: [] });
  }
});
beforeEach(async () => {
  before = await service.entryCount();
});
afterEach(async () => {
  expect(await service.entryCount()).toBe(before);
});

const filled = (path: string, value: string) => path.replace(/\{\w+\}/g, value);
const post = (path: string, body: string | Uint8Array) =>
  service.send("POST", filled(path, "1"), { body: body as BodyInit, headers: { authorization } });

test("there are routes", () => {
  expect(routes.POST.length).toBeGreaterThan(25);
  expect(routes.GET.length).toBeGreaterThan(35);
});

describe("bodies of every route that has one", () => {
  const inText = (...bytes: number[]) => Buffer.concat([Buffer.from('{"a":"'), Buffer.from(bytes), Buffer.from('"}')]);
  const malformed: [string, string | Uint8Array][] = [
    ["NUL in two bytes of UTF-8", inText(0xc0, 0x80)],
    ["a slash in two bytes", inText(0xc0, 0xaf)],
    ["a slash in three bytes", inText(0xe0, 0x80, 0xaf)],
    ["a slash in four bytes", inText(0xf0, 0x80, 0x80, 0xaf)],
    ["half a surrogate pair as bytes", inText(0xed, 0xa0, 0x80)],
    ["a surrogate pair as bytes (CESU-8)", inText(0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80)],
    ["a character beyond U+10FFFF", inText(0xf4, 0x90, 0x80, 0x80)],
    ["a byte that continues nothing", inText(0x80)],
    ["a character that breaks off", inText(0xe2, 0x82)],
    ["bytes that UTF-8 does not have", inText(0xfe, 0xff)],
    ["a byte order mark", "\ufeff{}"],
    ["UTF-16", Buffer.from("{}", "utf16le")],
    ["a NUL byte in a string", inText(0)],
    ["a NUL byte behind", "{}\0"],
    ["a control character in a string", inText(0x1f)],
    ["two values", "{}{}"],
    ["a comment", "{/**/}"],
    ["NaN", '{"a":NaN}'],
    ["a number with a leading zero", '{"a":01}'],
    ["a number with a sign", '{"a":+1}'],
    ["half a nest of 100,000 levels", "[".repeat(100_000)],
  ];
  test.each(malformed)("%s: 400", async (_, body) => {
    for (const { path } of routes.POST) expectProblem(await post(path, body), 400, "malformed-json");
  });

  const nest = (open: string, close: string) => `{"a":${open.repeat(100_000)}1${close.repeat(100_000)}}`;
  const notIJson: [string, string][] = [
    ["a member twice", '{"a":1,"a":1}'],
    ["a member twice, once with an escape", '{"a":1,"\\u0061":2}'],
    ["a member twice, far inside", '{"a":[{"b":{"c":[{"d":1,"e":2,"d":3}]}}]}'],
    ["an empty name twice", '{"":1,"":2}'],
    ["auth twice", '{"auth":{"challenge_id":"a"},"auth":{"challenge_id":"b"}}'],
    ["__proto__", '{"__proto__":{"isAdmin":true}}'],
    ["__proto__ with an escape", '{"_\\u005fproto__":{"isAdmin":true}}'],
    ["__proto__, far inside", '{"a":[{"b":{"__proto__":1}}]}'],
    ["100,000 arrays", nest("[", "]")],
    ["100,000 objects", nest('{"a":', "}")],
    ["65 levels", `{"a":${"[".repeat(64)}${"]".repeat(64)}}`],
    ["1e400", '{"a":1e400}'],
    ["−1e400", '{"a":-1e400}'],
    ["1e-400", '{"a":1e-400}'],
    ["2^53 + 1", '{"a":9007199254740993}'],
    ["20,000 digits", `{"a":1${"0".repeat(19_998)}1}`],
    ["20,000 digits behind the point", `{"a":0.${"1".repeat(20_000)}}`],
    ["an exponent of 20,000 digits", `{"a":1e${"9".repeat(20_000)}}`],
    ["half a surrogate pair", '{"a":"\\ud800"}'],
    ["the other half", '{"a":"\\udc00"}'],
    ["both halves, in the wrong order", '{"a":"\\udc00\\ud800"}'],
    ["half a surrogate pair in a name", '{"\\ud800":1}'],
  ];
  test.each(notIJson)("%s: 422", async (_, body) => {
    for (const { path } of routes.POST) expectProblem(await post(path, body), 422, "not-i-json");
  });

  test("long texts of digits, members or nested values are refused with the right error", async () => {
    const texts = [
      `{"a":1e${"9".repeat(900_000)}}`,
      `{"a":[${"1e400,".repeat(150_000)}1]}`,
      `{${Array.from({ length: 60_000 }, (_, i) => `"a${i}":0`).join()},"a0":0}`,
      `{"a":"${"\\ud83d\\ude00".repeat(80_000)}\\ud800"}`,
      `{"a":${"[[],".repeat(63)}${"[{}],".repeat(150_000)}1${"]".repeat(63)}}`,
    ];
    for (const text of texts) {
      expect((await post("/api/v1/verify", text)).status).toBe(422);
    }
  });
});

/** Member names that every object inherits. */
const INHERITED = ["constructor", "toString", "hasOwnProperty", "valueOf", "prototype", "then", "toJSON", "length"];

describe("names that objects have by themselves", () => {
  test("are not an algorithm, type, status, format, scope, category, event or action", async () => {
    const manifest = newManifest();
    for (const name of INHERITED) {
      const asked: [string, Record<string, unknown>][] = [
        ["/keys/register", registration(newSigner(), "A", { key_algorithm: name })],
        ["/attestations", submission(signer, manifest, { attestation_type: name })],
        ["/auth/challenge", { fingerprint: signer.fingerprint, purpose: name }],
        ["/webhooks", { url: "https://example.org/", events: [name] }],
        ["/users", { display_name: "A", email: "a@example.org", credential_type: name, key_fingerprint: "x" }],
        ["/log/request-policies", { predicates: { [name]: [] }, default_action_on_failure: "allow" }],
        ["/log/request-policies", { predicates: { all: [] }, default_action_on_failure: name }],
        [
          "/log/request-policies",
          { predicates: { field: name, op: "exists", value: true }, default_action_on_failure: "allow" },
        ],
        [
          "/log/request-policies",
          { predicates: { field: "claims.a", op: name, value: 1 }, default_action_on_failure: "allow" },
        ],
      ];
      for (const [path, body] of asked) {
        const reply = await service.post(path, body, { authorization });
        expect(reply.status, `${path} ${JSON.stringify(body)}: ${reply.text}`).toBe(422);
      }
      for (const query of ["/audit/export?format=", "/audit/export?scope=", "/endorsements/x?status="])
        expect([404, 422], query).toContain((await service.get(`${query}${name}`)).status);
    }
  });

  test("are found nowhere", async () => {
    for (const name of [...INHERITED, "__proto__"]) {
      for (const { path } of routes.GET.filter((route) => /\{(fingerprint|request_id)\}/.test(route.path)))
        expect([401, 404, 422], path).toContain((await service.send("GET", filled(path, name))).status);
      for (const query of [`event_type=${name}`, `tags=${name}`, `search=${name}`])
        expect((await service.get(`/log?${query}`)).body.total).toBe(0);
      for (const query of [`${name}=1`, `page[${name}]=2`, `${name}[${name}]=1`])
        expect((await service.get(`/log?${query}`)).body.page).toBe(1);
    }
  });
});

describe("names that objects have by themselves, on the log", () => {
  const stored = Object.fromEntries(INHERITED.map((name) => [name, { [name]: "x" }]));

  afterEach(async () => {
    before = await service.entryCount();
  });

  test("a manifest may have them, and its hash covers them", async () => {
    const manifest = { ...newManifest(), ...stored };
    manifest.document = { ...manifest.document, ...stored, tags: [...INHERITED, "__proto__"] };
    const reply = await service.post("/attestations", submission(signer, manifest));
    expect(reply.status, reply.text).toBe(200);
    for (const name of [...INHERITED, "__proto__"]) {
      const { entries, total } = (await service.get(`/log?tags=${name}`)).body;
      expect([total, entries[0].id]).toEqual([1, reply.body.log_entry_id]);
    }
    const { body: verdict } = await service.post("/verify", {
      manifest: { ...manifest, attestations: [reply.body.attestation] },
      source_hash: manifest.document.content_hash,
    });
    expect(verdict.layer1.status).toBe("valid");
    // A manifest without one of these members is another manifest.
    const { toString: _, ...less } = manifest;
    const forged = { ...submission(signer, manifest), manifest: less };
    expectProblem(await service.post("/attestations", forged), 422, "invalid-signature");
    expect(canonical(less)).not.toBe(canonical(manifest));
  });

  test("a policy sees the claims of a request, and nothing that objects have by themselves", async () => {
    const holder = newSigner();
    await service.post("/keys/register", registration(holder));
    const login = async () => {
      const { body } = await service.post("/auth/challenge", { fingerprint: holder.fingerprint });
      const proof = { challenge_id: body.challenge_id, challenge_signature: holder.sign(body.nonce) };
      return `Bearer ${(await service.post("/auth/login", proof)).body.token}`;
    };
    const policy = {
      predicates: { any: INHERITED.map((name) => ({ field: `claims.${name}`, op: "exists", value: true })) },
      default_action_on_failure: "decline",
    };
    expect((await service.post("/log/request-policies", policy, { authorization: await login() })).status).toBe(200);
    const ask = async (claims: object) => {
      const body = {
        target_fingerprint: holder.fingerprint,
        attestation_type: "authorship",
        nonce: crypto.randomUUID(),
      };
      return (await service.post("/log/attestation-requests", { ...body, claims }, { authorization })).body.status;
    };
    expect(await ask({ a: 1 })).toBe("declined");
    expect(await ask({ a: { constructor: 1 } })).toBe("declined");
    expect(await ask({ constructor: 1 })).toBe("open");
    expect(await ask(stored)).toBe("open");
  });

  test("texts keep their characters: line separators, marks of direction, what lies beyond the first plane", async () => {
    const odd = "\u2028\u2029\u202e\u2066\u200b\ufeff𝒜🪨\u{10ffff}\ufffe";
    const manifest = newManifest(odd);
    const reply = await service.post(
      "/attestations",
      submission(signer, manifest, { intent_statement: `${odd}\r\nx` }),
    );
    expect(reply.status, reply.text).toBe(200);
    const entry = (await service.get(`/log/${reply.body.log_entry_id}`)).body;
    expect(entry.payload).toMatchObject({ document_title: odd, intent_statement: `${odd}\r\nx` });
  });
});

describe("names that people choose never reach a header", () => {
  const breaking = ["a\r\nX-Injected: 1", "a\nb", "a\rb", "a\0b", "a\u0085b", "\u007f", "a\u001bb"];

  test.each(breaking)("%j is not a pseudonym, display name or device label", async (name) => {
    expectProblem(await service.post("/keys/register", registration(newSigner(), name)), 422, "invalid-input");
    expectProblem(
      await service.post("/attestations", submission(newSigner(), newManifest(), { pseudonym: name })),
      422,
    );
    const account = { display_name: "Ada", email: "ada@example.org", credential_type: "software", device_label: "a" };
    for (const member of ["display_name", "email", "device_label"]) {
      const body = { ...account, key_fingerprint: signer.fingerprint, [member]: name };
      expectProblem(await service.post("/users", body), 422, "invalid-input");
    }
  });

  test.each([...breaking.map((text) => `https://example.org/${text}`), "https://example.org/ HTTP/1.1", "\thttps://a"])(
    "%j is no webhook address",
    async (url) => {
      expectProblem(await service.post("/webhooks", { url }, { authorization }), 422, "invalid-input");
    },
  );

  test("a request id with anything else than its characters is replaced, and nothing of it comes back", async () => {
    const ids = ["a b", "a\tb", "a:b", "a;b", "a%0d%0ab", "é", "a\u00a0b", "x".repeat(129), '"', "<b>", "a\u0085b"];
    for (const id of ids) {
      const head = `GET /api/v1/health HTTP/1.1\r\nHost: x\r\nX-Request-Id: ${id}\r\n\r\n`;
      const received = await service.raw(Buffer.from(head, "latin1"));
      expect(received.match(/^x-request-id: (.*)\r$/im)?.[1], id).toMatch(/^[0-9a-f-]{36}$/);
    }
  });

  test("control characters within a header are no HTTP: no answer, and no header of theirs", async () => {
    for (const id of ["a\rX-Injected: 1", "a\nX-Injected: 1", "a\0b", "a\r\n X-Injected: 1"]) {
      const received = await service.raw(`GET /api/v1/health HTTP/1.1\r\nHost: x\r\nX-Request-Id: ${id}\r\n\r\n`, 200);
      expect(received).not.toMatch(/injected/i);
    }
  });
});

describe("paths and queries", () => {
  const odd = [
    "%00",
    "%2e%2e",
    "%2e%2e%2f",
    "%252e%252e",
    "%",
    "%2",
    "%zz",
    "%c0%ae",
    "%c0%af",
    "%ed%a0%80",
    "%ff",
    "a%0d%0ab",
  ];
  odd.push(
    "%u0061",
    "1%00",
    "1%20",
    "%31%00",
    "..",
    ".",
    "~",
    ";",
    "1;a=b",
    "é".normalize("NFD"),
    "-1",
    "1e3",
    "0x1",
    "1.0",
  );

  test.each(odd)("%s names nothing, in any path", async (part) => {
    for (const { path } of routes.GET) {
      if (!path.includes("{")) continue;
      const target = filled(path, part);
      const received = await service.raw(
        Buffer.from(`GET ${target} HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\n\r\n`, "utf8"),
      );
      // A path with fewer parts may be another route's.
      expect(received, target).toMatch(/^HTTP\/1\.1 (404|422) /);
    }
  });

  test("a parameter that is given twice is refused, wherever there is one", async () => {
    for (const { path, query } of routes.GET)
      for (const name of query)
        for (const twice of [
          `${name}=1&${name}=1`,
          `${name}=1&${name.replace(/^./, (c) => `%${c.charCodeAt(0).toString(16)}`)}=2`,
        ]) {
          const reply = await service.send("GET", `${filled(path, "1")}?${twice}`, { headers: { authorization } });
          expect([401, 404, 422], `${path}?${twice}`).toContain(reply.status);
        }
  });

  test("a query with invalid percent-encoding is plain text", async () => {
    for (const query of ["page=%", "page=%zz", "page=%ff", "page=%00", "page=1%00", "page=%EF%BB%BF1", "page=１"])
      expectProblem(await service.get(`/log?${query}`), 422, "invalid-input");
    for (const query of ["%=1", "%zz", "=&=&&", "a=%ff", `${"a=1&".repeat(500)}a`])
      expect((await service.get(`/log?${query}`)).status).toBe(200);
  });
});

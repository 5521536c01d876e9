/** Many attestations by one call: in few requests, each verified like a single one, and lies about any of them noticed. */
import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { type TreeHead, verifyBundle } from "#cairnlog/engine/verify/index.js";
import {
  type AttestOutcome,
  createClient,
  memoryStore,
  type Store,
  type Subject,
} from "#cairnlog/server/client/index.js";
import { manifestToSign } from "#cairnlog/server/client/signing/attestations.js";
import { anyEvent } from "../anyevent.js";
import { startTestService, type TestService, temporaryFolder } from "../server/harness.js";
import { newManifest, newSigner, submission } from "../server/signers.js";
import { all, asSigner, conviction, failure, newClient } from "./clients.js";

let service: TestService;
const dataDir = temporaryFolder();
const operatorPem = () => readFileSync(join(dataDir, "operator.pem"), "utf8");
beforeAll(async () => {
  service = await startTestService({ SERVICE_DATA_DIR: dataDir });
  // An odd number of entries, of several complete subtrees.
  await service.server.registry.log.append(Array.from({ length: 43 }, (_, n) => anyEvent({ n })));
});

const documents = (count: number) =>
  Array.from({ length: count }, (_, i) => ({
    title: `Document ${i}`,
    content_hash: newManifest().document.content_hash,
  }));

interface Batch {
  readonly results: { receipt: object }[];
}

/** A fetch that counts requests, by method and path without numbers and query. */
function counting(inner: typeof fetch = fetch) {
  const counts: Record<string, number> = {};
  const fetcher: typeof fetch = (input, init) => {
    const path = String(input)
      .replace(/^.*\/api\/v1/, "")
      .replace(/\?.*/, "")
      .replace(/\/\d+/g, "/N");
    const name = `${init?.method ?? "GET"} ${path}`;
    counts[name] = (counts[name] ?? 0) + 1;
    return inner(input, init);
  };
  return { counts, fetcher };
}

/** A head with a signature by a key, made from its definition. */
function signed(head: TreeHead, key: string | KeyObject): TreeHead {
  const { root_hash, tree_size, timestamp } = head;
  const signature = sign(null, Buffer.from(`${root_hash}:${tree_size}:${timestamp}`), key).toString("base64");
  return { ...head, signature };
}

async function expectVerified<S extends Subject>(outcome: AttestOutcome<S>, url: string): Promise<void> {
  expect(outcome.error).toBeUndefined();
  const { manifest } = outcome.bundle!;
  const operatorKey = await createClient({ server: url }).log.operatorKey();
  const trust = { fileHash: manifest.document.content_hash, operatorKey };
  expect(await verifyBundle(JSON.parse(JSON.stringify(outcome.bundle)), trust)).toMatchObject({ valid: true });
}

describe("attestAll", () => {
  test("attests all in order, and gives for each what attest gives", async () => {
    const { client } = newClient(service.url);
    const subjects = documents(25);
    const outcomes = await all(
      client.attestAll(subjects, { type: "peer_review", intent: "I read it.", pseudonym: "Ada" }),
    );
    expect(outcomes.map(({ subject }) => subject)).toEqual(subjects);
    const first = outcomes[0]!.receipt!.leaf_index;
    expect(outcomes.map(({ receipt }) => receipt!.leaf_index)).toEqual(subjects.map((_, i) => first + i));
    for (const outcome of outcomes) await expectVerified(outcome, service.url);
    const again = await client.attest(subjects[7]!, { type: "peer_review", intent: "I read it." });
    expect(again.receipt).toEqual({ ...outcomes[7]!.receipt, duplicate: true });
    expect(again.bundle).toEqual(outcomes[7]!.bundle);
  });

  test("takes few requests, for entries that are new and for those that are there", async () => {
    const { counts, fetcher } = counting();
    const { client } = newClient(service.url, { fetch: fetcher });
    const subjects = documents(230);
    for (let round = 0; round < 2; round++) {
      for (const name of Object.keys(counts)) delete counts[name];
      const outcomes = await all(client.attestAll(subjects, { pseudonym: "Ada" }));
      expect(outcomes.map(({ receipt }) => receipt!.duplicate)).toEqual(subjects.map(() => round === 1));
      await expectVerified(outcomes[229]!, service.url);
      const { "GET /log": pages, ...others } = counts;
      expect(pages).toBeLessThanOrEqual(3);
      expect(Object.values(others).reduce((a, b) => a + b)).toBeLessThanOrEqual(8);
      expect(others).toMatchObject({ "POST /attestations/batch": 1, "GET /log/proof/N": 1 });
    }
  });

  test("sends at most 1000 in one request", async () => {
    const sent: number[] = [];
    const problem = { type: "about:blank", title: "Forbidden", status: 403, detail: "No.", code: "forbidden" };
    const { client } = newClient(service.url, {
      fetch: async (input, init) => {
        if (!String(input).endsWith("/batch")) return fetch(input, init);
        const { submissions } = JSON.parse(`${init!.body}`);
        sent.push(submissions.length);
        return Response.json({ results: Array(submissions.length).fill({ status: 403, problem }) });
      },
    });
    const outcomes = await all(client.attestAll(documents(2_001)));
    expect(outcomes.filter(({ error }) => error?.code === "forbidden")).toHaveLength(2_001);
    expect(sent).toEqual([1_000, 1_000, 1]);
  });

  test("does not keep the thread to itself while it verifies", async () => {
    const { client } = newClient(service.url, {
      fetch: async (input, init) => {
        const response = await fetch(input, init);
        // The last answer before the receipts are verified.
        if (/\/log\?/.test(String(input))) for (let n = 0; n < 3; n++) setTimeout(() => turns++, n);
        return response;
      },
    });
    let turns = 0;
    let turnsBefore: number | undefined;
    for await (const _ of client.attestAll(documents(40))) turnsBefore ??= turns;
    expect(turnsBefore).toBe(3);
  });

  test("attests each as it was when it came, though all are one object with other members", async () => {
    const { client } = newClient(service.url);
    const subject = { title: "", content_hash: "" };
    const asked = documents(3);
    const outcomes = await all(
      client.attestAll(
        (function* () {
          for (const document of asked) yield Object.assign(subject, document);
        })(),
      ),
    );
    expect(outcomes.map(({ bundle }) => bundle?.manifest.document)).toMatchObject(asked);
    expect(outcomes.map(({ receipt }) => receipt?.duplicate ?? false)).toEqual([false, false, false]);
    const one = client.attest(Object.assign(subject, documents(1)[0]!, { title: "As it is" }));
    subject.title = "As it was to be";
    expect((await one).bundle.manifest.document.title).toBe("As it is");
  });

  test("takes subjects as they come, and none at all", async () => {
    const { client } = newClient(service.url);
    async function* later() {
      yield* documents(2);
    }
    expect(await all(client.attestAll(later()))).toHaveLength(2);
    expect(await all(client.attestAll([]))).toEqual([]);
  });

  test("reports what is refused, and goes on", async () => {
    const { client } = newClient(service.url);
    const [one, two] = documents(2);
    const outcomes = await all(client.attestAll([one!, { ...two!, content_hash: "abc" }, two!]));
    expect(outcomes.map(({ error }) => error?.code)).toEqual([undefined, "invalid-input", undefined]);
    expect(outcomes[1]!.error).toMatchObject({ status: 422, errors: [{ path: "/manifest/document/content_hash" }] });
  });

  test("shows that it holds the key where the log wants it", async () => {
    const { client } = newClient(service.url);
    const prior = (await client.attest(documents(1)[0]!)).receipt.attestation;
    // A manifest that has attestations is signed unchanged, so the same signature serves for every type.
    const manifest = { document: documents(1)[0]!, attestations: [prior] };
    await client.attest(manifest, { type: "authorship" });
    const outcomes = await all(client.attestAll([...documents(1), manifest, ...documents(1)], { type: "peer_review" }));
    for (const outcome of outcomes) await expectVerified(outcome, service.url);
    expect(outcomes[1]!.receipt).toMatchObject({ attestation: { type: "peer_review" }, duplicate: false });
  });

  test.each([
    ["no-answer", () => Promise.reject(new TypeError("fetch failed"))],
    ["malformed-answer", async () => new Response("<html>", { status: 503 })],
    [
      "unsafe-challenge",
      async (...request: Parameters<typeof fetch>) =>
        Response.json({ ...(await (await fetch(...request)).json()), origin: "https://other.example" }),
    ],
  ] as const)("where that cannot be shown (%s), the receipts of all others are given", async (code, challenge) => {
    const { client } = newClient(service.url, {
      fetch: (...request) =>
        String(request[0]).endsWith("/auth/challenge") ? challenge(...request) : fetch(...request),
    });
    const prior = (await client.attest(documents(1)[0]!)).receipt.attestation;
    const manifest = { document: documents(1)[0]!, attestations: [prior] };
    await client.attest(manifest, { type: "authorship" });
    const outcomes = await all(client.attestAll([...documents(1), manifest, ...documents(1)], { type: "peer_review" }));
    expect(outcomes.map(({ error }) => error?.code)).toEqual([undefined, code, undefined]);
    for (const outcome of [outcomes[0]!, outcomes[2]!]) await expectVerified(outcome, service.url);
  });

  test("finds entries that lie far apart in the log, and between others", async () => {
    const { log } = service.server.registry;
    const { client } = newClient(service.url);
    const subjects = documents(6);
    for (const [i, subject] of subjects.entries()) {
      await client.attest(subject);
      await log.append(Array.from({ length: i === 2 ? 300 : 3 * i + 1 }, (_, n) => anyEvent({ n })));
    }
    const mixed = [...subjects, ...documents(2), subjects[3]!];
    const outcomes = await all(client.attestAll(mixed));
    expect(outcomes.map(({ receipt }) => receipt!.duplicate)).toEqual([...Array(6).fill(true), false, false, true]);
    for (const outcome of outcomes) await expectVerified(outcome, service.url);
  });

  test("works from the first entry of a log on", async () => {
    const empty = await startTestService();
    const { client } = newClient(empty.url);
    const outcomes = await all(client.attestAll(documents(9)));
    expect(outcomes[0]!.receipt!.leaf_index).toBe(1);
    for (const outcome of outcomes) await expectVerified(outcome, empty.url);
  });
});

describe("where the service takes less at once", () => {
  test("the limit has fewer left: these are sent, and the error says how long the rest has to wait", async () => {
    const limited = await startTestService({ SERVICE_RATE_LIMITS: "on", SERVICE_RATE_LIMIT_ATTESTATION: "7" });
    const { client } = newClient(limited.url);
    await client.attest(documents(1)[0]!);
    const outcomes: unknown[] = [];
    const error = await failure(
      (async () => {
        for await (const outcome of client.attestAll(documents(20))) outcomes.push(outcome);
      })(),
    );
    expect(error).toMatchObject({ code: "rate-limited", status: 429, retryAfter: expect.any(Number), remaining: 0 });
    expect(outcomes).toHaveLength(6);
  });

  test("bodies that are too large are sent in parts; one that is too large alone is refused alone", async () => {
    const small = await startTestService({ SERVICE_MAX_BODY_BYTES: "2048" });
    const { client } = newClient(small.url);
    const large = { ...documents(1)[0]!, padding: "x".repeat(7_000) };
    const subjects = [...documents(30), large, ...documents(3)];
    const outcomes = await all(client.attestAll(subjects));
    expect(outcomes.map(({ subject }) => subject)).toEqual(subjects);
    expect(outcomes.map(({ error }) => error?.status)).toEqual([
      ...Array(30).fill(undefined),
      413,
      ...Array(3).fill(undefined),
    ]);
    for (const outcome of [outcomes[0]!, outcomes[33]!]) await expectVerified(outcome, small.url);
  });

  test("manifests with too many members are sent in parts", async () => {
    const { client } = newClient(service.url);
    const wide = documents(4).map((document) => ({
      ...document,
      ...Object.fromEntries(Array.from({ length: 9_000 }, (_, i) => [`member ${i}`, i])),
    }));
    const outcomes = await all(client.attestAll(wide));
    expect(outcomes.map(({ subject, receipt }) => receipt && subject)).toEqual(wide);
  });
});

describe("a service that lies", () => {
  /** A client whose service answers a path with something else. */
  // biome-ignore lint/suspicious/noExplicitAny: lies are told about answers of every shape
  function lied(path: RegExp, lie: (answer: any) => unknown, store: Store = memoryStore(), signer = newSigner()) {
    return createClient({
      server: service.url,
      store,
      signer: asSigner(signer),
      fetch: async (input, init) => {
        const response = await fetch(input, init);
        if (!path.test(String(input).replace(/^.*\/api\/v1/, ""))) return response;
        const answer = await response.json();
        lie(answer);
        return new Response(JSON.stringify(answer), { status: response.status });
      },
    });
  }
  const batch = /^\/attestations\/batch$/;
  const list = /^\/log\?/;
  const zeros = "0".repeat(64);
  /** Changes members of the fourth receipt. */
  const fourth = (members: object) =>
    [batch, ({ results }: Batch) => Object.assign(results[3]!.receipt, members)] as const;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  const LIES: Readonly<Record<string, readonly [RegExp, (answer: any) => unknown]>> = {
    "a head of another root": [batch, ({ results }) => Object.assign(results[3].receipt.sth, { root_hash: zeros })],
    "the receipt of another": [batch, ({ results }) => Object.assign(results[3], { receipt: results[2].receipt })],
    "receipts in another order": [batch, ({ results }) => results.reverse()],
    "another leaf": [batch, ({ results }) => results[3].receipt.leaf_index++],
    "another entry": [batch, ({ results }) => results[3].receipt.log_entry_id++],
    "another hash": fourth({ entry_hash: zeros }),
    "no head": fourth({ sth: null }),
    "another manifest": fourth({ manifest_hash: zeros }),
    "another type": [batch, ({ results }) => Object.assign(results[3].receipt.attestation, { type: "publication" })],
    "a listed entry with another payload": [
      list,
      ({ entries }) => Object.assign(entries.at(-2).payload, { document_title: "x" }),
    ],
    "a listed entry of another hash": [list, ({ entries }) => Object.assign(entries.at(-2), { entry_hash: zeros })],
    "a listed entry of another id": [list, ({ entries }) => entries.at(-2).id++],
    "a list that ends too soon": [list, ({ entries }) => entries.pop()],
    "a proof with another path": [/^\/log\/proof/, ({ audit_path }) => audit_path.fill(zeros)],
    "a proof without a path": [/^\/log\/proof/, ({ audit_path }) => audit_path.splice(0)],
  };

  test.each(Object.entries(LIES))("%s: is convicted", async (_, [path, lie]) => {
    const evidence = await conviction(all(lied(path, lie).attestAll(documents(5))));
    expect(evidence).toHaveProperty("shown");
  });

  const FORGERIES: Readonly<Record<string, (head: TreeHead, operator: string) => TreeHead>> = {
    "signed by another key": (head) => signed(head, generateKeyPairSync("ed25519").privateKey),
    "with a signature of nobody": (head) => ({ ...head, signature: Buffer.alloc(64, 1).toString("base64") }),
    "of another time, under the old signature": (head) => ({ ...head, timestamp: "2026-01-01T00:00:00.000000Z" }),
    "of another root, signed by the operator": (head, key) => signed({ ...head, root_hash: zeros }, key),
    "of another size, signed by the operator": (head, key) => signed({ ...head, tree_size: head.tree_size + 1 }, key),
    "of a smaller size, signed by the operator": (head, key) => signed({ ...head, tree_size: head.tree_size - 1 }, key),
  };
  describe.each([
    ["first", 0],
    ["middle", 2],
    ["last", 4],
  ])("in the head of the %s of five receipts", (_, place) => {
    test.each(Object.entries(FORGERIES))("%s: is convicted, and the head is not kept", async (__, forge) => {
      const store = memoryStore();
      let forged: TreeHead | undefined;
      const client = lied(
        batch,
        ({ results }) => {
          const { receipt } = results[place];
          forged = receipt.sth = forge(receipt.sth, operatorPem());
        },
        store,
      );
      await conviction(all(client.attestAll(documents(5))));
      expect(forged).toBeDefined();
      const { head } = (await store.load())!;
      expect(head).not.toEqual(forged);
      if (head)
        expect((await service.get(`/log/sth/${head.tree_size}`)).body).toMatchObject({ root_hash: head.root_hash });
    });

    test("another one of the same tree, signed by the operator, is none: a tree may have several", async () => {
      const client = lied(batch, ({ results }) => {
        const { receipt } = results[place];
        receipt.sth = signed({ ...receipt.sth, timestamp: new Date().toISOString() }, operatorPem());
      });
      expect((await all(client.attestAll(documents(5)))).map(({ error }) => error)).toEqual(Array(5).fill(undefined));
    });
  });

  test.each([0, 1])(
    "of two receipts for one leaf, number %i with a signature of nobody: is convicted",
    async (place) => {
      const client = lied(batch, ({ results }) => {
        const { receipt } = results[place];
        receipt.sth = { ...receipt.sth, signature: Buffer.alloc(64, 1).toString("base64") };
      });
      const [subject] = documents(1) as [Subject];
      await conviction(all(client.attestAll([subject, subject])));
    },
  );

  // biome-ignore lint/suspicious/noExplicitAny: as above
  const DISGUISES: Readonly<Record<string, (registration: any) => unknown>> = {
    "as it is": () => {},
    "with another signature of the key": ({ payload }) => Object.assign(payload, { possession_signature: zeros }),
    "as something else": (registration) => Object.assign(registration, { event_type: "note" }),
    "without its payload": (registration) => Object.assign(registration, { payload: null, withheld_by: 1 }),
  };
  test.each(Object.entries(DISGUISES))(
    "the name that the key was registered under, the registration listed %s: is convicted",
    async (_, disguise) => {
      // A stranger has recorded the key, and it has attested without naming itself.
      const signer = newSigner();
      const payload = { public_key: signer.publicKey, pseudonym: "Mallory", key_algorithm: "ed25519" };
      expect((await service.post("/keys/register", { payload })).status).toBe(200);
      const [old, next] = documents(2) as [Subject, Subject];
      await service.post("/attestations", submission(signer, manifestToSign(old, {}) as never));
      let listed = 0;
      const client = lied(
        /^\/attestations\/batch$|^\/log\?/,
        ({ results, entries }) => {
          if (results) results[1].receipt.pseudonym = "Mallory";
          else if (entries.at(-2).event_type === "key_registration") {
            listed++;
            disguise(entries.at(-2));
          }
        },
        memoryStore(),
        signer,
      );
      await conviction(all(client.attestAll([old, next], { pseudonym: "Ada" })));
      expect(listed).toBe(1);
    },
  );

  describe("in the second of two requests", () => {
    /** Takes two submissions at once, and lies about the second two. */
    // biome-ignore lint/suspicious/noExplicitAny: as above
    function liedLater(lie: (answer: any) => unknown) {
      let requests = 0;
      const { signer } = newClient(service.url);
      const tooMany = { type: "about:blank", title: "No", status: 413, detail: "Too much.", code: "payload-too-large" };
      return createClient({
        server: service.url,
        signer: asSigner(signer),
        async fetch(input, init) {
          if (!String(input).endsWith("/attestations/batch")) return fetch(input, init);
          if (JSON.parse(`${init!.body}`).submissions.length > 2)
            return new Response(JSON.stringify(tooMany), { status: 413 });
          const answer = await (await fetch(input, init)).json();
          if (++requests === 2) lie(answer);
          return new Response(JSON.stringify(answer));
        },
      });
    }

    test("a wrong receipt: the error tells what was recorded of that request, and nothing of the one before", async () => {
      const client = liedLater(({ results }) => Object.assign(results[1].receipt, { entry_hash: zeros }));
      const subjects = documents(4);
      const outcomes: unknown[] = [];
      const work = (async () => {
        for await (const { subject, receipt } of client.attestAll(subjects))
          outcomes.push([subject, receipt?.duplicate]);
      })();
      const { code, unverified } = await failure(work);
      expect(code).toBe("log-misbehaved");
      expect(outcomes).toEqual(subjects.slice(0, 2).map((subject) => [subject, false]));
      expect(unverified!.map(({ subject }) => subject)).toEqual(subjects.slice(2));
    });

    test("an entry of the first one that is said to be new is convicted", async () => {
      const client = liedLater(({ results }) => Object.assign(results[0].receipt, { duplicate: false }));
      const [one, two] = documents(2) as [Subject, Subject];
      await conviction(all(client.attestAll([one, two, one, two])));
    });
  });

  test("receipts of another log of the same operator are convicted by the head that was seen before", async () => {
    const known = (await service.get("/log/sth")).body as TreeHead;
    const fork = await startTestService({ SERVICE_OPERATOR_KEY: join(dataDir, "operator.pem") });
    const { log } = fork.server.registry;
    await log.append(Array.from({ length: known.tree_size + 3 }, (_, n) => anyEvent({ fork: n })));
    const store = memoryStore();
    let server = service.url;
    const { client } = newClient(service.url, {
      store,
      fetch: (input, init) => fetch(String(input).replace(service.url, server), init),
    });
    await client.log.head();
    server = fork.url;
    const evidence = await conviction(all(client.attestAll(documents(3))));
    expect(evidence.known).toEqual(known);
    expect((await store.load())!.head).toEqual(known);
  });

  test("fewer results than submissions are no answer", async () => {
    const client = lied(batch, ({ results }) => void results.pop());
    expect(await failure(all(client.attestAll(documents(3))))).toMatchObject({ code: "malformed-answer" });
  });
});

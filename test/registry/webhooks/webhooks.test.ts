/** Webhook subscriptions: who may create which, and which entries each selects. */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import type { EventInput } from "#cairnlog/engine/log/state/projection.js";
import type { LogWriter } from "#cairnlog/engine/log/writer.js";
import type { WebhookInput } from "#cairnlog/engine/registry/webhooks/input.js";
import { Selection, type WebhookFilter } from "#cairnlog/engine/registry/webhooks/subscriptions.js";
import { Webhooks } from "#cairnlog/engine/registry/webhooks/webhooks.js";
import { Writes } from "#cairnlog/engine/registry/writes/writes.js";
import { runIn } from "../../log/inline.js";
import { at, BASE, closeWorlds, failure, newFolder, openWorld, sha256, type World } from "../world.js";

afterAll(closeWorlds);

const OWNER = `sha256:${"a".repeat(64)}`;
const OTHER = `sha256:${"b".repeat(64)}`;
const KEY = `sha256:${"c".repeat(64)}`;
const DOCUMENT = `sha256:${"d".repeat(64)}`;
const URL = "https://receiver.example/hook";
const all: WebhookInput = { url: URL };
const note = (payload: Record<string, unknown> = {}): EventInput => ({ event_type: "key_registration", payload });

describe("a subscription", () => {
  let world: World;
  beforeAll(async () => {
    world = await openWorld();
  });
  const subscribe = (input: unknown, owner = OWNER) => world.registry.webhooks.subscribe(input as WebhookInput, owner);

  it("is as its owner requested, without the secret", async () => {
    const webhook = await subscribe({
      url: URL,
      events: ["key.revoked", "key.registered", "key.revoked"],
      key_fingerprint: "C".repeat(64),
      document_hash: "d".repeat(64),
      secret: "sixteen letters!",
    });
    expect(webhook).toEqual({
      id: 1,
      url: URL,
      events: ["key.revoked", "key.registered"],
      key_fingerprint: KEY,
      document_hash: DOCUMENT,
      active: true,
      healthy: true,
      retry_count: 0,
      created_at: at(world.now),
    });
    expect(world.registry.webhooks.list(OWNER)).toEqual([webhook]);
  });

  it("may leave everything but the URL away, or null", async () => {
    const absent = await subscribe(all);
    const nulls = await subscribe({ url: URL, events: null, key_fingerprint: null, document_hash: null, secret: null });
    expect(absent).toMatchObject({ events: [], key_fingerprint: null, document_hash: null });
    expect(nulls).toEqual({ ...absent, id: absent.id + 1 });
  });

  const wrong: [string, unknown, string[]][] = [
    ["no object", "text", [""]],
    ["no URL", {}, ["/url"]],
    ["a relative URL", { url: "/hook" }, ["/url"]],
    ["another scheme", { url: "ftp://receiver.example/" }, ["/url"]],
    ["javascript", { url: "javascript:alert(1)" }, ["/url"]],
    ["a file", { url: "file:///etc/passwd" }, ["/url"]],
    ["credentials", { url: "https://user:secret@receiver.example/" }, ["/url"]],
    ["a user name", { url: "https://user@receiver.example/" }, ["/url"]],
    ["a fragment", { url: "https://receiver.example/#top" }, ["/url"]],
    ["a blank", { url: "https://receiver.example/a b" }, ["/url"]],
    ["a line break that the URL parser drops", { url: "https://receiver.example/a\nb" }, ["/url"]],
    ["a blank before it", { url: " https://receiver.example/" }, ["/url"]],
    ["too long an URL", { url: `https://receiver.example/${"a".repeat(2048)}` }, ["/url"]],
    ["a loopback address", { url: "http://127.0.0.1/" }, ["/url"]],
    ["a loopback address in one number", { url: "http://2130706433/" }, ["/url"]],
    ["a loopback address in hex", { url: "http://0x7f000001/" }, ["/url"]],
    ["a loopback address in octal", { url: "http://017700000001/" }, ["/url"]],
    ["a short loopback address", { url: "http://127.1/" }, ["/url"]],
    ["an IPv4-mapped address", { url: "http://[::ffff:127.0.0.1]/" }, ["/url"]],
    ["IPv6 loopback", { url: "http://[::1]/" }, ["/url"]],
    ["localhost", { url: "http://localhost:9200/" }, ["/url"]],
    ["a name below localhost", { url: "http://db.localhost./" }, ["/url"]],
    ["cloud metadata", { url: "http://169.254.169.254/latest/meta-data/" }, ["/url"]],
    ["a private network", { url: "http://10.1.2.3/" }, ["/url"]],
    ["events that are no list", { ...all, events: "key.revoked" }, ["/events"]],
    ["an unknown event", { ...all, events: ["key.revoked", "key.expired"] }, ["/events"]],
    ["a fingerprint that is none", { ...all, key_fingerprint: "abc" }, ["/key_fingerprint"]],
    ["a document hash that is none", { ...all, document_hash: 7 }, ["/document_hash"]],
    ["a short secret", { ...all, secret: "x".repeat(15) }, ["/secret"]],
    ["a long secret", { ...all, secret: "x".repeat(257) }, ["/secret"]],
    ["half a surrogate pair as secret", { ...all, secret: `${"x".repeat(16)}\ud800` }, ["/secret"]],
    ["a secret that promises base64", { ...all, secret: "whsec_not base64!!!" }, ["/secret"]],
    ["everything at once", { url: "", events: [1], secret: "" }, ["/url", "/events", "/secret"]],
  ];
  it.each(wrong)("is refused for %s", async (_, input, paths) => {
    expect(await failure(() => subscribe(input))).toMatchObject({ code: "invalid-input", paths });
  });

  it.each([
    "http://receiver.example",
    "https://receiver.example:8443/a/path?token=1",
    "https://93.184.215.14/",
    "https://[2606:4700::1111]/",
    "https://bücher.example/",
    `https://receiver.example/${"a".repeat(2048 - 25)}`,
  ])("may have the URL %s, and shows it as it was sent", async (url) => {
    expect((await subscribe({ url })).url).toBe(url);
  });

  it.each(["x".repeat(16), "x".repeat(256), "木".repeat(256), "whsec_AAAAAAAAAAAAAAAA"])(
    "may have the secret %s",
    async (secret) => {
      expect(JSON.stringify(await subscribe({ ...all, secret }))).not.toContain(secret);
    },
  );

  it("belongs to its key; the operator sees all", async () => {
    const own = await subscribe(all);
    const others = await subscribe(all, OTHER);
    const { webhooks } = world.registry;
    const ids = (asker: string) => webhooks.list(asker).map(({ id }) => id);
    expect(ids(OTHER)).toEqual([others.id]);
    expect(ids(OWNER)).toContain(own.id);
    expect(ids(OWNER)).not.toContain(others.id);
    expect(ids(world.operator.fingerprint)).toEqual(expect.arrayContaining([own.id, others.id]));
    expect(await failure(() => webhooks.deactivate(others.id, OWNER))).toMatchObject({ code: "not-found" });
    expect(await webhooks.deactivate(others.id, world.operator.fingerprint)).toEqual({ ...others, active: false });
    expect(ids(OTHER)).toEqual([]);
  });

  it("ends once, and its id is never given again", async () => {
    const { id } = await subscribe(all);
    const { webhooks } = world.registry;
    await webhooks.deactivate(id, OWNER);
    expect(await failure(() => webhooks.deactivate(id, OWNER))).toMatchObject({ code: "not-found" });
    expect(await failure(() => webhooks.deactivate(12345, OWNER))).toMatchObject({ code: "not-found" });
    expect((await subscribe(all)).id).toBe(id + 1);
    await world.reopen();
    expect((await subscribe(all)).id).toBe(id + 2);
  });

  const many = (count: number, owner: string, url: (i: number) => string) =>
    Promise.allSettled(Array.from({ length: count }, (_, i) => subscribe({ ...all, url: url(i) }, owner)));
  const accepted = (outcomes: readonly { readonly status: string }[]) =>
    outcomes.filter(({ status }) => status === "fulfilled").length;

  it("is one of twenty that a key may have", async () => {
    world = await openWorld();
    const outcomes = await many(21, OWNER, (i) => `https://r${i}.example/`);
    expect(accepted(outcomes)).toBe(20);
    expect(outcomes.at(-1)).toMatchObject({ reason: { code: "precondition-failed" } });
    await world.registry.webhooks.deactivate(7, OWNER);
    await subscribe(all);
  });

  it("is one of a hundred that a host may have, however its URL is spelt", async () => {
    world = await openWorld();
    const spellings = ["https://receiver.example/a", "http://RECEIVER.example:8080/b", "https://receiver.example./c?d"];
    const owner = (key: number) => `sha256:${sha256(`${key}`)}`;
    for (let key = 0; key < 5; key++) expect(accepted(await many(20, owner(key), (i) => spellings[i % 3]!))).toBe(20);
    for (const url of spellings)
      expect(await failure(() => subscribe({ ...all, url }, OTHER))).toMatchObject({
        code: "precondition-failed",
        message: expect.stringContaining("receiver.example"),
      });
    await subscribe({ ...all, url: "https://other.example/" }, OTHER);
    await world.registry.webhooks.deactivate(1, owner(0));
    await subscribe({ ...all, url: spellings[0]! }, OTHER);
  });

  it("is one of twenty that an address may make in 24 hours, whatever keys it has and however often it restarts", async () => {
    world = await openWorld();
    const client = { address: "192.0.2.7" };
    const make = (key: number, from = client) =>
      world.registry.webhooks.subscribe({ url: `https://r${key}.example/` }, `sha256:${sha256(`${key}`)}`, from);
    for (let key = 0; key < 20; key++) await make(key);
    await world.registry.webhooks.deactivate(1, `sha256:${sha256("0")}`);
    await world.reopen();
    expect(await failure(() => make(20))).toMatchObject({
      code: "precondition-failed",
      message: expect.stringMatching(/20 webhooks in 24 hours/),
    });
    await make(20, { address: "192.0.2.8" });
    world.now += 86_400 * 1_000_000;
    await make(21);
  });

  it("is one of 5,000 of all keys that no anchor reaches, which take nothing from those that one reaches", async () => {
    world = await openWorld(newFolder(), generatePrivateKey("ed25519"), { webhooksPerAddress: null });
    const client = { address: "192.0.2.7" };
    await runIn(world.registry.log, (transaction) => {
      const row = {
        events: [],
        key_fingerprint: null,
        document_hash: null,
        secret: null,
        healthy: true,
        retry_count: 0,
      };
      const more = { next_probe_at: null, created_at: transaction.timestamp, since: 0 };
      for (let id = 1; id < 5_000; id++)
        transaction.put("webhooks", id, {
          ...{ ...row, ...more, url: `https://r${id}.example/`, owner_fingerprint: `sha256:${sha256(`${id}`)}` },
        });
      transaction.put("counters", "webhook", { last: 4_999 });
    });
    const { webhooks } = world.registry;
    await webhooks.subscribe(all, OTHER, client);
    const refused = {
      code: "precondition-failed",
      message: expect.stringMatching(/5000 webhooks of keys that no trust anchor/),
    };
    expect(await failure(() => webhooks.subscribe(all, OWNER, client))).toMatchObject(refused);
    // Nor while it cannot be known whom one reaches.
    vi.spyOn(world.registry.trust, "reaches").mockRejectedValueOnce(new Error("overloaded"));
    expect(await failure(() => webhooks.subscribe(all, world.operator.fingerprint, client))).toMatchObject(refused);
    await webhooks.subscribe(all, world.operator.fingerprint, client);
    await webhooks.deactivate(1, world.operator.fingerprint);
    await webhooks.subscribe(all, OWNER, client);
  });

  it("is refused to no key because others have many", async () => {
    world = await openWorld();
    for (let key = 0; key < 60; key++)
      expect(accepted(await many(20, `sha256:${sha256(`${key}`)}`, (i) => `https://r${key}-${i}.example/`))).toBe(20);
    expect(accepted(await many(1, OTHER, () => all.url))).toBe(1);
  });
});

describe("webhook events", () => {
  const events: [string, EventInput, string | null][] = [
    ["an attestation", attestation({}), "attestation.created"],
    ["an attestation with any predicate", attestation({}, "https://other.example/review"), "attestation.created"],
    ["a registration", note(), "key.registered"],
    ["a succession", { event_type: "key_succession", payload: {} }, null],
    ["a revocation", { event_type: "key_revocation", payload: {} }, "key.revoked"],
    ["an offer", { event_type: "endorsement_offer", payload: {} }, null],
    ["an acceptance", { event_type: "endorsement_acceptance", payload: {} }, "endorsement.created"],
    ["a withdrawal", { event_type: "endorsement_withdrawal", payload: {} }, "endorsement.revoked"],
    ["a revoked acceptance", { event_type: "acceptance_revocation", payload: {} }, "endorsement.revoked"],
    ["an alert", { event_type: "endorser_revocation_alert", payload: {} }, null],
    ["a request", { event_type: "attestation_request", payload: {} }, null],
    ["a claim", { event_type: "encrypted_claim", payload: {} }, null],
  ];
  it.each(events)("%s", async (_, event, told) => {
    const world = await openWorld();
    await world.append(event);
    expect(world.registry.webhooks.eventAt(0)?.event ?? null).toBe(told);
  });

  it("none of an entry whose content is not shown", async () => {
    const withheld = { id: 1, event_type: `${BASE}/authorship/v1`, payload: null, timestamp: at(0) };
    const log = { entryAt: () => withheld, entry: () => withheld } as unknown as LogWriter;
    const webhooks = new Webhooks({
      log,
      writer: log,
      writes: new Writes(log, { isReached: () => false, reaches: async () => false }),
      operator: OTHER,
      allowPrivate: false,
      trust: { reaches: async () => true },
      perAddress: null,
    });
    expect(webhooks.eventAt(0)).toBeUndefined();
  });
});

function attestation(payload: Record<string, unknown>, event_type = `${BASE}/authorship/v1`): EventInput {
  const named = { attestation_id: "1", signer_key_fingerprint: OTHER, manifest_hash: "e".repeat(64) };
  return { event_type, payload: { ...named, ...payload } };
}

describe("filters", () => {
  const FIELDS = [
    "fingerprint",
    "old_fingerprint",
    "signer_fingerprint",
    "signer_key_fingerprint",
    "endorsed_key_fingerprint",
    "endorser_key_fingerprint",
  ];
  const both = { signer_key_fingerprint: KEY, document_hash: DOCUMENT };
  /** Entries 1 to 6 each name the key in another member. Attestations by the key and of the document follow. */
  const history: EventInput[] = [
    ...FIELDS.map((field) => note({ [field]: KEY })),
    attestation({}),
    attestation({ signer_key_fingerprint: KEY }),
    attestation({ document_hash: DOCUMENT }),
    attestation({ document_hash: DOCUMENT.slice("sha256:".length) }),
    attestation(both),
    { event_type: "key_revocation", payload: { fingerprint: KEY } },
    note({ compromised_key_fingerprint: KEY, document_title: DOCUMENT }),
  ];
  const [attested, registered, revoked] = ["attestation.created", "key.registered", "key.revoked"] as const;
  const key_fingerprint = KEY;
  const document_hash = DOCUMENT;
  const cases: [string, Partial<WebhookInput>, number[]][] = [
    ["none: everything", {}, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]],
    ["an empty list of events: everything", { events: [] }, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]],
    ["one event", { events: [attested] }, [7, 8, 9, 10, 11]],
    ["two events", { events: [revoked, attested] }, [7, 8, 9, 10, 11, 12]],
    ["an event that does not occur", { events: ["endorsement.created"] }, []],
    ["a key, in any of the six fields", { key_fingerprint }, [1, 2, 3, 4, 5, 6, 8, 11, 12]],
    ["a key spelt otherwise", { key_fingerprint: "C".repeat(64) }, [1, 2, 3, 4, 5, 6, 8, 11, 12]],
    ["another key", { key_fingerprint: OWNER }, []],
    ["a document", { document_hash }, [9, 10, 11]],
    ["a document spelt otherwise", { document_hash: "D".repeat(64) }, [9, 10, 11]],
    ["another document", { document_hash: KEY }, []],
    ["event and key", { events: [registered], key_fingerprint }, [1, 2, 3, 4, 5, 6]],
    ["event and document", { events: [attested], document_hash }, [9, 10, 11]],
    ["event and document that exclude each other", { events: [registered], document_hash }, []],
    ["key and document", { key_fingerprint, document_hash }, [11]],
    ["all three", { events: [attested], key_fingerprint, document_hash }, [11]],
  ];
  it("select by every given condition", async () => {
    const world = await openWorld();
    const { webhooks } = world.registry;
    const ids: number[] = [];
    for (const [, filter] of cases) ids.push((await webhooks.subscribe({ url: URL, ...filter }, OWNER)).id);
    await world.append(...history);
    const selection = new Selection<WebhookFilter & { readonly entries: number[] }>();
    const selecting = webhooks.all().map(({ row }) => ({ ...row, entries: [] as number[] }));
    for (const subscription of selecting) selection.add(subscription);
    const selectAll = () => {
      for (let leafIndex = 0; leafIndex < webhooks.size; leafIndex++) {
        const { event, payload, entry_id } = webhooks.eventAt(leafIndex)!;
        selection.select(event, payload, ({ entries }) => entries.push(entry_id));
      }
    };
    selectAll();
    const wanted = cases.map(([name, , entries]) => [name, entries]);
    expect(cases.map(([name], i) => [name, selecting[i]!.entries])).toEqual(wanted);
    // Once removed, none is selected.
    for (const subscription of selecting) selection.remove(subscription);
    selectAll();
    expect(cases.map(([name], i) => [name, selecting[i]!.entries])).toEqual(wanted);
    expect(selection.size).toBe(0);
    expect(ids).toHaveLength(cases.length);
  });
});

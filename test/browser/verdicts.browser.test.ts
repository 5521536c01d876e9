/**
 * The verdict of each page: there is one on every page about something that can be verified, it is about what the reader
 * asked, and it turns when a signature does not fit, a proof is missing, or the service lies.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { openOperatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { importEntries } from "#cairnlog/engine/index.js";
import { projection } from "#cairnlog/engine/registry/events/projection.js";
import type { Entry } from "#cairnlog/engine/verify/index.js";
import { fillLog, newPeople } from "#cairnlog/server/cli/demo/fill-log.js";
import { asSigner, newClient } from "../client/clients.js";
import { chain } from "../log/history/entries.js";
import { startTestService, type TestService, temporaryFolder } from "../server/harness.js";
import { newSigner, sha256, submission } from "../server/signers.js";
import { Reader } from "./explorer.js";

const folder = temporaryFolder();
let people: ReturnType<typeof newPeople>;
let service: TestService;
let entries: readonly Entry[];
/** What each entry with a changed signature was made of → the number of the changed one. */
const broken = new Map<string, number>();
let open: { readonly id: number; readonly file: string };

const entryOf = (wanted: string, member?: string): Entry =>
  entries.find(({ event_type, payload }) => event_type.includes(wanted) && (!member || payload![member] !== null))!;

beforeAll(async () => {
  people = newPeople(folder);
  service = await startTestService({
    SERVICE_TRUST_ANCHORS: people.ada.fingerprint,
    SERVICE_ENDORSEMENT_ACTIVATION_DELAY_S: "0",
  });
  await fillLog(service.url, folder, people);
  const { client } = newClient(service.url);
  await client.keys.register({ pseudonym: "Kurt" });
  await client.keys.succeed(asSigner(newSigner()));
  await client.attest({ title: "Old", content_hash: `sha256:${"cd".repeat(32)}` }).catch(() => {});
  const revoked = newClient(service.url);
  await revoked.client.attest({ title: "Gone", content_hash: `sha256:${"ef".repeat(32)}` }, { pseudonym: "Mallory" });
  await revoked.client.keys.revoke();
  const file = join(folder, "more.txt");
  writeFileSync(file, "more");
  const manifest = {
    document: { title: "More", content_hash: `sha256:${sha256("more")}`, pages: 7 },
    attestations: [],
  };
  const { body } = await service.post("/attestations", submission(newSigner(), manifest, { pseudonym: "Eve" }));
  open = { id: body.log_entry_id, file };
  entries = (await service.get("/log?per_page=200")).body.entries;
  // Nobody has signed these, and the log has them all the same.
  for (const [type, member] of [
    ["authorship", "signature"],
    ["key_registration", "possession_signature"],
    ["key_succession", "new_key_signature"],
  ] as const) {
    const { event_type, payload } = entryOf(type, member);
    const text = payload![member] as string;
    const forged = { ...payload, [member]: (text.startsWith("A") ? "B" : "A") + text.slice(1) };
    await service.server.registry.log.append([{ event_type, payload: forged } as never]);
    broken.set(type, service.server.registry.log.size);
  }
});

/** The verdicts of a page, when none of them is being looked for any more. */
async function verdicts(page: Page): Promise<{ readonly finding: string; readonly text: string }[]> {
  await page.locator("main h1").waitFor();
  const found = page.locator("main .verdict");
  await expect.poll(() => page.locator("main .verdict-busy").count()).toBe(0);
  return found.evaluateAll((all) =>
    all.map((each) => ({
      finding: /verdict-(\w+)/.exec(each.className)![1]!,
      text: (each as HTMLElement).innerText.replaceAll(/\s+/g, " "),
    })),
  );
}

/** The one verdict of an address. */
async function verdictAt(reader: Reader, address: string) {
  const page = await reader.open(service.url, address);
  const found = await verdicts(page);
  expect(found, address).toHaveLength(1);
  expect((await page.locator("main .verdict").boundingBox())!.y, address).toBeLessThan(420);
  await page.close();
  return found[0]!;
}

/** Changes the answers of the API whose path matches. */
// biome-ignore lint/suspicious/noExplicitAny: lies are told about answers of every shape
const lie = (reader: Reader, path: RegExp, change: (answer: any) => unknown) =>
  reader.context.route("**/api/v1/**", async (route) => {
    const { pathname, search } = new URL(route.request().url());
    if (!path.test(pathname.replace("/api/v1", "") + search)) return route.fallback();
    const response = await route.fetch();
    return route.fulfill({ response, json: change(await response.json()) });
  });

describe("every page", () => {
  /** What is asked on each view: about something that can be verified, or not. */
  const ASKED: Readonly<Record<string, { readonly one: () => string[]; readonly none: string[] }>> = {
    "": { one: () => ["#/"], none: [] },
    search: { one: () => ["#/search?q=Ada", "#/search?q=nothing+there"], none: ["#/search"] },
    entries: {
      one: () => [
        "#/entries",
        "#/entries?title=notes",
        "#/entries?title=nothing",
        "#/entries/999",
        ...entries.map(({ id }) => `#/entries/${id}`),
      ],
      none: ["#/entries/one"],
    },
    keys: {
      one: () => [
        ...Object.values(people).map(({ fingerprint }) => `#/keys/${fingerprint}`),
        `#/keys/${service.server.operatorFingerprint}`,
        `#/keys/${"0".repeat(64)}`,
      ],
      none: ["#/keys", "#/keys/nobody"],
    },
    file: { one: () => [], none: ["#/file"] },
    operator: { one: () => [], none: ["#/operator"] },
  };

  test("is listed here", () => {
    const text = readFileSync(new URL("../../server/explorer/routes.ts", import.meta.url), "utf8");
    expect(Object.keys(ASKED)).toEqual([...text.matchAll(/\{ name: "(\w*)"/g)].map(([, name]) => name));
  });

  test.each(Object.keys(ASKED))("of the view %o has one, or none where nothing can be verified", async (view) => {
    const reader = await Reader.arrive();
    for (const address of ASKED[view]!.one()) await verdictAt(reader, address);
    for (const address of ASKED[view]!.none) {
      const page = await reader.open(service.url, address);
      expect(await verdicts(page), address).toEqual([]);
      await page.close();
    }
    await reader.leave();
  });
});

describe("an entry", () => {
  test("with a signature: it is checked on its own page, over what was signed", async () => {
    const reader = await Reader.arrive();
    for (const [type, member, words] of [
      ["authorship", "signature", "Ada Lovelace"],
      ["key_registration", "possession_signature", "registered a key"],
      ["key_succession", "new_key_signature", "went on to the key"],
    ] as const) {
      const { id } = entryOf(type, member);
      const { finding, text } = await verdictAt(reader, `#/entries/${id}`);
      expect({ finding, text }).toEqual({ finding: "good", text: expect.stringContaining(words) });
      expect(text).toContain("the signature fits");
    }
    await reader.leave();
  });

  test("whose signature does not fit is not verified, although the log proves it", async () => {
    const reader = await Reader.arrive();
    expect(broken.size).toBe(3);
    for (const [type, id] of broken) {
      const { finding, text } = await verdictAt(reader, `#/entries/${id}`);
      expect([type, finding, text]).toEqual([type, "bad", expect.stringMatching(/signature|signed/)]);
    }
    await reader.leave();
  });

  test("without a signature does not claim one, and one of a revoked key, or with more in its manifest, is open", async () => {
    const reader = await Reader.arrive();
    const offer = await verdictAt(reader, `#/entries/${entryOf("endorsement_offer").id}`);
    expect(offer.text).toMatch(/holds no signature: .* the word of the service/);
    const gone = entries.find(({ payload }) => payload!.document_title === "Gone")!;
    expect(await verdictAt(reader, `#/entries/${gone.id}`)).toEqual({
      finding: "open",
      text: expect.stringContaining("the key was revoked"),
    });
    expect(await verdictAt(reader, `#/entries/${open.id}`)).toEqual({
      finding: "open",
      text: expect.stringContaining("cannot be checked here"),
    });
    await reader.leave();
  });

  test("turns when the service shows another key, a wrong proof, no proof, or no answer", async () => {
    const { id } = entryOf("authorship");
    const other = newSigner();
    const cases: [RegExp, (answer: object) => unknown, string][] = [
      [/^\/keys\//, (answer) => ({ ...answer, public_key: other.publicKey }), "bad"],
      [/^\/log\/proof\//, (answer) => ({ ...answer, audit_path: [] }), "bad"],
      [/^\/log\?/, (answer) => ({ ...answer, entries: [] }), "bad"],
    ];
    for (const [path, change, finding] of cases) {
      const reader = await Reader.arrive();
      await lie(reader, path, change);
      expect(await verdictAt(reader, `#/entries/${id}`), `${path}`).toMatchObject({ finding });
      await reader.leave();
    }
    for (const path of ["**/api/v1/log/proof/**", "**/api/v1/keys/**"]) {
      const reader = await Reader.arrive();
      await reader.context.route(path, (route) => route.abort());
      expect(await verdictAt(reader, `#/entries/${id}`), path).toMatchObject({ finding: "open" });
      await reader.leave();
    }
  });
});

describe("a key", () => {
  test("is proven by its entry, and its verdict turns with the entry, the key and the signature", async () => {
    const reader = await Reader.arrive();
    const { fingerprint } = people.grace;
    const at = `#/keys/${fingerprint}`;
    expect(await verdictAt(reader, at)).toEqual({
      finding: "good",
      text: expect.stringContaining("its holder has signed that"),
    });
    await reader.leave();
    const lies: ((answer: object) => unknown)[] = [
      (answer) => ({ ...answer, public_key: newSigner().publicKey }),
      (answer) => ({ ...answer, log_entry_id: 1 }),
      (answer) => ({ ...answer, log_entry_id: broken.get("key_registration") }),
      // What the key's holder has signed is another name, no expiration, or something else than a registration.
      (answer) => ({ ...answer, pseudonym: "Mallory" }),
      (answer) => ({ ...answer, expires_at: "2099-01-01T00:00:00.000000Z" }),
      ...entries
        .filter(({ payload }) => Object.values(payload ?? {}).includes(fingerprint) && payload!.pseudonym === undefined)
        .map(({ id }) => (answer: object) => ({ ...answer, log_entry_id: id })),
    ];
    expect(lies.length).toBeGreaterThan(6);
    for (const change of lies) {
      const lied = await Reader.arrive();
      await lie(lied, /^\/keys\/[^/]+$/, change);
      expect(await verdictAt(lied, at)).toMatchObject({ finding: "bad" });
      await lied.leave();
    }
  });
});

describe("a file", () => {
  const verdictOf = (reader: Reader, ...paths: string[]) => verdictFrom(service.url, reader, ...paths);
  const verdictFrom = async (url: string, reader: Reader, ...paths: string[]) => {
    const page = await reader.open(url, "#/file");
    await page.locator('input[type="file"]').setInputFiles(paths);
    await page.locator("main .verdict").waitFor();
    const found = await verdicts(page);
    expect(found).toHaveLength(1);
    await page.close();
    return found[0]!;
  };

  test("is answered in a sentence: who signed it, when, and that the log proves it", async () => {
    const reader = await Reader.arrive();
    expect(await verdictOf(reader, join(folder, "compiler.txt"))).toEqual({
      finding: "good",
      text: expect.stringMatching(
        /This file was signed by Grace Hopper \w{8} on \d+ \w+ 20\d\d.*; the log proves it\./,
      ),
    });
    expect(await verdictOf(reader, join(folder, "changed", "notes.txt"))).toEqual({
      finding: "open",
      text: expect.stringContaining("nobody has signed this file"),
    });
    expect(await verdictOf(reader, open.file)).toMatchObject({ finding: "open" });
    // Two attestations of the notes are on the log, and nobody has signed one of them.
    expect(await verdictOf(reader, join(folder, "notes.txt"))).toEqual({
      finding: "bad",
      text: expect.stringContaining("does not hold"),
    });
    await reader.leave();
  });

  test("with a receipt of another file is not verified", async () => {
    const reader = await Reader.arrive();
    const receipt = join(folder, "machines.txt.attestation.json");
    expect(await verdictOf(reader, join(folder, "machines.txt"), receipt)).toMatchObject({ finding: "good" });
    expect(await verdictOf(reader, join(folder, "compiler.txt"), receipt)).toEqual({
      finding: "bad",
      text: expect.stringContaining("not the one that was attested"),
    });
    await reader.leave();
  });

  test("with a receipt that has what the log does not show is judged by the status of its key, too", async () => {
    const [file, content_hash] = [join(folder, "long.txt"), sha256("long")];
    const { client } = newClient(service.url);
    const said = { title: "Long", content_hash, pages: 7 };
    const { bundle } = await client.attest(said as never, { pseudonym: "Lou" });
    writeFileSync(file, "long");
    writeFileSync(`${file}.attestation.json`, JSON.stringify(bundle));
    const reader = await Reader.arrive();
    const signed = /This file was signed by Lou \w{8} on [^;]*; the log proves it\./;
    const found = await verdictOf(reader, file, `${file}.attestation.json`);
    expect(found).toEqual({ finding: "good", text: expect.stringMatching(new RegExp(`${signed.source} ?$`)) });
    await client.keys.revoke();
    const later = await verdictOf(reader, file, `${file}.attestation.json`);
    expect(later).toEqual({
      finding: "open",
      text: expect.stringMatching(new RegExp(`${signed.source} The service says that a key was revoked\\.`)),
    });
    await reader.leave();
  });

  test("that was signed in a history of version 1 was signed, at a time that nothing proves", async () => {
    const told = [people.grace, people.ada].flatMap(({ fingerprint }, i) =>
      entries
        .filter(({ payload: p }) => [p!.fingerprint, p!.signer_key_fingerprint].includes(fingerprint))
        // One of the services that had made such histories called all of them so.
        .map(({ event_type: type, payload }) => ({
          event_type: i && type.startsWith("https:") ? "attestation" : type,
          payload: payload!,
        })),
    );
    const history = chain(told);
    const dataDir = temporaryFolder();
    const signer = openOperatorKey(join(dataDir, "operator.pem"));
    const lines = Buffer.from(history.map((entry) => `${JSON.stringify(entry)}\n`).join(""));
    await importEntries({ path: join(dataDir, "log"), signer, projection }, Readable.from([lines]));
    const imported = await startTestService({ SERVICE_DATA_DIR: dataDir });
    const reader = await Reader.arrive();
    expect(await verdictFrom(imported.url, reader, join(folder, "compiler.txt"))).toEqual({
      finding: "good",
      text: expect.stringMatching(/signed by Grace Hopper \w{8} ?, at a time that no hash covers/),
    });
    for (const { id } of history) {
      const page = await reader.open(imported.url, `#/entries/${id}`);
      expect(await verdicts(page)).toEqual([
        { finding: "good", text: expect.stringMatching(/at a time that no hash covers.*, and the signature fits\.$/) },
      ]);
    }
    await reader.leave();
  });

  test("is not verified when the service lists an attestation with another time, title or statement than the proven one", async () => {
    for (const change of [
      { timestamp: "2001-02-03T04:05:06.000000Z" },
      { payload: { document_title: "Another" } },
      { payload: { intent_statement: "Nobody signed this." } },
    ]) {
      const reader = await Reader.arrive();
      await lie(reader, /^\/log\/audit-trail/, (answer) => ({
        ...answer,
        entries: answer.entries.map((entry: Entry) => ({
          ...entry,
          ...change,
          payload: { ...entry.payload, ...change.payload },
        })),
      }));
      expect(await verdictOf(reader, join(folder, "compiler.txt"))).toMatchObject({
        finding: "open",
        text: expect.not.stringContaining("2001"),
      });
      await reader.leave();
    }
  });

  test("is not verified when the service hides the proof", async () => {
    const reader = await Reader.arrive();
    await reader.context.route(/\/api\/v1\/log\/\d+\/proof/, (route) => route.abort());
    expect(await verdictOf(reader, join(folder, "compiler.txt"))).toMatchObject({ finding: "open" });
    await reader.leave();
  });
});

/** The filters of a list: the client takes exactly the entries that the contract's rules let through. */
import { beforeAll, describe, expect, test } from "vitest";
import { eventOf } from "#cairnlog/engine/verify/events/kinds.js";
import type { Entry } from "#cairnlog/engine/verify/index.js";
import { type Client, createClient } from "#cairnlog/server/client/index.js";
import { type EntryCriteria, failedFilter } from "#cairnlog/server/client/log/filters.js";
import { anyEvent, sayingEvent } from "../anyevent.js";
import { startTestService } from "../server/harness.js";
import { all } from "./clients.js";

const TAGS = ["net", "Internet", "net,inter", "inter", "a\\b", "ab", " net", "İ", "%"];
const TYPES = ["attestation_request", "attestation_request_response", "encrypted_claim"];
/** A request that changes no row: its requester is no key. */
const request = eventOf("attestation_request", {
  ...{
    request_id: "none",
    requester_fingerprint: "nobody",
    target_fingerprint: "nobody",
    attestation_type: "authorship",
  },
  ...{ nonce: "1", intent_statement: null, claims: {}, deadline: "2025-01-01T00:00:00.000000Z", status: "open" },
  policy_entry_id: null,
});
let client: Client;
let entries: Entry[];
beforeAll(async () => {
  const service = await startTestService();
  client = createClient({ server: service.url });
  const events = [...TAGS.map((tag) => [tag]), TAGS, [], ["net", "inter"]].map((tags, n) => anyEvent({ n, tags }));
  await service.server.registry.log.append([...events, request, sayingEvent("No.")]);
  entries = await all(client.log.entries());
});

const tagsOf = ({ payload }: Entry) => ((payload as { tags?: string[] }).tags ?? []).map((tag) => tag.toLowerCase());
/** The rules of the contract, in the plainest words. */
const RULES = {
  tags: (entry: Entry, text: string) =>
    tagsOf(entry).includes(text.toLowerCase()) ||
    text.split(",").every((part) => part === "" || tagsOf(entry).includes(part.toLowerCase())),
  event_type: ({ event_type }: Entry, text: string) => event_type === text || text.split(",").includes(event_type),
};
const texts = {
  tags: [...TAGS, "inter,net", "net,", "inte", "a\\\\b"],
  event_type: [...TYPES, TYPES.slice(1).join(",")],
};

describe.each(["tags", "event_type"] as const)("by %s", (name) => {
  test.each(texts[name])("%j", async (text) => {
    const wanted = entries.filter((entry) => RULES[name](entry, text));
    expect(entries.filter((entry) => failedFilter(entry, { [name]: text }) === undefined)).toEqual(wanted);
    expect(await all(client.log.entries({ [name]: text }))).toEqual(wanted);
  });
});

test("an entry without its payload is held against what it shows, by every filter of that", () => {
  const unlike: Record<keyof EntryCriteria, string | number> = {
    ...{ tags: "none", search: "none", title: "none", fingerprint: "none", document_hash: "none", event_type: "none" },
    ...{ start_date: "2999-01-01", end_date: "1999-01-01", scope: "keys", after_id: entries.at(-1)!.id },
  };
  const of = (entry: Entry) =>
    Object.entries(unlike).flatMap(([name, value]) => failedFilter(entry, { [name]: value }) ?? []);
  expect(of(entries[0]!).sort()).toEqual(Object.keys(unlike).sort());
  const shown = ["after_id", "end_date", "event_type", "scope", "start_date"];
  expect(of({ ...entries[0]!, payload: null }).sort()).toEqual(shown);
});

/** Answers that are read while they are sent, beside a log that grows and files its postings: each is as when it was asked for. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import type { FeedMessage } from "#cairnlog/engine/log/follow/feed.js";
import { openLogFollower } from "#cairnlog/engine/log/log.js";
import type { LogWriter } from "#cairnlog/engine/log/writer.js";
import { projection } from "#cairnlog/engine/registry/events/projection.js";
import type { Served } from "#cairnlog/engine/registry/registry.js";
import { auditExportRoutes } from "#cairnlog/server/http/routes/log/audit-export.js";
import { entryPage } from "#cairnlog/server/http/routes/log/pages.js";
import { StreamedAnswer } from "#cairnlog/server/http/transport/answer.js";
import { closeWorlds } from "../registry/world.js";
import { inSomeOrders, type Scene, type Step } from "./orders.js";
import { type Filed, openFiled } from "./registry.js";

type Finder = Pick<Served, "log" | "queries">;
/** More than is made whole, in some pieces. */
const ENTRIES = 48;
const note = () => ({ event_type: "note", payload: { text: "木".repeat(8_000) } });
const PAGE = { page: 1, per_page: 200 };

const exported = (format: string) => (finder: Finder) =>
  auditExportRoutes(finder)[0]!.handle(
    { query: { scope: "all", page: 1, page_size: 1_000, format } } as never,
    null as never,
  );
const ANSWERS: Readonly<Record<string, (finder: Finder) => unknown>> = {
  "a page of entries": (finder) => entryPage(finder, PAGE, { eventTypes: ["note"] }),
  "an export as JSON": exported("json"),
  "an export as CSV": exported("csv"),
};

let filed: Filed;
const messages: FeedMessage[] = [];
beforeAll(async () => {
  filed = await openFiled();
  await filed.world.append(...Array.from({ length: ENTRIES }, note));
  (filed.world.registry.log as LogWriter).feed((message) => messages.push(structuredClone(message)));
});
afterAll(closeWorlds);

const chunksOf = (answer: unknown): Iterator<Buffer> => {
  expect(answer).toBeInstanceOf(StreamedAnswer);
  return (answer as StreamedAnswer).chunks[Symbol.iterator]();
};
const textOf = (chunks: Iterator<Buffer>): string => {
  const parts: Buffer[] = [];
  for (let next = chunks.next(); !next.done; next = chunks.next()) parts.push(next.value);
  return Buffer.concat(parts).toString();
};

async function streamedScene(step: Step, ask: (finder: Finder) => unknown, isFollower: boolean): Promise<Scene> {
  const { world, path, pem, postings } = filed;
  const { queries } = world.registry;
  messages.length = 0;
  const follower = isFollower
    ? openLogFollower({ path, operatorKey: operatorKey(pem).public.pem, projection, writer: {} as never })
    : null;
  const finder: Finder = { log: follower ?? world.registry.log, queries };
  return {
    actors: [
      async () => {
        const { chunks, whole } = await step("somebody asks", async () => {
          const all = textOf(chunksOf(await ask(finder)));
          return { chunks: chunksOf(await ask(finder)), whole: all };
        });
        const parts: Buffer[] = [];
        const send = () => step("a piece is sent", () => chunks.next());
        for (let next = await send(); !next.done; next = await send()) parts.push(next.value);
        expect(Buffer.concat(parts).toString()).toBe(whole);
      },
      async () => {
        for (let n = 0; n < 4; n++) {
          await step("the log grows", () => world.append(note()));
          await step("postings are filed", () => postings.fileAll());
        }
      },
      async () => {
        for (let n = 0; follower && n < 8; n++)
          await step("the front end hears", () => {
            for (const message of messages.splice(0, 2)) follower.follow(message);
          });
      },
    ],
    close: async () => follower?.close(),
  };
}

test.each(Object.entries(ANSWERS))("%s", async (_, ask) => {
  for (const isFollower of [false, true])
    await expect(inSomeOrders((step) => streamedScene(step, ask, isFollower), 3)).resolves.toBeUndefined();
});

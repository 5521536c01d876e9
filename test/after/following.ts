/** Rows of what follows a log or works for it: readers, mirrors, nodes, calendars, slices of queries, another machine's journal. */
import { pino } from "pino";
import { expect } from "vitest";
import type { JournalRecord } from "#cairnlog/engine/journal/record.js";
import { openLogReader } from "#cairnlog/engine/log/log.js";
import { systemClock } from "#cairnlog/engine/log/state/clock.js";
import type { LogReader } from "#cairnlog/engine/log/view/reader.js";
import type { LogView } from "#cairnlog/engine/log/view/view.js";
import { Slices } from "#cairnlog/engine/registry/shared/slices.js";
import { Anchoring } from "#cairnlog/server/anchoring/anchoring.js";
import { Calendar } from "#cairnlog/server/anchoring/calendar.js";
import { Upgrades } from "#cairnlog/server/anchoring/upgrades.js";
import { MirroredLog } from "#cairnlog/server/tlog/mirrored.js";
import { NodeTlog } from "#cairnlog/server/tlog/replicated.js";
import { startCalendar } from "../anchoring/calendar.js";
import { FakeJournal } from "../journal/fakejournal.js";
import { MAP_SIZE, openTestLog, temporaryFolder, testOperator } from "../log/harness.js";
import { held } from "./held.js";
import { nothing, type Row } from "./rows.js";

const note = { event_type: "note", payload: {} };
const logger = pino({ level: "silent" });
const HOUR = 3_600_000_000;
/** Entries of a full tile of the RFC 6962 tree. */
const TILE = 256;

/** A journal on other machines, so far as batches wait for those who were just answered. */
class RemoteJournal extends FakeJournal {
  readonly isRemote = true;

  override async propose(record: JournalRecord): Promise<Uint8Array | null> {
    if (record.batch) await new Promise((resolve) => setTimeout(resolve, 40));
    return super.propose(record);
  }
}

export const FOLLOWING_ROWS: readonly Row[] = [
  {
    name: "a log whose journal on other machines loses records",
    files: ["engine/log/write/sequencer.ts"],
    async open() {
      const around = held();
      const journal = new RemoteJournal();
      const { log } = await openTestLog({ journal });
      return {
        around,
        async call() {
          const { size } = log;
          // The third comes when the first two are answered, and waits for company.
          await Promise.all([log.append(note).then(() => log.append(note)), log.append(note)]);
          return { added: log.size - size, queued: log.queued };
        },
        async fail() {
          journal.plan = ["loses both"];
          await expect(log.append(note)).rejects.toThrow();
        },
        recover: nothing,
        close: () => log.close(),
      };
    },
  },
  {
    name: "queries in slices, of which some throw",
    files: ["engine/registry/shared/slices.ts"],
    async open() {
      const around = held();
      const log = { queued: 0, batches: 0 };
      const slices = new Slices(log);
      const query = function* (fails: boolean) {
        for (let n = 0; n < 3; n++) yield;
        if (fails) throw new RangeError("of the query");
        return "an answer";
      };
      const run = (...fails: boolean[]) => {
        // The log is busy: slices pause between each other.
        log.batches++;
        return Promise.allSettled(fails.map((one) => slices.run(query(one))));
      };
      return {
        around,
        call: () => run(false, false),
        async fail() {
          expect(await run(true, false, true)).toMatchObject([{ status: "rejected" }, {}, { status: "rejected" }]);
        },
        recover: nothing,
        close: async () => slices.close(),
      };
    },
  },
  {
    name: "a mirror that cannot be read for a while",
    files: ["engine/log/view/reader.ts", "server/tlog/mirrored.ts"],
    async open() {
      const { log, path } = await openTestLog();
      await log.append(note);
      const around = held();
      const reader = await openLogReader({ path, operatorKey: testOperator.public.pem, mapSize: MAP_SIZE });
      let [isAway, errors] = [false, 0];
      const shown = {
        rfc6962: reader.rfc6962,
        get size() {
          return reader.size;
        },
        refresh() {
          if (isAway) throw new Error("it cannot be read");
          reader.refresh();
        },
      } as Partial<LogReader> as LogReader;
      const mirror = new MirroredLog(shown, temporaryFolder(), { error: () => void errors++ });
      return {
        around,
        async call() {
          await log.append(note);
          await expect.poll(() => reader.size, { interval: 20 }).toBe(log.size);
          return errors;
        },
        async fail() {
          isAway = true;
          await expect.poll(() => errors, { interval: 20 }).toBeGreaterThan(0);
        },
        async recover() {
          [isAway, errors] = [false, 0];
        },
        async close() {
          mirror.close();
          await reader.close();
        },
        remove: () => log.close(),
      };
    },
  },
  {
    name: "the tree of /tlog/ at a node, which cannot be made for a while",
    files: ["server/tlog/replicated.ts"],
    async open() {
      const { log } = await openTestLog();
      let [isAhead, errors, told] = [false, 0, ""];
      const shown = {
        rfc6962: log.rfc6962,
        // A size that the log has not reached has no tree.
        get size() {
          return log.size + (isAhead ? TILE : 0);
        },
      } as Partial<LogView> as LogView;
      const node = new NodeTlog({
        ...{ log: shown, vkey: () => null, published: () => null, told: () => told },
        logger: { error: () => void errors++ },
      });
      const call = async () => {
        await log.append(Array.from({ length: TILE }, () => note));
        told = `log.example\n${log.size}\n`;
        const checkpoint = async () => node.checkpoint();
        await expect.poll(() => checkpoint().catch(() => null), { interval: 20 }).toBe(told);
        return errors;
      };
      // The log opens the file of its tree with the first nodes, and closes it with itself.
      node.start();
      await call();
      await node.stop();
      const around = held();
      node.start();
      return {
        around,
        call,
        async fail() {
          isAhead = true;
          await expect.poll(() => errors, { interval: 20 }).toBeGreaterThan(0);
        },
        async recover() {
          isAhead = false;
          // What had begun before may say so once more.
          await node.stop();
          errors = 0;
          node.start();
        },
        close: () => node.stop(),
        remove: () => log.close(),
      };
    },
  },
  {
    name: "questions to a calendar that refuses for a while",
    files: ["server/outgoing/exchange.ts", "server/anchoring/upgrades.ts"],
    pauses: "server/anchoring/upgrades.ts",
    async open() {
      const { log } = await openTestLog();
      const calendar = await startCalendar();
      await log.append(note);
      const anchoring = new Anchoring({ log, writer: log, calendars: [calendar.url], logger });
      await anchoring.anchor();
      const around = held();
      let ahead = 0;
      const upgrades = new Upgrades({
        ...{ log, writer: log, calendars: [new Calendar(calendar.url)], logger, clock: () => systemClock() + ahead },
      });
      upgrades.start(0.02);
      // The promise, and the first question about it.
      await calendar.seen(2);
      await upgrades.run();
      const asked = async () => {
        const { length } = calendar.requests;
        // Time enough for a promise to be due again, whatever its age.
        ahead = 2 * ahead + HOUR;
        await calendar.seen(length + 1);
        await upgrades.run();
        return calendar.requests.length - length;
      };
      return {
        around,
        call: asked,
        async fail() {
          calendar.misbehave = () => ({ status: 503, body: "" });
          await asked();
        },
        async recover() {
          calendar.misbehave = null;
        },
        close: () => upgrades.stop(),
        async remove() {
          await anchoring.stop();
          await calendar.close();
          await log.close();
        },
      };
    },
  },
];

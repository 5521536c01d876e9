/**
 * The walk of a node through taking, keeping and losing the lead, over a journal and a log in memory: every effect in its
 * order, what may be written at each, and what a failure at each leaves behind. Only the test's clock ends a lease.
 */
import { writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import { LEASE_MS, type PostgresJournal } from "#cairnlog/engine/journal/postgres/journal.js";
import type { Lead } from "#cairnlog/engine/journal/postgres/statements.js";
import type { LogWriter } from "#cairnlog/engine/log/writer.js";
import { Replication } from "#cairnlog/server/replication/replication.js";
import { Role } from "#cairnlog/server/replication/role.js";

const [OWN, OTHER] = ["http://own.example", "http://other.example"];
const COOL_DOWN_MS = 5_000;
const LONGEST_COOL_DOWN_MS = 60_000;
const BEHIND_MS = 3_000;
const corrupt = () => new CairnlogError("corrupt-log", "It has another history.");

/** Waits without moving the clock, which `vi.waitFor` would. */
async function eventually(isSo: () => boolean): Promise<void> {
  for (let i = 0; !isSo(); i++) {
    if (i > 1_000) expect.unreachable(`never came: ${isSo}; ${node.trace.join(", ")}`);
    await sleep(5);
  }
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["performance"] });
});
let node: FakeNode;
afterEach(async () => {
  await node.replication.stop();
  vi.useRealTimers();
});

interface Options {
  readonly isFollower?: boolean;
  readonly settings?: Record<string, string>;
}

class FakeNode {
  /** Effects in their order, each with what may be done then: `+` writes are taken, `~` only what was taken before is written. */
  readonly trace: string[] = [];
  readonly role = new Role();
  /** What the journal shows. */
  lead: Lead = {
    ...{ epoch: 4, holder: null, url: null, sequence: 9, hash: Buffer.alloc(32, 1), size: 7, acked: 9, swept: 0 },
    ...{ beat: 0, wanted: null, checkpoint: null },
  };
  position = { sequence: 9, epoch: 4, hash: Buffer.alloc(32, 1) };
  isHeld = false;
  silence = 0;
  untold = 0;
  wanted: string | null = null;
  withheldLeaves: number[] = [];
  /** What runs in the place of an effect, once. */
  readonly instead = new Map<string, (...given: unknown[]) => unknown>();
  readonly said: string[] = [];
  /** What has been shown of the log. */
  refuted: CairnlogError | null = null;
  readonly replication: Replication;
  looks = 0;
  readonly journal: PostgresJournal;

  constructor({ isFollower = false, settings = {} }: Options = {}) {
    const self = this;
    const effect = async (name: string, ...given: unknown[]) => {
      const refusal = this.role.refusal ? "" : this.role.leads ? "+" : "~";
      this.trace.push(`${refusal}${name}`);
      const other = this.instead.get(name);
      this.instead.delete(name);
      return other ? other(...given) : undefined;
    };
    const journal = {
      observeLoss() {},
      get isLeading() {
        return self.isHeld;
      },
      get silence() {
        return self.silence;
      },
      get untold() {
        return self.untold;
      },
      look: async () => {
        this.looks++;
        await this.instead.get("look")?.();
        return this.lead;
      },
      checkContinues: async (...given: unknown[]) => {
        expect(given).toEqual([this.position, this.lead]);
        await effect("check");
      },
      async takeLead(seen: Lead) {
        expect(seen).toBe(self.lead);
        if ((await effect("take")) === false) return false;
        self.isHeld = true;
        self.lead = { ...seen, epoch: seen.epoch + 1, holder: "own", url: OWN, sequence: 10, acked: 10 };
        return true;
      },
      async beat(checkpoint: string | null, confirmed: () => void) {
        await effect(`beat ${checkpoint}`);
        if (!self.isHeld) return null;
        confirmed();
        return self.wanted;
      },
      sweep: () => effect("sweep"),
      erase: (leaf: number, json: Buffer) => effect(`erase ${leaf} ${json}`).then((done) => done ?? true),
      async release() {
        if (!self.isHeld) return void (await effect("release"));
        self.isHeld = false;
        self.lead = { ...self.lead, holder: null };
        await effect("release");
        journal.observeLoss();
      },
      close: () => void effect("close"),
    };
    this.journal = journal as unknown as PostgresJournal;
    const log = {
      size: 7,
      get position() {
        return self.position;
      },
      get withheldLeaves() {
        return self.withheldLeaves;
      },
      get refuted() {
        return self.refuted;
      },
      row: () => ({ settings: { SERVICE_A: "1" } }),
      bareJsonAt: (leaf: number) => Buffer.from(`bare ${leaf}`),
      async follow() {
        await effect("follow");
        self.position = { ...self.position, sequence: self.lead.acked, epoch: self.lead.epoch };
      },
      settled: () => effect("settled"),
    };
    const say = (given: unknown, text = given) => void this.said.push(String(text));
    this.replication = new Replication({
      ...{ journal: this.journal, log: log as unknown as LogWriter, role: this.role, nodeUrl: OWN },
      ...{ maxLagSeconds: 10, isFollower, settings: { SERVICE_A: "1", ...settings } },
      logger: { info: say, warn: say, error: say } as never,
      leadership: {
        begin: (told) => effect("begin", told) as Promise<void>,
        end: () => effect("end") as Promise<void>,
        checkpoint: () => "note",
      },
    });
  }

  start(): this {
    this.replication.start();
    return this;
  }

  /** Waits until the node has looked as often again, and so has done what follows from what is there now. */
  async looked(times = 2): Promise<void> {
    const until = this.looks + times;
    await eventually(() => this.looks >= until);
  }

  async until(effect: string): Promise<void> {
    await eventually(() => this.trace.join().includes(effect));
  }

  async led(): Promise<this> {
    this.start();
    await eventually(() => this.replication.status.role === "leader");
    this.trace.length = 0;
    return this;
  }

  /** Gives a sign of life. */
  async beat(): Promise<void> {
    const before = this.trace.length;
    vi.advanceTimersByTime(500);
    await eventually(() => this.trace.slice(before).join().includes("beat"));
    await sleep(10);
  }

  /** What of the protocol has happened since the last time. */
  taken(): string[] {
    return this.trace.splice(0).filter((effect) => !/beat|sweep/.test(effect));
  }
}

test("a lead that is nobody's is taken: checked, taken, applied, begun, and only then is anything accepted", async () => {
  node = new FakeNode();
  node.lead = { ...node.lead, checkpoint: "told" };
  let told: unknown;
  node.instead.set("begin", (given) => {
    told = given;
  });
  node.start();
  expect(node.role.isStale).toBe(true);
  await eventually(() => node.replication.status.role === "leader");
  expect(told).toBe("told");
  expect(node.taken()).toEqual(["check", "take", "follow", "begin"]);
  expect([node.role.leads, node.role.refusal]).toEqual([true, null]);
  expect(node.replication.status).toMatchObject({
    leader: OWN,
    epoch: 5,
    sequence: 10,
    trouble: null,
    isBarred: false,
  });
});

describe("a lead that cannot begin", () => {
  const failures: [string, string[], (node: FakeNode) => void][] = [
    ["this node has another history", ["check"], (node) => failAt(node, "check")],
    ["the journal is not applied", ["check", "take", "follow"], (node) => failAt(node, "follow")],
    ["what only a leader does fails", ["check", "take", "follow", "begin"], (node) => failAt(node, "begin")],
    [
      "the disk of this machine is full",
      ["check", "take", "follow", "begin"],
      (node) => node.instead.set("begin", () => writeFileSync("/dev/full", "a key")),
    ],
    [
      "it is lost meanwhile",
      ["check", "take", "follow", "begin"],
      (node) =>
        node.instead.set("begin", () => {
          node.isHeld = false;
        }),
    ],
  ];
  const failAt = (node: FakeNode, at: string) =>
    node.instead.set(at, () => {
      throw corrupt();
    });

  test.each(failures)(
    "because %s is ended, then given back, and not taken again for a while",
    async (_, before, fail) => {
      node = new FakeNode();
      fail(node);
      node.start();
      const ended = before.includes("take") ? [...before, "end", "release"] : before;
      await node.until(ended.at(-1)!);
      await node.looked();
      expect(node.taken().slice(0, ended.length)).toEqual(ended);
      expect([node.isHeld, node.role.leads, node.role.refusal?.code]).toEqual([false, false, "not-leader"]);
      expect(node.replication.status.role).toBe("follower");
      node.lead = { ...node.lead, holder: null };
      vi.advanceTimersByTime(COOL_DOWN_MS - 1);
      await node.looked();
      expect(node.taken()).toEqual([]);
      vi.advanceTimersByTime(1);
      await node.until("begin");
      expect(node.taken()).toEqual(["check", "take", "follow", "begin"]);
    },
  );

  test("because the node is told to stop meanwhile, is given back before the journal is closed", async () => {
    node = new FakeNode();
    let begun = () => {};
    node.instead.set(
      "begin",
      () =>
        new Promise<void>((resolve) => {
          begun = resolve;
        }),
    );
    node.start();
    await node.until("begin");
    const stopped = node.replication.stop();
    await node.until("close");
    begun();
    await stopped;
    expect(node.taken()).toEqual(["check", "take", "follow", "begin", "release", "close", "end", "release"]);
    expect(node.lead.holder).toBe(null);
  });

  test("is given back although its tasks do not end in order", async () => {
    node = new FakeNode();
    failAt(node, "begin");
    node.instead.set("end", () => {
      throw new Error("a task");
    });
    node.start();
    await node.until("release");
    expect(node.said).toContain("what only the leader does did not end in order");
    await eventually(() => node.replication.status.trouble === corrupt().message);
  });

  // Each try is a record in every copy of the journal, and others try as well.
  test.each([
    ["check", corrupt()],
    ["begin", corrupt()],
    ["begin", new CairnlogError("storage-failed", "The disk is full.")],
  ])(
    "at %s because of %o is tried ever more rarely, however often another one tries, and said once",
    async (at, why) => {
      node = new FakeNode();
      const failing = () => {
        node.instead.set(at, failing);
        throw why;
      };
      node.instead.set(at, failing);
      node.start();
      for (const pause of [5_000, 10_000, 20_000, 40_000, 60_000, 60_000]) {
        await node.until(at);
        await node.looked();
        node.trace.length = 0;
        const trouble = { trouble: why.message, isBarred: why.code === "corrupt-log", role: "follower" };
        expect(node.replication.status).toMatchObject(trouble);
        node.lead = { ...node.lead, epoch: node.lead.epoch + 1, holder: null };
        vi.advanceTimersByTime(pause - 1);
        await node.looked();
        expect(node.taken()).toEqual([]);
        expect(node.replication.status).toMatchObject(trouble);
        vi.advanceTimersByTime(1);
      }
      await node.until(at);
      expect(node.said).toEqual(["this node cannot lead"]);
      node.instead.delete(at);
      vi.advanceTimersByTime(LONGEST_COOL_DOWN_MS);
      await eventually(() => node.role.leads);
      expect(node.replication.status).toMatchObject({ trouble: null, isBarred: false });
    },
  );

  // It would have tried again after ten seconds, and after ten more the other has led in its place.
  test.each([
    [10_000, 4 * COOL_DOWN_MS],
    [20_000, COOL_DOWN_MS],
  ])("is no trouble while another one leads, and after %d ms the next pause is %d", async (ledMs, pause) => {
    node = new FakeNode().start();
    const failed = async () => {
      failAt(node, "begin");
      await node.until("release");
      await node.looked();
      node.trace.length = 0;
    };
    await failed();
    vi.advanceTimersByTime(COOL_DOWN_MS);
    await failed();
    const alive = (ms: number) => {
      vi.advanceTimersByTime(ms);
      node.lead = { ...node.lead, holder: "other", url: OTHER, beat: node.lead.beat + 1 };
      return node.looked();
    };
    await alive(0);
    expect(node.replication.status).toMatchObject({ trouble: null, isBarred: false, leader: OTHER });
    vi.advanceTimersByTime(LEASE_MS);
    await node.looked();
    expect(node.replication.status).toMatchObject({ trouble: corrupt().message, isBarred: true, leader: null });
    await alive(ledMs - LEASE_MS);
    vi.advanceTimersByTime(LEASE_MS);
    await failed();
    vi.advanceTimersByTime(pause - 1);
    await node.looked();
    expect(node.taken()).toEqual([]);
    node.instead.clear();
    vi.advanceTimersByTime(1);
    await eventually(() => node.role.leads);
  });

  test("is not taken where another was faster, or PostgreSQL does not say whether this node may, which is asked again", async () => {
    node = new FakeNode();
    node.instead.set("check", () => {
      throw new CairnlogError("storage-failed", "No answer.");
    });
    node.start();
    await node.until("check");
    await eventually(() => node.said.includes("the journal cannot be followed"));
    node.instead.set("take", () => false);
    await node.until("take");
    node.lead = { ...node.lead, holder: "other", epoch: 5 };
    await node.looked();
    expect(node.taken()).not.toContain("begin");
    expect(node.taken()).not.toContain("release");
    expect(node.replication.status.trouble).toBe(null);
  });
});

describe("a node leads", () => {
  const held = { holder: "other", url: OTHER };
  const later = [LEASE_MS - 1, LEASE_MS, LEASE_MS + BEHIND_MS - 1, LEASE_MS + BEHIND_MS];
  // Under which circumstances, and whether it does after each of these times without a change.
  test.each<[string, Partial<Lead>, Options, boolean[]]>([
    ["nobody's", {}, {}, [true, true, true, true]],
    ["another's", held, {}, [false, true, true, true]],
    ["given back for this node", { wanted: OWN }, {}, [true, true, true, true]],
    ["given back for another", { wanted: OTHER }, {}, [false, true, true, true]],
    ["wanted by this node", { ...held, wanted: OWN }, {}, [false, true, true, true]],
    ["never, where it only follows", {}, { isFollower: true }, [false, false, false, false]],
    ["never, with other settings", {}, { settings: { SERVICE_A: "2" } }, [false, false, false, false]],
  ])("where the lead is %s", async (_, lead, options, expected) => {
    node = new FakeNode(options);
    node.lead = { ...node.lead, ...lead };
    node.start();
    let at = 0;
    for (const [i, time] of later.entries()) {
      await node.looked(i ? 2 : 1);
      vi.advanceTimersByTime(time - at);
      at = time;
      if (expected[i]) await eventually(() => node.role.leads);
      else await node.looked();
      expect(node.role.leads, `${time}`).toBe(expected[i]);
      if (expected[i]) return;
    }
  });

  test("later, where it is behind what others have", async () => {
    node = new FakeNode();
    // It does not come forward, as one does that PostgreSQL gives nothing.
    node.lead = { ...node.lead, acked: 12, sequence: 12 };
    const stuck = () => {
      node.instead.set("follow", stuck);
      throw new CairnlogError("storage-failed", "No answer.");
    };
    node.instead.set("follow", stuck);
    node.start();
    await node.looked();
    vi.advanceTimersByTime(60_000);
    await node.looked();
    expect(node.taken()).not.toContain("take");
    expect([node.replication.status.isBarred, node.replication.status.trouble]).toEqual([false, "No answer."]);
  });

  test("not before a leader that gives signs of life has stopped for a whole lease", async () => {
    node = new FakeNode();
    node.lead = { ...node.lead, ...held };
    node.start();
    for (const change of [{ beat: 1 }, { sequence: 9, acked: 9, beat: 2 }, { epoch: 5 }]) {
      await node.looked();
      vi.advanceTimersByTime(LEASE_MS - 1);
      node.lead = { ...node.lead, ...change };
      await node.looked();
    }
    expect(node.role.leads).toBe(false);
    expect(node.replication.status).toMatchObject({ leader: OTHER, role: "follower" });
  });
});

test.each<[string, Partial<Lead>, Partial<FakeNode["position"]>, boolean]>([
  ["has all that is decided", {}, {}, false],
  ["lacks something that is decided", { acked: 10, sequence: 10 }, {}, true],
  ["lacks what nobody knows to be decided", { sequence: 10 }, {}, false],
  ["is ahead of the journal", { acked: 8, sequence: 8 }, {}, true],
  ["was written without the journal", {}, { hash: Buffer.alloc(32) }, true],
])("a node that %s reads records or not", async (_, lead, position, reads) => {
  node = new FakeNode({ isFollower: true });
  node.lead = { ...node.lead, ...lead };
  node.position = { ...node.position, ...position };
  node.start();
  await node.looked();
  expect(node.taken().includes("follow")).toBe(reads);
});

describe("a leader", () => {
  test("that loses the lead refuses at once, ends all, and follows only then; it waits a lease before it leads again", async () => {
    node = await new FakeNode().led();
    let finish = () => {};
    node.instead.set("end", () => new Promise<void>((resolve) => (finish = resolve)));
    node.isHeld = false;
    node.lead = { ...node.lead, epoch: 6, holder: "other", url: OTHER };
    node.journal.observeLoss();
    expect([node.role.leads, node.role.refusal?.code, node.replication.status.role]).toEqual([
      ...[false, "not-leader", "follower"],
    ]);
    node.journal.observeLoss();
    const { looks } = node;
    await sleep(100);
    expect(node.looks - looks).toBeLessThanOrEqual(1);
    expect(node.taken()).toEqual(["end"]);
    finish();
    await node.looked();
    expect(node.taken()).toEqual([]);
    expect(node.replication.status.leader).toBe(OTHER);
    vi.advanceTimersByTime(LEASE_MS);
    await eventually(() => node.role.leads);
  });

  test("whose tasks do not end in order follows all the same", async () => {
    node = await new FakeNode().led();
    node.instead.set("end", () => {
      throw new Error("a task");
    });
    node.isHeld = false;
    node.journal.observeLoss();
    await node.looked();
    expect(node.said).toContain("what only the leader does did not end in order");
  });

  test("gives the lead to the node that wants it: accepts nothing, answers what it accepted, ends, gives back", async () => {
    node = await new FakeNode().led();
    let answer = () => {};
    node.instead.set("settled", () => new Promise<void>((resolve) => (answer = resolve)));
    node.wanted = OTHER;
    await node.beat();
    // What was accepted is still written, however often the journal is heard meanwhile.
    await sleep(120);
    expect([node.role.leads, node.role.refusal]).toEqual([false, null]);
    expect(node.taken()).toEqual(["~settled"]);
    node.wanted = null;
    let finish = () => {};
    node.instead.set("end", () => new Promise<void>((resolve) => (finish = resolve)));
    answer();
    await node.until("end");
    await sleep(20);
    expect(node.trace).not.toContain("release");
    finish();
    await node.until("release");
    await node.looked();
    expect(node.taken()).toEqual(["end", "release"]);
    expect(node.role.refusal?.code).toBe("not-leader");
    vi.advanceTimersByTime(COOL_DOWN_MS - 1);
    await node.looked();
    expect(node.taken()).toEqual([]);
    vi.advanceTimersByTime(1);
    await eventually(() => node.role.leads);
    // As before.
    node.silence = 3_001;
    await eventually(() => !node.role.leads);
    node.silence = 0;
    await eventually(() => node.role.leads);
  });

  test("of which somebody shows that it was set back gives the lead away for good, and says so", async () => {
    node = await new FakeNode().led();
    node.refuted = corrupt();
    await node.until("release");
    await node.looked();
    expect(node.taken()).toEqual(["~settled", "end", "release"]);
    for (const holder of [null, "other", null]) {
      node.lead = { ...node.lead, epoch: node.lead.epoch + 1, holder };
      await node.looked();
      expect(node.replication.status).toMatchObject({ trouble: corrupt().message, isBarred: true, role: "follower" });
      vi.advanceTimersByTime(LONGEST_COOL_DOWN_MS);
      await node.looked();
      expect([node.taken(), node.role.leads]).toEqual([[], false]);
    }
  });

  test("that wants the lead itself keeps it", async () => {
    node = await new FakeNode().led();
    node.wanted = OWN;
    await node.beat();
    await node.beat();
    expect(node.taken()).toEqual([]);
    expect(node.role.leads).toBe(true);
  });

  test("that stops does the same, and closes the journal last", async () => {
    node = await new FakeNode().led();
    await node.replication.stop();
    expect(node.taken()).toEqual(["~settled", "end", "release", "close"]);
    expect(node.role.refusal?.code).toBe("not-leader");
    const { looks } = node;
    await sleep(60);
    expect(node.looks).toBe(looks);
  });

  test("that PostgreSQL does not answer has writers look elsewhere, until it does", async () => {
    node = await new FakeNode().led();
    node.silence = 3_000;
    await node.beat();
    expect([node.role.leads, node.replication.status.leader]).toEqual([true, OWN]);
    node.silence = 3_001;
    await eventually(() => !node.role.leads);
    expect([node.role.refusal, node.replication.status.leader, node.role.isStale]).toEqual([null, null, false]);
    node.silence = 10_001;
    await eventually(() => node.role.isStale);
    expect(node.replication.status).toMatchObject({ role: "leader", lagSeconds: 10.001 });
    node.silence = 0;
    await eventually(() => node.role.leads && !node.role.isStale);
  });

  test("is confirmed by each sign of life that the journal has taken, and tells the checkpoint", async () => {
    node = await new FakeNode().led();
    const before = node.role.confirmations;
    await node.beat();
    expect(node.trace).toEqual(["+beat note"]);
    expect(node.role.confirmations).toBe(before + 1);
    // What is decided and untold is told before the next one is due.
    node.trace.length = 0;
    node.untold = 20;
    await eventually(() => node.trace.length > 0);
    node.untold = 0;
  });

  test("gives signs of life while it begins, and none when it follows", async () => {
    node = new FakeNode();
    let begin = () => {};
    node.instead.set("begin", () => new Promise<void>((resolve) => (begin = resolve)));
    node.wanted = OTHER;
    node.start();
    await node.until("begin");
    await node.beat();
    // It does not give away what it has not begun.
    expect(node.taken()).toEqual(["check", "take", "follow", "begin"]);
    node.wanted = null;
    begin();
    await eventually(() => node.role.leads);
    node.isHeld = false;
    node.journal.observeLoss();
    node.lead = { ...node.lead, holder: "other" };
    await node.looked();
    node.trace.length = 0;
    vi.advanceTimersByTime(500);
    await node.looked();
    expect(node.trace).toEqual([]);
  });

  test("removes private rows of old records every minute", async () => {
    node = await new FakeNode().led();
    for (const [minutes, sweeps] of [
      [0.9, 0],
      [0.1, 1],
      [0.9, 1],
      [0.1, 2],
    ] as const) {
      vi.advanceTimersByTime(minutes * 60_000);
      await node.beat();
      await sleep(30);
      expect(node.trace.filter((effect) => effect.endsWith("sweep")).length).toBe(sweeps);
    }
  });
});

describe("a payload that is withheld", () => {
  const erased = () => node.trace.splice(0).flatMap((effect) => /erase (\d+ bare \d+)/.exec(effect)?.[1] ?? []);

  test("is taken from the journal until it is gone, a few between two signs of life, whenever it is withheld", async () => {
    node = await new FakeNode().led();
    node.withheldLeaves = [3, 5];
    node.instead.set("erase 3 bare 3", () => false);
    await node.beat();
    expect(erased()).toEqual(["3 bare 3", "5 bare 5"]);
    node.instead.set("erase 3 bare 3", () => false);
    await node.beat();
    expect(erased()).toEqual(["3 bare 3"]);
    await node.beat();
    expect(erased()).toEqual(["3 bare 3"]);
    await node.beat();
    expect(erased()).toEqual([]);
    node.withheldLeaves = [1, 3, 5, 6, 7, 8, 9];
    await node.beat();
    expect(erased()).toEqual([1, 6, 7, 8].map((leaf) => `${leaf} bare ${leaf}`));
    await node.beat();
    expect(erased()).toEqual(["9 bare 9"]);
  });

  test("that cannot be taken from it stays, says so once, and keeps no other", async () => {
    node = await new FakeNode().led();
    node.withheldLeaves = [3, 5];
    node.instead.set("erase 3 bare 3", () => {
      throw corrupt();
    });
    await node.beat();
    await node.beat();
    expect(erased()).toEqual(["3 bare 3", "5 bare 5"]);
    expect(node.said.filter((text) => text === "a payload that is withheld stays in the journal")).toHaveLength(1);
  });
});

describe("the age of what a follower shows", () => {
  test("counts from before the look, and only of one that saw a leader and has all it told", async () => {
    node = new FakeNode({ isFollower: true });
    node.lead = { ...node.lead, holder: "other", url: OTHER, checkpoint: "told" };
    // Each look takes longer than a reader may be behind.
    node.instead.set("look", () => {
      vi.advanceTimersByTime(11_000);
      node.lead = { ...node.lead, beat: node.lead.beat + 1 };
    });
    node.start();
    await node.looked(3);
    expect([node.role.isStale, node.replication.status.lagSeconds]).toEqual([true, 11]);
    node.instead.delete("look");
    expect(node.replication.status.checkpoint).toBe("told");
    await node.looked();
    expect([node.role.isStale, node.replication.status.lagSeconds]).toEqual([false, 0]);
    // Nobody gives a sign: there may be a newer primary.
    vi.advanceTimersByTime(LEASE_MS);
    await node.looked();
    expect(node.replication.status).toMatchObject({ lagSeconds: LEASE_MS / 1000, leader: null });
    vi.advanceTimersByTime(8_200);
    await node.looked();
    expect(node.role.isStale).toBe(false);
    vi.advanceTimersByTime(1);
    await eventually(() => node.role.isStale);
    node.lead = { ...node.lead, beat: 99 };
    await eventually(() => !node.role.isStale);
  });

  test("trouble is said once, named while it lasts, and barred if only an operator can mend it", async () => {
    node = new FakeNode({ isFollower: true });
    node.lead = { ...node.lead, acked: 12, sequence: 12, holder: "other" };
    let error: Error = new CairnlogError("storage-failed", "No answer.");
    const failing = () => {
      node.instead.set("follow", failing);
      throw error;
    };
    node.instead.set("follow", failing);
    node.start();
    await node.looked(3);
    expect(node.replication.status).toMatchObject({ trouble: "No answer.", isBarred: false, lagSeconds: null });
    error = corrupt();
    await node.looked(3);
    expect(node.replication.status).toMatchObject({ trouble: error.message, isBarred: true });
    expect(node.said).toEqual(["the journal cannot be followed"]);
    node.instead.clear();
    await node.looked(3);
    expect(node.replication.status).toMatchObject({ trouble: null, isBarred: false, sequence: 12, lagSeconds: 0 });
    expect(node.said).toEqual(["the journal cannot be followed", "the journal can be followed again"]);
  });
});

/**
 * Failures injected at every boundary of the log: signer, disk, postings, workers. Every caller gets a coded error or a
 * receipt. Afterwards memory equals the disk, the log continues, no acknowledged change is lost, and no refused change
 * appears unless it was on disk before the failure.
 */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { runIn } from "../../log/inline.js";
import { scratchFolder } from "../../service.js";
import { type Engine, type Fate, type FaultCase, Faults, FaultyLog, STORM } from "./faultylog.js";
import { WORKER_CASES } from "./worker.js";

/** Loads the modules of a build. */
export async function loadEngine(dist: string): Promise<Engine> {
  const module = (name: string) => import(pathToFileURL(join(dist, "engine", `${name}.js`)).href);
  return {
    start: await module("log/start"),
    store: await module("store/store"),
    operatorKey: await module("crypto/signer/operator-key"),
    privateKey: await module("crypto/keys/signatures"),
    pool: await module("crypto/pool/pool"),
    verifier: await module("crypto/pool/pool"),
    password: await module("crypto/passwords/password"),
    spki: await module("crypto/keys/spki"),
    postings: await module("store/postings/postings"),
    term: await module("store/postings/term"),
    termTable: await module("store/postings/termtable"),
  };
}

type Scenario = (faulty: FaultyLog, engine: Engine) => Promise<void>;

function withLog(name: string, scenario: Scenario, options: { mapSize?: number } = {}): FaultCase {
  return {
    name,
    async run(engine) {
      const faulty = await FaultyLog.open(engine, options);
      try {
        await faulty.storm({ waves: 1, width: 10 });
        await scenario(faulty, engine);
        faulty.expect(faulty.faults.injected > 0 || faulty.codes.size > 0, "no fault took place");
      } catch (error) {
        faulty.problems.push((error as Error).stack ?? String(error));
      } finally {
        await faulty.close();
      }
      return faulty.problems;
    },
  };
}

const FATES: readonly Fate[] = ["not persisted", "persisted anyway"];

const onlyCode = ({ codes, problems }: FaultyLog, code: string): void => {
  if ([...codes].join() !== code)
    problems.push(`refusals have the codes ${[...codes].join(", ") || "(none)"}, not ${code}`);
};

type Sign = NonNullable<FaultyLog["faults"]["sign"]>;

const SIGNERS: Readonly<Record<string, (good: Sign, other: Sign) => Sign>> = {
  rejects: () => () => Promise.reject(new Error("injected: token removed")),
  throws: () => () => {
    throw new Error("injected: token removed");
  },
  "answers nothing": () => async () => undefined as never,
  "answers too few": (good) => async (messages) => (await good(messages)).slice(1),
  "answers too many": (good) => async (messages) => [...(await good(messages)), new Uint8Array(64)],
  "answers empty signatures": () => async (messages) => messages.map(() => new Uint8Array(0)),
  "answers signatures of differing lengths": (good) => async (messages) =>
    (await good(messages)).map((signature, i) => (i ? signature : signature.subarray(1))),
  "answers texts": (good) => async (messages) =>
    (await good(messages)).map((one) => Buffer.from(one).toString("hex") as never),
  "signs with another key": (_, other) => other,
};

const signerCases = Object.entries(SIGNERS).map(([kind, make]) =>
  withLog(`signer ${kind}`, async (faulty, { operatorKey, privateKey }) => {
    const key = () => operatorKey.operatorKey(privateKey.generatePrivateKey("ed25519"));
    const good: Sign = (messages) => key().sign(messages);
    faulty.faults.sign = make(good, key().sign);
    const failed = await faulty.storm();
    faulty.expect(failed === STORM, `${STORM - failed} appends were acknowledged under a head that nobody signed`);
    onlyCode(faulty, "signer-unavailable");
    await faulty.recover();
  }),
);

const slowSigner = withLog("signer does not answer for a while", async (faulty) => {
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const real = faulty.log;
  faulty.faults.sign = async () => {
    faulty.faults.injected++;
    await released;
    throw new Error("injected: the token came back and had forgotten");
  };
  const before = real.size;
  const storm = faulty.storm();
  await sleep(50);
  faulty.expect(real.size === before && faulty.refused.size === 0, "appends were answered that nobody had signed");
  faulty.expect(real.entry(1) !== undefined && real.inclusionProof(0).tree_size === before, "reads do not go on");
  release();
  await storm;
  onlyCode(faulty, "signer-unavailable");
  await faulty.recover();
});

const ERRORS: Readonly<Record<string, () => Error>> = {
  "an I/O error": () => Object.assign(new Error("injected: EIO"), { code: "EIO" }),
  "a full disk": () => Object.assign(new Error("injected: ENOSPC"), { code: "ENOSPC" }),
};

const commitCases = Object.entries(ERRORS).flatMap(([what, error]) =>
  FATES.flatMap((fate) =>
    [0, 1, 2].map((before) =>
      withLog(`commit fails by ${what}, ${fate}, after ${before}`, async (faulty) => {
        faulty.faults.error = error;
        faulty.faults.commits = [...Array<"works">(before).fill("works"), fate];
        const failed = await faulty.storm();
        faulty.expect(failed > 0, "no append failed");
        onlyCode(faulty, "storage-failed");
        await faulty.check("at once", fate === "persisted anyway");
        await faulty.recover(fate === "persisted anyway");
      }),
    ),
  ),
);

const longFailure = withLog("every commit fails for a while", async (faulty) => {
  faulty.faults.commits = Array<Fate>(500).fill("not persisted");
  const failed = await faulty.storm();
  faulty.expect(failed === STORM, "an append was acknowledged");
  onlyCode(faulty, "storage-failed");
  await faulty.recover();
});

/** The disk fails while memory is restored after a failure. */
const restoreCases = (["lastBatch", "batchAt", "tile"] as const).map((read) =>
  withLog(`${read} cannot be read after a commit failed`, async (faulty) => {
    await faulty.storm({ waves: 30, width: 20 });
    faulty.faults.commits = ["not persisted"];
    faulty.faults.reads.add(read);
    await faulty.storm();
    for (const code of faulty.codes) faulty.expect(code === "storage-failed", `a refusal has the code ${code}`);
    await faulty.recover();
  }),
);

const readCases = (["get", "range"] as const).map((read) =>
  withLog(`${read} fails within a command`, async (faulty) => {
    const { log, faults } = faulty;
    faults.reads.add(read);
    const outcome = await runIn(log, (transaction) => {
      transaction.append({ event_type: "note", payload: { n: -1 } });
      faulty.refused.add(-1);
      return read === "get" ? transaction.get("keys", "x") : transaction.range("keys", "a", "b");
    }).then(
      () => "no error",
      (error: Error & { code?: string }) => error.code ?? error.message,
    );
    faulty.expect(outcome === "storage-failed", `the command ended in: ${outcome}`);
    await faulty.storm();
    await faulty.recover();
  }),
);

/** Number of entries after which postings are written as a run. Four runs are merged into one. */
const RUN = 4_096;

const flushCases = FATES.map((fate) =>
  withLog(`postings cannot be flushed, ${fate}`, async (faulty) => {
    const { faults } = faulty;
    faults.postings.set("writeRun", fate);
    for (let sent = 0; sent < 1.5 * RUN; sent += 1_000) {
      const failed = await faulty.storm({ waves: 10, width: 100 });
      faulty.expect(failed === 0, "appends failed, though only what finds them is late");
    }
    // The next entries trigger it again. Otherwise memory would hold all later postings.
    for (let wave = 0; wave < 60 && faulty.log.size - faulty.inRuns > RUN; wave++) {
      await faulty.storm({ waves: 1, width: 20 });
      await sleep(20);
    }
    faulty.expect(
      faulty.log.size - faulty.inRuns <= RUN,
      `of ${faulty.log.size} entries only ${faulty.inRuns} are in runs`,
    );
    await faulty.recover();
  }),
);

/** Every entry has a posting of each class. There are enough entries that a merge takes more than one transaction. */
const CLASSES = [7, 11, 13];

/** Without a log, which would take seconds to become large enough. */
const mergeCases = (["writeRun", "writeBlocks", "removeBlocks"] as const).flatMap((kind) =>
  FATES.map(
    (fate): FaultCase => ({
      name: `postings cannot be merged: ${kind} fails, ${fate}`,
      async run({ store: { openStore }, postings: { Postings }, term: { hashTerm }, termTable: { TermTable } }) {
        const folder = scratchFolder();
        const store = openStore({ path: folder.path, mapSize: 2 ** 28 });
        const faults = new Faults();
        const { postings: tables } = faults.wrap(store);
        const problems: string[] = [];
        try {
          let postings = new Postings(tables);
          const term = (of: number, n: number) => hashTerm(6, `${n} of ${of}`);
          const check = (when: string) => {
            for (const of of CLASSES)
              for (let n = 0; n < of; n++) {
                const list = postings.list(term(of, n));
                const found = Array.from({ length: list.length }, (_, rank) => list.at(rank));
                const wanted = Array.from({ length: Math.ceil((postings.size - n) / of) }, (_, i) => of * i + n);
                if (found.join() !== wanted.join())
                  problems.push(`${when}: ${found.length} postings of ${wanted.length}`);
              }
            const wanted = postings.size * CLASSES.length;
            if (postings.count !== wanted) problems.push(`${when}: ${postings.count} postings of ${wanted}`);
          };
          const grow = async () => {
            const terms = new TermTable();
            for (let index = postings.size; index < size + RUN; index++)
              for (const of of CLASSES) terms.add(term(of, index % of), index);
            size += RUN;
            postings.add(size, terms);
            await postings.settle().catch(() => {});
          };
          let size = 0;
          // The fault occurs with the fourth run, which triggers a merge.
          for (let run = 0; run < 3; run++) await grow();
          faults.postings.set(kind, fate);
          for (let run = 0; run < 4; run++) {
            await grow();
            check(`with ${run + 4} runs`);
          }
          if (!faults.injected) problems.push("no fault took place");
          await postings.settle();
          if (postings.runCount > 5) problems.push(`${postings.runCount} runs were not merged`);
          await postings.close();
          postings = new Postings(tables);
          check("after a restart");
        } finally {
          await store.close();
          folder.remove();
        }
        return problems;
      },
    }),
  ),
);

export const FAULT_CASES: readonly FaultCase[] = [
  ...signerCases,
  slowSigner,
  ...commitCases,
  longFailure,
  ...restoreCases,
  ...readCases,
  ...flushCases,
  ...mergeCases,
  ...WORKER_CASES,
];

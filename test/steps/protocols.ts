/** What changes files in an order that matters: the steps of each, and what may be found where it stopped at one of them. */
import { copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import type { Pool } from "#cairnlog/engine/crypto/pool/pool.js";
import { openOperatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { linesOf, readBackupManifest } from "#cairnlog/engine/log/history/backupformat.js";
import { PublishedHead, readPublishedHead } from "#cairnlog/engine/log/tlog/published.js";
import { PRIVATE_TABLES } from "#cairnlog/engine/store/schema/schema.js";
import { openStore } from "#cairnlog/engine/store/store.js";
import { holding } from "../backup/bytes.js";
import { check, openData, sentences, tamper } from "../fsck/everykind.js";
import { chain } from "../log/history/entries.js";
import { newSigner, registration } from "../server/signers.js";
import { NAME, WitnessClient } from "../witness/harness.js";
import { newTree } from "../witness/logs.js";
import { type Run, run, type Stage, type Use } from "./stepping.js";

/** What is found: plain data. */
export type Found = Readonly<Record<string, unknown>> | null;

export interface Protocol {
  readonly name: string;
  /** All steps of a run that nothing stops, in order, with commas or line ends between them. */
  readonly steps: string;
  /** The steps that are listed and stopped at, if others come when they like. */
  readonly seen?: RegExp;
  /** Whether steps are made again from time to time: only the last of each is listed. */
  readonly repeats?: true;
  /** Makes what the run begins with. */
  prepare(sources: Sources, root: string): Promise<void>;
  run(sources: Sources, stage: Stage): Promise<Run>;
  /** What somebody finds who opens it. It is given a copy. */
  look(sources: Sources, root: string): Promise<Found>;
  /**
   * What is wrong with `found` after a run that was stopped. Without this function: all that is neither what was there before
   * nor what a whole run makes.
   */
  judge?(found: Found, run: Run, before: Found, after: Found): string[];
  /** What a further run says that finds everything done. */
  readonly done?: RegExp;
  /** Whether each further run goes on from the one before, and ends elsewhere. */
  readonly isOpenEnded?: true;
  /** Files that a kill may leave. */
  readonly left?: RegExp;
}

const CALLER = { SERVICE_WORKERS: "1", LOG_LEVEL: "silent" };

/** Sources that the protocols share, made once. */
export interface Sources {
  readonly pool: Pool;
  /** A data directory with rows of every kind. */
  readonly data: string;
  /** A later state of it. */
  readonly later: string;
  /** One without entries, with accounts. */
  readonly accounts: string;
  /** Its backup. */
  readonly backup: string;
  /** Folders of monitors: after a round of the shorter log. */
  readonly monitored: string;
  readonly tiled: string;
  /** The address of the log that has grown since, and the key of its checkpoints. */
  readonly url: string;
  readonly vkey: string;
}

async function lookAtData(dataDir: string, pool: Pool): Promise<Found> {
  const log = join(dataDir, "log");
  if (!existsSync(join(log, "data.mdb")) && !existsSync(join(log, "postings"))) return null;
  const registry = await openData(dataDir, pool);
  const { size, operators } = registry.log;
  new PublishedHead(join(dataDir, "published.json"), registry.log).check();
  const found = { size, root: registry.log.treeHead()?.root_hash ?? null, operator: operators.current.fingerprint };
  const differences = registry.log.stateDifferences();
  await registry.close();
  return { ...found, rows: await rowsOf(log), wrong: [...differences, ...sentences(await check(dataDir, pool))] };
}

async function rowsOf(path: string): Promise<number> {
  const store = openStore({ path, readOnly: true });
  const rows = PRIVATE_TABLES.reduce((sum, table) => sum + [...store.range(table)].length, 0);
  await store.close();
  return rows;
}

/** Reads every file that the manifest names. */
async function lookAtBackup(folder: string): Promise<Found> {
  const manifest = existsSync(folder) ? readBackupManifest(folder) : undefined;
  if (!manifest) return null;
  let lines = 0;
  for (const file of [...manifest.segments, manifest.private_rows])
    for await (const _ of linesOf(folder, file)) lines++;
  return { size: manifest.tree_size, lines };
}

const sizeIn = (file: string): number => (existsSync(file) ? Number(readFileSync(file, "utf8").split("\n")[1]) : 0);

const place = (from: string, to: string) => cpSync(from, to, { recursive: true });

/** A data directory with a key and nothing else. */
function withKey({ data }: Sources, folder: string): void {
  mkdirSync(folder);
  copyFileSync(join(data, "operator.pem"), join(folder, "operator.pem"));
}

const HISTORY = chain([{}, {}, {}, {}])
  .map((entry) => `${JSON.stringify(entry)}\n`)
  .join("");
/** The attestation in the data directory with rows of every kind. */
const ATTESTED = 9;
const ATTESTED_TITLE = "A title";
/** Drafts of a monitor have a name that no other process takes. */
const DRAFT = /\.N-N-N-N-N$/;
const SUCCESSOR = generatePrivateKey("ed25519");
const tree = newTree("log.example/steps");

const monitored = ({ root, ...stage }: Stage, address: string, ...more: string[]) =>
  run({ root, ...stage }, ["monitor", address, "--state", join(root, "state"), "--once", "--patience", "0", ...more]);

export const PROTOCOLS: readonly Protocol[] = [
  {
    name: "backup",
    steps: `
      flush backup, write backup/draft.N-N-N.private.partial
      write backup/draft.N-N-N.entries.partial, flush backup/draft.N-N-N.entries.partial, rename backup/entries-N-N.ndjson, flush backup
      write backup/draft.N-N-N.private.partial, flush backup/draft.N-N-N.private.partial, rename backup/private-N-N.ndjson, flush backup
      write backup/draft.N-N-N.manifest.partial, flush backup/draft.N-N-N.manifest.partial, rename backup/manifest.json, flush backup
    `,
    async prepare({ data }, root) {
      place(data, join(root, "data"));
    },
    run: (_, stage) => run(stage, ["backup", "--data", join(stage.root, "data"), "--to", join(stage.root, "backup")]),
    look: (_, root) => lookAtBackup(join(root, "backup")),
  },
  {
    name: "backup of what has come since",
    steps: `
      flush backup, write backup/draft.N-N-N.private.partial
      write backup/draft.N-N-N.entries.partial, flush backup/draft.N-N-N.entries.partial, rename backup/entries-N-N.ndjson, flush backup
      write backup/draft.N-N-N.private.partial, flush backup/draft.N-N-N.private.partial, rename backup/private-N-N.ndjson, flush backup
      write backup/draft.N-N-N.manifest.partial, flush backup/draft.N-N-N.manifest.partial, rename backup/manifest.json, flush backup
      unlink backup/private-N-N.ndjson
    `,
    async prepare({ later, backup }, root) {
      place(later, join(root, "data"));
      place(backup, join(root, "backup"));
    },
    run: (_, stage) => run(stage, ["backup", "--data", join(stage.root, "data"), "--to", join(stage.root, "backup")]),
    look: (_, root) => lookAtBackup(join(root, "backup")),
  },
  {
    name: "restore",
    steps: `
      lock data/log.restoring, commit data/log.restoring, flush data/log.restoring/data.mdb, commit data/log.restoring
      commit data/log.restoring/postings, flush data/log.restoring/postings/data.mdb, commit data/log.restoring/postings
      commit data/log.restoring, commit data/log.restoring/postings, free data/log.restoring, commit data/log.restoring
      write data/operator.pub.pem.new, flush data/operator.pub.pem.new, rename data/operator.pub.pem, flush data
      rename data/log, flush data
    `,
    done: /There is already a log in/,
    async prepare(sources, root) {
      place(sources.backup, join(root, "backup"));
      withKey(sources, join(root, "data"));
    },
    run: (_, stage) =>
      run(stage, ["restore", join(stage.root, "backup"), "--to", join(stage.root, "data"), "--may-fork"]),
    look: ({ pool }, root) => lookAtData(join(root, "data"), pool),
  },
  {
    name: "import",
    steps: `
      lock data/log.importing, commit data/log.importing, flush data/log.importing/data.mdb, commit data/log.importing
      commit data/log.importing/postings, flush data/log.importing/postings/data.mdb, commit data/log.importing/postings
      commit data/log.importing, commit data/log.importing/postings, free data/log.importing
      lock data/log
      write data/operator.pub.pem.new, flush data/operator.pub.pem.new, rename data/operator.pub.pem, flush data
      flush data/log, rename data/log/data.mdb, flush data/log, rename data/log/postings, flush data/log, free data/log
    `,
    done: /The log already has \d+ entries/,
    async prepare(sources, root) {
      writeFileSync(join(root, "history"), HISTORY);
      withKey(sources, join(root, "data"));
    },
    run: (_, stage) => run(stage, ["import", join(stage.root, "history"), "--data", join(stage.root, "data")]),
    look: ({ pool }, root) => lookAtData(join(root, "data"), pool),
  },
  {
    name: "import into a log that has accounts",
    steps: `
      commit data/log.importing, flush data/log.importing/data.mdb, commit data/log.importing
      lock data/log.importing, commit data/log.importing/postings, flush data/log.importing/postings/data.mdb, commit data/log.importing/postings
      commit data/log.importing, commit data/log.importing/postings, free data/log.importing
      lock data/log
      write data/operator.pub.pem.new, flush data/operator.pub.pem.new, rename data/operator.pub.pem, flush data
      unlink data/log/postings/data.mdb, flush data/log
      rename data/log/data.mdb, flush data/log, rename data/log/postings, flush data/log, free data/log
    `,
    done: /The log already has \d+ entries/,
    async prepare({ accounts }, root) {
      writeFileSync(join(root, "history"), HISTORY);
      place(accounts, join(root, "data"));
    },
    run: (_, stage) => run(stage, ["import", join(stage.root, "history"), "--data", join(stage.root, "data")]),
    look: ({ pool }, root) => lookAtData(join(root, "data"), pool),
  },
  {
    name: "rebuild",
    steps: `
      lock data/log, commit data/log/scratch, unlink data/log/scratch/data.mdb
      commit data/log, commit data/log/scratch, commit data/log/postings, commit data/log/scratch
      commit data/log, unlink data/log/scratch/data.mdb
      commit data/log, commit data/log/scratch, unlink data/log/scratch/data.mdb, free data/log
    `,
    async prepare({ data }, root) {
      place(data, join(root, "data"));
      await tamper(join(root, "data"), async (table) => {
        for (const key of [...table("keys").getKeys()]) await table("keys").remove(key);
      });
    },
    run: (_, stage) => run(stage, ["fsck", "--data", join(stage.root, "data"), "--rebuild"]),
    async look({ pool }, root) {
      const { entries, counts } = await check(join(root, "data"), pool);
      return { size: entries, ...counts, rows: await rowsOf(join(root, "data", "log")) };
    },
    judge: (found, { code }, before, after) => {
      const whole = (one: Found) => JSON.stringify({ ...one, derived: 0 });
      if (whole(found) !== whole(before)) return ["more than what follows from the entries has changed"];
      return code === 0 && JSON.stringify(found) !== JSON.stringify(after) ? ["it is not rebuilt"] : [];
    },
  },
  {
    name: "the end of a log",
    steps: `
      lock data/log, commit data/log, free data/log
    `,
    // What is kept of the clock is written when it likes, and a start may commit, too.
    seen: /^(?:lock|commit|free) /,
    repeats: true,
    async prepare({ data }, root) {
      place(data, join(root, "data"));
    },
    run: (_, stage) =>
      run(stage, ["operator", "freeze", "--reason", "It is full.", "--data", join(stage.root, "data")]),
    async look({ pool }, root) {
      const { root: _, ...found } = (await lookAtData(join(root, "data"), pool))!;
      const registry = await openData(join(root, "data"), pool);
      const { frozen } = registry.log;
      await registry.close();
      return { ...found, reason: frozen?.reason ?? null };
    },
  },
  {
    name: "withholding of a payload",
    done: /is withheld by entry/,
    steps: `
      commit data/log, lock data/log
      commit data/log/erasing/postings, commit data/log/erasing, rename data/log/erased
      unlink data/log/postings/data.mdb, rename data/log/postings, rename data/log/data.mdb
      free data/log
    `,
    // What is kept of the clock is written when it likes, and a start may commit, too.
    seen: /^(?:lock|commit|free|rename|unlink) data\/log(?!\/clock)/,
    repeats: true,
    async prepare({ data }, root) {
      place(data, join(root, "data"));
    },
    run: (_, stage) =>
      run(stage, ["operator", "withhold", `${ATTESTED}`, "--reason", "An order.", "--data", join(stage.root, "data")]),
    async look({ pool }, root) {
      const dataDir = join(root, "data");
      const isOnDisk = holding(dataDir, { title: Buffer.from(ATTESTED_TITLE) }).length > 0;
      const { root: _, ...found } = (await lookAtData(dataDir, pool))!;
      const registry = await openData(dataDir, pool);
      const { payload } = registry.log.entry(ATTESTED)!;
      await registry.close();
      return { ...found, shown: payload?.document_title ?? null, isOnDisk };
    },
    judge: (found, { code }, before, after) => {
      // It is shown to nobody and still there, until the next run.
      const isHalf = JSON.stringify({ ...found, isOnDisk: false }) === JSON.stringify(after);
      if (code === 0 && JSON.stringify(found) !== JSON.stringify(after)) return ["it is on the disk"];
      return isHalf || JSON.stringify(found) === JSON.stringify(before)
        ? []
        : [`it is neither: ${JSON.stringify(found)}`];
    },
  },
  {
    name: "rotation of the operator key",
    done: /is or was an operator key of this log/,
    steps: `
      lock data/log, free data/log
      lock data/log, write data/log/clock.json.new, rename data/log/clock.json
      write data/log/clock.json.new, rename data/log/clock.json, free data/log
      lock data/log, commit data/log, free data/log
      write data/operator.pub.pem.new, flush data/operator.pub.pem.new, rename data/operator.pub.pem, flush data
      link data/operator.N.pem, flush data
      write data/operator.pem.new, flush data/operator.pem.new, rename data/operator.pem, flush data
    `,
    async prepare({ data }, root) {
      place(data, join(root, "data"));
      writeFileSync(join(root, "new.pem"), SUCCESSOR, { mode: 0o600 });
    },
    run: (_, stage) =>
      run(stage, ["operator", "rotate", "--to", join(stage.root, "new.pem"), "--data", join(stage.root, "data")]),
    async look({ data, pool }, root) {
      const file = join(root, "data", "operator.pem");
      const held = openOperatorKey(file).fingerprint;
      const meta = openStore({ path: join(root, "data", "log"), readOnly: true });
      const isHandedOver = meta.get("meta", "log")!.key_id !== openOperatorKey(join(data, "operator.pem")).fingerprint;
      await meta.close();
      if (isHandedOver) copyFileSync(join(root, "new.pem"), file);
      const { root: _, ...found } = (await lookAtData(join(root, "data"), pool))!;
      return { ...found, isPlaced: held === found.operator };
    },
    judge: (found, _, before, after) =>
      [before, after, { ...after, isPlaced: false }].some((one) => JSON.stringify(one) === JSON.stringify(found))
        ? []
        : ["the log has neither of the keys, or lacks something"],
  },
  ...(
    [
      [
        "the newest head that a service has shown",
        /published\.json/,
        "lock data/log, write data/published.json.new, rename data/published.json, free data/log",
      ],
      [
        "the newest checkpoint of a service",
        /tlog-checkpoint/,
        `lock data/log
        write data/tlog-checkpoint.txt.new, flush data/tlog-checkpoint.txt.new, rename data/tlog-checkpoint.txt
        free data/log`,
      ],
    ] as const
  ).map(
    ([name, seen, steps]): Protocol => ({
      name,
      isOpenEnded: true,
      seen,
      repeats: true,
      steps,
      prepare: async ({ data }, root) => place(data, join(root, "data")),
      run: (_, stage) =>
        run(
          stage,
          ["serve", "--json", "--no-parent"],
          {
            ...CALLER,
            PORT: "0",
            SERVICE_DATA_DIR: join(stage.root, "data"),
            SERVICE_RATE_LIMITS: "off",
            SERVICE_FRONT_ENDS: "0",
          },
          useService,
        ),
      look: async ({ pool }, root) => {
        const dataDir = join(root, "data");
        const shown = readPublishedHead(join(dataDir, "published.json"))?.tree_size ?? 0;
        const checkpoint = sizeIn(join(dataDir, "tlog-checkpoint.txt"));
        const { size, wrong } = (await lookAtData(dataDir, pool))!;
        return { size, wrong, shown, checkpoint };
      },
      judge: (found, { promised }) => {
        const { size, shown, checkpoint, wrong } = found as {
          size: number;
          shown: number;
          checkpoint: number;
          wrong: unknown[];
        };
        return [
          ...(size < promised ? [`${promised} entries were acknowledged, and ${size} are there`] : []),
          ...(Math.max(shown, checkpoint) > size ? [`more is published than the ${size} entries that are there`] : []),
          ...(wrong.length ? [`${wrong}`] : []),
        ];
      },
    }),
  ),
  ...(
    [
      [
        "first round of a monitor",
        false,
        `
      write state/state.json.N-N-N-N-N, flush state/state.json.N-N-N-N-N, rename state/state.json, flush state
      write state/state.json.N-N-N-N-N, flush state/state.json.N-N-N-N-N, rename state/state.json, flush state
      lock state/mirror/log, commit state/mirror/log, flush state/mirror/log/data.mdb, commit state/mirror/log
      commit state/mirror/log/postings, flush state/mirror/log/postings/data.mdb, commit state/mirror/log/postings
      write state/mirror/operator.pub.pem.N-N-N-N-N, flush state/mirror/operator.pub.pem.N-N-N-N-N, rename state/mirror/operator.pub.pem, flush state/mirror
      write state/state.json.N-N-N-N-N, flush state/state.json.N-N-N-N-N, rename state/state.json, flush state
      commit state/mirror/log
      write state/told.json.N-N-N-N-N, flush state/told.json.N-N-N-N-N, rename state/told.json, flush state
      commit state/mirror/log
      write state/told.json.N-N-N-N-N, flush state/told.json.N-N-N-N-N, rename state/told.json, flush state
      write state/mirror/checkpoint.txt.N-N-N-N-N, flush state/mirror/checkpoint.txt.N-N-N-N-N, rename state/mirror/checkpoint.txt, flush state/mirror
      write state/mirror/tlog.vkey.N-N-N-N-N, flush state/mirror/tlog.vkey.N-N-N-N-N, rename state/mirror/tlog.vkey, flush state/mirror
      write state/mirror/tlog-checkpoint.txt.N-N-N-N-N, flush state/mirror/tlog-checkpoint.txt.N-N-N-N-N, rename state/mirror/tlog-checkpoint.txt, flush state/mirror
      free state/mirror/log
    `,
      ],
      [
        "round of a monitor",
        true,
        `
      write state/state.json.N-N-N-N-N, flush state/state.json.N-N-N-N-N, rename state/state.json, flush state
      lock state/mirror/log
      write state/mirror/operator.pub.pem.N-N-N-N-N, flush state/mirror/operator.pub.pem.N-N-N-N-N, rename state/mirror/operator.pub.pem, flush state/mirror
      write state/state.json.N-N-N-N-N, flush state/state.json.N-N-N-N-N, rename state/state.json, flush state
      commit state/mirror/log
      write state/told.json.N-N-N-N-N, flush state/told.json.N-N-N-N-N, rename state/told.json, flush state
      write state/mirror/checkpoint.txt.N-N-N-N-N, flush state/mirror/checkpoint.txt.N-N-N-N-N, rename state/mirror/checkpoint.txt, flush state/mirror
      write state/mirror/tlog.vkey.N-N-N-N-N, flush state/mirror/tlog.vkey.N-N-N-N-N, rename state/mirror/tlog.vkey, flush state/mirror
      write state/mirror/tlog-checkpoint.txt.N-N-N-N-N, flush state/mirror/tlog-checkpoint.txt.N-N-N-N-N, rename state/mirror/tlog-checkpoint.txt, flush state/mirror
      free state/mirror/log
    `,
      ],
    ] as const
  ).map(
    ([name, hasBegun, steps]): Protocol => ({
      name,
      steps,
      async prepare({ monitored }, root) {
        if (hasBegun) place(monitored, join(root, "state"));
      },
      left: DRAFT,
      run: ({ url }, stage) => monitored(stage, url),
      async look(_, root) {
        const folder = join(root, "state");
        const file = join(folder, "state.json");
        const state = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : null;
        const path = join(folder, "mirror", "log");
        let size = 0;
        if (existsSync(join(path, "data.mdb"))) {
          const store = openStore({ path, readOnly: true });
          // Killed early, it has made the file, and no tables in it.
          const last = store.get("meta", "log") && store.lastBatch();
          size = last ? last.firstIndex + last.count : 0;
          await store.close();
        }
        return {
          believed: state?.head?.tree_size ?? 0,
          size,
          checkpoint: sizeIn(join(folder, "mirror", "tlog-checkpoint.txt")),
        };
      },
      judge: (found, _, before, after) => {
        const [a, b, c] = [before, found, after] as { believed: number; size: number; checkpoint: number }[];
        return [
          ...([a!.believed, c!.believed].includes(b!.believed) ? [] : [`it believes a head of ${b!.believed}`]),
          ...(b!.size < a!.size || b!.size > c!.size ? [`the mirror has ${b!.size} entries`] : []),
          ...(b!.checkpoint > b!.size ? ["the mirror shows a checkpoint of entries that it lacks"] : []),
        ];
      },
    }),
  ),
  {
    name: "round of a monitor of tiles",
    steps: `
      write state/mirror/tile/entries/N.p/N.N-N-N-N-N, flush state/mirror/tile/entries/N.p/N.N-N-N-N-N, rename state/mirror/tile/entries/N.p/N, flush state/mirror/tile/entries/N.p
      write state/mirror/tile/N/N.p/N.N-N-N-N-N, flush state/mirror/tile/N/N.p/N.N-N-N-N-N, rename state/mirror/tile/N/N.p/N, flush state/mirror/tile/N/N.p
      write state/mirror/tile/entries/N.N-N-N-N-N, flush state/mirror/tile/entries/N.N-N-N-N-N, rename state/mirror/tile/entries/N, flush state/mirror/tile/entries
      write state/mirror/tile/N/N.N-N-N-N-N, flush state/mirror/tile/N/N.N-N-N-N-N, rename state/mirror/tile/N/N, flush state/mirror/tile/N
      write state/mirror/tile/N/N.p/N.N-N-N-N-N, flush state/mirror/tile/N/N.p/N.N-N-N-N-N, rename state/mirror/tile/N/N.p/N, flush state/mirror/tile/N/N.p
      write state/mirror/checkpoint.N-N-N-N-N, flush state/mirror/checkpoint.N-N-N-N-N, rename state/mirror/checkpoint, flush state/mirror
      unlink state/mirror/tile/N/N.p/N, unlink state/mirror/tile/entries/N.p/N
    `,
    prepare: async ({ tiled }, root) => place(tiled, join(root, "state")),
    left: DRAFT,
    run: ({ url, vkey }, stage) => monitored(stage, `${url}/tlog`, "--vkey", vkey),
    async look(_, root) {
      const mirror = join(root, "state", "mirror");
      return { size: sizeIn(join(mirror, "checkpoint")) };
    },
  },
  {
    name: "publication into a folder",
    steps: `
      write site/.drafts/N-N-N-N-N, flush site/.drafts/N-N-N-N-N, link site/tile/entries/N.p/N, unlink site/.drafts/N-N-N-N-N
      write site/.drafts/N-N-N-N-N, flush site/.drafts/N-N-N-N-N, link site/tile/N/N.p/N, unlink site/.drafts/N-N-N-N-N
      write site/.drafts/N-N-N-N-N, flush site/.drafts/N-N-N-N-N, link site/tile/entries/N, unlink site/.drafts/N-N-N-N-N
      write site/.drafts/N-N-N-N-N, flush site/.drafts/N-N-N-N-N, link site/tile/N/N, unlink site/.drafts/N-N-N-N-N
      write site/.drafts/N-N-N-N-N, flush site/.drafts/N-N-N-N-N, link site/tile/N/N.p/N, unlink site/.drafts/N-N-N-N-N
      write site/.drafts/N-N-N-N-N, flush site/.drafts/N-N-N-N-N, flush site/tile/entries/N.p, flush site/tile/N/N.p, flush site, link site/vkey, unlink site/.drafts/N-N-N-N-N
      write site/.drafts/N-N-N-N-N, flush site/.drafts/N-N-N-N-N, flush site, link site/checkpoint, unlink site/.drafts/N-N-N-N-N
    `,
    prepare: async (_, root) => mkdirSync(join(root, "site")),
    left: /^site\/\.drafts\//,
    run: ({ url, vkey }, stage) => run(stage, ["publish", `${url}/tlog`, join(stage.root, "site"), "--vkey", vkey]),
    async look(_, root) {
      return { size: sizeIn(join(root, "site", "checkpoint")) };
    },
  },
  {
    name: "witness",
    left: /^data\/witness\.pem(?::|\.N-N-N-N-N)/,
    isOpenEnded: true,
    steps: `
      lock data/witness, commit data/witness, flush data/witness/data.mdb, commit data/witness
      write data/witness.pem.N-N-N-N-N, flush data/witness.pem.N-N-N-N-N, link data/witness.pem, unlink data/witness.pem.N-N-N-N-N, flush data
      commit data/witness, free data/witness
    `,
    async prepare(_, root) {
      mkdirSync(join(root, "data"));
      writeFileSync(join(root, "logs"), `log ${tree.signer.vkey}\n`);
    },
    run: (_, stage) =>
      run(
        stage,
        [
          "witness",
          "--data",
          join(stage.root, "data"),
          "--logs",
          join(stage.root, "logs"),
          "--name",
          NAME,
          "--port",
          "0",
          "--json",
        ],
        {},
        async (first, child, promise) => {
          const { url, vkey } = JSON.parse(first) as { url: string; vkey: string };
          const witness = new WitnessClient(url, vkey);
          for (let size = await witness.size(tree).catch(() => 9); size < 4; size++) {
            const reply = await witness.add(tree.body(size, size + 1)).catch(() => null);
            if (reply?.status !== 200) break;
            promise(size + 1);
          }
          child.kill("SIGTERM");
        },
      ),
    async look(_, root) {
      return { remembers: await remembered(join(root, "data"), tree.origin) };
    },
    judge: (found, { promised }) =>
      Number(found!.remembers) < promised || Number(found!.remembers) > promised + 1
        ? [`it has given a cosignature of ${promised}, and remembers ${found!.remembers}`]
        : [],
  },
];

/** Sends requests until one is not answered, and ends the service. */
const useService: Use = async (first, child, promise) => {
  const { url } = JSON.parse(first) as { url: string };
  for (let n = 0; n < 2; n++) {
    const body = JSON.stringify(registration(newSigner(), `holder ${n}`));
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${url}/api/v1/keys/register`, { method: "POST", headers, body })
      .then(async (reply) => (reply.ok ? ((await reply.json()) as { log_entry_id: number }) : null))
      .catch(() => null);
    if (!answer) break;
    promise(answer.log_entry_id);
  }
  child.kill("SIGTERM");
};

async function remembered(dataDir: string, origin: string): Promise<number> {
  const { WitnessRows } = await import("#cairnlog/server/witness/rows.js");
  const path = join(dataDir, "witness");
  if (!existsSync(join(path, "data.mdb"))) return 0;
  const rows = await WitnessRows.open(path);
  const size = rows.get(origin)?.treeSize ?? 0;
  await rows.close();
  return size;
}

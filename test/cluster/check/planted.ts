/** Faults of replication that the rounds must find when they are planted in the service, and the rounds that find each. */
import type { PlantedFault } from "../../reliability/planted.js";

export interface ClusterFault extends PlantedFault {
  /** Names of the faults of the rounds under which it shows. */
  readonly shows: readonly string[];
  /** Number of rounds in which it must be found. Most are found in the first. */
  readonly rounds: number;
}

const POSTGRES = "engine/journal/postgres";

export const CLUSTER_FAULTS: readonly ClusterFault[] = [
  {
    name: "acknowledges before PostgreSQL has the record",
    file: `${POSTGRES}/journal.js`,
    text: "await this.#append(columns, held);",
    replacement:
      "void this.#append(columns, held).catch(() => {}); held.sequence = columns.sequence; return columns.hash;",
    shows: ["the primary is lost, and a standby promoted"],
    rounds: 3,
  },
  {
    name: "appends without the condition that it leads",
    file: `${POSTGRES}/statements.js`,
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a template
    text: "WHERE epoch = $3::bigint AND holder = $9::text AND sequence = $1::bigint - 1 AND hash = $10::bytea AND ${WAITS}",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a template
    replacement: "WHERE $9::text IS NOT NULL AND $10::bytea IS NOT NULL AND ${WAITS}",
    // No other record takes its place: the number is there already. But bytes of it are.
    shows: ["an append of the leader arrives when another node leads"],
    rounds: 2,
  },
  {
    name: "believes PostgreSQL without asking a standby",
    file: `${POSTGRES}/journal.js`,
    text: "return this.#servers.areShown(sequence, hash, SHOWN_MS);",
    replacement: "return true;",
    shows: ["waiting commits are ended, and the primary is lost with them"],
    rounds: 3,
  },
  {
    name: "follows what is not decided yet",
    file: `${POSTGRES}/journal.js`,
    text: "upTo: this.#held?.sequence ?? lead.acked,",
    replacement: "upTo: lead.sequence,",
    also: [
      {
        file: "server/replication/replication.js",
        text: "return position.sequence < acked ||",
        replacement: "return position.sequence < sequence ||",
      },
    ],
    shows: ["waiting commits are ended, and the primary is lost with them"],
    rounds: 6,
  },
  {
    name: "makes another record when it does not know what became of one, and takes the one that is there for it",
    file: `${POSTGRES}/journal.js`,
    text: 'if (outcome.kind === "refused" && !isUnknown)',
    replacement: 'if (outcome.kind !== "done")',
    also: [
      {
        file: `${POSTGRES}/journal.js`,
        text: 'return !isUnknown && outcome.rows[0].count === "1";',
        replacement: "return true;",
      },
      {
        file: `${POSTGRES}/journal.js`,
        text: "return this.#servers.areShown(sequence, hash, SHOWN_MS);",
        replacement: "return true;",
      },
    ],
    shows: ["connections break off again and again"],
    rounds: 6,
  },
  {
    name: "leads without having read to the end, and takes the end of the journal for its own",
    file: "server/replication/replication.js",
    text: "await log.follow();\n            await leadership.begin(",
    replacement: "await leadership.begin(",
    also: [
      {
        file: `${POSTGRES}/journal.js`,
        text: "const columns = columnsOf(record, record.batch ? batchCount(record.batch) : 0);",
        replacement: `const { epoch = record.epoch, end = record.previous, sequence = record.sequence - 1 } = this.#held ?? {};
        const moved = { ...record, epoch, previous: end, sequence: sequence + 1 };
        const columns = columnsOf(moved, record.batch ? batchCount(record.batch) : 0);`,
      },
      {
        file: `${POSTGRES}/journal.js`,
        text: "if (!held || held.epoch !== record.epoch)",
        replacement: "if (!held)",
      },
      {
        file: `${POSTGRES}/journal.js`,
        text: "held.sequence = columns.sequence;",
        replacement: "held.sequence = columns.sequence;\n            held.end = columns.hash;",
      },
      {
        file: `${POSTGRES}/journal.js`,
        text: "told: seen.sequence, isAppending: false };",
        replacement: "told: seen.sequence, isAppending: false, end: columns.hash };",
      },
    ],
    shows: ["the leader is killed"],
    rounds: 3,
  },
  {
    name: "answers before its own data directory has the record",
    file: "engine/journal/ledger.js",
    text: "try {\n            await this.#store.commit(changes);",
    replacement: "try {\n            setTimeout(() => this.#store.commit(changes).catch(() => {}), 200);",
    shows: ["the leader is killed"],
    rounds: 3,
  },
  {
    name: "writes private rows after the record, in a statement of their own",
    file: `${POSTGRES}/journal.js`,
    text: "const statement = appendRecord(columns, held.holder, held.sequence);",
    replacement: `const statement = appendRecord({ ...columns, privateRows: null }, held.holder, held.sequence);
        const { sequence: place, privateRows } = columns;
        const text = "INSERT INTO cairnlog.private_change (sequence, rows) VALUES ($1, $2)";
        if (privateRows !== null) setTimeout(() => this.#writer.run({ text, values: [place, privateRows] }), 0);`,
    shows: ["the leader is killed"],
    rounds: 3,
  },
  {
    name: "does not look whether it is ahead of the journal",
    file: `${POSTGRES}/tail.js`,
    text: "if (sequence === 0)",
    replacement: "if (sequence >= 0)",
    shows: ["the leader is killed"],
    rounds: 1,
  },
  {
    name: "goes on behind the end of the log",
    file: "engine/log/operator/entries.js",
    text: "if (newest?.event_type !== LOG_FROZEN)",
    replacement: "if (newest)",
    shows: ["the leader is killed"],
    rounds: 1,
  },
  {
    name: "leaves what is withheld in the journal",
    file: "server/replication/replication.js",
    text: "if (await journal.erase(leaf, log.bareJsonAt(leaf)))",
    replacement: "if (leaf >= 0)",
    shows: ["the leader is killed"],
    rounds: 1,
  },
  {
    name: "signs heads with its own time, whatever the newest one has",
    file: "engine/log/write/forming.js",
    text: "const headTimestamp = Math.max(clock() || 0, frontier.lastTimestamp);",
    replacement: "const headTimestamp = clock();",
    shows: ["the clock of the next leader is an hour back", "the clock of the leader steps back and forth"],
    rounds: 2,
  },
];

/** `cairnlog log`: reads the log and verifies it. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Entry } from "../../../engine/verify/index.js";
import { type Client, ClientError } from "../../client/index.js";
import { READING_HELP, READING_OPTIONS, readInterval, readNumber, report, withClient } from "../connection.js";
import { interruptible } from "../terminal/interrupt.js";
import { printable } from "../terminal/printable.js";
import { chosen, none, readArguments, type Subcommand, UsageError } from "../usage.js";

const OPTIONS = {
  ...READING_OPTIONS,
  "event-type": { type: "string" },
  tags: { type: "string" },
  title: { type: "string" },
  fingerprint: { type: "string" },
  limit: { type: "string", default: "50" },
  "tree-size": { type: "string" },
  lines: { type: "string", short: "n", default: "10" },
  follow: { type: "boolean", short: "f", default: false },
  interval: { type: "string", default: "5" },
} as const;

type Values = ReturnType<typeof readArguments<typeof OPTIONS>>["values"];
/** Resolves to false if the checked statement is not true. */
type Action = (positionals: readonly string[], values: Values) => (client: Client) => Promise<unknown>;

/** The actions by name. Each reads its arguments before anything is sent. */
const ACTIONS: Readonly<Record<string, Action>> = {
  show,
  search,
  proof,
  tail,
  head,
  consistency,
  checkpoint,
  verify: verifyLog,
};

export const log: Subcommand = {
  help: `cairnlog log show ENTRY... --server URL [options]
cairnlog log search [TERM] --server URL [options]
cairnlog log proof LEAF --server URL [--tree-size SIZE] [options]
cairnlog log tail --server URL [-n COUNT] [--follow] [options]
cairnlog log head --server URL [--tree-size SIZE] [options]
cairnlog log consistency FROM TO --server URL [options]
cairnlog log checkpoint --server URL [options]
cairnlog log verify --server URL [options]

show proves that the entries lie in the tree of the newest signed head; search lists entries, oldest first, by the
beginning of a hash or fingerprint (TERM) or by titles, and checks their hashes; proof prints the inclusion proof of a
leaf (counted from 0), checked; tail proves and prints the newest entries, and with --follow those that come; head
prints the newest signed head, consistency the proof that the tree of FROM leaves is the beginning of that of TO,
checkpoint the newest head as a signed note, each checked. verify has the service verify its whole log, which is its word.

Every head must be signed by the operator key and consistent with the last one seen; exit code 1 when it is not.

Options:
  --event-type TYPES       search: these types only, separated by commas
  --tags TAGS              search: entries with all these tags, separated by commas
  --title WORDS            search: a document's title or a key's name has words that begin so, in any order
  --fingerprint FP         search: entries that name this key, instead of TERM
  --limit COUNT            search: at most so many entries (default: 50)
  --tree-size SIZE         proof: under the head of an earlier size; head: that one
  -n, --lines COUNT        tail: how many entries to begin with (default: 10)
  -f, --follow             tail: go on until interrupted
  --interval SECONDS       tail: how often to ask (default: 5)
${READING_HELP}; one line for each entry

Example:
  cairnlog log tail --follow --server http://127.0.0.1:8080`,
  options: OPTIONS,
  actions: Object.keys(ACTIONS),
  async run([action, ...argv]) {
    const prepare = chosen(ACTIONS, action);
    const { values, positionals } = readArguments(argv, OPTIONS, true);
    const holds = await withClient(values, prepare(positionals, values));
    return holds === false ? 1 : 0;
  },
};

function show(positionals: readonly string[], values: Values): (client: Client) => Promise<void> {
  if (!positionals.length) throw new UsageError("name at least one ENTRY");
  const ids = positionals.map((text) => readNumber(text, "ENTRY"));
  return async (client) => {
    for (const id of ids) {
      const { entry, head } = await client.log.entry(id);
      const text = `${JSON.stringify(entry, null, 2)}\nin the tree of ${head.tree_size} leaves, ${head.root_hash}`;
      report(values, entry, text);
    }
  };
}

function search(positionals: readonly string[], values: Values): (client: Client) => Promise<void> {
  const [term, more] = positionals;
  const { fingerprint, tags, title, "event-type": eventType } = values;
  if (more !== undefined) throw new UsageError(`${more} is one argument too many`);
  if (fingerprint !== undefined && [term, tags, title, eventType].some((value) => value !== undefined))
    throw new UsageError("--fingerprint goes with no other filter");
  const limit = readNumber(values.limit, "--limit");
  const filter = {
    ...(term === undefined ? {} : { search: term }),
    ...(tags === undefined ? {} : { tags }),
    ...(title === undefined ? {} : { title }),
    ...(eventType === undefined ? {} : { event_type: eventType }),
  };
  return async (client) => {
    let count = 0;
    const entries = fingerprint === undefined ? client.log.entries(filter) : client.log.byFingerprint(fingerprint);
    for await (const entry of entries) {
      if (count++ === limit) return console.error(`There are more than ${limit} (--limit).`);
      line(entry, values);
    }
  };
}

function proof(positionals: readonly string[], values: Values): (client: Client) => Promise<void> {
  const [text, more] = positionals;
  if (more !== undefined) throw new UsageError(`${more} is one argument too many`);
  const leaf = readNumber(text, "LEAF");
  const size = values["tree-size"];
  const treeSize = size === undefined ? undefined : readNumber(size, "--tree-size");
  return async (client) => {
    const proven = await client.log.proof(leaf, treeSize);
    report(values, proven, JSON.stringify(proven, null, 2));
  };
}

function tail(positionals: readonly string[], values: Values): (client: Client) => Promise<void> {
  none(positionals);
  const lines = readNumber(values.lines, "--lines");
  const interval = readInterval(values.interval);
  return async (client) => {
    const head = await client.log.head();
    let next = Math.max(0, (head?.tree_size ?? 0) - lines);
    const showNew = async () => {
      for await (const entry of client.log.since(next)) {
        line(entry, values);
        next++;
      }
    };
    if (!values.follow) return showNew();
    return interruptible(async (signal) => {
      while (!signal.aborted) {
        await showNew().catch((error: unknown) => {
          if (!passes(error)) throw error;
          console.error(printable(error.message));
        });
        await sleep(interval * 1000, undefined, { signal }).catch(() => {});
      }
    });
  };
}

function head(positionals: readonly string[], values: Values): (client: Client) => Promise<void> {
  none(positionals);
  const size = values["tree-size"];
  const treeSize = size === undefined ? undefined : readNumber(size, "--tree-size");
  return async (client) => {
    const signed = treeSize === undefined ? await client.log.head() : await client.log.headOf(treeSize);
    report(values, signed ?? null, signed ? JSON.stringify(signed, null, 2) : "The log is empty.");
  };
}

function consistency(positionals: readonly string[], values: Values): (client: Client) => Promise<void> {
  const [from, to] = [readNumber(positionals[0], "FROM"), readNumber(positionals[1], "TO")];
  none(positionals.slice(2));
  return async (client) => {
    const shown = await client.log.consistency(from, to);
    report(values, shown, JSON.stringify(shown, null, 2));
  };
}

function checkpoint(positionals: readonly string[], values: Values): (client: Client) => Promise<void> {
  none(positionals);
  return async (client) => {
    const { note, checkpoint: read } = await client.log.checkpoint();
    report(values, { note, ...read }, note.trimEnd());
  };
}

function verifyLog(positionals: readonly string[], values: Values): (client: Client) => Promise<boolean> {
  none(positionals);
  return async (client) => {
    const found = await client.log.verify();
    const lines = [...found.errors, ...found.warnings].map(({ code, message }) => `${code}: ${message}`);
    const verdict = `${found.entry_count} entries, ${found.valid ? "valid" : "NOT valid"}`;
    report(values, found, [verdict, ...lines].join("\n"));
    return found.valid;
  };
}

/** Whether waiting may help: the service restarts, or limits this client for now. */
function passes(error: unknown): error is ClientError {
  return error instanceof ClientError && (error.code === "no-answer" || error.status === 429 || error.status === 503);
}

function line(entry: Entry, values: Values): void {
  const { id, timestamp, event_type, payload } = entry;
  report(values, entry, `${id} ${timestamp} ${event_type} ${JSON.stringify(payload)}`);
}

/** `cairnlog log`: reads the log and verifies it. */
import { setTimeout as sleep } from "node:timers/promises";
import { type Entry, parsePublicKey } from "../../../engine/verify/index.js";
import { type Client, ClientError } from "../../client/index.js";
import { printAnswer, READING_OPTIONS, readInterval, readNumber, withClient } from "../connection/connection.js";
import { flag, subcommandWithActions, text, textOr, type Values } from "../line/subcommand.js";
import { none, UsageError } from "../line/usage.js";
import { entriesHeading, entryRow, entryText } from "../printing/entry-text.js";
import { Names } from "../printing/names.js";
import { readStatic, STATIC_OPTIONS } from "../static/read.js";
import { interruptible } from "../terminal/interrupt.js";
import { printable, printableJson } from "../terminal/printable.js";

const OPTIONS = {
  "event-type": text("TYPES", "these types only, separated by commas"),
  tags: text("TAGS", "entries with all these tags, separated by commas"),
  title: text("WORDS", "a document's title or a key's name has words that begin so, in any order"),
  fingerprint: text("FP", "entries that name this key, instead of TERM"),
  limit: textOr("COUNT", "50", "at most so many entries"),
  "tree-size": text("SIZE", "under the head of this earlier size; head: that one"),
  lines: { ...textOr("COUNT", "10", "how many entries to begin with"), short: "n" },
  follow: { ...flag("go on until interrupted"), short: "f" },
  interval: textOr("SECONDS", "5", "how often to ask"),
  ...STATIC_OPTIONS,
  ...READING_OPTIONS,
} as const;

type Given = Values<typeof OPTIONS>;
/** Resolves to false if the checked statement is not true. */
type Action = (positionals: readonly string[], values: Given) => (client: Client) => Promise<unknown>;

/** The actions by name. Each reads its arguments before anything is sent. */
const ACTIONS = {
  show,
  search,
  proof,
  tail,
  head,
  consistency,
  checkpoint,
  shards,
  verify: verifyLog,
} satisfies Record<string, Action>;

export const log = subcommandWithActions({
  about: `Reads the log and checks what is read. Every head must be signed by the operator key and consistent with the last one seen; exit code 1 when it is not.

An entry has a number, which is in its receipt. Its leaf in the tree has another one, counted from 0.`,
  options: OPTIONS,
  actions: {
    show: {
      form: "ENTRY...",
      about: "Shows entries by their numbers, and proves that they are in the tree of the newest signed head.",
    },
    search: {
      form: "[TERM]",
      about:
        "Lists entries, oldest first, and checks their hashes: those of the key TERM, or in which a hash or fingerprint that begins with TERM occurs, with or without sha256:, or else those with these words in a title.",
      takes: ["event-type", "tags", "title", "fingerprint", "limit"],
    },
    proof: {
      form: "LEAF",
      about: "Prints the checked inclusion proof of a leaf. Leaves are counted from 0.",
      takes: ["tree-size"],
    },
    tail: {
      form: "[-n COUNT] [--follow]",
      about: "Proves and lists the newest entries, and with --follow those that come.",
      takes: ["lines", "follow", "interval"],
    },
    head: { form: "[--tree-size SIZE]", about: "Shows the newest signed tree head, checked.", takes: ["tree-size"] },
    consistency: {
      form: "FROM TO",
      about: "Prints the checked proof that the tree of FROM leaves is the beginning of that of TO leaves.",
    },
    checkpoint: { form: "", about: "Prints the newest head as a signed note, checked." },
    shards: {
      form: "",
      about:
        "Shows from which log this one goes on, and whether it has ended and where it goes on, under which operator keys. The first and the last entry prove it.",
    },
    verify: { form: "", about: "Has the service verify its whole log. The result is its word." },
  },
  examples: `cairnlog log tail --follow
cairnlog log show 42 --log https://files.example/tlog --vkey log.example/tlog+…`,
  async run(operands, values, action) {
    if (values.log !== undefined) return readStatic(action, operands, values);
    if (values.vkey !== undefined || values.policy !== undefined)
      throw new UsageError("--vkey and --policy go with --log");
    const holds = await withClient<unknown>(values, ACTIONS[action](operands, values));
    return holds === false ? 1 : 0;
  },
});

function show(positionals: readonly string[], values: Given): (client: Client) => Promise<void> {
  if (!positionals.length) throw new UsageError("name at least one ENTRY");
  const ids = positionals.map((text) => readNumber(text, "ENTRY"));
  return async (client) => {
    for (const id of ids) {
      const proven = await client.log.entry(id);
      printAnswer(values, proven.entry, entryText(proven));
    }
  };
}

function search(positionals: readonly string[], values: Given): (client: Client) => Promise<void> {
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
    const show = list(values, new Names(client));
    const isTermAlone = term !== undefined && [tags, title, eventType].every((value) => value === undefined);
    const ways =
      fingerprint !== undefined
        ? [() => client.log.byFingerprint(fingerprint)]
        : isTermAlone
          ? waysToFind(client, term)
          : [() => client.log.entries(filter)];
    let count = 0;
    let refusal: unknown;
    for (const way of ways) {
      try {
        for await (const entry of way()) {
          if (count++ === limit) return console.error(`There are more than ${limit} (--limit).`);
          await show(entry);
        }
      } catch (error) {
        // Not every way takes every term.
        const isRefused = error instanceof ClientError && (error.code === "invalid-input" || error.status === 404);
        if (!isRefused || count) throw error;
        refusal ??= error;
        continue;
      }
      if (count) return;
      refusal = null;
    }
    if (refusal) throw refusal;
    console.error(printable(`No entry fits${term === undefined ? "" : ` ${term}`}.`));
  };
}

/** What a term may be, in the order in which it is tried: a key, a hash in either spelling, words of a title or a name. */
function waysToFind(client: Client, term: string): readonly (() => AsyncIterable<Entry>)[] {
  const bare = term.replace(/^sha256:/i, "").toLowerCase();
  const other = term.startsWith("sha256:") ? bare : `sha256:${bare}`;
  const isHash = /^[0-9a-f]+$/.test(bare);
  const search = (text: string) => () => client.log.entries({ search: text });
  return [
    ...(isHash && bare.length === 64 ? [() => client.log.byFingerprint(`sha256:${bare}`)] : []),
    search(term),
    ...(isHash ? [search(other)] : []),
    () => client.log.entries({ title: term }),
  ];
}

function proof(positionals: readonly string[], values: Given): (client: Client) => Promise<void> {
  const [text, more] = positionals;
  if (more !== undefined) throw new UsageError(`${more} is one argument too many`);
  const leaf = readNumber(text, "LEAF");
  const size = values["tree-size"];
  const treeSize = size === undefined ? undefined : readNumber(size, "--tree-size");
  return async (client) => {
    const proven = await client.log.proof(leaf, treeSize);
    printAnswer(values, proven, JSON.stringify(proven, null, 2));
  };
}

function tail(positionals: readonly string[], values: Given): (client: Client) => Promise<void> {
  none(positionals);
  const lines = readNumber(values.lines, "--lines");
  const interval = readInterval(values.interval);
  return async (client) => {
    const head = await client.log.head();
    let next = Math.max(0, (head?.tree_size ?? 0) - lines);
    const show = list(values, new Names(client));
    const showNew = async () => {
      for await (const entry of client.log.since(next)) {
        await show(entry);
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

function head(positionals: readonly string[], values: Given): (client: Client) => Promise<void> {
  none(positionals);
  const size = values["tree-size"];
  const treeSize = size === undefined ? undefined : readNumber(size, "--tree-size");
  return async (client) => {
    const signed = treeSize === undefined ? await client.log.head() : await client.log.headOf(treeSize);
    printAnswer(values, signed ?? null, signed ? JSON.stringify(signed, null, 2) : "The log is empty.");
  };
}

function consistency(positionals: readonly string[], values: Given): (client: Client) => Promise<void> {
  const [from, to] = [readNumber(positionals[0], "FROM"), readNumber(positionals[1], "TO")];
  none(positionals.slice(2));
  return async (client) => {
    const shown = await client.log.consistency(from, to);
    printAnswer(values, shown, JSON.stringify(shown, null, 2));
  };
}

function checkpoint(positionals: readonly string[], values: Given): (client: Client) => Promise<void> {
  none(positionals);
  return async (client) => {
    const { note, checkpoint: read } = await client.log.checkpoint();
    printAnswer(values, { note, ...read }, note.trimEnd());
  };
}

function shards(positionals: readonly string[], values: Given): (client: Client) => Promise<void> {
  none(positionals);
  return async (client) => {
    const [begun, ended] = [await client.shards.beginning(), await client.shards.end()];
    const next = ended && (await client.shards.successor());
    const nameOf = (pem: string) => parsePublicKey(pem).fingerprint;
    const lines = [
      begun
        ? `The log goes on from the ${begun.tree_head.tree_size} entries at ${begun.url}, under the operator key ${nameOf(begun.operator_key)}.`
        : "The log goes on from no other one.",
      ended
        ? `Entry ${ended.entry_id} froze it at size ${ended.tree_size}, ${ended.timestamp}: ${ended.reason}`
        : "It has not ended.",
      ...(next ? [`It goes on at ${next.server}, under the operator key ${nameOf(next.operatorKey)}.`] : []),
      ...(ended && !next ? ["It names no log that goes on."] : []),
    ];
    printAnswer(
      values,
      { predecessor: begun, frozen: ended, operator_key: next?.operatorKey ?? null },
      lines.join("\n"),
    );
  };
}

function verifyLog(positionals: readonly string[], values: Given): (client: Client) => Promise<boolean> {
  none(positionals);
  return async (client) => {
    const found = await client.log.verify();
    const lines = [...found.errors, ...found.warnings].map(({ code, message }) => `${code}: ${message}`);
    const verdict = `${found.entry_count} entries, ${found.valid ? "valid" : "NOT valid"}`;
    printAnswer(values, found, [verdict, ...lines].join("\n"));
    return found.valid;
  };
}

/** Whether waiting may help: the service restarts, or limits this client for now. */
function passes(error: unknown): error is ClientError {
  return error instanceof ClientError && (error.code === "no-answer" || error.status === 429 || error.status === 503);
}

/** Entries as a list: their heading stands before the first one. */
function list(values: Given, names: Names): (entry: Entry) => Promise<void> {
  let isFirst = true;
  return async (entry) => {
    if (isFirst && !values.json) console.log(entriesHeading());
    isFirst = false;
    console.log(values.json ? printableJson(entry) : await entryRow(entry, names));
  };
}

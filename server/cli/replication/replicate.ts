/** `cairnlog replicate`: begins a log that several machines keep, and says how it stands. */

import { closing } from "../../../engine/base/closing.js";
import { CairnlogError } from "../../../engine/base/error.js";
import { isPresent } from "../../../engine/base/files.js";
import { LEASE_MS, PostgresJournal } from "../../../engine/journal/postgres/journal.js";
import { checkJournal } from "../../../engine/journal/postgres/operate/check.js";
import { eraseFromJournal } from "../../../engine/journal/postgres/operate/erase.js";
import { makeJournal } from "../../../engine/journal/postgres/operate/init.js";
import { beginRecords, leaveRecords } from "../../../engine/log/history/first-records.js";
import { type LogReaderOptions, openLogReader } from "../../../engine/log/log.js";
import { defaultLogName } from "../../../engine/log/tlog/checkpoints.js";
import { projection } from "../../../engine/registry/events/projection.js";
import { makePrivateFolder } from "../../../engine/store/lmdb/private.js";
import { openStore } from "../../../engine/store/store.js";
import { formatVkey } from "../../../engine/verify/note/key.js";
import { openOperator } from "../../opening/operator.js";
import { bindingSettings } from "../../replication/settings.js";
import type { Settings } from "../../settings/settings.js";
import { checkShown } from "../../tlog/shown.js";
import { openTlogKey, tlogOrigin, verifierKeyOf } from "../../tlog/tlog.js";
import { existingLog, logFolder, operatorKeyOf } from "../files/data-directory.js";
import { flag, subcommandWithActions, text, type Values } from "../line/subcommand.js";
import { none, UsageError } from "../line/usage.js";
import { settingsAt } from "../operate/environment.js";
import { printableJson } from "../terminal/printable.js";
import { startProgress } from "../terminal/progress.js";
import { signOfLife } from "./signs.js";

const OPTIONS = {
  data: text("DIR", "the data directory, instead of SERVICE_DATA_DIR"),
  json: flag("answer in JSON"),
} as const;

type Given = Values<typeof OPTIONS>;
type Replicated = Settings & { readonly replication: string };

const ACTIONS = { init, status, check, erase };
/** A leader that shows no sign of life for longer has lost the lead. */
const SILENCE_MS = 2 * LEASE_MS;

export const replicate = subcommandWithActions({
  about: "A log that several machines keep, through the PostgreSQL servers that SERVICE_REPLICATION names.",
  options: OPTIONS,
  actions: {
    init: {
      form: "[--data DIR]",
      about: `Makes the journal of a log in the PostgreSQL servers, with the settings of the service. If
the data directory has a log, the journal begins with all of it, and the service must not be running; otherwise the log
is empty. Give it a connection string of a user who may create a schema. Other nodes then start with the same operator key
(SERVICE_OPERATOR_KEY, or a signer) and an empty data directory each.`,
    },
    status: { form: "", about: "Says which node leads, which server is the primary, and how far the journal goes." },
    check: {
      form: "[--data DIR]",
      about: `Reads every record on every server that answers, checks that each follows the one before, and compares the servers, and
the log in the data directory, if there is one.`,
    },
    erase: {
      form: "[--data DIR]",
      about: `Takes the payloads that are withheld, as the data directory of a node says, from the journal's files: PostgreSQL makes the
table of the records anew (VACUUM FULL). Nodes may run, but nothing is appended meanwhile. Give it a connection string of the
user who made the journal.`,
    },
    leave: {
      form: "[--data DIR]",
      about: `Takes the log in the data directory of a stopped node out of the journal: from then on a service without
SERVICE_REPLICATION writes it. Stop all nodes first, and never start another one. With SERVICE_REPLICATION, it is refused while
a node leads, or if the journal has more than the directory; without, that is not known.`,
    },
  },
  notes:
    "Exit codes: 0 done, or sound; 1 refused, failed, or not sound; 2 the command or a setting was not understood.",
  examples: "SERVICE_REPLICATION=postgres://cairnlog@10.0.0.1,10.0.0.2,10.0.0.3/cairnlog cairnlog replicate init",
  async run(operands, values, action) {
    none(operands);
    const settings = settingsAt(values);
    const { replication } = settings;
    if (action === "leave") return leave(settings, values);
    if (replication === null) throw new UsageError("SERVICE_REPLICATION is not set");
    return ACTIONS[action]({ ...settings, replication }, values);
  },
});

async function init(settings: Replicated, { json }: Given): Promise<number> {
  const { dataDir, replication, replicationVerify } = settings;
  await requireName(settings);
  makePrivateFolder(dataDir);
  const notes = { warn: (_: object, sentence: string) => console.error(`cairnlog: ${sentence}`) };
  const { operator, signer } = await openOperator(settings, notes);
  let bar: ReturnType<typeof startProgress> | undefined;
  try {
    const logName = settings.logName ?? defaultLogName(operator.fingerprint);
    const key = openTlogKey(dataDir, operator, notes);
    const vkey = formatVkey(verifierKeyOf(key, tlogOrigin(settings, logName)));
    const binding = bindingSettings(settings, vkey);
    const options = { path: logFolder(dataDir), operatorKey: operator.public.pem, projection, settings: binding };
    await checkNotSetBack(options, dataDir);
    const entries = await beginRecords(options, (beginning) =>
      makeJournal(replication, beginning, replicationVerify === "engine", (done) => {
        bar ??= startProgress("Copying:", done);
        bar.update(done);
      }),
    );
    bar?.end();
    const answer = { entries, operator_fingerprint: operator.fingerprint };
    console.log(
      json ? printableJson(answer) : `The journal is made, with ${entries} entries. Start the nodes: cairnlog serve`,
    );
    return 0;
  } finally {
    bar?.end();
    await signer?.close();
  }
}

/**
 * Checks that the log is not older than what was shown of it: other nodes, which go on with it, have no file that says so.
 * @throws CairnlogError as `checkShown` does
 */
async function checkNotSetBack(
  options: Pick<LogReaderOptions, "path" | "operatorKey" | "projection">,
  dataDir: string,
) {
  // Where there is no log, or one that cannot be read, `beginRecords` knows what to do.
  const log = await openLogReader(options).catch(() => null);
  if (log)
    await closing(
      () => checkShown(log, dataDir),
      () => log.close(),
    );
}

/**
 * The nodes of a replicated log have its name from their settings, so that one without the data has it, too.
 * @throws UsageError where the log has taken a name that is not set
 */
async function requireName({ dataDir, logName }: Settings): Promise<void> {
  const path = logFolder(dataDir);
  if (!isPresent(`${path}/data.mdb`)) return;
  const store = openStore({ path, readOnly: true });
  const name = store.get("meta", "log")?.name;
  await store.close();
  if (name !== undefined && logName === null)
    throw new UsageError(`this log is called ${name}: set SERVICE_LOG_NAME=${name} here and at every node`);
}

async function status({ replication, replicationVerify, nodeUrl }: Replicated, { json }: Given): Promise<number> {
  const journal = await PostgresJournal.open({ url: replication, verification: replicationVerify, nodeUrl });
  try {
    const servers = await journal.identify();
    const named = await journal.look();
    const alive = named.holder === null ? null : await signOfLife(journal, named, LEASE_MS);
    const { epoch, holder, url, sequence, acked, size, wanted } = alive ?? { ...named, holder: null };
    const leader = holder === null ? null : url;
    const answer = { epoch, led: holder !== null, leader, sequence, acked, size, wanted, servers };
    if (json) console.log(printableJson(answer));
    else {
      console.log(holder === null ? "no node leads" : `leader    ${url ?? "a node without SERVICE_NODE_URL"}`);
      console.log(`epoch     ${epoch}\nrecords   ${sequence}, known to be decided: ${acked}\nentries   ${size}`);
      for (const { address, role, timeline, trouble } of servers)
        console.log(
          `${role.padEnd(12)}${address}${timeline === null ? "" : `, timeline ${timeline}`}${trouble ? `: ${trouble}` : ""}`,
        );
    }
    return 0;
  } finally {
    journal.close();
  }
}

async function check({ replication, dataDir }: Replicated, { json }: Given): Promise<number> {
  const path = logFolder(dataDir);
  const store = isPresent(`${path}/data.mdb`) ? openStore({ path, readOnly: true }) : null;
  const position = store?.position() ?? null;
  await store?.close();
  const report = await checkJournal(replication, position);
  const isSound = report.faults.length === 0;
  if (json) console.log(printableJson({ sound: isSound, ...report }));
  else {
    for (const { address, role, records, trouble } of report.servers)
      console.log(`${address}  ${role}  ${trouble ?? `${records} records`}`);
    for (const fault of report.faults) console.log(fault);
    if (isSound) console.log("sound: every record follows the one before, and all copies that were read agree");
  }
  return isSound ? 0 : 1;
}

/** The leader has taken them from the records, or this does; the old rows are still in the files of the table. */
async function erase({ replication, dataDir }: Replicated, { json }: Given): Promise<number> {
  const operator = operatorKeyOf(dataDir, undefined);
  if (!operator) throw new UsageError(`there is no operator key in ${dataDir}`);
  const log = await openLogReader({ path: logFolder(dataDir), operatorKey: operator.pem, projection });
  try {
    const withheld = log.withheldLeaves;
    await eraseFromJournal(
      replication,
      withheld.map((leaf) => [leaf, log.bareJsonAt(leaf)]),
    );
    const done = `The journal's table was made anew, without ${withheld.length} withheld payloads.`;
    console.log(json ? printableJson({ withheld: withheld.length }) : done);
    return 0;
  } finally {
    await log.close();
  }
}

async function leave({ dataDir, replication, replicationVerify, nodeUrl }: Settings, { json }: Given): Promise<number> {
  const path = existingLog(dataDir);
  await leaveRecords(path, async (left) => {
    if (replication === null) return;
    const journal = await PostgresJournal.open({ url: replication, verification: replicationVerify, nodeUrl });
    try {
      const lead = await journal.look();
      await journal.checkContinues(left, lead);
      if (lead.sequence > left.sequence) throw refusal(`lacks ${lead.sequence - left.sequence} records of the journal`);
      // A lead that nobody has was perhaps just given back, and a node that runs takes it.
      const alive = await signOfLife(journal, lead, SILENCE_MS);
      if (alive) throw refusal(`has a leader, ${alive.url ?? "a node"}: stop all nodes`);
    } finally {
      journal.close();
    }
  });
  const done = `The log in ${dataDir} is in the journal no more. Never start another node, nor use the journal again.`;
  console.log(json ? printableJson({ left: true }) : done);
  return 0;
}

const refusal = (why: string): CairnlogError =>
  new CairnlogError("precondition-failed", `The log cannot be left: it ${why}.`);

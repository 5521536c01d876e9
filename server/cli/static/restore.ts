/**
 * `cairnlog restore LOG --to DIR --vkey`: a mirror made of published files alone, as `cairnlog monitor` keeps one of a service.
 *
 * If we crash here: the mirror holds whole, verified bundles, and the next run goes on behind them.
 */
import { existsSync } from "node:fs";
import { CairnlogError } from "../../../engine/base/error.js";
import { makePrivateFolder } from "../../../engine/store/lmdb/private.js";
import { isCut } from "../../../engine/verify/events/withheld.js";
import { formatVkey, type Policy } from "../../../engine/verify/index.js";
import { FULL_TILE } from "../../client/log/served.js";
import { StaticLog } from "../../client/static/log.js";
import { Mirror } from "../../monitor/mirror.js";
import { persistentFetch } from "../../outgoing/traced.js";
import { readPublicKey } from "../files/public-key.js";
import { UsageError } from "../line/usage.js";
import { printable, printableJson } from "../terminal/printable.js";
import { startProgress } from "../terminal/progress.js";
import { filesAt } from "./place.js";

interface Restoring {
  readonly from: string;
  readonly to: string;
  readonly policy: Policy;
  /** File of the operator's public key; the files name it, without one. */
  readonly operatorKey: string | undefined;
  readonly json: boolean;
}

/** @throws UsageError; ClientError; CairnlogError for a copy of another log, or entries that do not fit */
export async function restoreStatic(
  { from, to, policy, operatorKey, json }: Restoring,
  signal: AbortSignal,
): Promise<number> {
  if (existsSync(`${to}/operator.pem`))
    throw new UsageError(`${to} has the private key of a log: a mirror needs a directory of its own`);
  const say = (sentence: string) => console.error(printable(sentence));
  const log = await StaticLog.open(
    filesAt(from, (send) => persistentFetch({ signal, say, send })),
    policy,
  );
  const operators = await log.operators(operatorKey === undefined ? undefined : readPublicKey(operatorKey));
  if (operatorKey === undefined)
    say(`The heads are signed by ${operators.current.fingerprint}, say the files; compare it, or name --operator-key.`);
  makePrivateFolder(to);
  const mirror = await Mirror.open(to, operators);
  const bar = startProgress("Restoring:", log.size);
  try {
    await checkBeginning(log, mirror, to);
    while (mirror.size < log.size) {
      signal.throwIfAborted();
      const { size } = mirror;
      const entries = (await log.bundle(Math.floor(size / FULL_TILE))).slice(size % FULL_TILE);
      // What the files only leave out is refused before the mirror has it.
      for (const [i, { entry }] of entries.entries()) if (isCut(entry)) await log.at(size + i);
      const refusal = await mirror.add(entries);
      if (refusal) throw new CairnlogError("corrupt-log", `Entry ${refusal.entry.id}: ${refusal.detail}`);
      bar.update(mirror.size);
    }
    const { verdict, note } = log;
    const shown = { ...verdict.checkpoint, vkey: formatVkey(verdict.log), note };
    const fault = await mirror.checkpoints.keep(shown);
    if (fault !== null) throw new CairnlogError("corrupt-log", fault);
  } finally {
    bar.end();
    await mirror.close();
  }
  const { fingerprint: operator } = operators.current;
  if (json) console.log(printableJson({ tree_size: log.size, operator }));
  else
    console.log(
      `${log.size} entries in ${to}; signed by ${operator}. cairnlog serve --read-only --data ${to} serves them.`,
    );
  return 0;
}

/** What is in the directory must be the beginning of the log. */
async function checkBeginning(log: StaticLog, mirror: Mirror, to: string): Promise<void> {
  const { size } = mirror;
  if (size > log.size)
    throw new CairnlogError(
      "invalid-input",
      `${to} has ${size} entries, which is more than the ${log.size} of the checkpoint.`,
    );
  if (!size) return;
  const { entry } = (await log.bundle(Math.floor((size - 1) / FULL_TILE)))[(size - 1) % FULL_TILE]!;
  if (entry.entry_hash !== mirror.entry(size - 1)?.entry_hash)
    throw new CairnlogError("invalid-input", `${to} has another log, or another entry ${entry.id}.`);
}

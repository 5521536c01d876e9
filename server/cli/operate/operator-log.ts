/**
 * Commands that append an entry about the log itself: `cairnlog operator continue`, `freeze` and `withhold`. They take operator
 * key and log from the data directory, or go through the service.
 */
import { existsSync, linkSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { closeAfter } from "../../../engine/base/closing.js";
import { CairnlogError } from "../../../engine/base/error.js";
import { flushFolder, replaceFile } from "../../../engine/base/files.js";
import { type OperatorKey, operatorKey } from "../../../engine/crypto/signer/operator-key.js";
import { type SocketSigner, signerAt } from "../../../engine/crypto/signer/socket-signer.js";
import { eraseWithheld } from "../../../engine/log/history/erase.js";
import { openLog } from "../../../engine/log/log.js";
import {
  beginLog,
  continuedBy,
  type Ending,
  freeze,
  type PrecedingLog,
  type WithholdingReason,
  withhold,
} from "../../../engine/log/operator/entries.js";
import type { Receipt } from "../../../engine/log/state/executor.js";
import type { LogWriter } from "../../../engine/log/writer.js";
import { projection } from "../../../engine/registry/events/projection.js";
import { PRIVATE_FILE } from "../../../engine/store/lmdb/private.js";
import { parseVkey, requestedTime } from "../../../engine/verify/index.js";
import { canonicalJson } from "../../../engine/verify/json/canonical.js";
import type { TreeHead } from "../../../engine/verify/tree/treehead.js";
import { type Client, ClientError, createClient } from "../../client/index.js";
import { failurePath, type Settings } from "../../settings/settings.js";
import { checkShown } from "../../tlog/shown.js";
import { existingLog } from "../files/data-directory.js";
import { UsageError } from "../line/usage.js";

/** @param publicOrigin how the service is known, where it has another address */
function operatorClient(server: string, publicOrigin: string | undefined, key: OperatorKey): Client {
  const { pem: publicKeyPem, algorithm } = key.public;
  const sign = async (bytes: Uint8Array) => (await key.sign([bytes]))[0]!;
  return createClient({
    server,
    publicOrigin,
    operatorKey: publicKeyPem,
    signer: { publicKeyPem, algorithm, sign },
  });
}

/** Digits of the fingerprint in the name of a retired key's file. */
const NAME_DIGITS = 16;

/** @throws CairnlogError `storage-failed` */
export function readPrivateKey(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new CairnlogError("storage-failed", `The operator key ${file} cannot be read.`, { cause });
  }
}

/**
 * Gives a file to a new key, mode 0600. The key that it held stays beside it, under the name of its fingerprint.
 *
 * If we crash here: the file holds one of the two keys, whole. The old key has its second name before the new one comes.
 * @param old the private key that the file holds; null for the file of a public key, whose content is not kept
 * @returns the file of the old key
 */
export async function putInPlace(file: string, old: OperatorKey | null, pem: string): Promise<string | null> {
  const folder = dirname(file);
  const kept = old && join(folder, `operator.${old.fingerprint.slice("sha256:".length).slice(0, NAME_DIGITS)}.pem`);
  if (kept) {
    if (!existsSync(kept)) linkSync(file, kept);
    flushFolder(folder);
  }
  // A draft that is left over may have another mode.
  rmSync(`${file}.new`, { force: true });
  await replaceFile(file, pem, PRIVATE_FILE);
  return kept;
}

export const isSocket = (place: string): boolean => place.startsWith("unix:");

/** The key in a file, or behind a socket; what is opened for it is added to `signers`. */
export async function keyAt(place: string, settings: Settings, signers: SocketSigner[]): Promise<OperatorKey> {
  if (!isSocket(place)) return operatorKey(readPrivateKey(place));
  const signer = await signerAt(place, { deadlineMs: settings.signerTimeoutSeconds * 1000 });
  signers.push(signer);
  return signer;
}

/**
 * The log, to be written. Nothing is signed in one with which the service would not start.
 * @throws CairnlogError `precondition-failed`; as `openLog` and `checkShown` do
 */
export async function openSoundLog(
  { dataDir, minFreeBytes }: Settings,
  path: string,
  signer: OperatorKey,
): Promise<LogWriter> {
  if (existsSync(failurePath(dataDir)))
    throw new CairnlogError(
      "precondition-failed",
      `The service ended because a write failed (${failurePath(dataDir)}). Start it once with the present key: it checks the newest entries.`,
    );
  const log = await openLog({ path, signer, projection, minFreeBytes });
  try {
    await checkShown(log, dataDir);
    return log;
  } catch (error) {
    return closeAfter(error, () => log.close());
  }
}

// `cairnlog operator continue`: begins a log where another one has ended.

/**
 * The log at an address, which has ended: its end and its last head are verified.
 * @param operatorKey PEM, which its chain of operator keys must hold
 * @param vkey of the log that goes on
 * @throws CairnlogError `precondition-failed` for a log that has not ended, or goes on elsewhere; ClientError
 */
export async function endedLog(url: string, operatorKey: string, vkey: string): Promise<PrecedingLog> {
  const client = createClient({ server: url, operatorKey });
  const end = await client.shards.end();
  if (!end) throw new CairnlogError("precondition-failed", `The log at ${url} has not ended: freeze it first.`);
  if (end.successor && end.successor.vkey !== vkey)
    throw new CairnlogError(
      "precondition-failed",
      `The log at ${url} goes on at ${end.successor.url} under the verifier key ${end.successor.vkey}. That of this log is ${vkey}.`,
    );
  const tree_head = await client.log.headOf(end.tree_size);
  const operators = await client.log.operators();
  return { url: client.server, operator_key: operators.keyAt(end.tree_size).pem, tree_head };
}

/**
 * Makes the first entry of the log in the data directory, which no service writes.
 * @returns null if an earlier run has made it
 */
export async function continueLog(
  settings: Settings,
  key: OperatorKey,
  predecessor: PrecedingLog,
): Promise<Receipt | null> {
  const log = await openSoundLog(settings, existingLog(settings.dataDir), key);
  try {
    const begun = continuedBy(log.entryAt(0));
    if (begun && canonicalJson({ ...predecessor, entry_id: begun.entry_id }) === canonicalJson(begun)) return null;
    return (await log.execute(beginLog, { predecessor })).receipts[0]!;
  } finally {
    await log.close();
  }
}

// `cairnlog operator freeze`: ends a log, in its data directory or through its service.

/** @throws UsageError for half of a successor */
export function endingOf({
  reason,
  successor,
  vkey,
}: Readonly<Record<"reason" | "successor" | "vkey", string | undefined>>): Ending {
  if (reason === undefined) throw new UsageError("--reason is missing");
  if ((successor === undefined) !== (vkey === undefined))
    throw new UsageError(
      "--successor and --vkey belong together (cairnlog operator vkey prints the one of the next log)",
    );
  return { reason, successor: successor === undefined || vkey === undefined ? null : { url: successor, vkey } };
}

/** @returns milliseconds since 1970. @throws UsageError for what is neither a day nor a time */
export function readDeadline(text: string): number {
  const time = requestedTime(/^\d{4}-\d{2}-\d{2}$/.test(text) ? `${text}T00:00:00Z` : text);
  if (time === undefined) throw new UsageError("--at is a day (2027-01-01, by UTC), or a time with an offset");
  return Date.parse(time);
}

/** Ends the log that nobody else writes. @returns its last head */
export async function freezeLog(settings: Settings, key: OperatorKey, ending: Ending): Promise<TreeHead> {
  const log = await openSoundLog(settings, existingLog(settings.dataDir), key);
  try {
    return (await freeze(log, ending)).sth;
  } catch (error) {
    // An earlier run may have been interrupted when that was done.
    const head = error instanceof CairnlogError && error.code === "frozen" ? log.treeHead() : null;
    if (head && isSame(log.frozen, ending)) return head;
    throw error;
  } finally {
    await log.close();
  }
}

/** Milliseconds between two looks at the clock, and two tries. */
const LOOK_MS = 1_000;
const AGAIN_MS = 5_000;
/** Milliseconds after which a time is taken for a mistake, such as the wrong year, and not for a command that was started again. */
const LATE_MS = 7 * 86_400_000;

const isSame = (one: Ending | null, other: Ending): boolean =>
  one?.reason === other.reason &&
  one.successor?.url === other.successor?.url &&
  one.successor?.vkey === other.successor?.vkey;

/** A service that is asked to end its log. */
interface FreezeAt {
  readonly server: string;
  /** How it is known, where it has another address. */
  readonly publicOrigin: string | undefined;
  readonly key: OperatorKey;
  readonly ending: Ending;
  /** Until when to wait, in milliseconds since 1970; null for not at all. */
  readonly at: number | null;
  readonly signal: AbortSignal;
  /** Told why the service does not do it yet. */
  readonly say: (sentence: string) => void;
}

/**
 * Ends the log of a service that runs, at once or at a time. From that time on it is tried until the service answers.
 * @returns its last head
 * @throws UsageError for a time that has long passed; ClientError, before the wait for a log of another key; CairnlogError `closed` when interrupted
 */
export async function freezeAt({ server, publicOrigin, key, ending, at, signal, say }: FreezeAt): Promise<TreeHead> {
  const client = operatorClient(server, publicOrigin, key);
  if (ending.successor) parseVkey(ending.successor.vkey);
  // What is wrong with address or key must not show on the day.
  const early = at === null ? null : await client.shards.end();
  if (at !== null && !early && at < Date.now() - LATE_MS)
    throw new UsageError(`--at ${new Date(at).toISOString()} has long passed; without it, the log ends now`);
  const pause = (ms: number) => sleep(ms, undefined, { signal }).catch(() => Promise.reject(signal.reason));
  // The clock may be set meanwhile.
  while (at !== null && !early && Date.now() < at) await pause(Math.min(at - Date.now(), LOOK_MS));
  for (;;)
    try {
      return await client.shards.freeze(ending);
    } catch (error) {
      if (!(error instanceof ClientError)) throw error;
      // An earlier run may have done it, or this one, without having been told.
      const end = error.code === "frozen" ? await client.shards.end() : null;
      if (end && isSame(end, ending)) return client.log.headOf(end.tree_size);
      if (at === null || !mayPass(error)) throw error;
      say(error.message);
      await pause(AGAIN_MS);
    }
}

/** Whether the service may do later what it does not now. */
const mayPass = ({ code, status }: ClientError): boolean => code === "no-answer" || status === 429 || status === 503;

// `cairnlog operator withhold`: withholds the payload of an entry, in its data directory or through its service.

/** Where the log is that the operator's key writes: nobody else writes it, or a service. */
type LogAccess =
  | { readonly settings: Settings }
  | { readonly server: string; readonly publicOrigin: string | undefined };

interface Withheld {
  /** Id of the entry that withholds the payload. */
  readonly withheldBy: number;
  /** Why the payload is still on the disk of the log in the data directory; null if it is not. */
  readonly staysBecause: string | null;
}

export async function withholdAt(
  place: LogAccess,
  key: OperatorKey,
  entryId: number,
  said: WithholdingReason,
): Promise<Withheld> {
  if ("server" in place) {
    const client = operatorClient(place.server, place.publicOrigin, key);
    const { log_entry_id: withheldBy } = await client.withholding.withhold(entryId, said);
    return { withheldBy, staysBecause: null };
  }
  const path = existingLog(place.settings.dataDir);
  const log = await openSoundLog(place.settings, path, key);
  let withheldBy: number;
  try {
    withheldBy = (await withhold({ log, writer: log }, entryId, said)).log_entry_id;
  } finally {
    await log.close();
  }
  let staysBecause: string | null = null;
  const stays = (refusal: Error | null) => {
    staysBecause = refusal?.message ?? null;
  };
  const { minFreeBytes } = place.settings;
  const onErasing = (_: number, refusal: Error | null) => stays(refusal);
  // Nothing takes the entry back, whatever becomes of this.
  await eraseWithheld({ path, projection, minFreeBytes, onErasing }).catch(stays);
  return { withheldBy, staysBecause };
}

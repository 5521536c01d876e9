/** `cairnlog operator freeze`: ends a log, in its data directory or through its service. */
import { setTimeout as sleep } from "node:timers/promises";
import { CairnlogError } from "../../../engine/base/error.js";
import type { OperatorKey } from "../../../engine/crypto/signer/operator-key.js";
import { type Ending, freeze } from "../../../engine/log/operator/entries.js";
import { parseVkey, requestedTime } from "../../../engine/verify/index.js";
import type { TreeHead } from "../../../engine/verify/tree/treehead.js";
import { ClientError } from "../../client/index.js";
import type { Settings } from "../../settings/settings.js";
import { existingLog } from "../files/data-directory.js";
import { UsageError } from "../line/usage.js";
import { openSoundLog, operatorClient } from "./operator-log.js";

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
 * @throws ClientError, before the wait for a log of another key; CairnlogError `closed` when interrupted
 */
export async function freezeAt({ server, publicOrigin, key, ending, at, signal, say }: FreezeAt): Promise<TreeHead> {
  const client = operatorClient(server, publicOrigin, key);
  if (ending.successor) parseVkey(ending.successor.vkey);
  // What is wrong with address or key must not show on the day.
  const early = at === null ? null : await client.shards.end();
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

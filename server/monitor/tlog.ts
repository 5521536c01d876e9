/**
 * Keeps the log's checkpoints at `/tlog/` beside the verified copy, so that a mirror serves them. A checkpoint must have the
 * root that the mirrored entries make.
 */
import { Rfc6962Growth } from "../../engine/log/rfc6962/growth.js";
import { MemoryRfc6962Rows, Rfc6962Tree, storedLeaves } from "../../engine/log/rfc6962/tree.js";
import { publishedCheckpoint } from "../../engine/log/tlog/publisher.js";
import type { StoreReader } from "../../engine/store/store.js";
import {
  CairnlogError,
  type Checkpoint,
  type NoteKey,
  parseCheckpointText,
  parseVkey,
  verifyNote,
} from "../../engine/verify/index.js";
import { isAbsent } from "../client/base/error.js";
import { ClientError } from "../client/index.js";
import { tlogCheckpointPath, tlogVkeyPath } from "../settings/settings.js";
import { keepFile } from "./folder.js";

/** A checkpoint that its key has signed. */
export interface ServedCheckpoint extends Checkpoint {
  readonly vkey: string;
  readonly note: string;
}

/** A text that a service shows; null if it says that it has none. @throws ClientError `no-answer` */
export async function fetchText(url: string, fetcher: typeof fetch): Promise<Response | null> {
  const response = await fetcher(url, { redirect: "error" }).catch((cause: unknown) => {
    throw new ClientError("no-answer", `The service does not answer when it is asked for ${new URL(url).pathname}.`, {
      cause,
    });
  });
  return isAbsent(response.status) ? null : response;
}

/**
 * The newest checkpoint, with the key that the service shows for it. Null if there is none, or if what is there is none: a
 * gateway may answer in the service's place, and that is no evidence against the log.
 * @throws ClientError `no-answer`
 */
export async function fetchCheckpoint(server: string, fetcher: typeof fetch): Promise<ServedCheckpoint | null> {
  const texts: string[] = [];
  for (const name of ["vkey", "checkpoint"]) {
    const response = await fetchText(`${server}/tlog/${name}`, fetcher);
    if (!response?.ok) return null;
    texts.push(await response.text());
  }
  const [vkey, note] = [texts[0]!.trim(), texts[1]!];
  const key = keyOf(vkey);
  const verified = key && (await verifyNote(note, [key]));
  const checkpoint = verified && parseCheckpointText(verified.text);
  return checkpoint?.origin === key?.name && checkpoint ? { ...checkpoint, vkey, note } : null;
}

function keyOf(vkey: string): NoteKey | null {
  try {
    return parseVkey(vkey);
  } catch (error) {
    if (error instanceof CairnlogError) return null;
    throw error;
  }
}

/** The checkpoints in a mirror's data directory. */
export class KeptCheckpoints {
  readonly #dataDir: string;
  readonly #tree: Rfc6962Tree;
  readonly #growth: Rfc6962Growth;

  /** @param size returns the number of mirrored entries */
  constructor(dataDir: string, store: StoreReader, size: () => number) {
    const rows = new MemoryRfc6962Rows();
    this.#dataDir = dataDir;
    this.#tree = new Rfc6962Tree(storedLeaves(store, size), () => rows);
    this.#growth = new Rfc6962Growth(this.#tree);
  }

  /**
   * Keeps a checkpoint, unless it is ahead of the mirrored entries or older than the kept one.
   * @returns what is wrong, if it contradicts the mirrored entries; null otherwise
   */
  async keep({ treeSize, rootHash, vkey, note }: ServedCheckpoint): Promise<string | null> {
    if (treeSize > this.#tree.source.size) return null;
    await this.#growth.extend(treeSize);
    if (Buffer.from(this.#tree.root(treeSize)).toString("hex") !== rootHash)
      return `The checkpoint of ${treeSize} entries at /tlog/, signed by ${vkey}, has another root than the entries.`;
    const file = tlogCheckpointPath(this.#dataDir);
    if (treeSize < (publishedCheckpoint(file)?.treeSize ?? 0)) return null;
    keepFile(tlogVkeyPath(this.#dataDir), `${vkey}\n`);
    keepFile(file, note);
    return null;
  }
}

/**
 * Asks those who remember the log whether it was set back: its witnesses, and the mirrors and followers that the settings
 * name. A log that was restored from an old snapshot would sign other entries in the place of those that were lost, and this
 * machine alone cannot know. Their word counts only with the log's own signature: a checkpoint or a head that this log has
 * signed, and that is not of its past.
 *
 * All are asked before the first append after a start. Those that do not answer then are asked again until they do. It
 * belongs to the writer's thread, and keeps nothing on disk: after a crash the next start asks again.
 */
import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { CairnlogError } from "../../engine/base/error.js";
import { checkNoteSignature, verifySync } from "../../engine/crypto/keys/signatures.js";
import { compareHead } from "../../engine/log/tlog/published.js";
import type { LogView } from "../../engine/log/view/view.js";
import {
  type Checkpoint,
  decodeBase64,
  type NoteKey,
  parseCheckpointText,
  parseNote,
  treeHeadMessage,
  verifyNote,
} from "../../engine/verify/index.js";
import { TREE_HEAD, type TreeHead } from "../../engine/verify/tree/treehead.js";
import { exchange } from "../outgoing/exchange.js";
import type { Logger } from "../process/logger.js";

/** Milliseconds for which a start waits for the answers. */
const RECALL_TIMEOUT_MS = 2_000;
const AGAIN_MS = 15_000;
/** Milliseconds for which this node may be behind a record that another one shows. */
const REACH_MS = 1_000;
const MAX_ANSWER_BYTES = 64 * 1024;

interface RecallParts {
  readonly log: Pick<LogView, "operators" | "size" | "consistencyProof">;
  /** The first line of the log's checkpoints. */
  readonly origin: string;
  /** Every key that may have signed a checkpoint of this log. */
  readonly keys: readonly NoteKey[];
  readonly witnesses: readonly { readonly name: string; readonly url: string }[];
  /** Origins of mirrors and followers. */
  readonly mirrors: readonly string[];
  /** Compares the log with a checkpoint that it has signed. @returns `corrupt-log` if it is not of the log's past */
  readonly compare: (checkpoint: Checkpoint, where: string, advice: string) => Promise<CairnlogError | null>;
  /** Called when somebody shows, after the start, that the log was set back. Must not throw. */
  readonly refuted: (error: CairnlogError) => void;
  readonly logger: Pick<Logger, "warn">;
  /** Milliseconds until those that did not answer are asked again. */
  readonly againMs?: number;
}

/** Somebody who remembers the log. */
interface Source {
  /** Such as `the witness A`. */
  readonly name: string;
  /** Asks once. @returns whether it has answered, or what it shows: that the log was set back. @throws if nothing can be compared now */
  readonly ask: () => Promise<boolean | CairnlogError>;
}

export class Recall {
  readonly #parts: RecallParts;
  readonly #stop = new AbortController();
  /** Those that have not answered since the start. */
  #silent: readonly Source[];
  readonly #count: number;
  #timer: NodeJS.Timeout | null = null;
  #asking: Promise<void> = Promise.resolve();

  constructor(parts: RecallParts) {
    this.#parts = parts;
    this.#silent = [
      ...parts.witnesses.map(({ name, url }) => ({
        name: `the witness ${name}`,
        ask: () => this.#askWitness(`the witness ${name}`, url),
      })),
      ...parts.mirrors.map((url) => ({ name: url, ask: () => this.#askMirror(url) })),
    ];
    this.#count = this.#silent.length;
  }

  /**
   * Asks all of them at once, and waits for at most `RECALL_TIMEOUT_MS`. Those that did not answer are asked again in the
   * background.
   * @throws CairnlogError `corrupt-log` with what to do, if one shows that the log was set back
   */
  async open(): Promise<void> {
    const contradiction = await this.#askSilent();
    if (contradiction) throw contradiction;
    const { logger } = this.#parts;
    if (this.#silent.length)
      logger.warn(
        { silent: this.#silent.map(({ name }) => name), asked: this.#count },
        "not all that remember the log have said at the start whether it was set back; appends go on",
      );
    this.#later();
  }

  /** What the operator should know, while nobody has answered: sentences. */
  get warnings(): readonly string[] {
    if (!this.#count || this.#silent.length < this.#count) return [];
    return [
      "No witness, mirror or follower has answered since the start, so nobody has said whether this log was set back to an old state.",
    ];
  }

  /** Asks no more; resolves when nothing runs. */
  async stop(): Promise<void> {
    this.#stop.abort();
    if (this.#timer) clearTimeout(this.#timer);
    await this.#asking;
  }

  #later(): void {
    if (!this.#silent.length || this.#stop.signal.aborted) return;
    this.#timer = setTimeout(() => {
      this.#asking = this.#askSilent().then((contradiction) => {
        if (!contradiction || this.#stop.signal.aborted) return this.#later();
        this.#stop.abort();
        this.#parts.refuted(contradiction);
      });
    }, this.#parts.againMs ?? AGAIN_MS);
    this.#timer.unref();
  }

  /** @returns what one of them shows: that the log was set back */
  async #askSilent(): Promise<CairnlogError | undefined> {
    const answers = await Promise.all(
      this.#silent.map(async (source) => {
        const answer = await source.ask().catch((error: unknown) => {
          // Such as a full disk, on which the tree's nodes have no room: no evidence, and mended without a restart.
          this.#parts.logger.warn({ err: error, name: source.name }, "what it shows of the log cannot be compared now");
          return false;
        });
        return { source, answer };
      }),
    );
    this.#silent = answers.flatMap(({ source, answer }) => (answer === false ? [source] : []));
    return answers.map(({ answer }) => answer).find((answer) => answer instanceof CairnlogError);
  }

  /**
   * Waits a little for a log that is smaller. Another node may know, and show, that a record was decided before this one has
   * written it; only what stays beyond the log says that it was set back.
   */
  async #reach(size: number): Promise<void> {
    const { log } = this.#parts;
    const isBehind = () => log.size < size && !this.#stop.signal.aborted;
    for (let tries = 0; isBehind() && tries < 20; tries++) await sleep(REACH_MS / 20);
  }

  async #askWitness(name: string, address: string): Promise<boolean | CairnlogError> {
    const { origin, keys, compare } = this.#parts;
    const hash = createHash("sha256").update(origin).digest("hex");
    const answer = await this.#get(`${address.replace(/\/+$/, "")}/${hash}/checkpoint`);
    // It knows nothing of this log yet.
    if (answer?.status === 404) return true;
    if (answer?.status !== 200) return false;
    const note = answer.body.toString("utf8");
    const parsed = parseNote(note);
    const checkpoint = parsed && parseCheckpointText(parsed.text);
    if (checkpoint?.origin !== origin || !(await isSignedByOneOf(note, keys))) return false;
    await this.#reach(checkpoint.treeSize);
    return (await compare(checkpoint, `the checkpoint that ${name} shows`, adviceAbout(name))) ?? true;
  }

  async #askMirror(url: string): Promise<boolean | CairnlogError> {
    const { log } = this.#parts;
    const answer = await this.#get(`${url}/api/v1/log/sth`);
    // It has no head yet.
    if (answer?.status === 404 || answer?.status === 409) return true;
    if (answer?.status !== 200) return false;
    const head = headIn(answer.body);
    if (!head || !isSignedBy(log.operators.keyAt(head.tree_size), head)) return false;
    await this.#reach(head.tree_size);
    return compareHead(log, head, `a head of ${head.tree_size} that ${url} shows was signed`, adviceAbout(url)) ?? true;
  }

  /** Null for a server that does not answer in time. */
  #get(url: string): Promise<{ readonly status: number; readonly body: Buffer } | null> {
    return exchange(
      { url: new URL(url), headers: {}, body: null },
      { timeoutMs: RECALL_TIMEOUT_MS, maxBytes: MAX_ANSWER_BYTES, signal: this.#stop.signal },
      (reason, options) => new Error(reason, options),
    ).catch(() => null);
  }
}

const adviceAbout = (name: string): string =>
  `This is no word against word: this log's own key has signed it. Put the newest data back, or restore the newest backup or a mirror (cairnlog restore). Only if you mean to give up these entries, which everybody who has seen them will take for a fork: remove ${name} from the settings.`;

async function isSignedByOneOf(note: string, keys: readonly NoteKey[]): Promise<boolean> {
  return (await verifyNote(note, keys, checkNoteSignature)) !== null;
}

function headIn(body: Buffer): TreeHead | null {
  try {
    const head = JSON.parse(body.toString("utf8")) as TreeHead;
    return TREE_HEAD(head, "") === undefined ? head : null;
  } catch {
    return null;
  }
}

function isSignedBy(key: Parameters<typeof verifySync>[0], head: TreeHead): boolean {
  const signature = decodeBase64(head.signature);
  if (signature === undefined) return false;
  return verifySync(key, treeHeadMessage(head.root_hash, head.tree_size, head.timestamp), signature);
}

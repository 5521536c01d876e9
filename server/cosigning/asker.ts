/**
 * Asks one witness for cosignatures: one request at a time, each about the checkpoint that is wanted then. What it does
 * concerns nobody else: a witness that is slow, dead or lying delays no other and no append. Belongs to the writer's thread.
 */
import { formatVkey, type NoteKey } from "../../engine/verify/index.js";
import { askWitness, WitnessError } from "./ask.js";

/** Milliseconds in which a witness must answer. */
export const WITNESS_TIMEOUT_MS = 10_000;
/** After a failure a witness is asked again after this time, then after twice as long each, up to a minute. */
const RETRY_MS = 1_000;
const MAX_RETRY_MS = 60_000;
/** Requests about one checkpoint: from the size we believe, from the one that it says, and if it moved in between. */
const MAX_REQUESTS = 3;

/** A checkpoint that is to be cosigned. */
export interface CheckpointToCosign {
  readonly treeSize: number;
  /** Signed by the log. */
  readonly note: string;
}

/** How it stands with a witness. */
export interface WitnessStatus {
  readonly name: string;
  /** Its verifier key. */
  readonly vkey: string;
  /** Size of the newest checkpoint that it has cosigned; null before the first one. */
  readonly treeSize: number | null;
  /** Time of that cosignature, in seconds since 1970. */
  readonly time: number | null;
  /** Why it did not cosign when it was asked last; null if it did. A sentence. */
  readonly trouble: string | null;
  /** Requests without a cosignature since the start. */
  readonly failures: number;
}

export interface AskerParts {
  /** In the policy. */
  readonly name: string;
  readonly url: string;
  readonly key: NoteKey;
  /** The proof from one size to a larger one. */
  readonly proof: (from: number, to: number) => readonly Uint8Array[];
  /** The checkpoint that is to be cosigned by this witness; null while there is none. Another object is to be cosigned anew. */
  readonly wanted: () => CheckpointToCosign | null;
  /** Called with a cosignature that holds. @param time in seconds since 1970 */
  readonly cosigned: (wanted: CheckpointToCosign, line: string, time: number) => void;
  /** Called when the trouble is another one than before; null when it is over. */
  readonly told: (trouble: string | null) => void;
  readonly timeoutMs: number;
}

export class Asker {
  readonly #parts: AskerParts;
  /** The size from which the witness goes on, as far as we know. A wrong one costs one more request. */
  #known: number;
  #newest: { readonly treeSize: number; readonly time: number } | null = null;
  /** What it has cosigned last, since the start. */
  #done: CheckpointToCosign | null = null;
  #trouble: string | null = null;
  #failures = 0;
  /** Failures in a row. */
  #row = 0;
  #timer: NodeJS.Timeout | null = null;
  #working: Promise<void> | null = null;
  readonly #stop = new AbortController();

  /** @param known the newest checkpoint that it has cosigned, from before the start */
  constructor(parts: AskerParts, known: { readonly treeSize: number; readonly time: number } | null) {
    this.#parts = parts;
    this.#known = known?.treeSize ?? 0;
    this.#newest = known;
  }

  get status(): WitnessStatus {
    const { treeSize = null, time = null } = this.#newest ?? {};
    const { name, key } = this.#parts;
    return { name, vkey: formatVkey(key), treeSize, time, trouble: this.#trouble, failures: this.#failures };
  }

  /** Whether it has cosigned what is wanted. */
  get isDone(): boolean {
    const wanted = this.#parts.wanted();
    return wanted === null || wanted === this.#done;
  }

  /** Asks the witness, if something is wanted and nothing is under way. After a failure it waits first. */
  ask(): void {
    if (this.#working || this.#timer || this.isDone || this.#stop.signal.aborted) return;
    const wait = this.#row ? Math.min(MAX_RETRY_MS, RETRY_MS * 2 ** (this.#row - 1)) : 0;
    // Never in the caller's turn.
    this.#timer = setTimeout(() => this.#run(), wait);
    this.#timer.unref();
  }

  /** Asks no more; resolves when nothing runs. */
  async stop(): Promise<void> {
    this.#stop.abort();
    if (this.#timer) clearTimeout(this.#timer);
    await this.#working;
  }

  #run(): void {
    this.#timer = null;
    const wanted = this.#parts.wanted();
    if (!wanted) return;
    this.#working = this.#cosign(wanted)
      .then(() => {
        this.#row = 0;
        this.#tell(null);
      })
      .catch((error: unknown) => this.#fail(error))
      .finally(() => {
        this.#working = null;
        this.ask();
      });
  }

  #fail(error: unknown): void {
    if (this.#stop.signal.aborted) return;
    this.#row++;
    this.#failures++;
    const reason = error instanceof WitnessError ? error.message : `could not be asked: ${(error as Error).message}`;
    this.#tell(`The witness ${this.#parts.name} ${reason}.`);
  }

  #tell(trouble: string | null): void {
    const isNews = trouble !== this.#trouble;
    this.#trouble = trouble;
    if (isNews) this.#parts.told(trouble);
  }

  /** @throws WitnessError */
  async #cosign(wanted: CheckpointToCosign): Promise<void> {
    const { url, key, proof, timeoutMs, cosigned } = this.#parts;
    const { treeSize, note } = wanted;
    for (let requests = 0; requests < MAX_REQUESTS; requests++) {
      const oldSize = Math.min(this.#known, treeSize);
      const question = { url, key, note, oldSize, proof: oldSize ? proof(oldSize, treeSize) : [] };
      const answer = await askWitness(question, timeoutMs, this.#stop.signal);
      if (answer.kind === "cosigned") {
        this.#known = treeSize;
        const before = this.#newest?.treeSize === treeSize ? this.#newest.time : 0;
        this.#newest = { treeSize, time: Math.max(before, answer.time) };
        this.#done = wanted;
        cosigned(wanted, answer.line, answer.time);
        return;
      }
      // What it says may be a lie. It costs a request.
      if (answer.size > treeSize)
        throw new WitnessError(
          `says that it has cosigned ${answer.size} entries, and the newest checkpoint has ${treeSize}: either it lies, or this log was set back to an old state`,
        );
      this.#known = answer.size;
    }
    throw new WitnessError("names another size each time it is asked");
  }
}

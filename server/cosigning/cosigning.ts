/**
 * Has the checkpoints of the log cosigned by witnesses, in the background, and keeps the newest one that a quorum of the
 * policy has cosigned. That one is shown to others. No append waits for any of this. While there is no newer checkpoint, the same
 * one is cosigned anew from time to time: by the times of the cosignatures, readers tell a log to which nothing is added from one that
 * somebody keeps from them. Belongs to the writer's thread.
 *
 * If we crash here: the newest checkpoint with a quorum is on disk before it is shown. Cosignatures that came after are asked
 * for again.
 */
import { readFileSync } from "node:fs";
import { closeTogether } from "../../engine/base/closing.js";
import { CairnlogError } from "../../engine/base/error.js";
import { replaceFile } from "../../engine/base/files.js";
import { checkNoteSignature } from "../../engine/crypto/keys/signatures.js";
import { PRIVATE_FILE } from "../../engine/store/lmdb/private.js";
import {
  formatNote,
  isQuorum,
  type Policy,
  type PolicyWitness,
  parseCheckpointText,
  parseNote,
  verifySignatures,
} from "../../engine/verify/index.js";
import { Asker, type AskerParts, type CheckpointToCosign, WITNESS_TIMEOUT_MS, type WitnessStatus } from "./asker.js";
import { isAsked } from "./policyfile.js";

interface CosigningParts {
  readonly policy: Policy;
  /** Holds the newest checkpoint with a quorum. */
  readonly file: string;
  /** The first line of every checkpoint. */
  readonly origin: string;
  /** The consistency proof from one size to a larger one. */
  readonly proof: AskerParts["proof"];
  /** Called with a sentence when there is trouble with a witness or the file, and with null when it is over. */
  readonly told: (trouble: string | null, witness: string | null) => void;
  /** Milliseconds in which a witness must answer. */
  readonly timeoutMs?: number;
  /** Milliseconds that a newer checkpoint waits for the quorum of the one before. */
  readonly roundMs?: number;
  /** Milliseconds after which a checkpoint is cosigned anew, if there is no newer one. */
  readonly renewMs?: number;
}

/** One request to each witness in this time, at most, is what a log costs to which nothing is added. */
const RENEW_MS = 5 * 60_000;

/** How it stands with the witnesses. */
export interface CosigningStatus {
  /** Size of the newest checkpoint with a quorum; null before the first one. */
  readonly treeSize: number | null;
  /** Size of the checkpoint for which cosignatures are being asked; null before the first one. */
  readonly wanted: number | null;
  readonly witnesses: readonly CosignerStatus[];
}

/** How it stands with one of them. */
export interface CosignerStatus extends WitnessStatus {
  /** Whether it has not cosigned the wanted checkpoint in its time. */
  readonly isLate: boolean;
}

/** A checkpoint, and the cosignatures that came for it. */
interface Candidate extends CheckpointToCosign {
  /** Name of the witness in the policy → its newest line, and the time of that. */
  readonly lines: Map<string, { readonly line: string; readonly time: number }>;
}

export class Cosigning {
  readonly #parts: CosigningParts;
  readonly #askers: readonly Asker[];
  /** What is being cosigned. */
  #current: Candidate | null = null;
  /** A newer one, which waits until `#current` has a quorum or its time is over. */
  #next: CheckpointToCosign | null = null;
  #deadline: NodeJS.Timeout | null = null;
  #renewal: NodeJS.Timeout | null = null;
  /** Names of the witnesses that have not cosigned in their time. */
  readonly #late = new Set<string>();
  /** The newest one with a quorum. */
  #published: { readonly treeSize: number; readonly note: string } | null = null;
  #writing: Promise<void> = Promise.resolve();
  #cannotWrite = false;

  private constructor(parts: CosigningParts, restored: Restored | null) {
    this.#parts = parts;
    this.#published = restored;
    // Others may get the cosignatures of those that are not asked.
    this.#askers = parts.policy.witnesses.filter(isAsked).map(({ name, key, url }) => {
      const time = restored?.times.get(name);
      const known = restored && time !== undefined ? { treeSize: restored.treeSize, time } : null;
      return new Asker(
        {
          name,
          key,
          url: url!.replace(/\/+$/, ""),
          proof: parts.proof,
          wanted: () => this.#current,
          cosigned: (wanted, ...signed) => this.#cosigned(name, wanted, ...signed),
          told: (trouble) => parts.told(trouble, name),
          timeoutMs: parts.timeoutMs ?? WITNESS_TIMEOUT_MS,
        },
        known,
      );
    });
  }

  /**
   * Reads the newest checkpoint with a quorum from before. One that has none by the present policy is forgotten.
   * @throws CairnlogError `storage-failed`
   */
  static async open(parts: CosigningParts): Promise<Cosigning> {
    return new Cosigning(parts, await restore(parts));
  }

  /**
   * The newest checkpoint with a quorum, and the cosignatures that came after it.
   * @throws CairnlogError `not-found` before the first one
   */
  newest(): string {
    if (this.#published) return this.#published.note;
    throw new CairnlogError("not-found", "No checkpoint has been cosigned by enough witnesses yet.");
  }

  get status(): CosigningStatus {
    return {
      treeSize: this.#published?.treeSize ?? null,
      wanted: this.#current?.treeSize ?? null,
      witnesses: this.#askers.map((asker) => ({ ...asker.status, isLate: this.#late.has(asker.status.name) })),
    };
  }

  /** Sentences for the operator: who is late, and whether that keeps checkpoints from being shown. */
  get warnings(): readonly string[] {
    if (!this.#late.size) return [];
    const late = this.#askers.map(({ status }) => status).filter(({ name }) => this.#late.has(name));
    const reasons = late.map(({ name, trouble }) => trouble ?? `The witness ${name} has not answered yet.`);
    const hasQuorum = this.#published?.treeSize === this.#current?.treeSize;
    return hasQuorum
      ? reasons
      : ["The newest checkpoint at /tlog/ is not shown: too few witnesses cosigned it.", ...reasons];
  }

  /** Has a checkpoint cosigned. Of several that are offered meanwhile, the newest one is next. */
  offer(wanted: CheckpointToCosign): void {
    this.#next = wanted;
    this.#advance();
  }

  /** Asks no more; resolves when nothing runs. */
  async stop(): Promise<void> {
    // Until they have stopped, a cosignature may still begin the next round.
    await closeTogether(...this.#askers.map((asker) => () => asker.stop()));
    for (const timer of [this.#deadline, this.#renewal]) if (timer) clearTimeout(timer);
    await this.#writing;
  }

  /** Goes on to the next checkpoint, unless the present one may still get its quorum in time. */
  #advance(): void {
    const isOpen = this.#current !== null && !this.#hasQuorum(this.#current) && !this.#late.size;
    if (!this.#next || isOpen) return;
    this.#late.clear();
    this.#begin({ ...this.#next, lines: new Map() });
    this.#next = null;
    // A policy may need no cosignature.
    if (this.#hasQuorum(this.#current!)) this.#publish(this.#current!);
  }

  /** Asks all witnesses to cosign a checkpoint, and again later if it is still the newest one then. */
  #begin(candidate: Candidate): void {
    const { roundMs = WITNESS_TIMEOUT_MS, renewMs = RENEW_MS } = this.#parts;
    this.#current = candidate;
    for (const timer of [this.#deadline, this.#renewal]) if (timer) clearTimeout(timer);
    this.#deadline = setTimeout(() => this.#endRound(), roundMs).unref();
    // What came is shown until a newer cosignature of the same witness is there.
    this.#renewal = setTimeout(() => this.#begin({ ...candidate }), renewMs).unref();
    for (const asker of this.#askers) asker.ask();
  }

  #endRound(): void {
    for (const { isDone, status } of this.#askers) if (!isDone) this.#late.add(status.name);
    this.#advance();
  }

  #cosigned(name: string, wanted: CheckpointToCosign, line: string, time: number): void {
    const current = this.#current;
    // A cosignature of a checkpoint that is not wanted any more is of no use: the log has a newer one.
    if (!current || current.note !== wanted.note) return;
    const isNewer = time > (current.lines.get(name)?.time ?? -1);
    if (isNewer) current.lines.set(name, { line, time });
    if (isNewer && this.#hasQuorum(current)) this.#publish(current);
    this.#late.delete(name);
    this.#advance();
  }

  #hasQuorum({ lines }: Candidate): boolean {
    return isQuorum(this.#parts.policy, new Set(lines.keys()));
  }

  /** Writes the checkpoint with all cosignatures that are there, then shows it. Called again as more come. */
  #publish({ treeSize, note, lines }: Candidate): void {
    const { file, told } = this.#parts;
    const published = { treeSize, note: note + [...lines.values()].map(({ line }) => line).join("") };
    this.#writing = this.#writing.then(async () => {
      try {
        await replaceFile(file, published.note, PRIVATE_FILE);
        this.#published = published;
        if (this.#cannotWrite) told(null, null);
        this.#cannotWrite = false;
      } catch (error) {
        if (!this.#cannotWrite) told(`${file} cannot be written: ${(error as Error).message}.`, null);
        this.#cannotWrite = true;
      }
    });
  }
}

interface Restored {
  readonly treeSize: number;
  /** Hex. */
  readonly rootHash: string;
  readonly note: string;
  /** Name of each witness that cosigned it → time of the cosignature. */
  readonly times: ReadonlyMap<string, number>;
}

/**
 * The checkpoint in the file, if the policy still has a quorum for it. The signature of the log is not looked at: it may be
 * by a key of before, and witnesses have seen it.
 */
async function restore({ file, policy, origin }: CosigningParts): Promise<Restored | null> {
  let note: string;
  try {
    note = readFileSync(file, "utf8");
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw new CairnlogError("storage-failed", `${file} cannot be read.`, { cause });
  }
  const parsed = parseNote(note);
  const checkpoint = parsed && parseCheckpointText(parsed.text);
  if (!parsed || checkpoint?.origin !== origin) return null;
  const { witnesses } = policy;
  const signatures = await verifySignatures(
    parsed,
    witnesses.map(({ key }) => key),
    checkNoteSignature,
  );
  const nameOf = (of: PolicyWitness["key"]) => witnesses.find(({ key }) => key === of)!.name;
  const times = new Map(signatures?.map(({ key, time }) => [nameOf(key), time!]));
  if (!isQuorum(policy, new Set(times.keys()))) return null;
  const lines = parsed.signatures.map(({ line }) => line);
  const { treeSize, rootHash } = checkpoint;
  return { treeSize, rootHash, note: formatNote(parsed.text, lines), times };
}

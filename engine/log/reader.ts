/**
 * A reader of a log that somebody else writes: another thread, or another process. Any number may be open on one
 * environment, each the property of the thread that opened it. It shows one moment until it is told to move on.
 */
import { importPublicKey } from "../crypto/keys/spki.js";
import { CairnlogError } from "../error.js";
import type { TreeHead } from "../verify/tree/treehead.js";
import { LogMemory } from "./apply/memory.js";
import { MemoryLensRows } from "./lens/memory-rows.js";
import { Operators } from "./operator/operators.js";
import { LogView, type ViewParts } from "./view.js";
import type { Executor } from "./write/executor.js";
import type { EventInput } from "./write/projection.js";

/** Opened by `openLogReader`. Everything that would write is refused with `signer-unavailable`. */
export class LogReader extends LogView implements Executor {
  readonly #store: ViewParts["store"];
  readonly #memory: LogMemory;
  readonly queued = 0;
  readonly batches = 0;
  readonly lastFailure = null;

  /** @param parts of a store that shows one moment, and an operator key of the log */
  constructor(parts: Omit<ViewParts, "memory"> & { readonly operatorKey: string }) {
    const known = Operators.of(importPublicKey(parts.operatorKey));
    const memory = new LogMemory(parts.store, parts.projection, known, true);
    // Nothing can be written here, and nobody may have written the nodes of the lens.
    super({ ...parts, memory, lensRows: new MemoryLensRows() });
    this.#store = parts.store;
    this.#memory = memory;
    this.#show();
  }

  /**
   * Shows what was written meanwhile. Between two calls nothing that was shown changes. Entries that it kept from the disk
   * are freed late, so call it at least every few seconds.
   * @throws CairnlogError `corrupt-log`, `storage-failed`
   */
  refresh(): void {
    this.#store.pin();
    this.#memory.postings.reload();
    this.#memory.titles.takeRuns();
    this.#show();
  }

  #show(): void {
    this.#memory.restore();
    this.showDisk();
  }

  execute(): Promise<never> {
    return Promise.reject(writtenElsewhere());
  }

  enqueue(_command: unknown, _input: unknown, _resolve: unknown, reject: (error: unknown) => void): void {
    reject(writtenElsewhere());
  }

  append(_: EventInput | readonly EventInput[]): Promise<never> {
    return this.execute();
  }

  signHead(): Promise<TreeHead> {
    return this.execute();
  }

  tryWriting(): Promise<void> {
    return this.execute();
  }

  observeBatches(): void {}

  observeRows(): void {}
}

const writtenElsewhere = (): CairnlogError =>
  new CairnlogError("signer-unavailable", "This log is written elsewhere; here it is read.");

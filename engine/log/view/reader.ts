/**
 * A reader of a log that somebody else writes: another thread, or another process. Any number may be open on one
 * environment, each the property of the thread that opened it. It shows one moment until it is told to move on.
 */

import { importPublicKey } from "../../crypto/keys/spki.js";
import { LogMemory } from "../apply/memory.js";
import { Operators } from "../operator/operators.js";
import { MemoryRfc6962Rows } from "../rfc6962/tree.js";
import { LogView, type ViewParts } from "./view.js";

/** Milliseconds after which a reader that nobody refreshes gives back the moment that it holds. */
const HELD_MS = 10_000;

/** Opened by `openLogReader`. */
export class LogReader extends LogView {
  readonly #store: ViewParts["store"];
  readonly #memory: LogMemory;
  readonly #release: NodeJS.Timeout;
  /** What was shown last. */
  #source: object;
  /** Makes room for the nodes of another RFC 6962 tree. */
  readonly #dropNodes: () => void;
  /** Whether the moment was given back. Entries never change, so what is shown does not either; lists of terms do. */
  #isReleased = false;

  /** @param parts of a store that shows one moment, and an operator key of the log */
  constructor(parts: Omit<ViewParts, "memory"> & { readonly operatorKey: string }) {
    const known = Operators.of(importPublicKey(parts.operatorKey));
    const memory = new LogMemory(parts.store, parts.projection, known, true);
    // Nothing can be written here, and nobody may have written the nodes of the RFC 6962 tree.
    let rows = new MemoryRfc6962Rows();
    super({ ...parts, memory, rfc6962Rows: () => rows });
    this.#dropNodes = () => {
      rows = new MemoryRfc6962Rows();
    };
    this.#store = parts.store;
    this.#source = parts.store.source;
    this.#memory = memory;
    this.#show();
    // While a moment is held, the writer uses no page again that was freed since, and the file grows.
    this.#release = setTimeout(() => this.#letGo(), HELD_MS).unref();
  }

  #letGo(): void {
    this.#store.unpin();
    this.#isReleased = true;
  }

  /**
   * Shows what was written meanwhile. Between two calls size, entries and proofs stay the same. Rows (keys, endorsements) do, too,
   * for ten seconds; later they may be newer.
   * @throws CairnlogError `corrupt-log`, `storage-failed`
   */
  refresh(): void {
    this.#store.pin();
    this.#takeRuns();
    this.#show();
    this.#release.refresh();
  }

  #takeRuns(): void {
    this.#isReleased = false;
    this.#memory.postings.reload();
    this.#memory.titles.takeRuns();
  }

  /** The writer may have merged the runs that this reader knew, and removed them. Entries beyond the size are left out of answers. */
  protected override readyPostings(): void {
    if (!this.#isReleased) return;
    this.#store.pinPostings();
    this.#takeRuns();
    this.#memory.addMissing(this.size);
    this.#release.refresh();
  }

  override async close(): Promise<void> {
    clearTimeout(this.#release);
    await super.close();
  }

  #show(): void {
    const { source } = this.#store;
    // Another log may be in the place of the one that was read.
    if (source !== this.#source) {
      this.forget();
      this.#dropNodes();
    }
    this.#source = source;
    this.#memory.restore();
    this.showDisk();
  }
}

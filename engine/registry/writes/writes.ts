/**
 * The way of all writes of the registry to the log. Here it is decided whether a client may write (`writers.ts`), and who pays
 * for a command: the client that sent it, and whether an anchor reaches the key that signed it. Commands know nothing of
 * either (`log/write/budgets.ts`).
 */
import { CairnlogError } from "../../base/error.js";
import type { Command } from "../../log/state/commands.js";
import type { Committed, Writer } from "../../log/state/executor.js";
import type { Writers } from "./writers.js";

/** Who sent a request. A program that embeds the log has no client; it writes as the operator does. */
export interface Caller {
  /** What is counted together, as `Payer.client`. */
  readonly address: string;
  /** Whether an anchor reaches the key of the request; only where another thread has found that out. */
  readonly isReached?: boolean;
}

/** The part of `TrustService` that says whom the log's anchors reach. */
interface AnchorReach {
  /** As far as it is known without a look at the graph. */
  isReached(fingerprint: string): boolean;
  /** As it is now. */
  reaches(fingerprint: string): Promise<boolean>;
}

export class Writes {
  readonly #writer: Pick<Writer, "enqueue">;
  readonly #trust: AnchorReach;
  /** Null where everybody may write. */
  readonly #writers: Writers | null;

  /** Use `openRegistry`. */
  constructor(writer: Pick<Writer, "enqueue">, trust: AnchorReach, writers: Writers | null = null) {
    this.#writer = writer;
    this.#trust = trust;
    this.#writers = writers?.isRestricted ? writers : null;
  }

  /**
   * Checks that a client may write, for callers that do something costly before their command.
   * @throws CairnlogError `not-a-writer`
   */
  check(client: Caller | null, key: string | null): void {
    if (client) this.#writers?.check(key);
  }

  /**
   * The key that answers for a write, which `execute` takes as `writer`: an anchor that has asked for it, otherwise the key
   * that signs. So an anchor lets in keys that may not write yet.
   */
  answering(asking: string | null, key: string | null): string | null {
    return asking !== null && this.#writers?.isAnchor(asking) ? asking : key;
  }

  /**
   * Runs a command as `Log.execute` does.
   * @param key fingerprint of the key whose possession was proven; null if none was
   * @param writer fingerprint of the key that must be a writer's; `key` if absent
   * @throws CairnlogError as `Log.execute` does; `not-a-writer`, `budget-spent`
   */
  execute<Input, Output>(
    command: Command<Input, Output>,
    input: Input,
    client: Caller | null,
    key: string | null,
    writer: string | null = key,
  ): Promise<Committed<Output>> {
    return new Promise((resolve, reject) => this.enqueue(command, input, client, key, resolve, reject, writer));
  }

  /** Like `execute`, for callers that need no promise (`Writer.enqueue`). */
  enqueue<Input, Output>(
    command: Command<Input, Output>,
    input: Input,
    client: Caller | null,
    key: string | null,
    resolve: (committed: Committed<Output>) => void,
    reject: (error: unknown) => void,
    writer: string | null = key,
  ): void {
    if (!client) {
      this.#writer.enqueue(command, input, resolve, reject);
      return;
    }
    if (this.#writers)
      try {
        this.#writers.check(writer);
      } catch (error) {
        reject(error);
        return;
      }
    const run = (isReached: boolean, refuse: (error: unknown) => void) =>
      this.#writer.enqueue(command, input, resolve, refuse, { client: client.address, isReached });
    const isReached = this.#isReached(client, key);
    const again = (error: unknown) =>
      this.#again(error, key!).then((is) => (is ? run(true, reject) : reject(error)), reject);
    run(isReached, isReached || key === null || client.isReached !== undefined ? reject : again);
  }

  /**
   * For a command of another thread: calls `write` with a client of which everything is known.
   * @throws what `write` throws
   */
  async through<T>(client: Caller | null, key: string, write: (client: Caller | null) => Promise<T>): Promise<T> {
    if (!client) return write(null);
    const isReached = this.#isReached(client, key);
    try {
      return await write({ ...client, isReached });
    } catch (error) {
      if (isReached || !(await this.#again(error, key))) throw error;
      return write({ ...client, isReached: true });
    }
  }

  #isReached({ isReached }: Caller, key: string | null): boolean {
    return isReached ?? (key !== null && this.#trust.isReached(key));
  }

  /**
   * Whether a command that was refused as a stranger's is to be tried once more. What is known of a key without a look at
   * the graph may be some seconds old, and counts one way only: nobody is refused for it whom an anchor reaches now.
   */
  async #again(error: unknown, key: string): Promise<boolean> {
    const isForStrangers =
      error instanceof CairnlogError && (error.code === "budget-spent" || error.code === "storage-full");
    if (!isForStrangers) return false;
    // If the graph cannot be looked at, the first refusal holds.
    return this.#trust.reaches(key).catch(() => false);
  }
}

/**
 * Controls the speed of background work. While postings come in, the work proceeds at their pace, so that an append
 * costs the same at every point of a merge. While none come in, it runs at full speed.
 */

import { turn } from "../../base/turns.js";

/** If nothing has come in for this time, background work at full speed delays nobody. */
const IDLE_MS = 50;

interface Waiting {
  readonly mark: number;
  readonly resolve: () => void;
}

export class MergePace {
  #fed = 0;
  #isFree = false;
  #waiting: Waiting[] = [];
  #timer: NodeJS.Timeout | undefined;

  /** The number of postings that have come in so far. */
  get fed(): number {
    return this.#fed;
  }

  feed(amount: number): void {
    this.#fed += amount;
    this.#isFree = false;
    if (!this.#waiting.length) return;
    this.#timer?.refresh();
    this.#wake((mark) => mark <= this.#fed);
  }

  /** Resolves when `fed` is at `mark`, or when nothing comes in; always after a turn of the event loop. */
  reached(mark: number): Promise<void> {
    if (this.#isFree || mark <= this.#fed) return turn();
    this.#timer ??= setTimeout(() => this.release(), IDLE_MS).unref();
    return new Promise((resolve) => this.#waiting.push({ mark, resolve }));
  }

  /** Lets all work run at full speed until more comes in. */
  release(): void {
    this.#isFree = true;
    this.#wake(() => true);
  }

  #wake(isDue: (mark: number) => boolean): void {
    const due = this.#waiting.filter(({ mark }) => isDue(mark));
    if (!due.length) return;
    this.#waiting = this.#waiting.filter(({ mark }) => !isDue(mark));
    if (!this.#waiting.length) {
      clearTimeout(this.#timer);
      this.#timer = undefined;
    }
    for (const { resolve } of due) void turn().then(resolve);
  }
}

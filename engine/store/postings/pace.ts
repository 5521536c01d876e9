/**
 * How fast background work goes on: so fast as what comes in makes it necessary, so that the same number of appends costs
 * the same wherever in a merge they fall; and as fast as it can once nothing comes in.
 */

/** Without anything coming in for so long, nobody is kept waiting by work that goes on at once. */
const IDLE_MS = 50;

interface Waiting {
  readonly mark: number;
  readonly resolve: () => void;
}

export class Pace {
  #fed = 0;
  #isFree = false;
  #waiting: Waiting[] = [];
  #timer: NodeJS.Timeout | undefined;

  /** What has come in so far. */
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

  /** Resolves once `fed` is at `mark`, or nothing comes in; always after a breath of the event loop. */
  reached(mark: number): Promise<void> {
    return new Promise((resolve) => {
      if (this.#isFree || mark <= this.#fed) setImmediate(resolve);
      else {
        this.#waiting.push({ mark, resolve });
        this.#timer ??= setTimeout(() => this.release(), IDLE_MS).unref();
      }
    });
  }

  /** Lets all work go on at once, until more comes in. */
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
    for (const { resolve } of due) setImmediate(resolve);
  }
}

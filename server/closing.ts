/**
 * What a service has opened, by name, and how all of it is closed in a time that is known before. A part that hangs is left,
 * and named.
 */

import { tell } from "../engine/base/lock.js";

/** The share of the time after which the next work is closed, too, although the one before has not ended. */
const IMPATIENCE = 1 / 20;

interface Part {
  readonly name: string;
  readonly close: () => unknown;
}

interface Closed {
  /** Names of the parts that have not ended. */
  readonly hanging: readonly string[];
  /** What parts threw, which counts as their end. */
  readonly errors: readonly unknown[];
}

export class Opened {
  /** What others stand on, such as the log. Closed last, one after the other. */
  readonly #foundation: Part[] = [];
  /** What works with that. */
  readonly #work: Part[] = [];

  /** Adds a part that others stand on. It is closed only after all work has ended. */
  addFoundation(name: string, close: () => unknown): void {
    this.#foundation.push({ name, close });
  }

  /** Adds a part that works with the foundation. */
  addWork(name: string, close: () => unknown): void {
    this.#work.push({ name, close });
  }

  /**
   * Closes every part, the newest first. While some work hangs, nothing under it is closed: it may still use that.
   * @param milliseconds after which it resolves in any case
   * @param observe called with the name of each part before it is closed
   */
  async close(milliseconds: number, observe: (name: string) => void = () => {}): Promise<Closed> {
    const deadline = performance.now() + milliseconds;
    const left = () => Math.max(0, deadline - performance.now());
    const hanging = new Set<Part>();
    const errors: unknown[] = [];
    const end = async (part: Part) => {
      tell(observe, part.name);
      hanging.add(part);
      try {
        await part.close();
      } catch (error) {
        errors.push(error);
      }
      hanging.delete(part);
    };
    const work: Promise<void>[] = [];
    for (const part of this.#work.splice(0).reverse()) {
      const ending = end(part);
      work.push(ending);
      await within(ending, milliseconds * IMPATIENCE);
    }
    await within(Promise.all(work), left());
    for (const part of this.#foundation.splice(0).reverse()) {
      if (hanging.size > 0) break;
      await within(end(part), left());
    }
    return { hanging: [...new Set([...hanging].map(({ name }) => name))], errors };
  }
}

/** Resolves when `work` has, or after so many milliseconds. */
async function within(work: Promise<unknown>, milliseconds: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds);
  });
  await Promise.race([work, late]);
  clearTimeout(timer);
}

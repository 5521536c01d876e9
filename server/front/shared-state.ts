/**
 * Memory that the threads of a service share: a few numbers that must be known before any message arrives. The writer's
 * thread makes it and hands it to every front end.
 */

const FED = 0;
/** Words before those of the front ends, and how many each of them has: when it last turned, its connections, its state. */
const HEAD = 1;
const WORDS = 3;
const BEAT = 0;
const CONNECTIONS = 1;
const STATE = 2;
const SERVING = 1;
const ENDED = 0;

/** Milliseconds since an arbitrary moment, the same in all threads; as a word, it starts anew after 24 days. */
const now = (): number => Number(process.hrtime.bigint() / 1_000_000n) | 0;

export class SharedState {
  readonly buffer: SharedArrayBuffer;
  readonly #words: Int32Array;

  /** @param buffer of `SharedState.create`, in any thread */
  constructor(buffer: SharedArrayBuffer) {
    this.buffer = buffer;
    this.#words = new Int32Array(buffer);
  }

  static create(frontEnds: number): SharedState {
    return new SharedState(new SharedArrayBuffer(4 * (HEAD + WORDS * frontEnds)));
  }

  /** Number of messages about the log that every front end was sent, or is being sent in this moment. */
  get fed(): number {
    return Atomics.load(this.#words, FED);
  }

  count(messages: number): void {
    Atomics.add(this.#words, FED, messages);
  }

  /** Adds to the open connections of a front end. @returns those of all of them */
  addConnections(front: number, change: number): number {
    Atomics.add(this.#words, wordOf(front, CONNECTIONS), change);
    let all = 0;
    for (let at = HEAD + CONNECTIONS; at < this.#words.length; at += WORDS) all += Atomics.load(this.#words, at);
    return all;
  }

  /** A front end begins: it has no connections. */
  begin(front: number): void {
    Atomics.store(this.#words, wordOf(front, CONNECTIONS), 0);
    Atomics.store(this.#words, wordOf(front, STATE), SERVING);
    this.beat(front);
  }

  /** A front end has closed all that it had open. */
  end(front: number): void {
    Atomics.store(this.#words, wordOf(front, STATE), ENDED);
    Atomics.notify(this.#words, wordOf(front, STATE));
  }

  /** Blocks this thread until the front end has ended, but not longer than so many milliseconds. */
  waitForEnd(front: number, milliseconds: number): void {
    Atomics.wait(this.#words, wordOf(front, STATE), SERVING, milliseconds);
  }

  /** A front end says that its event loop turns. */
  beat(front: number): void {
    Atomics.store(this.#words, wordOf(front, BEAT), now());
  }

  /** Milliseconds since the front end's event loop turned. */
  silence(front: number): number {
    return (now() - Atomics.load(this.#words, wordOf(front, BEAT))) | 0;
  }
}

const wordOf = (front: number, word: number): number => HEAD + WORDS * front + word;

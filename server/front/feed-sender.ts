/** What the writer tells all front ends of the log, and how their commands have ended. It belongs to the writer's thread. */
import type { FeedMessage } from "../../engine/log/follow/feed.js";
import type { SharedState } from "./shared-state.js";

/** A front end, as far as it is told. */
interface Told {
  /** Sends what is new on the log, and how the commands of this front end have ended. */
  tell(feed: readonly FeedMessage[]): void;
}

export class FeedSender {
  readonly #sharedState: Pick<SharedState, "count">;
  readonly #fronts: () => Iterable<Told | null>;
  /** What is not told yet. */
  readonly #feed: FeedMessage[] = [];
  #isDue = false;

  /** @param fronts those that there are now */
  constructor(sharedState: Pick<SharedState, "count">, fronts: () => Iterable<Told | null>) {
    this.#sharedState = sharedState;
    this.#fronts = fronts;
  }

  /** Takes what the log tells. */
  add(message: FeedMessage): void {
    this.#feed.push(message);
    this.due();
  }

  /** One message a batch: the writer answers all commands of a batch in one turn, and tells of it before. */
  due(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    queueMicrotask(() => this.#tell());
  }

  #tell(): void {
    this.#isDue = false;
    const feed = this.#feed.splice(0);
    // Before any front end can answer anybody: another one then waits for its own message (`WriterPort.catchUp`).
    this.#sharedState.count(feed.length);
    for (const front of this.#fronts()) front?.tell(feed);
  }
}

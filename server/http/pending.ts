/**
 * Bytes that are held for clients whose speed is theirs to choose: bodies that are arriving, answers that are being read.
 * All of them together are bounded. Where a new one does not fit, the one that has been under way for longest is given
 * up, not the new one: somebody who holds many open slowly wins nothing over those who come and go.
 */

/** What is held for one client. */
export interface Share {
  readonly bytes: number;
  /**
   * Holds `bytes` in all from now on.
   * @returns false when there is no room for that: then this share holds nothing any more
   */
  resize(bytes: number): boolean;
  /** It waits for nobody any more, so it will not be given up; what it holds still counts. */
  settle(): void;
  /** Nothing is held any more. */
  release(): void;
}

export class PendingBytes {
  readonly limit: number;
  /** Bytes held now, never more than `limit`. */
  held = 0;
  /** Shares given up for others since the start. */
  givenUp = 0;
  /** Shares that wait for their client → what is done when they are given up. Longest under way first. */
  readonly #waiting = new Map<Share, () => void>();

  constructor(limit: number) {
    this.limit = limit;
  }

  /** Shares that wait for their client. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** A share of a client that is waited for. @param giveUp called when its room goes to another; it is released then */
  open(giveUp: () => void): Share {
    const waiting = this.#waiting;
    const hold = (bytes: number) => {
      this.held += bytes;
      share.bytes += bytes;
    };
    const share = {
      bytes: 0,
      resize: (bytes: number): boolean => {
        hold(-share.bytes);
        if (bytes <= this.limit && this.#makeRoom(bytes, share)) {
          hold(bytes);
          return true;
        }
        waiting.delete(share);
        return false;
      },
      settle: () => {
        waiting.delete(share);
      },
      release: () => {
        waiting.delete(share);
        hold(-share.bytes);
      },
    };
    waiting.set(share, giveUp);
    return share;
  }

  /** Whether `bytes` fit, after giving up as few others as that takes; none is given up in vain. */
  #makeRoom(bytes: number, asking: Share): boolean {
    if (this.held + bytes <= this.limit) return true;
    const victims: [Share, () => void][] = [];
    let held = this.held;
    for (const entry of this.#waiting) {
      if (held + bytes <= this.limit) break;
      if (entry[0] === asking || !entry[0].bytes) continue;
      victims.push(entry);
      held -= entry[0].bytes;
    }
    if (held + bytes > this.limit) return false;
    for (const [share, giveUp] of victims) {
      share.release();
      this.givenUp++;
      giveUp();
    }
    return true;
  }
}

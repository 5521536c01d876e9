/**
 * Bytes that are held for clients whose speed is theirs to choose: bodies that are arriving, answers that are being read.
 * All of them together are bounded. Where a new one does not fit, the one that has been under way for longest is given
 * up, not the new one: somebody who holds many open slowly wins nothing over those who come and go.
 */

/** What all shares have in common. */
interface Account {
  readonly limit: number;
  held: number;
  givenUp: number;
  /** Shares that wait for their client → what is done when they are given up. Longest under way first. */
  readonly waiting: Map<Share, () => void>;
}

/** What is held for one client. */
export class Share {
  readonly #account: Account;
  #bytes = 0;

  constructor(account: Account) {
    this.#account = account;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Holds `bytes` in all from now on.
   * @returns false when there is no room for that: then this share holds nothing any more
   */
  resize(bytes: number): boolean {
    this.#hold(0);
    if (bytes <= this.#account.limit && makeRoom(this.#account, bytes, this)) {
      this.#hold(bytes);
      return true;
    }
    this.settle();
    return false;
  }

  /** It waits for nobody any more, so it will not be given up; what it holds still counts. */
  settle(): void {
    this.#account.waiting.delete(this);
  }

  /** Nothing is held any more. */
  release(): void {
    this.settle();
    this.#hold(0);
  }

  #hold(bytes: number): void {
    this.#account.held += bytes - this.#bytes;
    this.#bytes = bytes;
  }
}

export class PendingBytes {
  readonly #account: Account;

  constructor(limit: number) {
    this.#account = { limit, held: 0, givenUp: 0, waiting: new Map() };
  }

  get limit(): number {
    return this.#account.limit;
  }

  /** Bytes held now, never more than `limit`. */
  get held(): number {
    return this.#account.held;
  }

  /** Shares given up for others since the start. */
  get givenUp(): number {
    return this.#account.givenUp;
  }

  /** Shares that wait for their client. */
  get waiting(): number {
    return this.#account.waiting.size;
  }

  /** A share of a client that is waited for. @param giveUp called when its room goes to another; it is released then */
  open(giveUp: () => void): Share {
    const share = new Share(this.#account);
    this.#account.waiting.set(share, giveUp);
    return share;
  }
}

/** Whether `bytes` fit, after giving up as few others as that takes; none is given up in vain. */
function makeRoom(account: Account, bytes: number, asking: Share): boolean {
  const { limit, waiting } = account;
  if (account.held + bytes <= limit) return true;
  const victims: [Share, () => void][] = [];
  let held = account.held;
  for (const entry of waiting) {
    if (held + bytes <= limit) break;
    if (entry[0] === asking || !entry[0].bytes) continue;
    victims.push(entry);
    held -= entry[0].bytes;
  }
  if (held + bytes > limit) return false;
  for (const [share, giveUp] of victims) {
    share.release();
    account.givenUp++;
    giveUp();
  }
  return true;
}

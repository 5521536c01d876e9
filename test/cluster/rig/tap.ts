/**
 * Listens on the ways between nodes and servers: which records were proposed and what became of them, and when a standby
 * has shown which record. All of it passes through this process, as do the answers to clients. So what a node knew when it
 * answered is known here, whatever the node says of itself.
 */
import { createHash } from "node:crypto";
import type { Observer } from "../servers/link.js";
import { boundValues, Messages, rowValues } from "./messages.js";

/** Of a record (`engine/journal/record.ts`): its head, and the hash of that. */
const HEAD = 115;
const HASH = 32;
const BATCH_AT = HEAD + HASH + 4;

const hashOf = (body: Buffer): Buffer => createHash("sha256").update(body.subarray(0, HEAD)).digest();

/** A text that a leader makes up: whoever has it has everything before it (`touch` in `statements.ts`). */
const MARK = /^[0-9a-f]{32}$/;

/** The hash of a record that a server is asked for, by number and hash. */
const hashIn = (values: readonly (Buffer | null)[]): Buffer | undefined => {
  const hash = values.length === 2 ? values[1] : undefined;
  return hash?.length === HASH ? hash : undefined;
};

/** A record that a node has asked a server to append. */
export interface Proposal {
  /** The record without its private rows. */
  readonly body: Buffer;
  sent: number;
  /** Number of answers that it is not there, and never will be. */
  refused: number;
}

export class Tap {
  /** Those that no server has accepted so far, by the hash of the record, hex. */
  readonly proposals = new Map<string, Proposal>();
  /** Hashes of those that a server has accepted. A node that did not get the answer sends them again. */
  readonly #accepted = new Set<string>();
  /** The newest one that was accepted and holds a batch. */
  newestAccepted: Proposal | null = null;
  /** By the hash of the record, hex: when a standby has shown it for the first time, by `performance.now()`. */
  readonly shownAt = new Map<string, number>();
  /** By the number of a record: when a standby has shown for the first time a mark that was made when it was the newest. */
  readonly markedAt = new Map<number, number>();
  /** Called before a proposal passes to a server. */
  onProposal: (() => void) | null = null;
  /** By mark: the newest record when it was made. */
  readonly #marks = new Map<string, number>();

  /** @param isStandby whether the server at the other end is a standby at the moment */
  observer(isStandby: () => boolean): Observer {
    let asked: Proposal | undefined;
    let wanted: Buffer | undefined;
    const sent = new Messages("client", "B", (_, body) => {
      const values = boundValues(body);
      asked = this.#proposed(values);
      wanted = this.#marked(values) ?? hashIn(values);
    });
    const received = new Messages("server", "DEZ", (type, body) => {
      if (type === "Z") asked = wanted = undefined;
      else if (asked) {
        const isError = type === "E";
        if (!isError && rowValues(body)[0]?.toString() === "1") this.#accept(asked);
        // Severity ERROR is a refusal. FATAL ends the session, and says nothing of the statement.
        else if (!isError || body.includes("VERROR\0")) asked.refused++;
        asked = undefined;
      } else if (type === "D" && wanted && isStandby()) this.#show(wanted);
    });
    return { sent: (chunk) => sent.push(chunk), received: (chunk) => received.push(chunk) };
  }

  /** A record tells itself from all other values: it holds the hash of its head. */
  #proposed(values: readonly (Buffer | null)[]): Proposal | undefined {
    for (const value of values) {
      if (!value || value.length < BATCH_AT) continue;
      const hash = hashOf(value);
      if (!hash.equals(value.subarray(HEAD, HEAD + HASH))) continue;
      const key = hash.toString("hex");
      this.onProposal?.();
      if (this.#accepted.has(key)) return undefined;
      const known = this.proposals.get(key) ?? { body: Buffer.from(value), sent: 0, refused: 0 };
      this.proposals.set(key, known);
      known.sent++;
      return known;
    }
    return undefined;
  }

  /** Notes a mark that is being made, and returns one that a server is asked for. */
  #marked(values: readonly (Buffer | null)[]): Buffer | undefined {
    const mark = values.at(-1);
    if (!mark || !MARK.test(mark.toString("latin1"))) return undefined;
    if (values.length === 1) return mark;
    if (values.length === 4) this.#marks.set(mark.toString("latin1"), Number(values[2]));
    return undefined;
  }

  #accept(proposal: Proposal): void {
    const key = hashOf(proposal.body).toString("hex");
    this.proposals.delete(key);
    this.#accepted.add(key);
    if (proposal.body.length > BATCH_AT) this.newestAccepted = proposal;
  }

  #show(wanted: Buffer): void {
    const now = performance.now();
    const sequence = this.#marks.get(wanted.toString("latin1"));
    if (sequence === undefined) {
      const hash = wanted.toString("hex");
      if (!this.shownAt.has(hash)) this.shownAt.set(hash, now);
    } else if (!this.markedAt.has(sequence)) this.markedAt.set(sequence, now);
  }
}

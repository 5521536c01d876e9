/** Plans of many requests at once, and how they are carried out. */
import fc from "fast-check";
import { expect } from "vitest";
import { texts } from "../../texts.js";
import { type Connection, connectToEach } from "../front/connections.js";
import {
  attest,
  attestBatch,
  attestSpent,
  byClient,
  type Fault,
  newSigners,
  newStranger,
  type Sent,
  sentOf,
  type Wish,
} from "./attesting.js";
import { FILLED, fill, questions, type Stable, sameAgain } from "./reading.js";
import { type Client, READERS, type Reader, SPENT, startMixedService, Traffic } from "./traffic.js";
import { type Alone, alone, mixedWrite, spend, TWINS, WRITE_IDS } from "./writing.js";

/** Addresses of one round, which other rounds do not have: counts begin anew. */
const ADDRESSES = 6;

/** What one client does. Numbers choose among what there is. */
export type Deed = { readonly place: number } & (
  | { readonly kind: "write"; readonly id: string; readonly isTwin: boolean }
  | { readonly kind: "read"; readonly what: number; readonly reader: Reader }
  | {
      readonly kind: "attest";
      readonly wish: Wish;
      readonly pieces: number;
      readonly isPlain: boolean;
      readonly isSpent: boolean;
    }
  | { readonly kind: "batch"; readonly wishes: readonly Wish[]; readonly pieces: number; readonly isPlain: boolean }
  | { readonly kind: "client"; readonly titles: readonly string[] }
);

/** How many of each a plan has. */
export interface Extent {
  /** Further writes, besides one of each kind. */
  readonly writes: number;
  readonly reads: number;
  readonly attestations: number;
  readonly batches: number;
  readonly clients: number;
}

const TITLES = fc.oneof(
  texts({ minLength: 1, maxLength: 40 }),
  fc.integer({ min: 1, max: 480 }).map((length) => "x".repeat(length)),
);
let titles = 0;
/** No two are equal, and none has what a title must not have. */
const title = TITLES.map((text) =>
  `${titles++} ${text.normalize("NFC").replace(/[\p{C}\p{Z}]/gu, "_")}`.slice(0, 400).toWellFormed(),
);
const fault = fc.constantFrom<Fault>(
  "none",
  "none",
  "none",
  "none",
  "signature",
  "password",
  "password",
  "no password",
  "type",
  "form",
);
const wish: fc.Arbitrary<Wish> = fc.record({
  key: fc.nat(),
  title,
  statement: fc.option(
    fc.string({ unit: "grapheme-ascii", minLength: 1, maxLength: 2000 }).map((text) => `I ${text.trim()}.`),
  ),
  type: fc.nat(),
  fault,
  isAgain: fc.boolean(),
});
const place = fc.nat();
const pieces = fc.integer({ min: 1, max: 9 });
const reader = fc.constantFrom<Reader>("fast", "fast", "slow", "slow", "deaf", "leaving");

export function plans({ writes, reads, attestations, batches, clients }: Extent): fc.Arbitrary<Deed[]> {
  const times = <T>(count: number, one: fc.Arbitrary<T>) => fc.array(one, { minLength: count, maxLength: count });
  const write = (id: string) =>
    fc.record({ kind: fc.constant("write" as const), place, id: fc.constant(id), isTwin: fc.boolean() });
  const kind = <K extends Deed["kind"]>(name: K) => fc.constant(name);
  return fc
    .tuple(
      fc.tuple(...WRITE_IDS.map(write)),
      times(writes, fc.constantFrom(...WRITE_IDS).chain(write)),
      times(reads, fc.record({ kind: kind("read"), place, what: fc.nat(), reader })),
      times(
        attestations,
        fc.record({
          kind: kind("attest"),
          place,
          wish,
          pieces,
          isPlain: fc.boolean(),
          isSpent: fc.nat(3).map((n) => n === 0),
        }),
      ),
      times(
        batches,
        fc.record({
          kind: kind("batch"),
          place,
          wishes: fc.array(wish, { minLength: 8, maxLength: 32 }),
          pieces,
          isPlain: fc.boolean(),
        }),
      ),
      times(
        clients,
        fc.record({ kind: kind("client"), place, titles: fc.array(title, { minLength: 2, maxLength: 6 }) }),
      ),
    )
    .chain((deeds) => {
      const all = deeds.flat() as Deed[];
      return fc.shuffledSubarray(all, { minLength: all.length });
    })
    .map((deeds) => Object.assign(deeds, { [fc.toStringMethod]: () => `${deeds.length} deeds` }));
}

/** A service with what is read of it, and how every write ends that is alone. */
export class Mixture {
  readonly #traffic: Traffic;
  readonly #outcomes: Alone;
  readonly #stable: readonly Stable[];
  #rounds = 0;

  private constructor(traffic: Traffic, outcomes: Alone, stable: readonly Stable[]) {
    this.#traffic = traffic;
    this.#outcomes = outcomes;
    this.#stable = stable;
  }

  /** @param keys whose rows and entries are read */
  static async open(transport: string, frontEnds: number, keys: number): Promise<Mixture> {
    const service = await startMixedService(transport, frontEnds);
    const traffic = await Traffic.open(service, frontEnds);
    const client = { address: "198.51.100.1", connection: traffic.connections[0]! };
    await fill(traffic);
    const { outcomes, made } = await alone(traffic, client);
    await spend(traffic, { ...client, address: SPENT });
    const stable = await questions(traffic, made.slice(-keys), client);
    return new Mixture(traffic, outcomes, stable);
  }

  close(): void {
    this.#traffic.close();
  }

  /** Carries out all deeds at once, and looks then at what became of them. */
  async run(deeds: readonly Deed[]): Promise<void> {
    const traffic = this.#traffic;
    const round = ++this.#rounds;
    const { connections, service } = traffic;
    const own: Connection[] = [];
    const client = (place: number): Client => ({
      address: place % ADDRESSES ? `10.${round >> 8}.${round & 255}.${place % ADDRESSES}` : `2001:db8:${round}::1`,
      connection: connections[place % connections.length]!,
    });
    const signers = await newSigners(traffic);
    const ready = await Promise.all(deeds.map((deed) => this.#ready(deed, signers, client, own)));
    // None of them has been idle for long: the service would close it while a write is sent.
    await Promise.all(connections.map((connection) => connection.get("/health")));
    // All of them end, also when one is wrong.
    const ended = await Promise.allSettled(ready.map((go) => go()));
    for (const one of ended) {
      if (one.status === "rejected") throw one.reason;
      await one.value?.();
    }
    for (const connection of own) connection.close();
    await traffic.settle();
    const { log } = service.server.registry;
    const { errors } = await log.verify();
    // What fills the log is no event of the service.
    expect(errors.filter(({ id }) => id === null || id > FILLED)).toEqual([]);
    expect(log.stateDifferences()).toEqual([]);
  }

  async #ready(
    deed: Deed,
    signers: Awaited<ReturnType<typeof newSigners>>,
    client: (place: number) => Client,
    own: Connection[],
  ): Promise<() => Promise<(() => Promise<unknown>) | undefined>> {
    const traffic = this.#traffic;
    const { place } = deed;
    const [one, other] = [client(place), client(place + 1 + (place % 7))];
    switch (deed.kind) {
      case "write": {
        const go = await mixedWrite(traffic, deed.id, this.#outcomes, deed.isTwin && TWINS.includes(deed.id));
        return () => go(one, other);
      }
      case "read": {
        const what = this.#stable[deed.what % this.#stable.length]!;
        const isSlow = deed.reader !== "fast";
        // Others do not wait behind it.
        const [connection] = isSlow ? await connectToEach(traffic.service.url, 1) : [one.connection];
        if (isSlow) own.push(connection!);
        const slowly = { address: one.address, connection: connection!, pace: READERS[deed.reader](traffic) };
        return async () => {
          await sameAgain(traffic, what, slowly, deed.reader !== "leaving");
          return undefined;
        };
      }
      case "attest": {
        const sent = sentOf(deed.wish, deed.isSpent ? [newStranger()] : signers, deed.isPlain);
        if (deed.isSpent) return () => attestSpent(traffic, sent, { ...one, address: SPENT }, other);
        const clients = [{ ...one, pace: { pieces: deed.pieces } }];
        if (deed.wish.isAgain && sent.fault !== "password") clients.push({ ...other, pace: { pieces: 1 } });
        return () => attest(traffic, sent, clients);
      }
      case "batch": {
        const all: Sent[] = [];
        for (const wish of deed.wishes) {
          const sent = sentOf(wish, signers, deed.isPlain);
          all.push(sent);
          if (wish.isAgain && sent.fault === "none") all.push(all.find(({ fault }) => fault === "none")!);
        }
        return () => attestBatch(traffic, all, { ...one, pace: { pieces: deed.pieces } });
      }
      case "client":
        return () => byClient(traffic, deed.titles, one);
    }
  }
}

/** Answers about keys that take several turns, while keys and endorsements change: their slices are steps. */
import { generateKeyPairSync } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import fc from "fast-check";
import { expect, vi } from "vitest";
import type { Steps } from "#cairnlog/engine/base/turns.js";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import type { FeedMessage } from "#cairnlog/engine/log/follow/feed.js";
import { openLogFollower } from "#cairnlog/engine/log/log.js";
import type { EventInput } from "#cairnlog/engine/log/state/projection.js";
import type { LogWriter } from "#cairnlog/engine/log/writer.js";
import { projection } from "#cairnlog/engine/registry/events/projection.js";
import { Graphs } from "#cairnlog/engine/registry/graph/recent-graphs.js";
import { searchKeys } from "#cairnlog/engine/registry/keys/directory.js";
import { Slices } from "#cairnlog/engine/registry/shared/slices.js";
import { DEFAULT_TRUST_SETTINGS, TrustService } from "#cairnlog/engine/registry/trust/service.js";
import { Postings } from "#cairnlog/engine/store/postings/postings.js";
import { Case, newKey } from "../registry/endorsements/endorsementcase.js";
import { keyNamed } from "../registry/graph/graphrows.js";
import { DAY, fingerprintOf, newFolder, openWorld, SECOND, type World } from "../registry/world.js";
import type { Scene, Step } from "./orders.js";

/** Work in two steps: it begins, with a snapshot, and it goes on to its end. */
const steppedSlices = (step: Step, label: string): Slices =>
  ({
    async run<T>(steps: Steps<T>): Promise<T> {
      let next = await step(`${label} begins`, () => steps.next());
      await step(`${label} ends`, () => {
        while (!next.done) next = steps.next();
      });
      return next.value as T;
    },
  }) as Partial<Slices> as Slices;

/** What is asked of the registry: the same by a service whose slices are steps, and by one that begins from nothing. */
type Ask = (key: string) => Promise<string>;
type Subject = (world: World, slices: Slices) => Ask;

const partsOf = ({ registry: { log }, operator: { fingerprint: operator } }: World) => ({
  log,
  operator,
  activationDelaySeconds: DAY / SECOND,
});

export const SUBJECTS: Readonly<Record<string, Subject>> = {
  "what trust reaches": (world, slices) => {
    const clock = () => world.now;
    const parts = { graph: partsOf(world), slices, querySlices: slices, clock, settings: DEFAULT_TRUST_SETTINGS };
    const trust = new TrustService(parts);
    return async (key) => `${await trust.reaches(key)}`;
  },
  "a graph": (world, slices) => {
    const { keys } = world.registry;
    const graphs = new Graphs({
      graph: partsOf(world),
      keys,
      slices,
      clock: () => world.now,
      settings: { stopwatch: () => 0 },
    });
    return async (key) => {
      const { cached: _, ...graph } = await graphs.around(key);
      return JSON.stringify(graph);
    };
  },
};

/** A registry, and the postings of its log, which the test writes as runs. */
export interface Filed {
  readonly world: World;
  readonly path: string;
  readonly pem: ReturnType<typeof generatePrivateKey>;
  readonly postings: Postings;
}

export async function openFiled(): Promise<Filed> {
  const path = newFolder();
  const pem = generatePrivateKey("ed25519");
  const adding = vi.spyOn(Postings.prototype, "add");
  const world = await openWorld(path, pem);
  await newKey(world);
  const postings = adding.mock.contexts.at(-1) as Postings;
  adding.mockRestore();
  return { world, path, pem, postings };
}

/** Nothing that is answered is older than its question, whatever changes while it is looked up. */
export async function changingScene(step: Step, { world, postings }: Filed, subject: Subject): Promise<Scene> {
  const { log, keyLifecycle } = world.registry;
  const keys = [await newKey(world), await newKey(world), await newKey(world)] as const;
  const links: Case[] = [];
  for (const [i, key] of keys.entries()) {
    const link = new Case(world, keys[i - 1] ?? world.operator.fingerprint, key);
    await link.offer();
    await link.accept();
    links.push(link);
  }
  world.now += DAY;
  const scratch = new Slices(log);
  /** What is true of each key at each size of the log. */
  const truths = new Map<number, readonly string[]>();
  const note = async () => void truths.set(log.size, await Promise.all(keys.map(subject(world, scratch))));
  await note();
  let endings = 0;
  let isHeld = false;
  const held: Step = (label, work) => (isHeld ? step(label, work) : Promise.resolve(work()));
  const ask = subject(world, steppedSlices(held, "the answer"));
  // Something is kept, and followed by what changes.
  for (const key of keys) await ask(key);
  isHeld = true;
  const change = (label: string, work: () => Promise<unknown>) =>
    step(label, async () => {
      await work();
      await note();
      // A run of its own; the fourth has them merged, and the first three are gone.
      await postings.fileAll();
    });
  const asking = async () => {
    for (let n = 0; n < 6; n++) {
      let [from, nth] = [0, 0];
      let answer: Promise<string>;
      await step("somebody asks", () => {
        from = log.size;
        // The one that the last change was about, or the next one will be.
        nth = Math.max(0, 2 - Math.max(0, endings - (n % 2)));
        answer = ask(keys[nth]!);
      });
      const said = await answer!;
      const allowed = [...truths].filter(([size]) => size >= from && size <= log.size).map(([, all]) => all[nth]);
      expect(allowed, `what is true between ${from} and ${log.size}`).toContain(said);
    }
  };
  const endorse = async () => {
    const link = new Case(world, keys[0], await newKey(world));
    await link.offer();
    await link.accept();
  };
  const ends = (nth: number) => async () => {
    endings++;
    await links[nth]!.withdraw();
  };
  return {
    actors: [
      asking,
      asking,
      async () => {
        await change("a key is endorsed", endorse);
        await change("keys of others are revoked", () => world.append(...MANY_REVOCATIONS));
        await change("the last endorsement is withdrawn", ends(2));
        await change("keys of others are revoked", () => world.append(...MANY_REVOCATIONS));
        await change("the one before is withdrawn", ends(1));
        await change("the first key is revoked", () => keyLifecycle.revoke(keys[0]));
      },
    ],
    close: () => scratch.close(),
  };
}

/** A question that comes while an older one is under way gets an answer of its own, and not what was true when that one began. */
export async function askedMeanwhile({ world }: Filed, subject: Subject): Promise<void> {
  const key = await newKey(world);
  const link = new Case(world, world.operator.fingerprint, key);
  await link.offer();
  await link.accept();
  world.now += DAY;
  let goOn = () => {};
  const mayGoOn = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const slices = {
    async run<T>(steps: Steps<T>): Promise<T> {
      let next = steps.next();
      await mayGoOn;
      while (!next.done) next = steps.next();
      return next.value;
    },
  } as Partial<Slices> as Slices;
  const ask = subject(world, slices);
  const older = ask(key);
  await setImmediate();
  await link.withdraw();
  const newer = ask(key);
  await setImmediate();
  goOn();
  const scratch = new Slices(world.registry.log);
  const truth = await subject(world, scratch)(key);
  scratch.close();
  expect(await older).not.toBe(truth);
  expect(await newer).toBe(truth);
}

/** More than are read between two pauses. */
const MANY_REVOCATIONS = Array.from({ length: 40 }, (_, i) => ({
  event_type: "key_revocation",
  payload: { fingerprint: keyNamed(i) },
}));

const NAME = "Ada Lovelace";
/** More than two slices of a search. */
const KEYS = 600;
/** Keys in each run that is made while a search is under way. */
const RUN_KEYS = 25;

function registrationEvent(): EventInput {
  const pem = generateKeyPairSync("ed25519").publicKey.export({ type: "spki", format: "pem" }).toString();
  const payload = { fingerprint: fingerprintOf(pem), public_key: pem, pseudonym: NAME, key_algorithm: "ed25519" };
  return { event_type: "key_registration", payload: { ...payload, expiration_date: null } };
}

/**
 * A search of the directory, in a reader that is told of new keys, new runs and runs that are gone between any two slices: it
 * finds every key that was there when it began, each once.
 */
export async function searchingBeside({ world, path, pem, postings }: Filed, searches: number): Promise<void> {
  const log = world.registry.log as LogWriter;
  // From here on every entry is such a key.
  const others = log.size;
  await world.append(...Array.from({ length: KEYS }, registrationEvent));
  const messages: FeedMessage[] = [];
  log.feed((message) => messages.push(structuredClone(message)));
  for (const choices of fc.sample(fc.infiniteStream(fc.nat(4)), searches)) {
    messages.length = 0;
    const follower = openLogFollower({
      path,
      operatorKey: operatorKey(pem).public.pem,
      projection,
      writer: {} as never,
    });
    try {
      for (let run = 0; run < 4; run++) {
        await world.append(...Array.from({ length: RUN_KEYS }, registrationEvent));
        await postings.fileAll();
      }
      const before = follower.size;
      let found: Awaited<ReturnType<typeof searchKeys>> | undefined;
      const searching = searchKeys(follower, NAME, { per_page: 1 }).then((page) => {
        found = page;
      });
      let heard = before;
      while (!found) {
        await Promise.race([searching, new Promise((resolve) => setImmediate(resolve))]);
        for (let count = choices.next().value as number; count; count--) {
          const message = messages.shift();
          if (message) follower.follow(message);
        }
        if (!found) heard = follower.size;
      }
      await searching;
      expect(found.total).toBeGreaterThanOrEqual(before - others);
      expect(found.total).toBeLessThanOrEqual(heard - others);
    } finally {
      await follower.close();
    }
  }
}

/**
 * Runs several actors of a test one step at a time, in every order or in orders that fast-check chooses. An actor is a
 * function that waits for its turn before each step; what it does in a step is real, and ends before the next one begins.
 */
import fc from "fast-check";

/** Waits until it is this step's turn, and does it. @param label names the step where an order failed */
export type Step = <T>(label: string, work: () => T | Promise<T>) => Promise<T>;

/** What is played: everything is new for each order. */
export interface Scene {
  /** Begun together. Each runs on its own up to its first step. */
  readonly actors: readonly (() => Promise<void>)[];
  /** Called after each step. @throws what is wrong */
  readonly check?: () => void | Promise<void>;
  /** What must hold when all actors have ended. */
  readonly end?: () => void | Promise<void>;
  /** Called also after a failure. */
  readonly close?: () => void | Promise<void>;
}

export type NewScene = (step: Step) => Scene | Promise<Scene>;

/** The number of the step that is next, of those that wait. */
type Choose = (waiting: number) => number;

interface Waiting {
  readonly label: string;
  readonly begin: () => void;
}

/** Turns of the event loop in which an actor that was let go comes to its next step. */
const TURNS = 4;

async function turns(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** Plays a scene in one order. @throws what an actor or a check throws, with the order */
async function play(newScene: NewScene, choose: Choose): Promise<void> {
  const order: string[] = [];
  const waiting: Waiting[] = [];
  let running = 0;
  let acting = 0;
  const failures: unknown[] = [];
  /** After a failure the other actors go on to their ends, each as it can. */
  let isOver = false;
  let changed = () => {};
  const step: Step = async (label, work) => {
    if (isOver) return work();
    await new Promise<void>((begin) => {
      waiting.push({ label, begin });
      changed();
    });
    order.push(label);
    running++;
    try {
      return await work();
    } finally {
      running--;
      changed();
    }
  };
  const change = () =>
    new Promise<void>((resolve) => {
      changed = resolve;
    });
  const scene = await newScene(step);
  const act = async (actor: () => Promise<void>) => {
    acting++;
    try {
      await actor();
    } catch (error) {
      failures.push(error);
    }
    acting--;
    changed();
  };
  let acted: Promise<unknown> = Promise.resolve();
  try {
    acted = Promise.all(scene.actors.map(act));
    while (!failures.length) {
      await turns();
      if (!running && !waiting.length && !acting) break;
      if (running || !waiting.length) {
        await change();
        continue;
      }
      const begun = waiting.splice(choose(waiting.length) % waiting.length, 1)[0]!;
      begun.begin();
      await turns();
      while (running && !failures.length) await change();
      await scene.check?.();
    }
    if (failures.length) throw failures[0];
    await scene.end?.();
  } catch (error) {
    throw new Error(`${error instanceof Error ? error.message : error}\nThe order was: ${order.join(", ")}.`, {
      cause: error,
    });
  } finally {
    isOver = true;
    for (const { begin } of waiting.splice(0)) begin();
    await acted;
    await scene.close?.();
  }
}

/** Plays a scene in every order that there is. @returns how many there are */
export async function inEveryOrder(newScene: NewScene): Promise<number> {
  /** The choices of the order before, each with the number of steps of which it is one. */
  let path: { chosen: number; readonly of: number }[] = [];
  for (let orders = 1; ; orders++) {
    let at = 0;
    await play(newScene, (of) => {
      path[at] ??= { chosen: 0, of };
      return path[at++]!.chosen;
    });
    path = path.slice(0, at);
    while (path.length && path.at(-1)!.chosen + 1 === path.at(-1)!.of) path.pop();
    if (!path.length) return orders;
    path.at(-1)!.chosen++;
  }
}

/** Plays a scene in orders that follow from the seed of the tests (`test/setup.ts`). */
export async function inSomeOrders(newScene: NewScene, orders: number): Promise<void> {
  for (const choices of fc.sample(fc.infiniteStream(fc.nat()), orders))
    await play(newScene, () => choices.next().value as number);
}

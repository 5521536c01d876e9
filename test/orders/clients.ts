/** Clients and a monitor whose requests and answers are steps, beside a writer. */
import { expect } from "vitest";
import type { TreeHead } from "#cairnlog/engine/verify/index.js";
import { type Client, createClient, memoryStore, type State } from "#cairnlog/server/client/index.js";
import { anyEvent } from "../anyevent.js";
import type { Liar } from "../monitor/liar.js";
import { newMonitor } from "../monitor/monitors.js";
import type { TestService } from "../server/harness.js";
import type { Scene, Step } from "./orders.js";

/** `fetch` in two steps: the service answers a request, and the answer arrives. */
function steppedFetch(step: Step, send: (path: string, init?: RequestInit) => Promise<Response>): typeof fetch {
  return async (input, init) => {
    const { pathname, search } = new URL(`${input}`);
    const path = `${pathname}${search}`.replace("/api/v1", "");
    const answer = await step(`${path} is answered`, async () => {
      const response = await send(`${pathname}${search}`, init);
      return { body: await response.arrayBuffer(), response };
    });
    return step(`${path} arrives`, () => new Response(answer.body, answer.response));
  };
}

const growing =
  (step: Step, { server }: TestService, count: number) =>
  async () => {
    for (let n = 0; n < count; n++) await step("the log grows", () => server.registry.log.append([anyEvent()]));
  };

/** What clients may ask at the same time. */
export const QUESTIONS: Readonly<Record<string, (client: Client, size: number) => Promise<unknown>>> = {
  "the newest head": ({ log }) => log.head(),
  "an older head": ({ log }, size) => log.headOf(size - 1),
  "a summary": ({ log }) => log.summary(),
  heads: ({ log }, size) => log.heads(size - 2, 5),
  "a proof": ({ log }) => log.proof(0),
  "an entry": ({ log }) => log.entry(1),
};

/** An honest log is believed whatever is asked at the same time, and the head that a client keeps only grows. */
export async function askingScene(step: Step, { service }: Liar, questions: readonly string[]): Promise<Scene> {
  const { log } = service.server.registry;
  let kept: State | undefined;
  const store = {
    ...memoryStore(),
    load: async () => kept,
    save: async (state: State) => {
      const [before, now] = [kept?.head as TreeHead | undefined, state.head as TreeHead | null];
      expect(now?.tree_size ?? 0).toBeGreaterThanOrEqual(before?.tree_size ?? 0);
      if (now) expect(now.root_hash).toBe(log.treeHead(now.tree_size)!.root_hash);
      kept = state;
    },
  };
  const client = createClient({
    server: service.url,
    store,
    fetch: steppedFetch(step, (path, init) => fetch(service.url + path, init)),
  });
  const { size } = log;
  return {
    actors: [
      ...questions.map((name) => async () => void (await QUESTIONS[name]!(client, size))),
      growing(step, service, 2),
    ],
  };
}

/** Two heads of histories that part, asked for at the same time: one of them is refused, whichever comes first. */
export async function forkedScene(step: Step, { service, fork }: Liar): Promise<Scene> {
  // The heads differ in size, so each could be a beginning of the other.
  const logs = [service, fork].map(({ server }) => server.registry.log);
  if (logs[0]!.size === logs[1]!.size) await logs[1]!.append([anyEvent()]);
  let asked = 0;
  const send = async (path: string, init?: RequestInit) => {
    if (path.endsWith("/log/sth")) return fetch([service, fork][asked++ % 2]!.url + path, init);
    const first = await fetch(service.url + path, init);
    return first.ok ? first : fetch(fork.url + path, init);
  };
  const client = createClient({ server: service.url, fetch: steppedFetch(step, send) });
  const codes: string[] = [];
  const ask = () =>
    client.log.head().then(
      () => void codes.push("taken"),
      (error: { code: string }) => void codes.push(error.code),
    );
  return { actors: [ask, ask], end: () => expect(codes.sort()).toEqual(["log-misbehaved", "taken"]) };
}

/** Rounds of a monitor of an honest log raise no alarm, and mirror up to its head. Closed with `close`. */
export function openMonitor({ service }: Liar) {
  let current: Step;
  const step: Step = (label, work) => current(label, work);
  const { monitor } = newMonitor(service.url, {
    fetch: steppedFetch(step, (path, init) => fetch(service.url + path, init)),
  });
  return {
    close: () => monitor.close(),
    scene(now: Step): Scene {
      current = now;
      const { size } = service.server.registry.log;
      return {
        actors: [
          async () => {
            await monitor.round();
            const head = await monitor.newestHead();
            expect(monitor.size).toBe(head!.tree_size);
            expect(monitor.size).toBeGreaterThanOrEqual(size);
          },
          growing(now, service, 3),
        ],
      };
    },
  };
}

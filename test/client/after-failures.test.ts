/** What a failure leaves in a client: nothing. The next call is like the first; and what comes at the same time is judged in turn. */
import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { Health } from "#cairnlog/engine/contract/service/health.js";
import { Http } from "#cairnlog/server/client/base/http.js";
import { type Client, createClient, memoryStore } from "#cairnlog/server/client/index.js";
import { anyEvent } from "../anyevent.js";
import { startTestService, type TestService, temporaryFolder } from "../server/harness.js";
import { newManifest } from "../server/signers.js";
import { all, asSigner, failure, newClient } from "./clients.js";
import { LyingProxy } from "./proxy.js";

let service: TestService;
let proxy: LyingProxy;
beforeAll(async () => {
  service = await startTestService();
  await service.server.registry.log.append([1, 2, 3].map((n) => anyEvent({ n })));
});
beforeEach(async () => {
  proxy = await LyingProxy.before(service.url);
});

/** The service breaks off the next request to a path, once. */
function breakOff(path: string): void {
  proxy.seize = (asked, response) => {
    if (asked !== path) return false;
    proxy.seize = null;
    response.socket?.destroy();
    return true;
  };
}

const document = () => newManifest().document;

test.each([
  ["/log/operator-key", "an attestation"],
  ["/log/sth", "an attestation"],
  ["/attestations", "an attestation"],
  ["/log/operator-key", "a sign-in"],
  ["/auth/challenge", "a sign-in"],
])("%s breaks off once: %s that failed succeeds the next time", async (path, what) => {
  const { client, fingerprint } = newClient(proxy.url);
  const signer = newClient(service.url);
  await signer.client.keys.register({ pseudonym: "Ada" });
  const signsIn = createClient({ server: proxy.url, publicOrigin: service.url, signer: asSigner(signer.signer) });
  const act = () => (what === "a sign-in" ? signsIn.login() : client.attest(document(), { pseudonym: "Ada" }));
  breakOff(path);
  expect(await failure(act())).toMatchObject({ code: "no-answer" });
  await act();
  // The key has named itself, though the first try has signed its name, too.
  if (what !== "a sign-in") expect(await client.keys.find(fingerprint)).toMatchObject({ named: true });
});

test("a refusal of the first attestation leaves the key to name itself with the next one", async () => {
  const { client, fingerprint } = newClient(proxy.url);
  proxy.seize = (path, response) => {
    if (path !== "/attestations") return false;
    proxy.seize = null;
    response.writeHead(503, { "content-type": "application/problem+json", "retry-after": "1" });
    const problem = { type: "about:blank", title: "Busy", status: 503, detail: "Too much.", code: "overloaded" };
    response.end(JSON.stringify({ ...problem, request_id: "theirs" }));
    return true;
  };
  const refused = { code: "overloaded", requestId: "theirs" };
  expect(await failure(client.attest(document(), { pseudonym: "Ada" }))).toMatchObject(refused);
  await client.attest(document(), { pseudonym: "Ada" });
  expect(await client.keys.find(fingerprint)).toMatchObject({ pseudonym: "Ada", named: true });
});

test.each([
  ["/auth/login", "a signer"],
  ["/auth/renew", "a signer"],
  ["/auth/renew", "its session alone"],
])("the session of another key, which %s answers, is not kept by a client with %s", async (path, holds) => {
  const theirs = newClient(service.url);
  await theirs.client.keys.register({ pseudonym: "Eve" });
  const session = await theirs.client.login();
  let isLie = false;
  const lying: typeof fetch = (input, init) =>
    isLie && String(input).endsWith(path) ? Promise.resolve(Response.json(session)) : fetch(input, init);
  const { client, fingerprint, signer } = newClient(service.url, { fetch: lying });
  await client.keys.register({ pseudonym: "Ada" });
  // One that is to be renewed at once.
  const own = { ...(await client.login()), expires_at: new Date(Date.now() + 1_000).toISOString() };
  const again = createClient({
    server: service.url,
    fetch: lying,
    ...(holds === "a signer" && { signer: asSigner(signer) }),
    ...(path === "/auth/renew" && { session: own }),
  });
  isLie = true;
  const ask = () => (path === "/auth/login" ? again.login() : again.webhooks.list());
  expect(await failure(ask())).toMatchObject({ code: "malformed-answer" });
  expect(again.session).toEqual(path === "/auth/renew" ? own : undefined);
  isLie = false;
  await ask();
  expect(again.session).toMatchObject({ fingerprint });
});

test.each<[what: string, times: number, answer: () => Response]>([
  ["breaks off", 1, () => fail()],
  ["is answered with something else", 1, () => Response.json({ id: 1 })],
  ["is answered by a gateway", 1, () => new Response("Bad Gateway", { status: 502 })],
  ["meets a busy service", 1, () => refusal(503, "overloaded")],
  ["meets a limit", 1, () => refusal(429, "rate-limited")],
  ["is forbidden", 1, () => refusal(403, "forbidden")],
  ["is there already", 1, () => refusal(409, "already-exists")],
  ["has a session that has ended", 2, () => refusal(401, "unauthorized")],
])(
  "a write with a session that %s is sent %i time(s), and the next one is like the first",
  async (_, times, answer) => {
    let sent = 0;
    let isFailing = true;
    const failing: typeof fetch = async (input, init) => {
      if (!String(input).endsWith("/webhooks") || !isFailing) return fetch(input, init);
      sent++;
      return answer();
    };
    const { client } = newClient(service.url, { fetch: failing });
    await client.keys.register({ pseudonym: "Ada" });
    await client.login();
    const subscribe = () => client.webhooks.create({ url: "https://example.org/hook", events: ["key.revoked"] });
    await failure(subscribe());
    expect(sent).toBe(times);
    isFailing = false;
    expect(await subscribe()).toMatchObject({ active: true });
    expect(await client.webhooks.list()).toHaveLength(1);
  },
);

function fail(): never {
  throw new TypeError("fetch failed");
}

function refusal(status: number, code: string): Response {
  const problem = { type: "about:blank", title: "No", status, detail: "Not now.", code };
  return Response.json(problem, { status, headers: { "content-type": "application/problem+json" } });
}

const nodes: Server[] = [];
afterAll(() => {
  for (const node of nodes) node.close().closeAllConnections();
});

/** A node of a log, which answers as `answer` says. */
async function newNode(answer: (response: ServerResponse) => void): Promise<{ url: string; server: Server }> {
  const server = createServer((_, response) => answer(response)).listen(0, "127.0.0.1");
  nodes.push(server);
  await once(server, "listening");
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server };
}

test("a leader that does not answer any more is forgotten: another node is asked who leads now", async () => {
  const healthy = (response: ServerResponse) =>
    response.writeHead(200, { "content-type": "application/json" }).end('{"status":"ok","version":"1"}');
  let leader = "";
  const old = await newNode(healthy);
  const next = await newNode(healthy);
  const first = await newNode((response) => {
    const problem = { type: "about:blank", title: "No", status: 503, detail: "Not here.", code: "not-leader" };
    response.writeHead(503, { "content-type": "application/problem+json", "cairnlog-leader": leader });
    response.end(JSON.stringify(problem));
  });
  const client = createClient({ server: [first.url, old.url, next.url] });
  leader = old.url;
  await client.health();
  old.server.close().closeAllConnections();
  leader = next.url;
  expect(await client.health()).toMatchObject({ status: "ok" });
});

test("a question is put to all nodes in turn; a write is not sent again, and the next one goes to another node", async () => {
  const seen: string[] = [];
  const healthy = (name: string) => (response: ServerResponse) => {
    seen.push(name);
    response.writeHead(200, { "content-type": "application/json" }).end('{"status":"ok","version":"1"}');
  };
  const [first, second, third] = [
    await newNode(healthy("first")),
    await newNode(healthy("second")),
    await newNode(healthy("third")),
  ];
  const close = ({ server }: { server: Server }) => server.close().closeAllConnections();
  const http = new Http([first.url, second.url, third.url], fetch);
  close(first);
  close(second);
  await http.get(Health, "/a");
  await http.post(Health, "/a", {});
  expect(seen).toEqual(["third", "third"]);
  const writing = new Http([first.url, third.url], fetch);
  expect(await failure(writing.post(Health, "/a", {}))).toMatchObject({ code: "no-answer" });
  expect(seen).toHaveLength(2);
  await writing.post(Health, "/a", {});
  expect(seen).toHaveLength(3);
  close(third);
  expect(await failure(http.get(Health, "/a"))).toMatchObject({ code: "no-answer" });
});

test("a redirect is followed nowhere: what was sent is for the service that the user named", async () => {
  let asked = 0;
  const other = await newNode((response) => {
    asked++;
    response.writeHead(200, { "content-type": "application/json" }).end('{"status":"ok","version":"1"}');
  });
  for (const status of [301, 302, 307, 308]) {
    const node = await newNode((response) =>
      response.writeHead(status, { location: `${other.url}/api/v1/health` }).end(),
    );
    expect(await failure(createClient({ server: node.url }).health())).toMatchObject({ code: "no-answer" });
  }
  expect(asked).toBe(0);
});

test("of two heads that come at once and do not fit one another, only one is believed", async () => {
  const dataDir = temporaryFolder();
  const [one, fork] = [
    await startTestService({ SERVICE_DATA_DIR: dataDir }),
    await startTestService({ SERVICE_OPERATOR_KEY: `${dataDir}/operator.pem` }),
  ];
  for (const [n, { server }] of [one, fork].entries())
    await server.registry.log.append([1, 2, 3, 4, 5, 6].map((i) => anyEvent({ i: i + 10 * n })));
  // Size 5 is shown by the other of the two; and both answers come at the same moment.
  const waiting: (() => void)[] = [];
  const fetcher: typeof fetch = async (input, init) => {
    const isHead = /\/sth\/\d$/.test(String(input));
    const isFork = /\/sth\/5$/.test(String(input));
    const response = await fetch(isFork ? String(input).replace(one.url, fork.url) : input, init);
    if (!isHead) return response;
    const body = await response.arrayBuffer();
    const both = new Promise<void>((resolve) => waiting.push(resolve));
    if (waiting.length === 2) for (const go of waiting.splice(0)) go();
    await both;
    return new Response(body, response);
  };
  for (const sizes of [
    [3, 5],
    [5, 3],
    [5, 6],
  ] as const) {
    const { log } = createClient({ server: one.url, store: memoryStore(), fetch: fetcher });
    await log.operatorKey();
    const outcomes = await Promise.allSettled(sizes.map((size) => log.headOf(size)));
    const refused = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason] : []));
    expect(refused).toMatchObject([{ code: "log-misbehaved" }]);
  }
});

test.each<[string, (client: Client) => Promise<unknown>]>([
  ["the head", ({ log }) => log.head()],
  ["heads", ({ log }) => log.heads(1, 3)],
  ["the checkpoint", ({ log }) => log.checkpoint()],
  ["a proof", ({ log }) => log.proof(1)],
  ["an entry", ({ log }) => log.entry(2)],
  ["the summary", ({ log }) => log.summary()],
  ["all entries", ({ log }) => all(log.since(0))],
  ["whether all is well", ({ log }) => log.verify()],
  ["whether it has ended", ({ shards }) => shards.end()],
  ["how it began", ({ shards }) => shards.beginning()],
])("%s: an honest log may grow, and be seen to, while an answer is on its way", async (_, ask) => {
  const store = memoryStore();
  const other = createClient({ server: service.url, store });
  await other.log.head();
  let grown = 0;
  const growing: typeof fetch = async (input, init) => {
    grown++;
    const response = await fetch(input, init);
    const body = await response.arrayBuffer();
    await service.server.registry.log.append([anyEvent({ n: 4 })]);
    await other.log.head();
    return new Response(body, response);
  };
  await ask(createClient({ server: service.url, store, fetch: growing }));
  expect(grown).toBeGreaterThan(0);
});

test("a head that is refused is not what is asked for from then on", async () => {
  const sizes = new Set<string | null>();
  let isLie = false;
  const lying: typeof fetch = async (input, init) => {
    sizes.add(new Headers(init?.headers).get("cairnlog-size"));
    const response = await fetch(input, init);
    if (!isLie || !String(input).endsWith("/log/sth")) return response;
    return Response.json({ ...((await response.json()) as object), tree_size: 1_000_000 });
  };
  const { client } = newClient(service.url, { fetch: lying });
  const { tree_size } = (await client.log.head())!;
  sizes.clear();
  isLie = true;
  expect(await failure(client.log.head())).toMatchObject({ code: "log-misbehaved" });
  isLie = false;
  expect(await client.log.head()).toMatchObject({ tree_size });
  expect(sizes).toEqual(new Set([`${tree_size}`]));
});

test("every question says how much of the log was seen, and never less than before", async () => {
  const sizes: (string | null)[] = [];
  const fetcher: typeof fetch = (input, init) => {
    sizes.push(new Headers(init?.headers).get("cairnlog-size"));
    return fetch(input, init);
  };
  const store = memoryStore();
  const { client } = newClient(service.url, { store, fetch: fetcher });
  const { tree_size } = (await client.log.head())!;
  sizes.length = 0;
  // An older head is true, and no reason to be content with less, now or in the next process.
  await client.log.headOf(2);
  expect(await store.load()).toMatchObject({ head: { tree_size } });
  await client.log.entry(1);
  for await (const _ of client.log.entries()) break;
  await client.login().catch(() => {});
  expect(sizes.length).toBeGreaterThan(4);
  expect(new Set(sizes)).toEqual(new Set([`${tree_size}`]));
});

test.each([
  ["", 31],
  ["3", 11],
  ["86400", 7],
])(
  "a node that stays behind, with Retry-After %j, is asked %i times in the half minute that is given to it",
  async (retryAfter, times) => {
    let asked = 0;
    const behind: typeof fetch = async () => {
      if (++asked > 100) throw new TypeError("It is asked again and again.");
      const headers = { "content-type": "application/problem+json", "retry-after": retryAfter };
      return new Response(await refusal(503, "behind").text(), { status: 503, headers });
    };
    const http = new Http("http://127.0.0.1:1", behind);
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    try {
      for (const ask of [() => http.get(Health, "/a"), () => http.post(Health, "/a", {})]) {
        asked = 0;
        const refused = failure(ask());
        await vi.advanceTimersByTimeAsync(1_000_000);
        expect([await refused, asked]).toMatchObject([{ code: "behind" }, times]);
      }
    } finally {
      vi.useRealTimers();
    }
  },
);

test.each([0, 1, 2, 3, 4, 9])(
  "a node that was behind %i times, and then names its leader, is believed that, and two that name one another are not for long",
  async (times) => {
    const [node, leader] = ["http://127.0.0.1:1", "http://127.0.0.1:2"];
    let asked: string[] = [];
    let isHonest = true;
    const fetcher: typeof fetch = async (input) => {
      const own = new URL(String(input)).origin;
      if (asked.push(own) > 100) throw new TypeError("It is asked again and again.");
      if (asked.length <= times) return refusal(503, "behind");
      if (isHonest && own === leader) return Response.json({ status: "ok", version: "1.0.0" });
      const headers = { "cairnlog-leader": own === node ? leader : node };
      return new Response(await refusal(503, "not-leader").text(), { status: 503, headers });
    };
    const behind = Array(times).fill(node);
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    try {
      const answered = new Http([node, leader], fetcher).post(Health, "/a", {});
      answered.catch(() => {});
      await vi.advanceTimersByTimeAsync(1_000_000);
      expect(await answered).toMatchObject({ status: "ok" });
      expect(asked).toEqual([...behind, node, leader]);
      [asked, isHonest] = [[], false];
      const refused = failure(new Http([node, leader], fetcher).post(Health, "/a", {}));
      await vi.advanceTimersByTimeAsync(1_000_000);
      expect(await refused).toMatchObject({ code: "not-leader" });
      expect(asked).toEqual([...behind, node, leader, node, leader]);
    } finally {
      vi.useRealTimers();
    }
  },
);

test("a service that calls its log ended whatever it is asked is asked for the proof of that once", async () => {
  let asked = 0;
  const problem = { type: "about:blank", title: "Gone", status: 410, code: "frozen", detail: "The log has ended." };
  const refusing: typeof fetch = async () => {
    if (++asked > 100) throw new TypeError("It is asked again and again.");
    return new Response(JSON.stringify(problem), { status: 410 });
  };
  const operatorKey = (await service.get("/log/operator-key")).body.public_key;
  const { client } = newClient("http://127.0.0.1:1", { fetch: refusing, operatorKey });
  for (const act of [() => client.health(), () => client.log.entry(1), () => client.attest(document())]) {
    asked = 0;
    expect(await failure(act())).toMatchObject({ code: "frozen" });
    expect(asked).toBeLessThan(10);
  }
});

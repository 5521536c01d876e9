/**
 * Requests whose client leaves, answers that cannot be made or break off, and the end of a server: what is counted, logged
 * and held then, over both HTTP libraries.
 */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { pino } from "pino";
import Type from "typebox";
import { afterEach, describe, expect, test, vi } from "vitest";
import { HttpServer } from "#cairnlog/server/http/app.js";
import { Measures } from "#cairnlog/server/http/observing/measures.js";
import { NO_PAGES } from "#cairnlog/server/http/origins.js";
import { type Route, route } from "#cairnlog/server/http/route/route.js";
import { chooseTransport } from "#cairnlog/server/http/servers/choose.js";
import { Answer, StreamedAnswer } from "#cairnlog/server/http/transport/answer.js";
import type { ConnectionCount } from "#cairnlog/server/http/transport/transport.js";

const CHUNK = Buffer.alloc(64 * 1024, "x");
const CHUNKS = 250;
const events: string[] = [];
const promised: ((value: unknown) => void)[] = [];
/** Answered when the test says so. */
const later = () => new Promise((resolve) => promised.push(resolve));
/** Ends a turn of the event loop, without a timer. */
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await turn();
}

let made = 0;
function* chunks(): Generator<Buffer> {
  for (made = 0; made < CHUNKS; made++) yield CHUNK;
}

/** Each takes longer than an answer has in one turn of the event loop. */
function* slowChunks(): Generator<Buffer> {
  setImmediate(() => events.push("turn"));
  for (let i = 0; i < 4; i++) {
    events.push("chunk");
    const end = performance.now() + 10;
    while (performance.now() < end);
    yield Buffer.from(`${i}`);
  }
  events.push("end");
}

const unreadable: Iterable<Buffer> = {
  [Symbol.iterator]: () => {
    throw new Error("none of it can be read");
  },
};

const get = (path: string, handle: Route["handle"], more: object = {}): Route =>
  route({ method: "GET", path, summary: "", answer: Type.Unknown(), limit: "general", handle, ...more });
const routes: Route[] = [
  get("/value", () => 7),
  get("/later", later),
  get("/kept", () => new Answer("text", { headers: { "x-more": "1" } }), { keep: () => "forever" }),
  get("/chunks", () => new StreamedAnswer(chunks(), {})),
  get("/slow", () => new StreamedAnswer(slowChunks(), {})),
  get("/unreadable", () => new StreamedAnswer(unreadable, {})),
  get("/unreadable-later", async () => new StreamedAnswer(unreadable, {})),
  get("/no-json", () => 1n),
  get("/no-json-later", async () => 1n),
  route({
    ...{ method: "POST", path: "/later", summary: "", body: Type.Object({}), answer: Type.Unknown(), limit: "general" },
    handle: later,
  }),
];

interface More {
  readonly maxConnections?: number;
  readonly connectionCount?: ConnectionCount;
}

const open = new Set<HttpServer>();
afterEach(async () => {
  vi.useRealTimers();
  events.length = 0;
  for (const answer of promised.splice(0)) answer(null);
  for (const server of open) await server.close();
  open.clear();
});

describe.each(["uws", "node"] as const)("over %s", (name) => {
  /** A server that listens. */
  async function started(more: More = {}) {
    const made = await prepared(more);
    const port = await made.server.listen("127.0.0.1", 0);
    return { ...made, port, url: `http://127.0.0.1:${port}` };
  }

  async function prepared({ maxConnections = 100, connectionCount }: More = {}) {
    const { transport } = await chooseTransport(name);
    const lines: Record<string, unknown>[] = [];
    const measures = new Measures();
    let asked = 0;
    const server = new HttpServer({
      transport,
      routes,
      pages: NO_PAGES,
      limits: null,
      trustedProxies: [],
      bounds: { maxBodyBytes: 2 ** 20, maxPendingBytes: 2 ** 26, requestTimeoutSeconds: 30, maxConnections },
      ...(connectionCount && { connectionCount }),
      tls: null,
      measures,
      logger: pino({ level: "info" }, { write: (line: string) => lines.push(JSON.parse(line)) }),
      catchUp: () => asked++,
    });
    open.add(server);
    const figures = () => measures.figures(server);
    const answered = () => figures().tallies.map(({ route, statuses }) => [route, Object.fromEntries(statuses)]);
    const held = () => [server.inFlight, server.uploads.arriving, server.uploads.pending.held, server.answers.held];
    return { server, lines, figures, answered, held, caughtUp: () => asked };
  }

  async function client(port: number, text = ""): Promise<Socket & { received: string }> {
    const socket = Object.assign(connect(port, "127.0.0.1").setNoDelay(), { received: "" });
    socket.on("error", () => {});
    await once(socket, "connect");
    socket.on("data", (data) => {
      socket.received += data.toString("latin1");
    });
    socket.write(text);
    return socket;
  }
  const closed = (socket: Socket) => until(() => socket.destroyed);
  const head = (line: string, more = "") => `${line} HTTP/1.1\r\nHost: x\r\n${more}\r\n`;
  const NOTHING = [0, 0, 0, 0];

  test("a client that leaves before its answer is made is counted, and its body is held until that is made", async () => {
    const { server, port, lines, figures, answered, held } = await started();
    const socket = await client(port, `${head("POST /later", "Content-Length: 7\r\n")}{"a":1}`);
    await until(() => promised.length === 1);
    expect(held()).toEqual([1, 0, 7, 0]);
    socket.resetAndDestroy();
    await until(() => figures().aborted === 1);
    expect(held()).toEqual([1, 0, 7, 0]);
    promised[0]!({});
    await until(() => server.inFlight === 0);
    await turn();
    expect([held(), lines, answered(), figures().aborted]).toEqual([NOTHING, [], [], 1]);
    // It was handled once.
    expect(promised).toHaveLength(1);
  });

  test("a client that leaves while its body arrives leaves nothing", async () => {
    const { server, port, lines, figures, held } = await started();
    const socket = await client(port, `${head("POST /later", "Content-Length: 7\r\n")}{"a"`);
    await until(() => server.uploads.pending.held === 4);
    expect(held()).toEqual([0, 1, 4, 0]);
    socket.resetAndDestroy();
    await until(() => figures().aborted === 1);
    expect([held(), lines, promised]).toEqual([NOTHING, [], []]);
  });

  test.each(["/chunks", "/slow"])("a client that leaves in the middle of %s: the rest is not made", async (path) => {
    const { server, port, lines, figures, answered, held } = await started();
    const socket = await client(port, head(`GET ${path}`));
    await once(socket, "data");
    socket.resetAndDestroy();
    await until(() => figures().aborted === 1 || (path === "/slow" && server.inFlight === 0));
    for (let i = 0; i < 5; i++) await turn();
    expect([held(), lines]).toEqual([NOTHING, []]);
    if (path === "/slow") return;
    expect([answered(), made < CHUNKS]).toEqual([[], true]);
  });

  test("an answer in parts is counted when its last part is sent", async () => {
    const { server, port, url, lines, figures, answered, held } = await started();
    const { length } = await (await fetch(`${url}/chunks`)).text();
    expect([length, made]).toEqual([CHUNKS * CHUNK.length, CHUNKS]);
    await until(() => server.inFlight === 0);
    expect([held(), answered(), figures().aborted, lines]).toEqual([NOTHING, [["/chunks", { 200: 1 }]], 0, []]);
    // HEAD does not make it, so nobody knows its length.
    made = 0;
    const socket = await client(port, head("HEAD /chunks") + head("GET /value"));
    await until(() => socket.received.endsWith("\r\n\r\n7"));
    expect(socket.received.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(2);
    expect(socket.received.split("\r\n\r\n")[0]).not.toMatch(/content-length/i);
    expect(made).toBe(0);
    socket.destroy();
  });

  test("an answer that takes long lets others have their turns", async () => {
    const { url } = await started();
    expect(await (await fetch(`${url}/slow`)).text()).toBe("0123");
    expect(events).toEqual(["chunk", "turn", "chunk", "chunk", "chunk", "end"]);
  });

  test.each(["/unreadable", "/unreadable-later"])("%s: the connection ends, and the log says why", async (path) => {
    const { port, url, lines, figures, answered, held } = await started();
    const socket = await client(port, head(`GET ${path}`));
    await closed(socket);
    expect(socket.received).not.toContain("\r\n0\r\n\r\n");
    expect(lines).toMatchObject([{ route: path, status: 500, err: { message: "none of it can be read" } }]);
    expect([held(), answered(), figures().aborted]).toEqual([NOTHING, [], 1]);
    expect(await (await fetch(`${url}/value`)).json()).toBe(7);
  });

  test.each(["/no-json", "/no-json-later"])(
    "%s: a value that is no JSON is a 500, and the log says why",
    async (path) => {
      const { url, lines, figures, answered, held } = await started();
      const reply = await fetch(url + path);
      expect([reply.status, await reply.json()]).toMatchObject([500, { code: "internal-error" }]);
      expect(lines).toMatchObject([{ route: path, status: 500, err: { type: "TypeError" } }]);
      expect([held(), answered(), figures().refusals]).toEqual([
        NOTHING,
        [[path, { 500: 1 }]],
        [["internal-error", 1]],
      ]);
    },
  );

  test("an answer without content has neither a length nor a type", async () => {
    const { port } = await started();
    const asked = [head("GET /kept"), head("GET /kept", "If-None-Match: *\r\n"), head("OPTIONS /kept")];
    const socket = await client(port, asked.join("") + head("GET /nothing"));
    await until(() => socket.received.endsWith("}"));
    const [whole, held, options] = socket.received.split(/(?=HTTP\/1\.1 )/).map((text) => text.toLowerCase());
    expect(whole).toMatch(/^http\/1\.1 200 ok\r\n/);
    expect(whole).toContain("\r\ncontent-length: 4\r\n");
    expect(whole).toContain("\r\ncontent-type: application/json\r\n");
    expect(held).toMatch(/^http\/1\.1 304 not modified\r\n/);
    expect(options).toMatch(/^http\/1\.1 204 no content\r\n/);
    for (const text of [held, options]) expect(text).not.toMatch(/\r\ncontent-/);
    for (const text of [whole, held]) expect(text).toContain("\r\nx-more: 1\r\n");
    socket.destroy();
  });

  test("whatever a route may read is brought up to date before, and for nothing else", async () => {
    const { url, caughtUp } = await started();
    for (const path of ["/value", "/nothing", "/kept"]) await (await fetch(url + path)).text();
    await fetch(`${url}/value`, { method: "PUT" });
    expect(caughtUp()).toBe(2);
  });

  test("exactly as many connections are open as may be, and each that is closed is counted", async () => {
    const { server, port } = await started({ maxConnections: 3 });
    const sockets: Awaited<ReturnType<typeof client>>[] = [];
    for (let i = 0; i < 3; i++) {
      const socket = await client(port, head("GET /value"));
      await until(() => socket.received.endsWith("7"));
      sockets.push(socket);
    }
    for (let refused = 1; refused <= 2; refused++) {
      const socket = await client(port, head("GET /value"));
      await closed(socket);
      await until(() => server.connections === 3);
      expect([socket.received, server.connectionsRefused]).toEqual(["", refused]);
    }
    sockets.pop()!.destroy();
    await until(() => server.connections === 2);
    const next = await client(port, head("GET /value"));
    await until(() => next.received.endsWith("7"));
    expect([server.connections, server.connectionsRefused]).toEqual([3, 2]);
    for (const socket of [...sockets, next]) socket.destroy();
    await until(() => server.connections === 0);
  });

  // With `node:http` there is one front end at most.
  if (name === "uws")
    test("connections of all front ends are counted together, where they are", async () => {
      // Those of another front end.
      let all = 2;
      const addConnections = (change: number) => {
        all += change;
        return all;
      };
      const { server, port } = await started({ maxConnections: 3, connectionCount: { addConnections } });
      const one = await client(port, head("GET /value"));
      await until(() => one.received.endsWith("7"));
      expect([all, server.connections, server.connectionsRefused]).toEqual([3, 1, 0]);
      // The other one may take more meanwhile, and what is closed is not counted as refused once more.
      for (const [i, others] of [2, 10].entries()) {
        all = 1 + others;
        await closed(await client(port, head("GET /value")));
        await until(() => server.connections === 1);
        expect([all, server.connectionsRefused]).toEqual([1 + others, i + 1]);
      }
      all = 1;
      const another = await client(port, head("GET /value"));
      await until(() => another.received.endsWith("7"));
      expect([all, server.connections, server.connectionsRefused]).toEqual([2, 2, 2]);
      for (const socket of [one, another]) socket.destroy();
      await until(() => server.connections === 0);
      expect(all).toBe(0);
    });

  test("a port is one server's alone, and an address must be this machine's", async () => {
    const { server, port } = await started();
    for (const [host, at] of [["127.0.0.1", port] as const, ["192.0.2.1", 0] as const])
      await expect((await prepared()).server.listen(host, at)).rejects.toMatchObject({
        code: "precondition-failed",
        message: `Cannot listen on ${host} port ${at}: the port is in use, or the address is not this machine's.`,
      });
    expect(server.connections).toBe(0);
  });

  test("a server that closes answers what it has, refuses what comes, and leaves no timer", async () => {
    const { server, port } = await started();
    const [slow, fast, idle] = [await client(port, head("GET /later")), await client(port), await client(port)];
    await until(() => promised.length === 1);
    const other = await client(port, head("GET /later"));
    await until(() => promised.length === 2 && server.connections === 4);
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    let isClosed = false;
    const closing = server.close().then(() => {
      isClosed = true;
    });
    fast.write(head("GET /value"));
    await until(() => fast.received.endsWith("}"));
    expect(fast.received).toMatch(/^HTTP\/1\.1 503 Service Unavailable\r\n/);
    expect(fast.received).toContain('"code":"closed"');
    for (const header of ["connection: close", "retry-after: 5"])
      expect(fast.received.toLowerCase()).toContain(`\r\n${header}\r\n`);
    expect([isClosed, idle.destroyed, server.inFlight]).toEqual([false, false, 2]);
    promised[0]!("done");
    await until(() => slow.received !== "");
    for (let i = 0; i < 5; i++) await turn();
    // Others are still being answered.
    expect([isClosed, server.inFlight]).toEqual([false, 1]);
    promised[1]!("done");
    await closing;
    await Promise.all([slow, other, fast, idle].map(closed));
    expect(other.received).toContain('"done"');
    expect(slow.received).toMatch(/^HTTP\/1\.1 200 OK\r\n(.*\r\n)*connection: close\r\n(.*\r\n)*\r\n"done"$/i);
    expect(vi.getTimerCount()).toBe(0);
    await expect(fetch(`http://127.0.0.1:${port}/value`)).rejects.toThrow();
  });

  test("a server that is abandoned closes every connection at once, and takes no more", async () => {
    const { server, port, url, lines, figures, held } = await started();
    const body = await client(port, `${head("POST /later", "Content-Length: 7\r\n")}{"a"`);
    const [slow, idle] = [await client(port, head("GET /later")), await client(port)];
    await until(() => promised.length === 1 && server.connections === 3 && server.uploads.pending.held === 4);
    server.abandon();
    await Promise.all([body, slow, idle].map(closed));
    expect([body, slow, idle].map(({ received }) => received)).toEqual(["", "", ""]);
    await expect(fetch(`${url}/value`)).rejects.toThrow();
    promised[0]!("done");
    await until(() => server.inFlight === 0);
    expect([held(), lines, figures().aborted, server.connections]).toEqual([NOTHING, [], 2, 0]);
  });

  test("a server does not wait for ever for an answer that does not come", async () => {
    const { server, port, held } = await started();
    const socket = await client(port, head("GET /later"));
    await until(() => promised.length === 1);
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const closing = server.close();
    vi.advanceTimersByTime(6_999);
    for (let i = 0; i < 5; i++) await turn();
    expect(socket.destroyed).toBe(false);
    vi.advanceTimersByTime(1);
    await closing;
    await closed(socket);
    expect(socket.received).toBe("");
    promised[0]!("done");
    await until(() => held()[0] === 0);
  });
});

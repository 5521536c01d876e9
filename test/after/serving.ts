/** Rows of services: front ends that die, clients that break off, files that cannot be written. */
import { mkdirSync, rmSync } from "node:fs";
import { get } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { MessagePort } from "node:worker_threads";
import { expect, vi } from "vitest";
import { readPublishedHead } from "#cairnlog/engine/log/tlog/published.js";
import { readSettings, startServer } from "#cairnlog/server/index.js";
import { anyEvent } from "../anyevent.js";
import { temporaryFolder, testEnvironment } from "../server/harness.js";
import { begunBy, held } from "./held.js";
import type { Row } from "./rows.js";

const THREADS = "server/front/threads.ts";

/** The status of an answer, over a connection of its own; 0 without an answer. */
const statusOf = (url: string): Promise<number> =>
  new Promise((resolve) => {
    const asking = get(url, { agent: false }, (response) => {
      response.resume();
      response.on("end", () => resolve(response.statusCode!));
    });
    asking.on("error", () => resolve(0));
  });

/** Sends what is no request, or half of one, until the service ends the connection. */
const breakOff = (url: string, bytes: string): Promise<void> =>
  new Promise((resolve) => {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname, () => socket.write(bytes));
    socket.on("error", () => {});
    socket.on("close", () => resolve());
    if (bytes.startsWith("POST")) socket.once("ready", () => setTimeout(() => socket.destroy(), 20));
    socket.resume();
  });

const HALF = "POST /api/v1/attestations HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n{";

/** A service in one thread, whose clients break off and whose folder refuses a file. */
const serviceRow = (transport: "uws" | "node", ...files: string[]): Row => ({
  name: `a service over ${transport}, whose clients break off and whose folder refuses a file`,
  files: [...files, "server/closing.ts", "engine/log/tlog/published.ts", "engine/log/state/clock.ts"],
  async open() {
    const dataDir = temporaryFolder();
    const around = held();
    const environment = { ...testEnvironment(dataDir), SERVICE_TRANSPORT: transport, SERVICE_FRONT_ENDS: "0" };
    const server = await startServer(readSettings(environment));
    const { log, writer } = server.registry;
    const file = join(dataDir, "published.json");
    return {
      around,
      async call() {
        await writer.append(anyEvent());
        await expect.poll(() => readPublishedHead(file)?.tree_size, { interval: 20 }).toBe(log.size);
        return statusOf(`${server.url}/api/v1/health`);
      },
      async fail() {
        mkdirSync(`${file}.new`);
        await writer.append(anyEvent());
        await Promise.all(["NONSENSE\r\n\r\n", HALF].map((bytes) => breakOff(server.url, bytes)));
      },
      recover: async () => rmSync(`${file}.new`, { recursive: true }),
      async close() {
        await server.close();
      },
    };
  },
});

export const SERVING_ROWS: readonly Row[] = [
  serviceRow("uws", "server/http/body/body.ts"),
  serviceRow("node"),
  {
    name: "front ends that die",
    files: ["server/front/thread.ts", THREADS],
    async open() {
      const dataDir = temporaryFolder();
      const around = held();
      let told = 0;
      const posting = vi.spyOn(MessagePort.prototype, "postMessage");
      const environment = { ...testEnvironment(dataDir), SERVICE_TRANSPORT: "uws", SERVICE_FRONT_ENDS: "2" };
      const server = await startServer(readSettings(environment));
      const { log, writer } = server.registry;
      /** The writer's ends of the front ends' channels, the newest last. */
      const ports = () => {
        const { contexts, calls } = posting.mock;
        return contexts.filter((_, i) => (calls[i]![0] as { kind?: string }).kind === "listen") as MessagePort[];
      };
      return {
        around,
        async call() {
          await writer.append(anyEvent());
          // Who reads the log keeps its file open from then on: the writer for the published head, and each front end, which
          // the system chooses by chance.
          await expect.poll(() => readPublishedHead(join(dataDir, "published.json"))?.tree_size).toBe(log.size);
          return Promise.all(Array.from({ length: 40 }, () => statusOf(`${server.url}/api/v1/log/sth`)));
        },
        async fail() {
          const before = begunBy(THREADS).length;
          told = ports().length;
          // What no writer sends: the front end throws, and its thread ends.
          ports()
            .at(-1)!
            .postMessage({ kind: "news", feed: [null], outcomes: [], heads: [], entries: null });
          // The writer's thread knows, and will make another one.
          await expect.poll(() => begunBy(THREADS).length, { interval: 5 }).toBeGreaterThan(before);
        },
        async recover() {
          await expect.poll(() => ports().length, { interval: 5 }).toBeGreaterThan(told);
          await expect.poll(() => statusOf(`${server.url}/readyz`), { interval: 20 }).toBe(200);
        },
        async close() {
          await server.close();
          posting.mockRestore();
        },
      };
    },
  },
];

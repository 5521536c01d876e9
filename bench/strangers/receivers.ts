/** Receivers of webhooks that strangers would run, in a process of their own: some fail, some hang, some are slow, some work. */
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { answerOrders, type Child, startChild } from "../front/child.js";

/** Addresses of this machine that receive, each of them a host of its own. */
const ADDRESSES = 80;
const SLOW_MS = 3_000;

/** How a receiver treats what it gets. */
const MANNERS: readonly RequestListener[] = [
  (_, response) => response.writeHead(500).end(),
  () => {},
  (_, response) => setTimeout(() => response.writeHead(200).end(), SLOW_MS).unref(),
  (_, response) => response.writeHead(200).end(),
];

/** The manner of those that work, and the number of manners before it that give no answer of success. */
const [LIVE, DEAD] = [3, 2];

const addressOf = (n: number): string => `127.0.1.${n + 1}`;

/** @returns the URLs of all receivers */
async function open(): Promise<string[]> {
  const urls: string[] = [];
  for (let n = 0; n < ADDRESSES; n++) {
    const manner = MANNERS[n % MANNERS.length]!;
    const server = createServer((request, response) => {
      request.resume();
      manner(request, response);
    });
    server.listen(0, addressOf(n));
    await once(server, "listening");
    urls.push(`http://${addressOf(n)}:${(server.address() as AddressInfo).port}/`);
  }
  return urls;
}

export interface Receivers {
  readonly urls: readonly string[];
  /** Those that answer with 200 at once. */
  readonly live: readonly string[];
  /** Those that answer with 500 or not at all. */
  readonly dead: readonly string[];
  close(): Promise<void>;
}

export async function openReceivers(): Promise<Receivers> {
  const child: Child = startChild(new URL(import.meta.url));
  const urls = await child.ask<string[]>("open");
  return {
    urls,
    live: urls.filter((_, n) => n % MANNERS.length === LIVE),
    dead: urls.filter((_, n) => n % MANNERS.length < DEAD),
    close: () => child.close(),
  };
}

if (process.argv[1] === import.meta.filename) answerOrders(open);

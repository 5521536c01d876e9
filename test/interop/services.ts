/** A live log, with checkpoints that cover what was appended, and one that lies on the way to its reader. */
import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll } from "vitest";
import { anyEvent } from "../anyevent.js";
import { startTestService, type TestService } from "../server/harness.js";

const closing: (() => unknown)[] = [];
afterAll(async () => {
  for (const close of closing) await close();
});

export interface LiveLog {
  readonly service: TestService;
  readonly vkey: string;
}

/** Starts a service with a log of `size` entries, and waits for the checkpoint that covers them. */
export async function liveLog(size: number, settings: Record<string, string> = {}): Promise<LiveLog> {
  const service = await startTestService({
    SERVICE_LOG_NAME: "log.example",
    SERVICE_CHECKPOINT_INTERVAL_S: "1",
    ...settings,
  });
  await service.server.registry.log.append(Array.from({ length: size }, (_, i) => anyEvent({ i })));
  await service.checkpointed(size);
  return { service, vkey: (await service.send("GET", "/tlog/vkey")).text.trim() };
}

/** The same log, seen through somebody who changes answers. @returns its address */
export async function changedOnTheWay(url: string, change: (path: string, body: Buffer) => Buffer): Promise<string> {
  const server = createServer(async (request, response) => {
    const answer = await fetch(url + request.url);
    const body = Buffer.from(await answer.arrayBuffer());
    response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "text/plain" });
    response.end(answer.ok ? change(request.url!, body) : body);
  });
  return listening(server);
}

export interface Site {
  readonly url: string;
  /** What is served. */
  folder: string;
}

/** Serves the files of a folder. @param pathOf the path of a file, from that of a request */
export async function serveFolder(folder: string, pathOf = (path: string) => path): Promise<Site> {
  const site = { url: "", folder };
  const server = createServer((request, response) => {
    readFile(join(site.folder, pathOf(request.url!))).then(
      (content) => response.end(content),
      () => response.writeHead(404).end(),
    );
  });
  return Object.assign(site, { url: await listening(server) });
}

async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(
    () => server.closeAllConnections(),
    () => server.close(),
  );
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A web site for tests: a page bundled by vite, with the service's routes on the same origin. */
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";
import { afterAll } from "vitest";
import { temporaryFolder } from "../../server/harness.js";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const TYPES: Readonly<Record<string, string>> = { ".html": "text/html; charset=utf-8", ".js": "text/javascript" };

const sites: Server[] = [];
afterAll(() => {
  for (const site of sites) site.close().closeAllConnections();
});

/** Bundles `script`, which imports this package by its name as other projects do. @returns the folder of the page */
export async function bundlePage(script: string): Promise<string> {
  const project = temporaryFolder();
  mkdirSync(join(project, "node_modules"));
  symlinkSync(root, join(project, "node_modules", "cairnlog"));
  writeFileSync(join(project, "index.html"), '<!doctype html><script type="module" src="./page.js"></script>');
  writeFileSync(join(project, "page.js"), readFileSync(new URL(script, import.meta.url)));
  const outDir = join(project, "site");
  await build({ configFile: false, root: project, logLevel: "error", build: { outDir, target: "es2022" } });
  return outDir;
}

/** Serves `folder`, and everything below `/api` from the service at `upstream`. @returns its address */
export async function startSite(folder: string, upstream: string, port = 0): Promise<string> {
  const site = createServer((request, response) =>
    request.url!.startsWith("/api/") ? pass(upstream, request, response) : serve(folder, request, response),
  );
  return listening(site, port);
}

async function listening(site: Server, port = 0): Promise<string> {
  sites.push(site);
  await new Promise<void>((resolve) => site.listen(port, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(site.address() as AddressInfo).port}`;
}

/** Serves the service at `upstream` below a path such as `/log/`, as a proxy does that takes the path away. @returns its address */
export async function startBelow(path: string, upstream: string): Promise<string> {
  const proxy = createServer((request, response) => {
    if (!request.url!.startsWith(path)) return void response.writeHead(404).end();
    request.url = request.url!.slice(path.length - 1);
    pass(upstream, request, response);
  });
  return `${await listening(proxy)}${path}`;
}

function serve(folder: string, { url }: IncomingMessage, response: ServerResponse): void {
  const path = url === "/" ? "/index.html" : url!;
  const type = TYPES[extname(path)];
  if (!type) return void response.writeHead(404).end();
  response.writeHead(200, { "content-type": type }).end(readFileSync(join(folder, path)));
}

function pass(upstream: string, request: IncomingMessage, response: ServerResponse): void {
  const { method, headers, url } = request;
  const forwarded = httpRequest(upstream + url!, { method: method!, headers }, (answer) => {
    response.writeHead(answer.statusCode!, answer.headers);
    answer.pipe(response);
  });
  forwarded.on("error", () => response.destroy());
  request.pipe(forwarded);
}

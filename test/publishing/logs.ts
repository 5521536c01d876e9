/** A live log that grows, its tiles in a folder or bucket, and what readers find there. */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, expect } from "vitest";
import { parseCheckpointText, parseNote, tilePath } from "#cairnlog/engine/verify/index.js";
import { anyEvent } from "../anyevent.js";
import { startTestService, type TestService } from "../server/harness.js";
import { registration, submission, type TestManifest, type TestSigner } from "../server/signers.js";
import { plainRoot } from "../verify/tlog/plain-rfc6962.js";

const servers: Server[] = [];
afterAll(() => {
  for (const server of servers) server.close().closeAllConnections();
});

/** Listens on a free port until the tests of the file end. @returns its address */
export async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  servers.push(server);
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

export class LiveLog {
  readonly service: TestService;
  #size = 0;

  private constructor(service: TestService) {
    this.service = service;
  }

  static async start(size: number, settings: Record<string, string> = {}): Promise<LiveLog> {
    const log = new LiveLog(await startTestService({ SERVICE_CHECKPOINT_INTERVAL_S: "1", ...settings }));
    await log.grow(size);
    return log;
  }

  /** Address before `/checkpoint`. */
  get url(): string {
    return `${this.service.url}/tlog`;
  }

  async vkey(): Promise<string> {
    return (await this.service.send("GET", "/tlog/vkey")).text.trim();
  }

  /** Registers the key of a signer. */
  async register(signer: TestSigner, pseudonym: string): Promise<void> {
    await this.service.post("/keys/register", registration(signer, pseudonym));
    this.#size = await this.service.entryCount();
  }

  /** Attests a document. @returns the entry's id */
  async attest(signer: TestSigner, manifest: TestManifest): Promise<number> {
    const { body } = await this.service.post("/attestations", submission(signer, manifest));
    this.#size = await this.service.entryCount();
    return body.log_entry_id;
  }

  /** Appends entries up to a size, and waits for its checkpoint. */
  async grow(to: number): Promise<void> {
    const events = Array.from({ length: to - this.#size }, (_, i) => anyEvent({ i: this.#size + i }));
    await this.service.server.registry.log.append(events);
    this.#size = to;
    await this.service.checkpointed(to);
  }
}

/** Serves the files of a folder, as any web server does. @returns its address */
export const served = (folder: string): Promise<string> =>
  listening(
    createServer((request, response) => {
      readFile(join(folder, request.url!)).then(
        (content) => response.end(content),
        () => response.writeHead(404).end(),
      );
    }),
  );

/**
 * Asserts that a target is a whole log of this size: the root over its bundles, by the definition, is that of its checkpoint, and
 * every tile is there.
 * @param read the bytes of a path; undefined if there are none
 */
export async function expectWhole(
  read: (path: string) => Promise<Uint8Array | undefined>,
  size: number,
): Promise<void> {
  const note = Buffer.from((await read("checkpoint")) ?? []).toString();
  const checkpoint = parseCheckpointText(parseNote(note)?.text ?? "");
  expect(checkpoint?.treeSize, note).toBe(size);
  const hashes: Buffer[] = [];
  for (let index = 0; index * 256 < size; index++) {
    const width = Math.min(256, size - index * 256);
    const bundle = Buffer.from((await read(tilePath({ level: "entries", index, width })))!);
    for (let at = 0; at < bundle.length; at += 2 + bundle.readUInt16BE(at)) {
      const entry = bundle.subarray(at + 2, at + 2 + bundle.readUInt16BE(at));
      hashes.push(createHash("sha256").update(Buffer.of(0)).update(entry).digest());
    }
  }
  expect(Buffer.from(plainRoot(hashes)).toString("hex")).toBe(checkpoint!.rootHash);
  for (let level = 0; size >= 256 ** level; level++) {
    const nodes = Math.floor(size / 256 ** level);
    for (let index = 0; index * 256 < nodes; index++) {
      const path = tilePath({ level, index, width: Math.min(256, nodes - index * 256) });
      const tile = await read(path);
      expect(tile?.length, path).toBe(32 * Math.min(256, nodes - index * 256));
      if (level === 0) expect(Buffer.from(tile!)).toEqual(Buffer.concat(hashes.slice(index * 256, index * 256 + 256)));
    }
  }
}

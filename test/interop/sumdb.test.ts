/**
 * golang.org/x/mod/sumdb, the client of Go's checksum database, reads a live log at `/tlog/`, and its published files, and
 * checks proof files: its packages `note` and `tlog`, as Debian has them. The programs are those that `docs/interop.md` shows.
 */
import { generateKeyPairSync } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { createClient } from "#cairnlog/server/client/index.js";
import { temporaryFolder } from "../server/harness.js";
import { cairnlog } from "../service.js";
import { newNoteSigner } from "../verify/note/notes.js";
import { type Ended, goProgram, run } from "./programs.js";
import { changedOnTheWay, type LiveLog, liveLog, serveFolder } from "./services.js";

const ORIGIN = "log.example/tlog";
/** Two full tiles of leaves and a part, so a partial tile of level 1. */
const SIZE = 700;
/** A new key of an operator. */
function p256File(): string {
  const file = join(temporaryFolder(), "operator.pem");
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  writeFileSync(file, privateKey.export({ type: "pkcs8", format: "pem" }), { mode: 0o600 });
  return file;
}
const flipped = (bytes: Buffer, at: number) => {
  const changed = Buffer.from(bytes);
  changed[at]! ^= 1;
  return changed;
};

let log: LiveLog;
let sumdb: string;
let receipt: string;
beforeAll(async () => {
  log = await liveLog(SIZE);
  [sumdb, receipt] = (await Promise.all(
    ["sumdb", "receipt"].map((name) => goProgram(`docs/examples/${name}/main.go`)),
  )) as [string, string];
});

const failure = ({ code, stderr }: Ended) => [code, /^panic: (.*)$/m.exec(stderr)?.[1]];

describe("a log", () => {
  test("is read: its note, its root from tiles, inclusion and consistency", async () => {
    expect(await run(sumdb, log.service.url, log.vkey)).toEqual({
      code: 0,
      stdout: expect.stringMatching(
        /^note\.Open: signed by log\.example\/tlog size 700 root equal true\ntlog: inclusion of every 97th record and consistency from every 101st size hold; \d+ tiles asked\n$/,
      ),
      stderr: "",
    });
  });

  test("is read from what was published, by a server of files, and refused when a tile there was changed", async () => {
    const folder = temporaryFolder();
    const published = await cairnlog(["publish", `${log.service.url}/tlog`, folder, "--entries", "--vkey", log.vkey]);
    expect(published).toMatchObject({ code: 0 });
    const { url } = await serveFolder(folder, (path) => path.replace(/^\/tlog\//, "/"));
    expect(await run(sumdb, url, log.vkey)).toEqual({
      code: 0,
      stdout: expect.stringMatching(/size 700 root equal true\ntlog: inclusion .* hold; \d+ tiles asked\n$/),
      stderr: "",
    });
    const tile = join(folder, "tile/0/001");
    writeFileSync(tile, flipped(readFileSync(tile), 40));
    expect(failure(await run(sumdb, url, log.vkey))).toEqual([2, expect.stringMatching(/./)]);
  });

  test("of an operator whose key is P-256 is read with the key that it made for notes", async () => {
    const other = await liveLog(3, { SERVICE_OPERATOR_KEY: p256File() });
    const { code, stdout } = await run(sumdb, other.service.url, other.vkey);
    expect([code, stdout]).toEqual([0, expect.stringContaining("size 3 root equal true")]);
  });

  test("is refused with another key, and when a tile, an entry or the checkpoint was changed", async () => {
    const { vkey } = newNoteSigner(ORIGIN);
    expect(failure(await run(sumdb, log.service.url, vkey))).toEqual([2, expect.stringMatching(/no verifiable sign/)]);
    const changes: readonly (readonly [(path: string) => boolean, number])[] = [
      [(path) => path === "/tlog/tile/0/000", 40],
      [(path) => path.startsWith("/tlog/tile/1/000"), 1],
      // Entry 291 is one of those that are read.
      [(path) => path === "/tlog/tile/entries/001", (291 - 256) * 66 + 10],
      [(path) => path === "/tlog/checkpoint", ORIGIN.length + 1],
    ];
    for (const [isChanged, at] of changes) {
      const url = await changedOnTheWay(log.service.url, (path, body) => (isChanged(path) ? flipped(body, at) : body));
      const [code, reason] = failure(await run(sumdb, url, log.vkey));
      expect([code, reason]).toEqual([2, expect.stringMatching(/./)]);
    }
  });
});

describe("a proof file", () => {
  test.each([1, 256, 257, SIZE])("of entry %d holds, and of no other hash", async (id) => {
    const client = createClient({ server: log.service.url });
    const { text } = await client.tlog.proofFile(id, { vkey: log.vkey });
    const hash = (await client.log.entry(id)).entry.entry_hash;
    const file = join(temporaryFolder(), "entry.tlog-proof");
    writeFileSync(file, text);
    expect(await run(receipt, file, log.vkey, hash)).toEqual({
      code: 0,
      stdout: `leaf ${id - 1} is in the tree of ${SIZE} entries, signed by ${ORIGIN}\n`,
      stderr: "",
    });
    const other = (await client.log.entry(id === 1 ? 2 : 1)).entry.entry_hash;
    expect(failure(await run(receipt, file, log.vkey, other))).toEqual([
      2,
      expect.stringContaining("invalid transparency"),
    ]);
    writeFileSync(file, text.replace(`\n${SIZE}\n`, `\n${SIZE + 1}\n`));
    expect(failure(await run(receipt, file, log.vkey, hash))).toEqual([2, expect.stringMatching(/./)]);
  });
});

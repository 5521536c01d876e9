/** A published log that has ended: the files alone say so, and nothing of a log that goes on behind its end is published. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import type { Entry } from "#cairnlog/engine/verify/index.js";
import { openStaticLog } from "#cairnlog/server/client/static/log.js";
import { anyEvent } from "../anyevent.js";
import { begin, cairnlog } from "../cli/harness.js";
import { temporaryFolder } from "../server/harness.js";
import { newManifest, newSigner, sha256 } from "../server/signers.js";
import { newNoteSigner } from "../verify/note/notes.js";
import { LiveLog, listening, served } from "./logs.js";

const reason = "The year is over.";
const linesOf = (stdout: string) =>
  stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
const filesIn = (folder: string) => readdirSync(folder, { recursive: true, encoding: "utf8" }).sort();

test("publishing follows a log to its end, and its files alone say where it goes on", async () => {
  const [data, once, folder, state] = [temporaryFolder(), temporaryFolder(), temporaryFolder(), temporaryFolder()];
  const log = await LiveLog.start(254, { SERVICE_DATA_DIR: data });
  const file = join(data, "report.txt");
  writeFileSync(file, "a report");
  const document = { title: "A report", content_hash: `sha256:${sha256("a report")}` };
  await log.attest(newSigner(), { ...newManifest(), document });
  const size = await log.service.entryCount();
  await log.service.checkpointed(size);
  const follower = begin(["publish", log.url, folder, "--entries", "--follow", "--interval", "1", "--json"]);
  await follower.prints(new RegExp(`"published":${size},`));
  const successor = { url: "https://next.example", vkey: newNoteSigner("next.example").vkey };
  const named = ["--successor", successor.url, "--vkey", successor.vkey];
  const freeze = ["operator", "freeze", "--data", data, "--server", log.service.url, "--reason", reason, ...named];
  expect(await cairnlog(freeze)).toMatchObject({ code: 0 });
  const { frozen } = (await log.service.get("/log/shards")).body;
  expect(frozen).toMatchObject({ tree_size: size + 1, reason, successor });
  const followed = await follower.ended;
  expect([followed.code, linesOf(followed.stdout).at(-1)]).toEqual([
    0,
    expect.objectContaining({ published: size + 1, is_new: true, frozen }),
  ]);
  const published = await cairnlog(["publish", log.url, once, "--entries"]);
  const sentence = `Entry ${frozen.entry_id} (${frozen.timestamp}) froze the log: ${reason} It goes on at ${successor.url}, under the verifier key ${successor.vkey}.\n`;
  expect(published).toMatchObject({ code: 0, stdout: expect.stringContaining(sentence) });
  const again = await cairnlog(["publish", log.url, folder, "--follow"]);
  expect(again).toMatchObject({ code: 0, stdout: expect.stringMatching(/^up to date: (.*\n)*Entry \d+ .* froze/) });

  const vkey = await log.vkey();
  await log.service.close();
  const url = await served(folder);
  const read = await openStaticLog({ log: url, trusted: vkey });
  expect(await read.end()).toEqual(frozen);
  expect((await read.newest())?.entry.event_type).toBe("log_frozen");
  const verified = await cairnlog(["verify", file, "--log", once, "--vkey", vkey]);
  expect(verified).toMatchObject({ code: 0, stdout: expect.stringContaining(sentence) });
  const silent = ["--once", "--json", "--max-silence", "0"];
  const monitor = () => cairnlog(["monitor", url, "--vkey", vkey, "--state", state, ...silent]);
  const told = await monitor();
  expect([told.code, told.stderr]).toEqual([0, expect.stringContaining(`NOTICE frozen: ${sentence}`)]);
  const verifiedLine = { verified: size + 1, frozen: true };
  expect(linesOf(told.stdout)).toMatchObject([{ alarm: "frozen", entry: { id: frozen.entry_id } }, verifiedLine]);
  const later = await monitor();
  expect([later.code, linesOf(later.stdout)]).toEqual([0, [expect.objectContaining(verifiedLine)]]);
});

test("the files of a log that may grow have no end", async () => {
  const [log, folder] = [await LiveLog.start(0), temporaryFolder()];
  const publish = () => cairnlog(["publish", log.url, folder, "--entries", "--json"]);
  const end = async () => (await openStaticLog({ log: await served(folder), trusted: await log.vkey() })).end();
  expect((await publish()).stdout).not.toContain("frozen");
  expect(await end()).toBe(null);
  await log.grow(3);
  expect((await publish()).stdout).not.toContain("frozen");
  expect(await end()).toBe(null);
});

/**
 * A log whose operator goes on behind the end with a program of his own: no hash covers the type of an entry, so this service
 * does not know that the last of its `size` entries is the end, and everybody behind the proxy does.
 */
async function lawless(size: number) {
  const log = await LiveLog.start(size - 1);
  const payload = { event_type: "log_frozen", reason, successor: null };
  const append = log.service.server.registry.log.append.bind(log.service.server.registry.log);
  await append([{ event_type: "log_frozem", payload }]);
  await log.service.checkpointed(size);
  const proxy = await listening(
    createServer(async (request, response) => {
      // The command ends without waiting for all that it has asked for.
      const answer = await fetch(log.service.url + request.url).catch(() => new Response(null, { status: 503 }));
      const text = Buffer.from(await answer.arrayBuffer()).toString("latin1");
      response.writeHead(answer.status).end(text.replaceAll("log_frozem", "log_frozen"), "latin1");
    }),
  );
  const goOn = async () => {
    await append([anyEvent(), anyEvent()]);
    await log.service.checkpointed(size + 2);
  };
  return { log, proxy, source: `${proxy}/tlog`, goOn };
}

test.each([3, 256])(
  "a log that goes on behind its end, of %i entries, is an alarm, and not published",
  async (size) => {
    const { log, proxy, source, goOn } = await lawless(size);
    const [target, tiles, fresh, state] = [temporaryFolder(), temporaryFolder(), temporaryFolder(), temporaryFolder()];
    const vkey = await log.vkey();
    const publish = (folder: string, ...more: string[]) => cairnlog(["publish", source, folder, "--json", ...more]);
    const monitor = async (folder: string, from = state) =>
      cairnlog(["monitor", await served(folder), "--vkey", vkey, "--state", from, "--once", "--json"]);
    expect(await publish(target, "--entries")).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('"frozen":{'),
    });
    expect(await monitor(target)).toMatchObject({ code: 0, stdout: expect.stringContaining('"alarm":"frozen"') });
    await goOn();
    const before = filesIn(target);
    const sentence = `Entry ${size} froze the log at ${size} leaves, and a signed checkpoint has ${size + 2}.`;
    /** The proof file in the evidence holds, whoever looks. */
    const expectProof = async ({ end, shown }: { end: string; shown: string }) => {
      expect(shown.split("\n")[1]).toBe(`${size + 2}`);
      const proof = join(temporaryFolder(), "end.tlog-proof");
      writeFileSync(proof, end);
      const { code, stdout } = await cairnlog(["verify", proof, "--vkey", vkey, "--json"]);
      const entry = expect.objectContaining({ event_type: "log_frozen" });
      expect([code, JSON.parse(stdout)]).toEqual([0, expect.objectContaining({ leaf_index: size - 1, entry })]);
    };
    for (const more of [[], ["--follow"]]) {
      const { code, stdout, stderr } = await publish(target, ...more);
      expect([code, stderr]).toEqual([3, expect.stringContaining(`ALARM after-freeze: ${sentence}`)]);
      await expectProof(JSON.parse(stdout).evidence);
    }
    expect(filesIn(target)).toEqual(before);
    expect(await publish(fresh, "--entries")).toMatchObject({ code: 3, stderr: expect.stringContaining(sentence) });
    expect(filesIn(fresh)).not.toContain("checkpoint");

    // Who publishes hashes alone cannot know. Monitors that have seen the end do.
    expect(await publish(tiles)).toMatchObject({ code: 0 });
    const caught = await monitor(tiles);
    expect([caught.code, caught.stderr]).toEqual([3, expect.stringContaining(`ALARM after-freeze: ${sentence}`)]);
    await expectProof(JSON.parse(readFileSync(JSON.parse(caught.stdout).evidence_file, "utf8")).evidence);

    // Somebody publishes what this command does not.
    if (size > 200) return;
    const page = await fetch(`${proxy}/api/v1/log?per_page=200`);
    const { entries } = (await page.json()) as { readonly entries: readonly Entry[] };
    const { heads } = (await log.service.get("/log/heads?from=1&limit=1000")).body;
    mkdirSync(join(tiles, "entries/000.p"), { recursive: true });
    mkdirSync(join(tiles, "log"));
    const text = entries.map((entry, i) => `${JSON.stringify({ entry, head: heads[i] })}\n`).join("");
    writeFileSync(join(tiles, `entries/000.p/${size + 2}`), gzipSync(text));
    writeFileSync(join(tiles, "log/operator-key"), (await log.service.get("/log/operator-key")).text);
    const read = await openStaticLog({ log: await served(tiles), trusted: vkey });
    await expect(read.end()).rejects.toMatchObject({ code: "log-misbehaved", message: sentence });
    const late = await monitor(tiles, temporaryFolder());
    expect([late.code, late.stderr]).toEqual([3, expect.stringContaining(sentence)]);
    const fsck = await cairnlog(["fsck", tiles, "--vkey", vkey]);
    expect([fsck.code, fsck.stdout]).toEqual([1, expect.stringContaining(sentence)]);
  },
);

/** Short segments of a backup become part of a new one. */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { backUp } from "#cairnlog/engine/log/history/backup.js";
import { linesOf, readBackupManifest } from "#cairnlog/engine/log/history/backupformat.js";
import { anyEvent } from "../anyevent.js";
import { openTestLog, temporaryFolder, testOperator } from "../log/harness.js";

async function linesIn(folder: string): Promise<string[]> {
  const lines: string[] = [];
  for (const segment of readBackupManifest(folder)!.segments)
    for await (const line of linesOf(folder, segment)) lines.push(line.toString("utf8"));
  return lines;
}

/** A log that is backed up after each append. */
async function backedUp() {
  const [{ log, path }, to] = [await openTestLog(), temporaryFolder()];
  const given = { path, to, operatorKey: testOperator.public.pem };
  const append = async (...events: ReturnType<typeof anyEvent>[]) => {
    await log.append(events);
    await backUp(given);
  };
  const anew = async () => {
    const folder = temporaryFolder();
    await backUp({ ...given, to: folder });
    return linesIn(folder);
  };
  const sizes = () => readBackupManifest(to)!.segments.map((segment) => segment.to - segment.from);
  return { to, append, anew, sizes };
}

test("many backups leave few segments", async () => {
  const { to, append, anew, sizes } = await backedUp();
  for (let n = 1; n <= 21; n++) {
    await append(anyEvent({ n }));
    // As many as the binary digits of n that are 1.
    expect(sizes()).toHaveLength(n.toString(2).replaceAll("0", "").length);
    expect(readdirSync(to)).toHaveLength(sizes().length + 2);
  }
  expect(sizes()).toEqual([16, 4, 1]);
  expect(await linesIn(to)).toEqual(await anew());
});

test("a segment keeps the lines that it has: a log that was damaged since has no say in them", async () => {
  const { to, append, sizes } = await backedUp();
  await append(anyEvent({ n: 1 }), anyEvent({ n: 1 }));
  await append(anyEvent({ n: 2 }));
  const manifest = readBackupManifest(to)!;
  const last = join(to, manifest.segments[1]!.file);
  const other = readFileSync(last, "utf8").replace('"n":2', '"n":7');
  writeFileSync(last, other);
  const sha256 = createHash("sha256").update(other).digest("hex");
  const segments = [manifest.segments[0]!, { ...manifest.segments[1]!, sha256 }];
  writeFileSync(join(to, "manifest.json"), JSON.stringify({ ...manifest, segments }));
  await append(anyEvent({ n: 3 }));
  expect(sizes()).toEqual([4]);
  expect((await linesIn(to)).filter((line) => line.includes('"n":'))).toEqual([
    ...Array(2).fill(expect.stringContaining('"n":1')),
    expect.stringContaining('"n":7'),
    expect.stringContaining('"n":3'),
  ]);
});

test("where a segment was damaged, its lines are those of the log", async () => {
  const { to, append, anew, sizes } = await backedUp();
  await append(anyEvent({ n: 1 }), anyEvent({ n: 1 }), anyEvent({ n: 1 }), anyEvent({ n: 1 }));
  await append(anyEvent({ n: 2 }), anyEvent({ n: 2 }));
  await append(anyEvent({ n: 3 }));
  const damaged = join(to, readBackupManifest(to)!.segments[1]!.file);
  writeFileSync(damaged, readFileSync(damaged, "utf8").replace('"n":2', '"n":7'));
  await append(anyEvent({ n: 4 }));
  expect(sizes()).toEqual([8]);
  expect(await linesIn(to)).toEqual(await anew());
});

test("segments of many bytes stay: they would be copied again and again", async () => {
  const { append, sizes } = await backedUp();
  const long = Array.from({ length: 33 }, () => anyEvent({ text: "x".repeat(2 ** 20) }));
  await append(...long);
  await append(...Array(33).fill(anyEvent()));
  expect(sizes()).toEqual([33, 33]);
});

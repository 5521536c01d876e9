/** A reader beside which another log takes the place of the one that it reads: one that was restored, for example. */
import { cpSync, renameSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Rfc6962Growth } from "#cairnlog/engine/log/rfc6962/growth.js";
import type { LogReader } from "#cairnlog/engine/log/view/reader.js";
import type { LogWriter } from "#cairnlog/engine/log/writer.js";
import { eventOf } from "#cairnlog/engine/verify/events/kinds.js";
import { payloadHash } from "#cairnlog/engine/verify/events/withheld.js";
import { openTestLog, openTestReader, temporaryFolder } from "../harness.js";

const COMMON = 8;
/** Postings of fewer entries are in no run on disk. */
const FILED = 1024;
const TYPE = "https://example.org/statement/v1";

/** Entries that are in no full tile, in a full one, on its border, and the newest ones. */
const IDS = [COMMON, COMMON + 1, 20, 255, 256, 257, 512, 513, 599, 600, FILED];

async function filled(path: string, to: number, text: string): Promise<LogWriter> {
  const { log } = await openTestLog({ path });
  const payload = (n: number) => ({ document_title: `${text} ${n}`, tags: [text] });
  // One by one and together: what is kept of small batches is not what is kept of large ones.
  for (const n of [1, 2]) await log.append({ event_type: TYPE, payload: payload(n) });
  await log.append(Array.from({ length: to - log.size }, (_, n) => ({ event_type: TYPE, payload: payload(n) })));
  return log;
}

/** All that a reader shows of some entries, asked so often that what it keeps is asked for. */
function shown(reader: LogReader, size: number): unknown {
  const each = () =>
    IDS.filter((id) => id <= size).map((id) => ({
      id,
      entry: reader.entryJson(id)!.toString(),
      receipt: JSON.stringify(reader.receipt(id - 1)),
      head: reader.treeHead(id),
      proofs: [reader.inclusionProof(id - 1, { treeSize: size }), reader.inclusionProof(id - 1, { treeVersion: 1 })],
      served: reader.inclusionProofJson(id - 1, { treeSize: size }).json.toString(),
      consistency: reader.consistencyProof(id, size),
      digest: reader.digests(id - 1, id),
      found: reader.match({ tags: ["old"] }, 0, 9),
      root: reader.rfc6962.root(id),
    }));
  return [each(), each(), each()];
}

test.each([
  [600, 600],
  [600, 20],
  [FILED, FILED],
])("of a log of %i entries it shows nothing any more when one of %i is in its place", async (read, size) => {
  const folder = temporaryFolder();
  const [path, restored] = [join(folder, "log"), join(folder, "restored")];
  await (await filled(path, COMMON, "common")).close();
  cpSync(path, restored, { recursive: true });
  await (await filled(path, read, "old")).close();
  const other = await filled(restored, size, "new");
  const { entry_hash, payload } = other.entry(size)!;
  const withheld = { entry_id: size, entry_hash, payload_hash: payloadHash(payload!), reason: "an order", basis: null };
  await other.append(eventOf("payload_withheld", withheld));
  await other.close();

  const reader = await openTestReader(path);
  const growth = new Rfc6962Growth(reader.rfc6962);
  await growth.extend(reader.size);
  const before = shown(reader, read);
  const unasked = await openTestReader(path);
  await new Rfc6962Growth(unasked.rfc6962).extend(read);
  renameSync(path, join(folder, "away"));
  renameSync(restored, path);
  for (const each of [reader, unasked]) expect(shown(each, read)).toEqual(before);
  reader.refresh();
  await growth.extend(reader.size);

  const fresh = await openTestReader(path);
  await new Rfc6962Growth(fresh.rfc6962).extend(fresh.size);
  expect(shown(reader, size)).toEqual(shown(fresh, size));
  expect(reader.entry(size)!.payload).toBe(null);
});

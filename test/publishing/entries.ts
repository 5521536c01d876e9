/** What readers find beside the tiles where entries are published, by the definition. */
import { gunzipSync } from "node:zlib";
import { expect } from "vitest";
import type { Entry, TreeHead } from "#cairnlog/engine/verify/index.js";
import type { TestService } from "../server/harness.js";

export type Read = (path: string) => Promise<Uint8Array | undefined>;

/** Asserts that the entries and heads of the first `size` leaves are in their bundles as the service serves them. */
export async function expectEntries(read: Read, service: TestService, size: number): Promise<readonly Entry[]> {
  const listed: Entry[] = [];
  const heads: TreeHead[] = [];
  for (let page = 1; listed.length < size; page++)
    listed.push(...(await service.get(`/log?page=${page}&per_page=200`)).body.entries);
  for (let from = 1; from <= size; from += 1000)
    heads.push(...(await service.get(`/log/heads?from=${from}&limit=1000`)).body.heads);
  const published: { readonly entry: Entry }[] = [];
  for (let index = 0; index * 256 < size; index++) {
    const name = String(index).padStart(3, "0");
    const width = size - index * 256;
    const bytes = await read(`entries/${name}${width < 256 ? `.p/${width}` : ""}`);
    expect(bytes, name).not.toBe(undefined);
    const lines = gunzipSync(bytes!).toString().trimEnd().split("\n");
    published.push(...lines.map((line) => JSON.parse(line)));
  }
  expect(published).toEqual(listed.slice(0, size).map((entry, i) => ({ entry, head: heads[i] })));
  await expectIndex(read, listed, size);
  expect(JSON.parse(Buffer.from((await read("log/operator-key"))!).toString())).toEqual(
    (await service.get("/log/operator-key")).body,
  );
  return published.map(({ entry }) => entry);
}

/** The runs of some sizes, worked out by hand from docs/publishing.md. */
const RUNS: Readonly<Record<number, readonly string[]>> = {
  256: ["0-256"],
  300: ["0-256"],
  301: ["0-256"],
  302: ["0-256"],
  700: ["0-512"],
  5000: ["0-4608", "4608-4864"],
};

async function expectIndex(read: Read, listed: readonly Entry[], size: number): Promise<void> {
  for (const run of size < 256 ? [] : RUNS[size]!) {
    const [from = 0, to = 0] = run.split("-").map(Number);
    const expected = listed.slice(from, to).flatMap(({ event_type, payload }, i) => {
      const isOfKeys = /^key_|rotation$/.test(event_type);
      const terms = [payload?.document_hash, ...(isOfKeys ? [payload?.fingerprint, payload?.old_fingerprint] : [])];
      const leaf = (from + i).toString(16).padStart(16, "0");
      return terms.flatMap((term) => (typeof term === "string" ? [term.slice("sha256:".length) + leaf] : []));
    });
    const fence = Buffer.from((await read(`index/${run}/fence`))!);
    expect(fence.readBigUInt64BE(0)).toBe(BigInt(expected.length));
    const records = Buffer.from((expected.length ? await read(`index/${run}/0`) : undefined) ?? []);
    expect(records.toString("hex").match(/.{80}/g) ?? []).toEqual(expected.sort());
    for (let block = 0; block * 64 < expected.length; block++)
      expect(fence.subarray(8 + 8 * block, 16 + 8 * block)).toEqual(records.subarray(2560 * block, 2560 * block + 8));
  }
}

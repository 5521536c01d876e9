/**
 * A publisher in memory that fails, is killed or meets another one at each of its effects: what readers have then is all that
 * the checkpoint covers, and whoever goes on comes to what an undisturbed publisher makes. And each object, missing or
 * changed; and sources that show something else.
 */
import { gunzipSync, gzipSync } from "node:zlib";
import { beforeAll, describe, expect, test } from "vitest";
import { withhold } from "#cairnlog/engine/log/operator/entries.js";
import { type Policy, parseVkey } from "#cairnlog/engine/verify/index.js";
import { ClientError } from "#cairnlog/server/client/base/error.js";
import { Http } from "#cairnlog/server/client/base/http.js";
import { ServedTiles } from "#cairnlog/server/client/log/served.js";
import { OPERATOR_KEY } from "#cairnlog/server/client/static/layout.js";
import { checkPublished } from "#cairnlog/server/publishing/check.js";
import { type Again, Publisher, WrongTarget } from "#cairnlog/server/publishing/publisher.js";
import { PublishedEntries, ServiceEntries } from "#cairnlog/server/publishing/source.js";
import type { Target } from "#cairnlog/server/publishing/target.js";
import { anyEvent } from "../anyevent.js";
import { fingerprintOf } from "../registry/world.js";
import { newManifest, newSigner } from "../server/signers.js";
import { LiveLog } from "./logs.js";
import { MemoryTarget, type Objects } from "./memory.js";

const ALWAYS = { isPinned: true, keepPartial: false };

const SECRET = "Zwetschgenkuchen";
/** By size, what an undisturbed publisher has made of the log step by step; and the paths that it makes from nothing. */
const made = new Map<number, Objects>();
const needed = new Map<number, ReadonlySet<string>>();
let policy: Policy;

beforeAll(async () => {
  const log = await LiveLog.start(200);
  const ada = newSigner();
  await log.register(ada, "Ada");
  const document = { ...newManifest().document, title: SECRET };
  const secret = await log.attest(ada, { document, attestations: [] });
  policy = { logs: [{ key: parseVkey(await log.vkey()), url: null }], witnesses: [], groups: [], quorum: null };
  const http = new Http(log.service.url, fetch);
  const tlog = new ServedTiles(new Http(log.url, fetch));
  const target = new MemoryTarget();
  const step = async (size: number) => {
    const entries = new ServiceEntries(http);
    const fresh = new MemoryTarget();
    for (const one of [target, fresh])
      await new Publisher({ source: tlog, target: one, entries, policy, ...ALWAYS }).round("edge");
    made.set(size, new Map(target.objects));
    needed.set(size, new Set(fresh.objects.keys()));
  };
  await log.grow(250);
  await step(250);
  await log.grow(300);
  await step(300);
  const { registry } = log.service.server;
  await withhold(registry, secret, { reason: "An order.", basis: null });
  await log.service.checkpointed(301);
  await step(301);
  await registry.log.append(Array.from({ length: 520 - 301 }, (_, i) => anyEvent({ i })));
  await log.service.checkpointed(520);
  await step(520);
});

/** A publisher from what was made at a size, or from what somebody has made of that. */
function publisherOf(size: number, target: Target, objects: Objects = made.get(size)!): Publisher {
  const source = new ServedTiles(filesOf(objects));
  const entries = new PublishedEntries(source);
  return new Publisher({ source, target, entries, policy, ...ALWAYS });
}

const filesOf = (objects: Objects) => ({
  server: "memory",
  async rootBytes(path: string) {
    const bytes = objects.get(path.slice(1));
    if (!bytes) throw new ClientError("not-found", "It is not there.", { status: 404 });
    return bytes;
  },
});

const isPage = (path: string) => /^index\.html$|^explorer\//.test(path);
const sizeOf = (objects: Objects) => Number(objects.get("checkpoint")?.toString().split("\n")[1] ?? 0);

/** Asserts that all that the checkpoint covers is there, as it is for it or for the checkpoint that was to follow. */
function expectSound(objects: Objects, to: number, why: string): void {
  const size = sizeOf(objects);
  for (const path of needed.get(size) ?? [])
    if (!isPage(path) && !objects.has(path)) expect.unreachable(`${path} of ${size} is missing, ${why}`);
  for (const [path, bytes] of objects) {
    const isRight = [size, to].some((one) => made.get(one)?.get(path)?.equals(bytes));
    if (!isRight) expect.unreachable(`${path} is another one, ${why}`);
  }
}

/** Asserts that this is what an undisturbed publisher makes of a size, but for what smaller trees have left. */
function expectEqual(objects: Objects, size: number, why: string): void {
  expect(sizeOf(objects), why).toBe(size);
  expectSound(objects, size, why);
  for (const path of needed.get(size)!) if (!objects.has(path)) expect.unreachable(`${path} is missing, ${why}`);
}

class Killed extends Error {}

/** From what is there to what is published; each takes back, or merges, or makes other things. */
const WALKS = [
  [0, 301],
  [250, 301],
  [300, 520],
] as const;

describe.each(WALKS)("from %i to %i entries", (from, to) => {
  /** The page takes longer than all else, and is the same for all. */
  const begun = () => {
    const page = from || to === 301 ? [] : [...made.get(to)!].filter(([path]) => isPage(path));
    return new MemoryTarget(new Map([...(made.get(from) ?? []), ...page]));
  };
  /** What becomes of a publisher at each of its effects, until it has no more. @param work answers whether there was one */
  async function atEach(work: (target: MemoryTarget, number: number) => Promise<boolean>): Promise<void> {
    let number = 1;
    while (await work(begun(), number)) number++;
    expect(number).toBeGreaterThan(5);
  }
  /** @returns whether it was killed */
  const killedAt = async (target: MemoryTarget, number: number, publisher: Publisher) => {
    target.behind = (reached) => {
      if (reached === number) throw new Killed();
    };
    const error = await publisher.round("edge").then(
      () => null,
      (error: unknown) => error,
    );
    if (error) expect(error).toBeInstanceOf(Killed);
    target.behind = () => {};
    return error !== null;
  };

  test("killed behind each effect: the next run goes on", () =>
    atEach(async (target, number) => {
      const isKilled = await killedAt(target, number, publisherOf(to, target));
      expectSound(target.objects, to, `killed behind effect ${number}`);
      await publisherOf(to, target).round("edge");
      expectEqual(target.objects, to, `again behind effect ${number}`);
      return isKilled;
    }));

  test("an effect whose answer is lost: the next round of the same publisher goes on", () =>
    atEach(async (target, number) => {
      const publisher = publisherOf(to, target);
      const isKilled = await killedAt(target, number, publisher);
      await publisher.round("edge");
      expectEqual(target.objects, to, `again behind effect ${number}`);
      return isKilled;
    }));

  test("another publisher is faster behind each effect: both end, with the same", () =>
    atEach(async (target, number) => {
      let isOther = false;
      let effects = 0;
      target.behind = async () => {
        if (isOther || ++effects !== number) return;
        isOther = true;
        await publisherOf(to, target).round("edge");
        isOther = false;
      };
      await publisherOf(to, target).round("edge");
      expectEqual(target.objects, to, `overtaken behind effect ${number}`);
      return effects >= number;
    }));
});

test("killed behind each effect, and what it has published is withheld then: the next run takes it back", async () => {
  for (let number = 1, isKilled = true; isKilled; number++) {
    const target = new MemoryTarget(made.get(250)!);
    target.behind = (reached) => {
      if (reached === number) throw new Killed();
    };
    isKilled = await publisherOf(300, target)
      .round("edge")
      .then(
        () => false,
        () => true,
      );
    target.behind = () => {};
    await publisherOf(301, target).round("edge");
    expectEqual(target.objects, 301, `killed behind effect ${number} before`);
  }
});

describe("an object that is published", () => {
  const SIZE = 520;
  /** The objects of the tree itself, each in the hand of one who changes it. */
  const each = async (work: (path: string, target: MemoryTarget) => Promise<void>) => {
    const whole = made.get(SIZE)!;
    for (const path of needed.get(SIZE)!) await work(path, new MemoryTarget(whole));
  };
  const check = async ({ objects }: MemoryTarget) => {
    const { signal } = new AbortController();
    return checkPublished({ files: filesOf(objects), policy, signal });
  };

  /** What a check names. Without the bundle that has the entry which withholds a payload, nobody knows why that is missing. */
  const found = async (target: MemoryTarget) => {
    const { differences } = await check(target);
    const paths = differences.map(({ path, what }) => [path, what]);
    return paths.length > 1 && paths[0]![0] === "entries/001"
      ? paths.filter(([path]) => path !== "entries/000")
      : paths;
  };

  test("is made again by an audit where it is missing, and named by a check", () =>
    each(async (path, target) => {
      target.objects.delete(path);
      if (path !== "checkpoint" && !isPage(path)) {
        expect(await found(target), path).toEqual([[path, "missing"]]);
      }
      await publisherOf(SIZE, target).round("all");
      expectEqual(target.objects, SIZE, `${path} was missing`);
      expect((await check(target)).ok).toBe(true);
    }));

  test("is not replaced where it was changed: an audit says so, and a check names it", () =>
    each(async (path, target) => {
      if (isPage(path) || ["checkpoint", "vkey", "log/operator-key"].includes(path)) return;
      const bytes = Buffer.from(target.objects.get(path)!);
      bytes[bytes.length >> 1]! ^= 1;
      target.objects.set(path, bytes);
      const before = new Map(target.objects);
      expect(await found(target), path).toEqual([[path, "wrong"]]);
      await expect(publisherOf(SIZE, target).round("all"), path).rejects.toThrow(WrongTarget);
      for (const [one, content] of before) expect(target.objects.get(one)?.equals(content), one).toBe(true);
      expect(target.objects.size).toBe(before.size);
    }));

  test("is named if it lacks a payload that nobody withholds, beside one that is withheld", async () => {
    const bundle = "entries/000";
    const lines = gunzipSync(made.get(SIZE)!.get(bundle)!).toString().split("\n");
    const withheld = lines.findIndex((line) => line.includes('"withheld_by":301'));
    for (const at of [0, withheld - 2, withheld + 1, 255]) {
      const { entry, head } = JSON.parse(lines[at]!);
      const cut = JSON.stringify({ entry: { ...entry, payload: null, withheld_by: 301 }, head });
      const target = new MemoryTarget(made.get(SIZE)!);
      target.objects.set(bundle, gzipSync(lines.with(at, cut).join("\n")));
      expect(await found(target), `${at}`).toEqual([[bundle, "wrong"]]);
    }
  });

  test.each<Again>(["nothing", "edge", "all"])(
    "is left alone by a round that looks again at %s where nothing is missing",
    async (again) => {
      const target = new MemoryTarget(made.get(SIZE)!);
      const { made: count, isNew } = await publisherOf(SIZE, target).round(again);
      expect([count, isNew, target.effects]).toEqual([0, false, 0]);
    },
  );
});

describe("whoever keeps a source", () => {
  const SIZE = 300;
  const text = (bytes: Uint8Array) => gunzipSync(bytes).toString();
  const bundle = (change: (text: string) => string) => (objects: Objects) => {
    for (const [path, bytes] of objects)
      if (path.startsWith("entries/")) objects.set(path, gzipSync(change(text(bytes))));
  };
  const operators = (change: (shown: { public_key: string; operators: { public_key: string }[] }) => object) => {
    return (objects: Objects) =>
      void objects.set(OPERATOR_KEY, Buffer.from(JSON.stringify(change(JSON.parse(`${objects.get(OPERATOR_KEY)}`)))));
  };
  /** A chain of keys that is right in itself, of another operator. */
  const strange = () => {
    const { publicKey } = newSigner();
    return { public_key: publicKey, operators: [{ ...first(publicKey) }] };
  };
  const first = (public_key: string) => ({
    ...JSON.parse(`${made.get(SIZE)!.get(OPERATOR_KEY)}`).operators[0],
    ...{ public_key, key_id: fingerprintOf(public_key) },
  });
  const plain = (objects: Objects) => {
    for (const [path, bytes] of objects) if (path.startsWith("entries/")) objects.set(path, Buffer.from(text(bytes)));
  };

  const headless = bundle((text) => text.replaceAll(/"head":\{[^}]*\}/g, '"head":null'));

  // What was published before goes on; what was not is another log to who never saw this one.
  const KINDS: readonly (readonly [what: string, change: (objects: Objects) => void, isTaken: boolean])[] = [
    ["compresses in another way", bundle((text) => text), true],
    ["does not compress", plain, true],
    [
      "adds proofs, which may come later",
      bundle((text) => text.replaceAll('"entry":{', '"entry":{"ots_proof":"AA==",')),
      true,
    ],
    ["adds members to lines", bundle((text) => text.replaceAll('"head":', '"more":1,"head":')), true],
    ["shows another payload", bundle((text) => text.replaceAll(SECRET, "Apfelkuchen")), false],
    [
      "shows heads that nobody has signed",
      bundle((text) => text.replaceAll(/"signature":"../g, '"signature":"AA')),
      false,
    ],
    ["shows another operator's keys", operators(strange), false],
    // No head contradicts them.
    [
      "shows another operator's keys and no heads",
      (objects) => {
        operators(strange)(objects);
        headless(objects);
      },
      false,
    ],
    ["shows the key of another operator as the newest", operators((shown) => ({ ...shown, ...strange() })), false],
    ["shows no chain", operators((shown) => ({ ...shown, operators: [] })), false],
  ];

  test.each(KINDS)("and %s has nothing of that published", async (_, change, isTaken) => {
    const objects = new Map(made.get(SIZE)!);
    change(objects);
    const begun = made.get(250)!;
    const target = new MemoryTarget(begun);
    const ended = await publisherOf(SIZE, target, objects)
      .round()
      .then(
        () => true,
        (error: Error) => error.constructor.name,
      );
    expect(ended === true).toBe(isTaken);
    expect(sizeOf(target.objects)).toBe(isTaken ? SIZE : 250);
    for (const [path, bytes] of target.objects) {
      const expected = (begun.get(path) ?? made.get(SIZE)!.get(path))!;
      if (path.startsWith("entries/")) expect(text(bytes) === text(expected), path).toBe(true);
      else if (path !== "checkpoint") expect(bytes.equals(expected), path).toBe(true);
    }
  });
});

test("no object shows a payload that the checkpoint's log withholds", async () => {
  const shows = (objects: Objects) =>
    Promise.all(
      [...objects]
        .filter(([path]) => path.startsWith("entries/"))
        .map(async ([path, bytes]) => {
          const stream = new Blob([bytes as Uint8Array<ArrayBuffer>])
            .stream()
            .pipeThrough(new DecompressionStream("gzip"));
          return (await new Response(stream).text()).includes(SECRET) ? [path] : [];
        }),
    ).then((found) => found.flat());
  expect(await shows(made.get(300)!)).toEqual(["entries/000.p/250", "entries/000"]);
  for (const size of [301, 520]) expect(await shows(made.get(size)!)).toEqual([]);
});

/** Trust configurations: their content, and which of them is active. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { PrivateRows } from "#cairnlog/engine/log/check/checks.js";
import { define, type Transaction } from "#cairnlog/engine/log/state/commands.js";
import { PRIVATE_CHECKS } from "#cairnlog/engine/registry/privatechecks.js";
import type { TableName } from "#cairnlog/engine/store/schema/schema.js";
import { newKey } from "../endorsements/endorsementcase.js";
import { closeWorlds, failure, openWorld, type World } from "../world.js";

afterAll(closeWorlds);

let world: World;
let key: string;
beforeAll(async () => {
  world = await openWorld();
  key = await newKey(world);
});

const fingerprintOf = (i: number) => `sha256:${String(i).padStart(64, "0")}`;
/** Stores configurations as versions did that removed none. */
const keepAll = define("test.trust-configs", (transaction: Transaction, { owners }: { readonly owners: string[] }) => {
  const created_at = transaction.timestamp;
  for (const [i, fingerprint] of owners.entries()) {
    const status = owners.lastIndexOf(fingerprint) === i ? "active" : "superseded";
    transaction.put("trustConfigs", i + 1, { fingerprint, status, created_at, policy: "{}" });
    transaction.put("trustConfigHeads", fingerprint, { id: i + 1 });
  }
  transaction.put("trustConfigHeads", "", { id: owners.length });
});

/** Contradictions between private rows. */
function faultsOf({ registry: { log } }: World): string[] {
  const snapshot = log.snapshot();
  const rows = {
    get: snapshot.get,
    range: snapshot.range,
    *keys<T extends TableName>(table: T) {
      for (const { key } of snapshot.range(table)) yield key;
    },
  };
  const faults = PRIVATE_CHECKS.flatMap((check) => [
    ...check(rows as PrivateRows, { size: log.size, lastId: log.size }),
  ]);
  snapshot.close();
  return faults;
}

const create = (more: object, fingerprint = key) =>
  world.registry.trustConfigs.create({ fingerprint, minimum_threshold: 0.5, ...more });

describe("a trust configuration", () => {
  it("is stored with its defaults", async () => {
    const stored = await create({});
    expect(stored).toEqual({
      id: 1,
      fingerprint: key,
      direct_signer_anchors: [],
      endorser_anchors: [],
      minimum_threshold: 0.5,
      max_depth: 4,
      decay_per_hop: 0.5,
      category_weights: {},
      status: "active",
      created_at: "2025-01-01T00:00:00.000000Z",
    });
    expect(world.registry.trustConfigs.get(key)).toEqual(stored);
    expect(world.registry.trustConfigs.get(key.slice(7).toUpperCase())).toEqual(stored);
  });

  it("keeps its content, for any names of categories", async () => {
    const config = {
      direct_signer_anchors: [{ fingerprint: fingerprintOf(1), weight: 0 }],
      endorser_anchors: [{ fingerprint: fingerprintOf(1), weight: 1 }],
      minimum_threshold: 0,
      max_depth: 8,
      decay_per_hop: 1,
      category_weights: { constructor: 0.25, "x-service:human_attestation": 1, "ü/~": 0 },
    };
    const stored = await create(config);
    expect(stored).toMatchObject(config);
    await world.reopen();
    expect(world.registry.trustConfigs.get(key)).toEqual(stored);
    const spelt = [{ fingerprint: "A".repeat(64), weight: 1 }];
    const { endorser_anchors } = await create({ endorser_anchors: spelt });
    expect(endorser_anchors).toEqual([{ fingerprint: `sha256:${"a".repeat(64)}`, weight: 1 }]);
  });

  const anchors = (count: number) =>
    Array.from({ length: count }, (_, i) => ({ fingerprint: fingerprintOf(i), weight: 1 }));
  const categories = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`c${i}`, 1]));

  it.each<[object, string[]]>([
    [{ minimum_threshold: undefined }, ["/minimum_threshold"]],
    [{ minimum_threshold: -0.1 }, ["/minimum_threshold"]],
    [{ minimum_threshold: 1.1 }, ["/minimum_threshold"]],
    [{ minimum_threshold: "0.5" }, ["/minimum_threshold"]],
    [{ minimum_threshold: Number.NaN }, ["/minimum_threshold"]],
    [{ max_depth: 0 }, ["/max_depth"]],
    [{ max_depth: 9 }, ["/max_depth"]],
    [{ max_depth: 1.5 }, ["/max_depth"]],
    [{ decay_per_hop: 2 }, ["/decay_per_hop"]],
    [{ endorser_anchors: {} }, ["/endorser_anchors"]],
    [{ endorser_anchors: anchors(101) }, ["/endorser_anchors"]],
    [{ endorser_anchors: [null] }, ["/endorser_anchors/0/fingerprint", "/endorser_anchors/0/weight"]],
    [{ direct_signer_anchors: [...anchors(2), ...anchors(1)] }, ["/direct_signer_anchors/2/fingerprint"]],
    [{ direct_signer_anchors: [{ fingerprint: fingerprintOf(1), weight: 3 }] }, ["/direct_signer_anchors/0/weight"]],
    [{ category_weights: [] }, ["/category_weights"]],
    [{ category_weights: categories(33) }, ["/category_weights"]],
    [{ category_weights: { "": 1 } }, ["/category_weights"]],
    [{ category_weights: { ["x".repeat(129)]: 1 } }, ["/category_weights"]],
    [{ category_weights: JSON.parse('{"__proto__": 1}') }, ["/category_weights"]],
    [{ category_weights: { "a/b~": 2 } }, ["/category_weights/a~1b~0"]],
    [{ max_depth: 0, decay_per_hop: -1 }, ["/max_depth", "/decay_per_hop"]],
  ])("cannot say %j", async (more, paths) => {
    const total = world.registry.trustConfigs.list().total;
    expect(await failure(() => create(more))).toMatchObject({ code: "invalid-input", paths });
    expect(world.registry.trustConfigs.list().total).toBe(total);
  });

  it("may be as large as its caps", async () => {
    const stored = await create({ endorser_anchors: anchors(100), category_weights: categories(32) });
    expect(stored.endorser_anchors).toHaveLength(100);
  });

  it("is not an entry of the log", async () => {
    const { size } = world.registry.log;
    await create({});
    expect(world.registry.log.size).toBe(size);
    expect(world.registry.log.stateDifferences()).toEqual([]);
  });
});

describe("the configurations of a key", () => {
  it("supersede one another; the last can be revoked, once", async () => {
    const { trustConfigs } = world.registry;
    const own = await newKey(world);
    expect(await failure(() => trustConfigs.get(own))).toMatchObject({ code: "not-found" });
    expect(await failure(() => trustConfigs.revoke(own))).toMatchObject({ code: "not-found" });
    const [first, second] = await Promise.all([create({}, own), create({ max_depth: 1 }, own)]);
    expect(second.id).toBe(first.id + 1);
    const { trust_configs, total } = trustConfigs.list({ per_page: 200 });
    expect(trust_configs).toHaveLength(total);
    expect(trust_configs.slice(-2)).toEqual([{ ...first, status: "superseded" }, second]);
    expect(trustConfigs.active(own)).toEqual(second);
    expect(await trustConfigs.revoke(own)).toEqual({ ...second, status: "revoked" });
    expect(trustConfigs.get(own).status).toBe("revoked");
    expect(trustConfigs.active(own)).toBeUndefined();
    expect(await failure(() => trustConfigs.revoke(own))).toMatchObject({ code: "precondition-failed" });
    expect(await create({}, own)).toMatchObject({ id: second.id + 1, status: "active" });
    expect(trustConfigs.list({ per_page: 200 }).trust_configs.at(-2)!.status).toBe("revoked");
  });

  it("are listed page by page", async () => {
    const { trustConfigs } = world.registry;
    for (let i = 0; i < 3; i++) await create({}, await newKey(world));
    const { trust_configs: all, total } = trustConfigs.list({ per_page: 200 });
    const page = trustConfigs.list({ page: 2, per_page: 2 });
    expect(all).toHaveLength(total);
    expect(page.trust_configs).toEqual(all.slice(2, 4));
    expect(page).toMatchObject({ page: 2, per_page: 2, total });
    expect(trustConfigs.list({ page: 1000 }).trust_configs).toEqual([]);
    for (const paging of [{ page: 0 }, { per_page: 201 }])
      expect(await failure(() => trustConfigs.list(paging))).toMatchObject({ code: "invalid-input" });
  });

  it("have two rows: the newest and the one before", async () => {
    const { trustConfigs } = world.registry;
    const own = await newKey(world);
    const ids: number[] = [];
    for (let i = 0; i < 4; i++) ids.push((await create({ minimum_threshold: i / 10 }, own)).id);
    const { trust_configs, total } = trustConfigs.list({ per_page: 200 });
    const kept = trust_configs.filter(({ fingerprint }) => fingerprint === own);
    expect(kept.map(({ id, status }) => [id, status])).toEqual([
      [ids[2], "superseded"],
      [ids[3], "active"],
    ]);
    expect(trust_configs).toHaveLength(total);
    expect(faultsOf(world)).toEqual([]);
  });

  it("may be twenty in an hour for a key", async () => {
    const own = await newKey(world);
    for (let i = 0; i < 20; i++) await create({}, own);
    expect(await failure(() => create({}, own))).toMatchObject({ code: "rate-limited" });
    await create({}, await newKey(world));
    world.now += 3_600_000_000;
    await create({}, own);
  });

  it("that earlier versions have kept are removed, a few for each that is stored", async () => {
    const old = await openWorld();
    const [one, two, three] = [await newKey(old), await newKey(old), await newKey(old)];
    await old.registry.log.execute(keepAll, { owners: Array.from({ length: 150 }, (_, i) => (i % 3 ? one : two)) });
    const { trustConfigs } = old.registry;
    const newest = { one: trustConfigs.get(one), two: trustConfigs.get(two) };
    expect(trustConfigs.list().total).toBe(150);
    expect(faultsOf(old)).toEqual([]);
    const totals: number[] = [];
    for (let i = 0; i < 6; i++) {
      await trustConfigs.create({ fingerprint: i % 2 ? one : three, minimum_threshold: 0.5 });
      totals.push(trustConfigs.list().total);
      expect(faultsOf(old)).toEqual([]);
    }
    // Never more than 32 in one command, and two of each key in the end.
    for (const [i, total] of [150, ...totals].slice(0, -1).entries()) expect(total - totals[i]!).toBeLessThan(34);
    expect(totals.at(-1)).toBe(6);
    expect(trustConfigs.get(two)).toEqual(newest.two);
    const { trust_configs } = trustConfigs.list();
    expect(trust_configs.map(({ fingerprint }) => fingerprint).sort()).toEqual(
      [one, one, two, two, three, three].sort(),
    );
    expect(trust_configs.find(({ fingerprint }) => fingerprint === two)!.id).toBe(newest.two.id - 3);
    expect(newest.one.status).toBe("active");
  });

  it("are those of registered keys only", async () => {
    const nobody = fingerprintOf(9);
    const { trustConfigs } = world.registry;
    for (const action of [() => create({}, nobody), () => trustConfigs.get(nobody), () => trustConfigs.revoke(nobody)])
      expect(await failure(action)).toMatchObject({ code: "not-found" });
  });
});

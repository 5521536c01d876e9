/** Traversal of the endorsement graph: depth, filters, limits, and the cache. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { GraphFilter } from "#cairnlog/engine/registry/graph/graph.js";
import { HUMAN, INSTITUTIONAL, newKey, offerOf } from "../endorsements/endorsementcase.js";
import {
  closeWorlds,
  DAY,
  failure,
  heldRegistration,
  newFolder,
  nodeSigner,
  openWorld,
  registration,
  type World,
} from "../world.js";
import { type EndorsementShape, keyNamed, putEndorsements, putKeys } from "./graphrows.js";

afterAll(closeWorlds);

const open = (graphs: object = {}) => openWorld(newFolder(), undefined, { graphs });
const noon = (day: string) => `${day}T12:00:00.000000Z`;

/** a → b → c → d → e, and x → b. The endorsements differ in all members that filters use. */
const EDGES: readonly (Partial<EndorsementShape> & { from: string; to: string })[] = [
  { from: "a", to: "b", category: HUMAN, acceptedAt: noon("2024-03-01"), institution: "École" },
  { from: "b", to: "c", category: INSTITUTIONAL, acceptedAt: noon("2024-04-01"), institution: "E\u0301COLE" },
  { from: "c", to: "d", category: HUMAN, acceptedAt: null, offeredAt: noon("2024-05-01") },
  { from: "d", to: "e", category: HUMAN, acceptedAt: noon("2024-06-01"), withdrawnAt: noon("2024-07-01") },
  { from: "x", to: "b", category: INSTITUTIONAL, acceptedAt: noon("2024-03-15"), validUntil: "2024-12-31" },
];

async function fill(world: World): Promise<void> {
  const names = ["a", "b", "c", "d", "e", "x"];
  await putKeys(
    world,
    names.map((name) => ({
      fingerprint: keyNamed(name),
      pseudonym: name,
      status: name === "x" ? "revoked" : "active",
    })),
  );
  await putEndorsements(
    world,
    EDGES.map((edge, i) => ({
      offeredAt: noon("2024-01-01"),
      ...edge,
      id: i + 1,
      from: keyNamed(edge.from),
      to: keyNamed(edge.to),
    })),
  );
}

let world: World;
beforeAll(async () => {
  world = await open();
  await fill(world);
});

/** Names of the nodes and ids of the edges around a key. */
async function around(name: string, filter: GraphFilter = {}, where = world) {
  const graph = await where.registry.graphs.around(keyNamed(name), filter);
  return {
    ...graph,
    names: graph.nodes.map(({ pseudonym }) => pseudonym),
    ids: graph.edges.map((e) => e.offer_entry_id),
  };
}

describe("a traversal", () => {
  it("follows received and issued endorsements, breadth first, three hops by default", async () => {
    const graph = await around("a");
    expect(graph).toMatchObject({ root: keyNamed("a"), truncated: false, depth_reached: 3, cached: false });
    expect(graph.nodes.map(({ pseudonym, depth, status }) => [pseudonym, depth, status])).toEqual([
      ["a", 0, "active"],
      ["b", 1, "active"],
      ["c", 2, "active"],
      ["x", 2, "revoked"],
      ["d", 3, "active"],
    ]);
    expect(graph.edges).toEqual([
      {
        from: keyNamed("a"),
        to: keyNamed("b"),
        category: HUMAN,
        status: "active",
        offer_entry_id: 1,
        since: noon("2024-03-01"),
        until: null,
      },
      expect.objectContaining({ offer_entry_id: 2, from: keyNamed("b"), to: keyNamed("c"), status: "active" }),
      expect.objectContaining({ offer_entry_id: 5, from: keyNamed("x"), status: "expired", until: "2024-12-31" }),
      expect.objectContaining({ offer_entry_id: 3, status: "offered", since: noon("2024-05-01") }),
    ]);
    expect((await around("e", { max_depth: 8 })).names).toEqual(["e", "d", "c", "b", "a", "x"]);
    expect((await around("e", { max_depth: 1 })).edges).toMatchObject([
      { status: "withdrawn", until: noon("2024-07-01") },
    ]);
  });

  it.each([
    [0, ["b"], []],
    [1, ["b", "c", "a", "x"], [2, 1, 5]],
    [2, ["b", "c", "a", "x", "d"], [2, 1, 5, 3]],
    [8, ["b", "c", "a", "x", "d", "e"], [2, 1, 5, 3, 4]],
  ])("of depth %i", async (maxDepth, names, ids) => {
    expect(await around("b", { max_depth: maxDepth })).toMatchObject({ names, ids });
  });

  it.each<[GraphFilter, number[]]>([
    [{ type: HUMAN }, [1]],
    [{ type: INSTITUTIONAL }, [2, 5]],
    [{ status: "active" }, [2, 1]],
    [{ status: "expired" }, [5]],
    [{ status: "offered" }, []],
    [{ institution: "école" }, [2, 1]],
    [{ institution: "ecole" }, []],
    [{ since: "2024-03-15" }, [2, 5, 3, 4]],
    [{ since: "2024-03-15T12:00:00Z" }, [2, 5, 3, 4]],
    [{ since: "2024-03-15T13:00:00+01:00" }, [2, 5, 3, 4]],
    [{ since: "2024-03-15T12:00:00.000001Z" }, [2, 3, 4]],
    [{ until: "2024-03-15" }, [1, 5]],
    [{ until: "2024-03-15T12:00:00Z" }, [1, 5]],
    [{ until: "2024-03-15T11:00:00-01:00" }, [1, 5]],
    [{ until: "2024-03-15T11:59:59.999999Z" }, [1]],
    [{ since: noon("2024-03-15"), until: noon("2024-03-15") }, [5]],
    [{ since: "2024-03-02", until: "2024-04-30" }, [2, 5]],
    [{ type: INSTITUTIONAL, status: "active" }, [2]],
    [{ type: INSTITUTIONAL, institution: "ÉCOLE", since: "2024-04-01", until: "2024-04-01", status: "active" }, [2]],
    [{ type: HUMAN, institution: "École", status: "expired" }, []],
  ])("with the filters %j", async (filter, ids) => {
    expect((await around("b", { max_depth: 8, ...filter })).ids).toEqual(ids);
  });

  it("with a date includes the first and the last microsecond of its day", async () => {
    const own = await open();
    await putKeys(
      own,
      ["root", 1, 2, 3, 4].map((name) => ({ fingerprint: keyNamed(name) })),
    );
    const moments = [
      "2024-03-14T23:59:59.999999Z",
      "2024-03-15T00:00:00.000000Z",
      "2024-03-15T23:59:59.999999Z",
      "2024-03-16T00:00:00.000000Z",
    ];
    await putEndorsements(
      own,
      moments.map((acceptedAt, i) => ({ id: i + 1, from: keyNamed("root"), to: keyNamed(i + 1), acceptedAt })),
    );
    const ids = async (filter: GraphFilter) => (await around("root", filter, own)).ids;
    expect(await ids({ since: "2024-03-15" })).toEqual([2, 3, 4]);
    expect(await ids({ until: "2024-03-15" })).toEqual([1, 2, 3]);
    expect(await ids({ since: "2024-03-15", until: "2024-03-15" })).toEqual([2, 3]);
  });

  it("goes on only through endorsements that pass", async () => {
    expect((await around("a", { max_depth: 8, type: HUMAN })).names).toEqual(["a", "b"]);
  });

  it("starts at any key, the operator's too, and at no other fingerprint", async () => {
    const graph = await world.registry.graphs.around(world.operator.fingerprint);
    expect(graph).toMatchObject({ nodes: [{ pseudonym: "operator", status: "active", depth: 0 }], edges: [] });
    expect(await failure(() => around("nobody"))).toMatchObject({ code: "not-found" });
  });

  it("names every filter that is none", async () => {
    const filter = { max_depth: 9, type: "x", status: "y", since: "yesterday", until: "2024-02-30" } as object;
    const { code, paths } = await failure(() => around("a", filter));
    expect(code).toBe("invalid-input");
    expect(paths).toEqual(["/max_depth", "/type", "/status", "/since", "/until"]);
    for (const maxDepth of [-1, 1.5, Number.NaN])
      expect(await failure(() => around("a", { max_depth: maxDepth }))).toMatchObject({ paths: ["/max_depth"] });
  });
});

describe("a bound", () => {
  const bounds = { maxNodes: 10_000, maxEdges: 50_000, seconds: 10 };

  it.each([
    ["nodes", { ...bounds, maxNodes: 3 }, 3, 2],
    ["edges", { ...bounds, maxEdges: 1 }, 2, 1],
  ])("on %s cuts the graph and says so", async (_, tight, nodes, edges) => {
    const small = await open({ bounds: tight });
    await fill(small);
    const graph = await around("a", { max_depth: 8 }, small);
    expect([graph.truncated, graph.nodes.length, graph.edges.length]).toEqual([true, nodes, edges]);
    expect(await around("a", { max_depth: 1 }, small)).toMatchObject({ truncated: false, names: ["a", "b"] });
  });

  it("on time does, too", async () => {
    let seconds = 0;
    const late = await open({ stopwatch: () => seconds++, bounds: { ...bounds, seconds: 3 } });
    await putKeys(
      late,
      Array.from({ length: 1001 }, (_, i) => ({ fingerprint: keyNamed(i) })),
    );
    await putEndorsements(
      late,
      Array.from({ length: 1000 }, (_, i) => ({ id: i + 1, from: keyNamed(0), to: keyNamed(i + 1) })),
    );
    const graph = await around("0", {}, late);
    expect(graph.truncated).toBe(true);
    expect(graph.nodes.length).toBeGreaterThan(1);
    expect(graph.nodes.length).toBeLessThan(1001);
  });

  it("keeps the answer about one of 10,500 keys that endorse one another small, and is met without holding up appends", async () => {
    const swarm = await open();
    const keys = Array.from({ length: 10_500 }, (_, i) => keyNamed(i));
    await putKeys(
      swarm,
      keys.map((fingerprint) => ({ fingerprint })),
    );
    const edges = keys.flatMap((from, i) =>
      [1, 7, 131].map((step, n) => ({ id: 1 + 3 * i + n, from, to: keys[(i * 3 + step) % keys.length]! })),
    );
    await putEndorsements(
      swarm,
      edges.filter(({ from, to }) => from !== to),
    );
    let isAnswered = false;
    const asked = around("0", { max_depth: 8 }, swarm).finally(() => {
      isAnswered = true;
    });
    await swarm.append({ event_type: "something", payload: {} });
    expect(isAnswered).toBe(false);
    const graph = await asked;
    expect(graph).toMatchObject({ truncated: true, cached: false });
    expect(graph.nodes).toHaveLength(10_000);
    expect(new Set(graph.nodes.map(({ fingerprint }) => fingerprint)).size).toBe(10_000);
    const shown = new Set(graph.nodes.map(({ fingerprint }) => fingerprint));
    expect(graph.edges.every(({ from, to }) => shown.has(from) && shown.has(to))).toBe(true);
  });
});

describe("a graph that is kept", () => {
  const isCached = async (where: World, root: string, filter: GraphFilter = {}) =>
    (await where.registry.graphs.around(root, filter)).cached;

  it("serves the same question for a minute", async () => {
    const own = await open();
    const key = await newKey(own);
    expect(await isCached(own, key)).toBe(false);
    expect(await isCached(own, key)).toBe(true);
    expect(await isCached(own, key, { max_depth: 3 })).toBe(true);
    expect(await isCached(own, key, { max_depth: 2 })).toBe(false);
    own.now += 59_999_999;
    expect(await isCached(own, key)).toBe(true);
    own.now += 1;
    expect(await isCached(own, key)).toBe(false);
  });

  it("is traversed once for all simultaneous requests", async () => {
    const own = await open();
    const key = await newKey(own);
    const { graphs } = own.registry;
    const [one, two] = await Promise.all([graphs.around(key), graphs.around(key)]);
    expect(two.nodes).toBe(one.nodes);
    expect([one.cached, two.cached]).toEqual([false, false]);
  });

  it("is not served for a time before that of its walk", async () => {
    const own = await open();
    const key = await newKey(own);
    expect(await isCached(own, key)).toBe(false);
    expect(await isCached(own, key)).toBe(true);
    own.now -= 1;
    expect(await isCached(own, key)).toBe(false);
    expect(await isCached(own, key)).toBe(true);
  });

  it("is not that of a walk which began before an event that touches it", async () => {
    const own = await open();
    const keys = Array.from({ length: 5_000 }, (_, i) => keyNamed(i));
    await putKeys(
      own,
      keys.map((fingerprint) => ({ fingerprint })),
    );
    const [root, other] = keys as [string, string];
    const edges = keys.flatMap((from, i) =>
      [1, 7, 131].map((step, n) => ({ id: 10_000 + 3 * i + n, from, to: keys[(i + step) % keys.length]! })),
    );
    await putEndorsements(own, edges);
    const around = async () =>
      (await own.registry.graphs.around(root, { max_depth: 8 })).edges.map((e) => e.offer_entry_id);
    // A traversal begins with a snapshot, which may take a moment on a busy machine.
    const { log } = own.registry;
    const snapshot = log.snapshot.bind(log);
    const began = new Promise<void>((resolve) => {
      log.snapshot = () => {
        resolve();
        return snapshot();
      };
    });
    let isAnswered = false;
    const early = around().finally(() => {
      isAnswered = true;
    });
    await began;
    const offer = {
      endorser_key_fingerprint: root,
      endorsed_key_fingerprint: other,
      category: HUMAN,
      valid_until: null,
    };
    await own.append({ event_type: "endorsement_offer", payload: offer });
    expect(isAnswered).toBe(false);
    const late = around();
    // The traversal that began first may end last. The cached result must still include the event.
    expect(await early).not.toContain(1);
    expect(await late).toContain(1);
    expect(await around()).toContain(1);
  });

  it("is dropped by an event that touches any of its keys, and by no other", async () => {
    const own = await open();
    const [root, near, far, stranger] = [await newKey(own), await newKey(own), await newKey(own), await newKey(own)];
    const { endorsements } = own.registry;
    await endorsements.offer(offerOf(near, root));
    const offer = await endorsements.offer(offerOf(near, far));
    expect(await isCached(own, root)).toBe(false);
    await newKey(own);
    await endorsements.offer(offerOf(stranger, await newKey(own)));
    expect(await isCached(own, root)).toBe(true);
    const { offer_entry_id } = offer.endorsement;
    await endorsements.accept({ offer_entry_id, endorsed_fingerprint: far });
    expect(await isCached(own, root)).toBe(false);
    expect(await isCached(own, root)).toBe(true);
    await own.append({ event_type: "key_revocation", payload: { fingerprint: far } });
    const graph = await own.registry.graphs.around(root);
    expect(graph.cached).toBe(false);
    expect(graph.nodes.at(-1)).toMatchObject({ fingerprint: far, status: "revoked" });
    await endorsements.offer(offerOf(stranger, near));
    expect(await isCached(own, root)).toBe(false);
    expect((await own.registry.graphs.around(root)).nodes).toHaveLength(5);
  });

  it("is dropped when a key in it names itself, and not when another does", async () => {
    const own = await open();
    const [near, stranger] = [nodeSigner(), nodeSigner()];
    const { keys, graphs, endorsements } = own.registry;
    const root = await newKey(own);
    for (const signer of [near, stranger]) await keys.register(registration(signer));
    await endorsements.offer(offerOf(root, near.fingerprint));
    expect(await isCached(own, root)).toBe(false);
    await keys.register(heldRegistration(stranger));
    expect(await isCached(own, root)).toBe(true);
    await keys.register(heldRegistration(near, "its own name"));
    expect((await graphs.around(root)).nodes.at(-1)).toMatchObject({ pseudonym: "its own name", named: true });
  });

  it("is dropped when a status in it changes with time", async () => {
    const own = await open({ cacheSeconds: 10 * 86_400 });
    const [root, other] = [await newKey(own), await newKey(own)];
    const { endorsement } = await own.registry.endorsements.offer(offerOf(other, root));
    const { offer_entry_id } = endorsement;
    await own.registry.endorsements.accept({ offer_entry_id, endorsed_fingerprint: root });
    const status = async () => (await own.registry.graphs.around(root)).edges[0]!.status;
    expect(await status()).toBe("pending_activation");
    own.now += DAY - 1;
    expect(await isCached(own, root)).toBe(true);
    own.now += 1;
    expect(await status()).toBe("active");
  });

  it("gives way when too much is kept", async () => {
    const own = await open();
    const keys = Array.from({ length: 300 }, (_, i) => keyNamed(i));
    await putKeys(
      own,
      keys.map((fingerprint) => ({ fingerprint })),
    );
    for (const key of keys) await isCached(own, key);
    expect(await isCached(own, keys.at(-1)!)).toBe(true);
    expect(await isCached(own, keys[0]!)).toBe(false);
  });

  it("ends with the registry: running traversals are refused", async () => {
    const own = await open();
    await putKeys(own, [{ fingerprint: keyNamed(0) }]);
    const asked = failure(() => own.registry.graphs.around(keyNamed(0)));
    const reopened = own.reopen();
    expect(await asked).toMatchObject({ code: "closed" });
    await reopened;
    expect(await isCached(own, keyNamed(0))).toBe(false);
  });
});

/**
 * What strangers have registered decides nothing about what others cost: counted in rows and bytes, beside 1, 10 and 100
 * strangers who do all that a service lets anybody do. `docs/costs.md` has the bounds of what may grow.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { Anchoring } from "#cairnlog/server/anchoring/anchoring.js";
import { Metrics } from "#cairnlog/server/http/observing/metrics.js";
import { Readiness } from "#cairnlog/server/http/observing/readiness.js";
import { createLogger } from "#cairnlog/server/process/logger.js";
import { Deliverer } from "#cairnlog/server/webhooks/deliverer.js";
import { type CommandCost, countCommands, countReads, type DiskCost } from "./counting.js";
import { letStrangersAct } from "./strangers.js";
import { tour } from "./tour.js";
import { closeWorlds, HASH, manifestOf, newFolder, openWorld, sha256, type TestSigner, type World } from "./world.js";

/** The first is what the others are compared with: rows are there that are not there without any stranger. */
const STRANGERS = [1, 10, 100];
/** Bytes by which a text may be longer because it names a higher entry. */
const DIGITS = 16;

/** A world in which the tour took place, and strangers acted in the middle of it. */
interface Toured {
  readonly strangers: number;
  readonly world: World;
  readonly pem: string;
  /** Keys of the tour, to which strangers have made offers and requests. */
  readonly holders: readonly TestSigner[];
  readonly commands: readonly CommandCost[];
}

const worlds: Toured[] = [];
beforeAll(async () => {
  for (const strangers of STRANGERS) {
    const pem = generatePrivateKey("ed25519");
    const world = await openWorld(newFolder(), pem, { requestQuota: null });
    let counted = countCommands(world);
    const commands: CommandCost[] = [];
    const holders: TestSigner[] = [];
    await tour(world, async (keys) => {
      commands.push(...counted());
      holders.push(...keys);
      await letStrangersAct(world, strangers, keys);
      counted = countCommands(world);
    });
    commands.push(...counted());
    worlds.push({ strangers, world, pem, holders, commands });
  }
});
afterAll(closeWorlds);

/** The figures of `cost` that are above those of `least`. */
function grown<T extends object>(what: string, least: T, cost: T): string[] {
  return Object.entries(cost).flatMap(([figure, value]) => {
    const before = least[figure as keyof T];
    if (typeof value !== "number" || typeof before !== "number") return [];
    const slack = /bytes/i.test(figure) ? DIGITS : 0;
    return value > before + slack ? [`${what}: ${before} ${figure}, now ${value}`] : [];
  });
}

/** Commands that read more, up to a bound. */
const BOUNDED_COMMANDS = ["webhook.subscribe"];

test("no command reads or writes more, but for those that have a bound", () => {
  const [least, ...others] = worlds;
  const faults = others.flatMap(({ strangers, commands }) => {
    expect(commands.map(({ name }) => name)).toEqual(least!.commands.map(({ name }) => name));
    return commands.flatMap((cost, i) =>
      BOUNDED_COMMANDS.includes(cost.name) ? [] : grown(`${cost.name} beside ${strangers}`, least!.commands[i]!, cost),
    );
  });
  expect(faults).toEqual([]);
});

type Read = (toured: Toured) => unknown;

/** What each of these reads from disk in all worlds. */
async function readsOf(reads: Readonly<Record<string, Read>>): Promise<Map<string, DiskCost[]>> {
  const costs = new Map<string, DiskCost[]>();
  for (const toured of worlds)
    for (const [name, read] of Object.entries(reads)) {
      const cost = await countReads(() => read(toured));
      costs.set(name, [...(costs.get(name) ?? []), cost]);
    }
  return costs;
}

const faultsOf = (costs: Map<string, DiskCost[]>): string[] =>
  [...costs].flatMap(([name, [least, ...others]]) => others.flatMap((cost) => grown(name, least!, cost)));

const PAGE = { page: 1, per_page: 1 };

/** Queries that read what they show. */
const QUERIES: Readonly<Record<string, Read>> = {
  "keys.list": ({ world }) => world.registry.keys.list(PAGE),
  "keys.detail": ({ world, holders: [one] }) => world.registry.keys.detail(one!.fingerprint),
  "keys.search": ({ world }) => world.registry.keys.search("som", PAGE),
  "endorsementQueries.received, accepted": ({ world, holders: [, two] }) =>
    world.registry.endorsementQueries.received(two!.fingerprint, { ...PAGE, status: "acceptance_revoked" }),
  "endorsementQueries.issued": ({ world, holders: [one] }) =>
    world.registry.endorsementQueries.issued(one!.fingerprint, PAGE),
  "endorsementQueries.alerts": ({ world, holders: [, two] }) =>
    world.registry.endorsementQueries.alerts(two!.fingerprint, PAGE),
  "trust.standing": ({ world, holders: [, two] }) => world.registry.trust.standing(two!.fingerprint),
  "requestQueries.list": ({ world, holders: [one] }) =>
    world.registry.requestQueries.list({ target: one!.fingerprint, ...PAGE }),
  "policies.view": ({ world, holders: [, , three] }) => world.registry.policies.view(three!.fingerprint),
  "trustConfigs.list": ({ world }) => world.registry.trustConfigs.list(PAGE),
  "trustConfigs.get": ({ world, holders: [one] }) => world.registry.trustConfigs.get(one!.fingerprint),
  "claims.list": ({ world }) => world.registry.claims.list(sha256("a"), PAGE),
  "verification.verify": ({ world }) =>
    world.registry.verification.verify({ manifest: manifestOf(), source_hash: HASH }),
  "log.match": ({ world }) => world.registry.log.match({ document: `sha256:${HASH}` }, 0, 1),
};

/** Queries that read more than they show, each up to its bound. */
const BOUNDED: Readonly<Record<string, Read>> = {
  "keys.search for a long text": ({ world }) => world.registry.keys.search("someone", PAGE),
  "endorsementQueries.received": ({ world, holders: [one] }) =>
    world.registry.endorsementQueries.received(one!.fingerprint, PAGE),
  "endorsementQueries.statusCounts": ({ world, holders: [one] }) =>
    world.registry.endorsementQueries.statusCounts(one!.fingerprint),
  "graphs.around": ({ world, holders: [one] }) => world.registry.graphs.around(one!.fingerprint, { max_depth: 1 }),
  "webhooks.list": ({ world, holders: [one] }) => world.registry.webhooks.list(one!.fingerprint),
  "inbox.list": ({ world, holders: [one] }) => world.registry.inbox.list(one!.fingerprint, PAGE),
};

test("no query reads more, but for those that have a bound", async () => {
  expect(faultsOf(await readsOf(QUERIES))).toEqual([]);
  // Those that have one are read to the end here.
  for (const [name, [, , cost]] of await readsOf(BOUNDED)) expect(cost!.rows, name).toBeLessThan(2_000);
});

test("metrics and readiness read no more", async () => {
  const reads: Record<string, Read> = {
    async metrics({ world: { registry } }) {
      const metrics = new Metrics(registry.log, registry.log);
      const logger = createLogger("silent");
      const send = async () => ({ isDelivered: false, reason: "nobody is there" });
      metrics.watchDeliveries(new Deliverer({ webhooks: registry.webhooks, send, logger }));
      metrics.watchAnchoring(new Anchoring({ ...registry, calendars: [], logger }));
      await metrics.text();
      metrics.close();
    },
    readiness: ({ world: { registry }, pem }) =>
      new Readiness({
        log: registry.log,
        operator: operatorKey(pem),
        stuck: () => [],
        freeBytes: () => Number.POSITIVE_INFINITY,
        minFreeBytes: 0,
      }).check(),
  };
  expect(faultsOf(await readsOf(reads))).toEqual([]);
});

test("no start reads more rows", async () => {
  // The first start behind a withholding takes what is withheld from the disk, for which it copies the log.
  for (const { world } of worlds) await world.reopen();
  const costs = await readsOf({ start: ({ world }) => world.reopen() });
  // Entries that are in no run of postings are read: 4,096 at most.
  const rows = costs.get("start")!.map(({ rows, rowBytes }) => ({ rows, rowBytes }));
  expect(rows).toEqual(STRANGERS.map(() => rows[0]));
});

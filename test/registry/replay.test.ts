/**
 * Commands are deterministic: recorded commands, run again on a new log at the same times, write the same bytes. This
 * covers every command and every kind of event.
 */
import { readdirSync, readFileSync } from "node:fs";
import { type Key, open } from "lmdb";
import { afterAll, expect, test } from "vitest";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { openLog } from "#cairnlog/engine/log/log.js";
import { type Command, commandNamed } from "#cairnlog/engine/log/state/commands.js";
import type { Committed } from "#cairnlog/engine/log/state/executor.js";
import { projection } from "#cairnlog/engine/registry/events/projection.js";
import { BYTE_TABLES, RECORD_TABLES } from "#cairnlog/engine/store/schema/schema.js";
import { EVENT_TYPES, payloadMisfit } from "#cairnlog/engine/verify/events/kinds.js";
import { eventIn } from "#cairnlog/engine/verify/events/withheld.js";
import { FakeJournal } from "../journal/fakejournal.js";
import { tour } from "./tour.js";
import { BASE, closeWorlds, newFolder, openWorld, type World } from "./world.js";

afterAll(closeWorlds);

/** A recorded command with its input. */
interface Call {
  readonly name: string;
  readonly input: unknown;
  /** Time of the clock. */
  readonly now: number;
}

/** Records the commands that `world` executes. Commands that wait for the same batch are one group. */
function record(world: World): Call[][] {
  const { log } = world.registry;
  const enqueue: typeof log.enqueue = log.enqueue.bind(log);
  const groups: Call[][] = [];
  let waiting = 0;
  log.enqueue = (command, input, resolve, reject) => {
    const call = { name: command.name, input: structuredClone(input), now: world.now };
    expect(commandNamed(command.name)).toBe(command);
    expect(isPlain(input), `the input of ${command.name} is plain data`).toBe(true);
    if (waiting++) groups.at(-1)!.push(call);
    else groups.push([call]);
    enqueue(
      command,
      input,
      (committed) => {
        waiting--;
        resolve(committed);
      },
      (error) => {
        waiting--;
        reject(error);
      },
    );
  };
  log.execute = <Input, Output>(command: Command<Input, Output>, input: Input) =>
    new Promise<Committed<Output>>((resolve, reject) => log.enqueue(command, input, resolve, reject));
  return groups;
}

function isPlain(value: unknown): boolean {
  if (value === null || ["boolean", "number", "string"].includes(typeof value) || value instanceof Uint8Array)
    return true;
  if (Array.isArray(value)) return value.every(isPlain);
  return (
    typeof value === "object" &&
    Object.getPrototypeOf(value) === Object.prototype &&
    Object.values(value).every(isPlain)
  );
}

/** Runs recorded commands in a new log. */
async function replay(world: World, groups: readonly (readonly Call[])[]): Promise<void> {
  for (const group of groups) {
    world.now = group[0]!.now;
    // Refused commands are refused again.
    await Promise.allSettled(
      group.map(({ name, input }) => world.registry.log.execute(commandNamed(name)!, input as never)),
    );
  }
}

/** Every row of a closed log, as bytes in hex. */
async function contents(path: string): Promise<Map<string, [Key, string][]>> {
  const env = open({ path, maxDbs: 50, readOnly: true });
  const tables = [...BYTE_TABLES, ...RECORD_TABLES].map((name): [string, [Key, string][]] => {
    const rows = env.openDB<Buffer, Key>({ name, encoding: "binary" }).getRange();
    return [name, [...rows].map(({ key, value }) => [key, value.toString("hex")])];
  });
  await env.close();
  return new Map(tables);
}

/** Records contain these names. If a name is changed or removed, the records with it cannot be read any more. */
const NAMES = `
  account.create account.recover anchor.replace attestation.record challenge.keep-secret challenge.use claim.post credential.enroll endorsement.accept
  endorsement.alert endorsement.offer endorsement.revoke-acceptance endorsement.withdraw key.register key.revoke
  key.succeed log.append log.continue log.freeze log.take-head-time log.withhold notification.mark-read outbox.clear outbox.settle password.set
  policy.publish request.create request.respond trust-config.create trust-config.revoke webhook.deactivate
  webhook.end-with-key webhook.mark-walk webhook.subscribe
`;

const ENGINE = new URL("../../engine/", import.meta.url);
/** The names of all commands, as the sources have them. */
const DEFINED = readdirSync(ENGINE, { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".ts"))
  .flatMap((file) => [...readFileSync(new URL(file, ENGINE), "utf8").matchAll(/\bdefine\(\s*"([^"]+)"/g)])
  .map((match) => match[1]!)
  .sort();

test("every command has the name that it always had", () => {
  for (const name of NAMES.trim().split(/\s+/)) expect(commandNamed(name), name).toBeDefined();
});

test("the same commands at the same times write the same bytes", async () => {
  const pem = generatePrivateKey("ed25519");
  const [path, again] = [newFolder(), newFolder()];
  const world = await openWorld(path, pem);
  const groups = record(world);
  await tour(world);
  const names = new Set(groups.flat().map(({ name }) => name));
  expect([...names].sort()).toEqual(DEFINED);
  expect(groups.some((group) => group.length > 1)).toBe(true);
  const entries = [...world.registry.log.entries()];
  expect(new Set(entries.map(({ event_type }) => event_type))).toEqual(
    // No command records a rotation of the operator key: it is written to a closed log.
    new Set([
      ...EVENT_TYPES.filter((type) => type !== "operator_key_rotation"),
      `${BASE}/authorship/v1`,
      "https://other.example/v1",
      "note",
    ]),
  );
  expect(entries.flatMap((entry) => (entry.payload && payloadMisfit(eventIn(entry))) ?? [])).toEqual([]);
  await world.registry.close();

  const other = await openWorld(again, pem);
  await replay(other, groups);
  expect(other.registry.log.stateDifferences()).toEqual([]);
  await other.registry.close();

  const [written, replayed] = [await contents(path), await contents(again)];
  // Only imported history skips ids, only a replicated log has a leader, and nobody pays for these commands.
  const empty = [...written].filter(([, rows]) => !rows.length).map(([name]) => name);
  expect(empty).toEqual(["seams", "operatorRotations", "leader", "byteBudgets"]);
  for (const [name, rows] of written) expect(replayed.get(name), name).toEqual(rows);
});

test("a node that follows writes the same, however many records it finds at a time", async () => {
  const pem = generatePrivateKey("ed25519");
  const [path, signer, journal] = [newFolder(), operatorKey(pem), new FakeJournal()];
  await (await openLog({ path, signer, journal })).close();
  const world = await openWorld(path, pem, { replicated: { journal, standing: { refusal: null } } });
  await tour(world);
  await world.registry.close();
  const { records } = journal;
  expect(records.length).toBeGreaterThan(40);

  // The log of the tour has events that are none of the service's.
  const { checksEvents: _, ...lenient } = projection;
  /** Follows the journal, which has so many more records at each look. */
  const followed = async (more: number) => {
    const [own, seen] = [newFolder(), new FakeJournal()];
    const standing = { refusal: new CairnlogError("not-leader", "Another node leads.") };
    const log = await openLog({ path: own, signer, projection: lenient, journal: seen, standing });
    for (let at = 0; at < records.length; at += more) {
      seen.records.push(...records.slice(at, at + more));
      await log.follow();
    }
    expect(log.stateDifferences()).toEqual([]);
    await log.close();
    return contents(own);
  };
  const [led, one, three, all] = [
    await contents(path),
    await followed(1),
    await followed(3),
    await followed(records.length),
  ];
  for (const [name, rows] of one) for (const other of [three, all]) expect(other.get(name), name).toEqual(rows);
  for (const name of ["batches", "tiles", "journal"]) expect(all.get(name), name).toEqual(led.get(name));
  for (const [name, rows] of led)
    expect(
      all.get(name)!.map(([key]) => key),
      name,
    ).toEqual(rows.map(([key]) => key));
});

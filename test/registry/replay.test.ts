/**
 * Commands are deterministic: recorded commands, run again on a new log at the same times, write the same bytes. This
 * covers every command and every kind of event.
 */
import { type Key, open } from "lmdb";
import { afterAll, expect, test } from "vitest";
import { operatorKey } from "#cairnlog/engine/crypto/keys/operator-key.js";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/private-key.js";
import { CairnlogError } from "#cairnlog/engine/error.js";
import { openLog } from "#cairnlog/engine/log/log.js";
import { type Command, commandNamed, commandNames } from "#cairnlog/engine/log/write/commands.js";
import type { Committed } from "#cairnlog/engine/log/write/executor.js";
import { projection } from "#cairnlog/engine/registry/projection.js";
import { BYTE_TABLES, RECORD_TABLES } from "#cairnlog/engine/store/schema.js";
import { EVENT_TYPES, payloadMisfit } from "#cairnlog/engine/verify/kinds.js";
import { FakeJournal } from "../journal/fakejournal.js";
import { newRecipient, seal } from "../verify/claims/ecies.js";
import { enrolment } from "./accounts/holders.js";
import { HUMAN, INSTITUTIONAL } from "./endorsements/endorsementcase.js";
import {
  at,
  BASE,
  closeWorlds,
  DAY,
  failure,
  manifestOf,
  newFolder,
  nodeSigner,
  openWorld,
  registration,
  SECOND,
  sha256,
  submission,
  type World,
} from "./world.js";

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

/** Runs every command, and appends events of every kind. At the end no private table is empty. */
async function tour(world: World): Promise<void> {
  const { registry } = world;
  const { keys, keyLifecycle, accounts, credentials, passwords, attestations, endorsements, webhooks } = registry;
  const { requests, policies, inbox, trustConfigs, claims, log } = registry;
  const later = (micros: number) => {
    world.now += micros;
  };
  const newKey = async (expires?: string) => {
    const signer = nodeSigner();
    await keys.register(registration(signer, "someone", expires));
    later(SECOND);
    return signer;
  };
  const [one, two, three] = [await newKey(), await newKey(), await newKey()];

  const hook = { url: "https://receiver.example/hook", secret: "a secret of sixteen and more" };
  const { id: lasting } = await webhooks.subscribe(hook, one.fingerprint);
  const { id: ending } = await webhooks.subscribe({ ...hook, events: ["key.registered"] }, two.fingerprint);
  await passwords.set(three.fingerprint, { password: "correct horse battery" });

  // One batch, in which one command is refused and another sees the effect of an earlier one.
  const lost = nodeSigner();
  await Promise.allSettled([
    log.append([
      { event_type: "note", payload: { n: 1, tags: ["Ä"] } },
      { event_type: "note", payload: { bad: "\ud800" } },
    ]),
    log.append([
      { event_type: "note", payload: { n: 1, tags: ["Ä"] } },
      { event_type: "note", payload: { n: 2 } },
    ]),
    keys.register(registration(lost)),
    keys.register(registration(lost)),
    keyLifecycle.revoke(lost.fingerprint),
    webhooks.deactivate(ending, two.fingerprint),
    keys.register(registration(nodeSigner())),
  ]);
  later(SECOND);
  const expiring = await newKey(at(world.now + DAY));
  later(2 * DAY);
  const succession = {
    old_fingerprint: expiring.fingerprint,
    new_public_key: nodeSigner().pem,
    new_algorithm: "ed25519" as const,
  };
  expect((await failure(() => keyLifecycle.succeed(succession, { recovery: false }))).code).toBe("key-not-active");
  await keyLifecycle.succeed(succession, { recovery: true });

  const manifest = manifestOf();
  const { attestation } = await attestations.submit(submission(two, manifest, { intent_statement: "read it" }));
  expect((await attestations.submit(submission(two, manifest, { intent_statement: "read it" }))).duplicate).toBe(true);
  await attestations.submit(submission(nodeSigner(), manifest, { attestation_type: "https://other.example/v1" }));
  // One batch of a new key: registered by the first, the second is there twice, the last needs a proof.
  const batched = nodeSigner();
  const pages = ["page 1", "page 2", "page 2"].map((title) => submission(batched, manifestOf(title)));
  const retyped = submission(batched, manifestOf("page 1"), { attestation_type: "publication" });
  const recorded = await attestations.submitAll([...pages, retyped], async (one) => ({
    submission: one,
    possession: null,
  }));
  expect(recorded.map((one) => (one.status === "fulfilled" ? one.value.duplicate : one.reason.code))).toEqual([
    false,
    false,
    true,
    "proof-required",
  ]);

  const account = { email: "ada@example.org", device_label: "a token", credential_type: "hardware" as const };
  const { user, recovery_key } = await accounts.create({
    ...account,
    display_name: "Ada",
    key_fingerprint: one.fingerprint,
  });
  await credentials.enroll(await enrolment(world, one, two));
  await claims.post(seal({ a: 1 }, newRecipient().point, { lookupKey: sha256("a") }).payload, two.fingerprint);
  later(SECOND);
  const recovery = { ...account, pseudonym: "Ada", recovery_key, key_fingerprint: three.fingerprint };
  await accounts.recover(recovery, "192.0.2.1");
  expect(log.row("users", user.id)).toBeDefined();

  const pair = { endorser_fingerprint: one.fingerprint, endorsed_fingerprint: two.fingerprint };
  const offer = async (category: typeof HUMAN | typeof INSTITUTIONAL, more = {}) =>
    (await endorsements.offer({ ...pair, category, ...more })).endorsement.offer_entry_id;
  const human = await offer(HUMAN);
  const institutional = await offer(INSTITUTIONAL, {
    institutional_metadata: { name: "A library", z: [1.5, { "\u20ac": null }] },
    external_identifiers: [{ type: "doi", value: "10.1000/182" }],
    valid_until: "2030-01-01",
  });
  for (const offer_entry_id of [human, institutional]) {
    later(SECOND);
    await endorsements.accept({ offer_entry_id, endorsed_fingerprint: two.fingerprint });
  }
  await endorsements.alert({
    endorser_fingerprint: one.fingerprint,
    compromised_fingerprint: two.fingerprint,
    reason: "stolen",
  });
  await endorsements.withdraw({ ...pair, original_offer_entry_id: human, note: "left" });
  const ended = { original_offer_entry_id: institutional, note: "not wanted" };
  await endorsements.revokeAcceptance({ endorsed_fingerprint: two.fingerprint, ...ended });
  await offer(HUMAN);

  const question = { target_fingerprint: three.fingerprint, attestation_type: "authorship" };
  const ask = (nonce: string) =>
    requests.create(one.fingerprint, { ...question, nonce, claims: { b: 1, a: [true, { c: null }] } });
  const { request_id } = await ask("first");
  const answer = { decision: "accept" as const, attestation_id: attestation.id };
  await requests.respond(three.fingerprint, request_id, answer);
  const trusting = { field: "requester_trust", op: "ge", value: 0.9 };
  const policy = (default_action_on_failure: string) =>
    policies.publish(three.fingerprint, { predicates: { all: [trusting] }, default_action_on_failure });
  for (const action of ["decline", "hold"]) {
    later(SECOND);
    await policy(action);
    await ask(`after the policy that says ${action}`);
  }
  const [newest] = inbox.list(three.fingerprint, {}).notifications;
  await inbox.markRead(three.fingerprint, newest!.id);

  for (const minimum_threshold of [0.5, 0.75])
    await trustConfigs.create({ fingerprint: one.fingerprint, minimum_threshold });
  await trustConfigs.create({ fingerprint: two.fingerprint, minimum_threshold: 0.5 });
  await trustConfigs.revoke(two.fingerprint);

  const { outbox } = webhooks;
  const outcome = { attempt: 0, at: at(world.now), jitter: 0.5 };
  const first = (next: number) =>
    ({ entryId: next, first: { event: "key.registered", created_at: at(0), next } }) as const;
  const { id: failing } = await webhooks.subscribe(hook, two.fingerprint);
  await outbox.settle([
    { ...outcome, ...first(1), webhookId: lasting, isDelivered: true },
    { ...outcome, ...first(2), webhookId: lasting, isDelivered: false },
    { ...outcome, ...first(1), webhookId: failing, isDelivered: false },
  ]);
  await webhooks.deactivate(failing, two.fingerprint);
  expect(outbox.webhookIds()).toContain(failing);
  await outbox.clear(failing);
  await outbox.mark(2, [{ webhook_id: lasting, next: null }]);
  await outbox.mark(3, [{ webhook_id: lasting, next: 4 }]);

  const change = { proof: Buffer.from("a proof \0 of bytes"), status: "pending" as const, isSettled: false };
  await log.anchors.replace(0, undefined, change);
  await log.anchors.replace(1, undefined, { ...change, status: "confirmed", isSettled: true });
  expect(await log.anchors.replace(0, undefined, change)).toBe(false);
  // Enough entries to fill a tile.
  await log.append(Array.from({ length: 256 }, (_, n) => ({ event_type: "note", payload: { n } })));
  await log.tryWriting();
  await log.signHead();
}

/** Records contain these names. If a name is changed or removed, the records with it cannot be read any more. */
const NAMES = `
  account.create account.recover anchor.replace attestation.record challenge.keep-secret challenge.use claim.post credential.enroll endorsement.accept
  endorsement.alert endorsement.offer endorsement.revoke-acceptance endorsement.withdraw key.register key.revoke
  key.succeed log.append log.take-head-time notification.mark-read outbox.clear outbox.settle password.set
  policy.publish request.create request.respond trust-config.create trust-config.revoke webhook.deactivate
  webhook.mark-walk webhook.subscribe
`;

test("every command has the name that it always had", () => {
  expect(commandNames()).toEqual(expect.arrayContaining(NAMES.trim().split(/\s+/)));
});

test("the same commands at the same times write the same bytes", async () => {
  const pem = generatePrivateKey("ed25519");
  const [path, again] = [newFolder(), newFolder()];
  const world = await openWorld(path, pem);
  const groups = record(world);
  await tour(world);
  const names = new Set(groups.flat().map(({ name }) => name));
  // Other tests in this process may have defined commands, too.
  expect([...names].sort()).toEqual(
    commandNames()
      .filter((name) => !name.startsWith("test."))
      .sort(),
  );
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
  expect(entries.map(payloadMisfit).filter((misfit) => misfit !== undefined)).toEqual([]);
  await world.registry.close();

  const other = await openWorld(again, pem);
  await replay(other, groups);
  expect(other.registry.log.stateDifferences()).toEqual([]);
  await other.registry.close();

  const [written, replayed] = [await contents(path), await contents(again)];
  // Only imported history skips ids, and only a replicated log has a leader.
  const empty = [...written].filter(([, rows]) => !rows.length).map(([name]) => name);
  expect(empty).toEqual(["seams", "operatorRotations", "leader"]);
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

/**
 * Endorsements over HTTP: who may do what, every transition in the table of states, and every transition that is not in
 * it.
 */
import { beforeAll, describe, expect, test } from "vitest";
import { type Controlled, startControlled } from "../../server/controlled.js";
import {
  act,
  actor,
  type Body,
  bodies,
  COMMANDS,
  type Command,
  done,
  newPair,
  type Pair,
  received,
  write,
} from "../../server/endorsements.js";
import { expectProblem, type TestService } from "../../server/harness.js";
import { bearerOf, byOpenssl, proofOf } from "../../server/proofs.js";
import { newSigner } from "../../server/signers.js";

const DAY = 86_400_000_000;

let world: Controlled;
let service: TestService;
beforeAll(async () => {
  world = await startControlled();
  service = world.service;
});

describe("permissions", () => {
  test.each(COMMANDS)("%s: never without a proof, whatever else is wrong", async (command) => {
    const pair = await newPair(service);
    const session = await bearerOf(service, actor(command, pair));
    for (const body of [{}, bodies[command](pair), { ...bodies[command](pair), auth: null }])
      for (const headers of [{}, session])
        expectProblem(await service.post(`/endorsements/${command}`, body, headers), 401, "unauthenticated");
  });

  test.each(COMMANDS)("%s: a proof fails as login does", async (command) => {
    const pair = await newPair(service);
    await done("offer", pair);
    const signer = actor(command, pair);
    const other = command === "accept" || command === "revoke-acceptance" ? pair.endorser : pair.endorsed;
    const post = (auth: unknown, body: Body = bodies[command](pair)) =>
      service.post(`/endorsements/${command}`, { ...body, auth });
    const used = await proofOf(service, signer);
    expectProblem(await post(used, {}), 422, "invalid-input");
    expectProblem(await post(used), 409, "challenge-used");
    expectProblem(await post({ ...used, challenge_id: "00000000-0000-4000-8000-000000000000" }), 404, "not-found");
    expectProblem(await post(await proofOf(service, { ...signer, sign: other.sign })), 403, "forbidden");
    expectProblem(await post(await proofOf(service, other)), 403, "forbidden");
    expectProblem(await post(await proofOf(service, signer, { purpose: "login" })), 403, "forbidden");
    expectProblem(await post({}), 422, "invalid-input");
    const late = await proofOf(service, signer);
    world.now += 300_000_000;
    expectProblem(await post(late), 410, "gone");
  });

  test("a signature by openssl is as good", async () => {
    const pair = await newPair(service);
    const reply = await write(service, "offer", byOpenssl(pair.endorser), bodies.offer(pair));
    expect(reply.status, reply.text).toBe(200);
  });

  test.each(COMMANDS)("%s: 404 for keys that nobody registered", async (command) => {
    const pair = await newPair(service);
    await done("offer", pair);
    const nobody = newSigner().fingerprint;
    const body: Record<string, unknown> = bodies[command](pair);
    for (const name of Object.keys(body).filter((member) => member.endsWith("_fingerprint")))
      expectProblem(await write(service, command, actor(command, pair), { ...body, [name]: nobody }), 404, "not-found");
  });
});

/** The steps to each state. */
const STATES: Readonly<Record<string, { status: string | null; reach(pair: Pair): Promise<unknown> }>> = {
  none: { status: null, reach: async () => {} },
  offered: { status: "offered", reach: (pair) => done("offer", pair) },
  pending: {
    status: "pending_activation",
    reach: async (pair) => [await done("offer", pair), await done("accept", pair)],
  },
  active: {
    status: "active",
    async reach(pair) {
      await done("offer", pair);
      await done("accept", pair);
      world.now += DAY;
    },
  },
  "expired offer": {
    status: "expired",
    async reach(pair) {
      await done("offer", pair, { valid_until: new Date(world.now / 1000 + 1000).toISOString() });
      world.now += DAY;
    },
  },
  expired: {
    status: "expired",
    async reach(pair) {
      await done("offer", pair, { valid_until: new Date(world.now / 1000 + 1000).toISOString() });
      await done("accept", pair);
      world.now += DAY;
    },
  },
  withdrawn: { status: "withdrawn", reach: async (pair) => [await done("offer", pair), await done("withdraw", pair)] },
  "acceptance revoked": {
    status: "acceptance_revoked",
    reach: async (pair) => [
      await done("offer", pair),
      await done("accept", pair),
      await done("revoke-acceptance", pair),
    ],
  },
};
type Move = Exclude<Command, "revocation-alert">;
const OPEN_AGAIN = { none: "offered", "expired offer": "offered", expired: "offered", withdrawn: "offered" };
/** The new state for each command and state; refused if absent. */
const TABLE: Readonly<Record<Move, Readonly<Record<string, string>>>> = {
  offer: { ...OPEN_AGAIN, "acceptance revoked": "offered" },
  accept: { offered: "pending_activation" },
  withdraw: { offered: "withdrawn", pending: "withdrawn", active: "withdrawn" },
  "revoke-acceptance": { pending: "acceptance_revoked", active: "acceptance_revoked" },
};
const EVENTS: Readonly<Record<Move, string>> = {
  offer: "endorsement_offer",
  accept: "endorsement_acceptance",
  withdraw: "endorsement_withdrawal",
  "revoke-acceptance": "acceptance_revocation",
};

describe.each(Object.entries(STATES))("from %s", (name, { status, reach }) => {
  test.each(Object.keys(TABLE) as Move[])("%s", async (command) => {
    const pair = await newPair(service);
    await reach(pair);
    const before = await received(pair);
    expect(before.endorsements.map((one: { status: string }) => one.status)).toEqual(status ? [status] : []);
    const entries = await service.entryCount();
    const reply = await act(command, pair);
    const expected = TABLE[command][name];
    if (expected === undefined) {
      // docs/spec §9.1: accepting anything except a live offer is 409, even if there is no offer at all.
      expectProblem(reply, name === "none" && command !== "accept" ? 404 : 409);
      expect(await received(pair)).toEqual(before);
      expect(await service.entryCount()).toBe(entries);
      return;
    }
    expect(reply.status, reply.text).toBe(200);
    const { text, body: entry } = await service.get(`/log/${entries + 1}`);
    expect(entry.event_type).toBe(EVENTS[command]);
    const answered = command === "offer" ? reply.text : reply.text.slice(reply.text.indexOf('"log_entry":') + 12, -1);
    expect(answered).toBe(text);
    const [newest] = (await received(pair)).endorsements.slice(-1);
    expect(newest.status).toBe(expected);
    if (command !== "offer") expect(reply.body.endorsement).toEqual(newest);
  });
});

/** Ends from which an endorsement may be offered again, and whether it was accepted before. */
test.each([
  ["expired offer", false],
  ["withdrawn", false],
  ["expired", true],
  ["acceptance revoked", true],
] as const)("from %s and a new offer: whether an alert may be filed is as it was", async (name, wasAccepted) => {
  const pair = await newPair(service);
  await STATES[name]!.reach(pair);
  await done("offer", pair);
  const reply = await act("revocation-alert", pair);
  if (wasAccepted) expect(reply.status, reply.text).toBe(200);
  else expectProblem(reply, 403, "forbidden");
});

test.each([1, 1_000_000])("the acceptance of entry %d, which is no offer or is not there, is 409", async (id) => {
  const pair = { ...(await newPair(service)), id };
  expectProblem(await act("accept", pair), 409, "precondition-failed");
});

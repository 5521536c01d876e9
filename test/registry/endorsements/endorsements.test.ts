import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { at, closeWorlds, DAY, failure, nodeSigner, openWorld, registration, SECOND, type World } from "../world.js";
import { Case, entryOf, HUMAN, INSTITUTIONAL, newCase, newKey } from "./endorsementcase.js";

afterAll(closeWorlds);

let world: World;
beforeAll(async () => {
  world = await openWorld();
});

/** The steps to each state. */
const STATES: Readonly<Record<string, { status: string; reach(one: Case): Promise<unknown> }>> = {
  offered: { status: "offered", reach: (one) => one.offer() },
  "pending activation": { status: "pending_activation", reach: (one) => one.offer().then(() => one.accept()) },
  active: {
    status: "active",
    async reach(one) {
      await one.offer();
      await one.accept();
      one.world.now += DAY;
    },
  },
  "expired before it was accepted": {
    status: "expired",
    async reach(one) {
      await one.offer({ valid_until: at(one.world.now + SECOND) });
      one.world.now += SECOND;
    },
  },
  "expired after it was accepted": {
    status: "expired",
    async reach(one) {
      await one.offer({ valid_until: at(one.world.now + 2 * DAY) });
      await one.accept();
      one.world.now += 2 * DAY;
    },
  },
  "withdrawn as an offer": { status: "withdrawn", reach: (one) => one.offer().then(() => one.withdraw()) },
  "withdrawn after acceptance": {
    status: "withdrawn",
    reach: async (one) => [await one.offer(), await one.accept(), await one.withdraw()],
  },
  "acceptance revoked": {
    status: "acceptance_revoked",
    reach: async (one) => [await one.offer(), await one.accept(), await one.revoke()],
  },
};

/** The new state for each command and state; refused if absent. */
const TABLE: Readonly<Record<"accept" | "withdraw" | "revoke" | "offer", Readonly<Record<string, string>>>> = {
  accept: { offered: "pending_activation" },
  withdraw: { offered: "withdrawn", "pending activation": "withdrawn", active: "withdrawn" },
  revoke: { "pending activation": "acceptance_revoked", active: "acceptance_revoked" },
  offer: {
    "expired before it was accepted": "offered",
    "expired after it was accepted": "offered",
    "withdrawn as an offer": "offered",
    "withdrawn after acceptance": "offered",
    "acceptance revoked": "offered",
  },
};

describe.each(Object.entries(STATES))("an endorsement that is %s", (name, { status, reach }) => {
  it("has that status", async () => {
    const one = await newCase(world);
    await reach(one);
    expect((await one.record()).status).toBe(status);
  });

  it.each(["accept", "withdraw", "revoke", "offer"] as const)("on %s", async (command) => {
    const one = await newCase(world);
    await reach(one);
    const { size } = world.registry.log;
    const expected = TABLE[command][name];
    if (expected === undefined) {
      const { code } = await failure(() => one[command]());
      expect(code).toBe(command === "offer" ? "already-exists" : "precondition-failed");
      expect((await one.record()).status).toBe(status);
      expect(world.registry.log.size).toBe(size);
    } else {
      const { endorsement, log_entry } = await one[command]();
      expect(endorsement.status).toBe(expected);
      expect(endorsement).toEqual(await one.record());
      expect(log_entry).toEqual(world.registry.log.entryJson(size + 1));
    }
  });

  it("is nobody else's to change", async () => {
    const one = await newCase(world);
    await reach(one);
    const stranger = await newKey(world);
    for (const by of [stranger, one.endorser]) {
      expect((await failure(() => one.accept(by))).code).toBe("forbidden");
      expect((await failure(() => one.revoke(by))).code).toBe("forbidden");
    }
    for (const by of [stranger, one.endorsed]) expect((await failure(() => one.withdraw(by))).code).toBe("forbidden");
    expect((await one.record()).status).toBe(status);
  });
});

it.each(["withdraw", "revoke"] as const)("has the note on the log with which it ends: %s", async (end) => {
  const one = await newCase(world);
  await one.offer();
  await one.accept();
  await (end === "withdraw" ? one.withdraw(one.endorser, "We parted.") : one.revoke(one.endorsed, "We parted."));
  expect([...world.registry.log.entries()].at(-1)!.payload).toMatchObject({ note: "We parted." });
});

it("is shown with its endorser's discount, whichever of the two changes it", async () => {
  const one = await newCase(world);
  const standings = vi.spyOn(world.registry.trust, "standings");
  onTestFinished(() => standings.mockRestore());
  standings.mockImplementation(async (keys) => {
    const discounts = [...keys].map((key) => [key, { may_endorse: true, discount: key === one.endorser ? 0.5 : 1 }]);
    return new Map(discounts as never);
  });
  const receipts = [await one.offer(), await one.accept(), await one.withdraw()];
  receipts.push(await one.offer(), await one.accept(), await one.revoke());
  expect(receipts.map(({ endorsement }) => endorsement.discount)).toEqual(receipts.map(() => 0.5));
});

describe("the log entry", () => {
  const content = {
    category: INSTITUTIONAL,
    valid_until: "2099-12-31",
    institutional_metadata: { name: "University of Göttingen", z: [1, { a: null }], a: 1.5 },
    external_identifiers: [{ type: "ror", value: "03vek6s52" }],
  } as const;

  it("contains the offer and its later changes", async () => {
    const one = await newCase(world);
    const offered = await one.offer(content);
    const offer = { endorser_key_fingerprint: one.endorser, endorsed_key_fingerprint: one.endorsed, ...content };
    const payload = { ...offer, event_type: "endorsement_offer" };
    expect(entryOf(offered)).toMatchObject({ id: one.id, event_type: "endorsement_offer" });
    expect(entryOf(offered).payload).toEqual(payload);
    expect(offered.endorsement).toEqual({
      offer_entry_id: one.id,
      endorser_fingerprint: one.endorser,
      endorsed_fingerprint: one.endorsed,
      ...content,
      status: "offered",
      offered_at: at(world.now),
      accepted_at: null,
      activates_at: null,
      ended_at: null,
      end_note: null,
      discount: 1,
    });
    world.now += SECOND;
    const accepted = await one.accept();
    expect(entryOf(accepted).event_type).toBe("endorsement_acceptance");
    expect(entryOf(accepted).payload).toEqual({
      ...offer,
      event_type: "endorsement_acceptance",
      offer_entry_id: one.id,
      note: null,
    });
    expect(accepted.endorsement).toMatchObject({
      status: "pending_activation",
      accepted_at: at(world.now),
      activates_at: at(world.now + DAY),
    });
    world.now += SECOND;
    const withdrawn = await one.withdraw(one.endorser, "left the house");
    expect(entryOf(withdrawn).event_type).toBe("endorsement_withdrawal");
    expect(entryOf(withdrawn).payload).toEqual({
      ...offer,
      event_type: "endorsement_withdrawal",
      offer_entry_id: one.id,
      note: "left the house",
    });
    expect(withdrawn.endorsement).toMatchObject({ ended_at: at(world.now), end_note: "left the house" });

    await one.offer(content);
    await one.accept();
    const revoked = await one.revoke(one.endorsed, "not wanted");
    expect(entryOf(revoked).event_type).toBe("acceptance_revocation");
    expect(entryOf(revoked).payload).toEqual({
      ...offer,
      event_type: "acceptance_revocation",
      offer_entry_id: one.id,
      note: "not wanted",
    });
  });

  it("has nulls for absent values, and date-times in canonical form", async () => {
    const one = await newCase(world);
    const offered = await one.offer({ valid_until: "2099-06-01T12:00:00+02:00", external_identifiers: null });
    expect(entryOf(offered).payload).toEqual({
      event_type: "endorsement_offer",
      endorser_key_fingerprint: one.endorser,
      endorsed_key_fingerprint: one.endorsed,
      category: HUMAN,
      valid_until: "2099-06-01T10:00:00.000000Z",
      institutional_metadata: null,
      external_identifiers: null,
    });
  });
});

describe("keys that are not active", () => {
  const ends: [string, (where: World, key: string) => unknown][] = [
    ["revoked", (where, key) => where.registry.keyLifecycle.revoke(key)],
    [
      "succeeded",
      (where, key) => {
        const next = nodeSigner();
        const names = { old_fingerprint: key, new_public_key: next.pem, new_algorithm: next.algorithm };
        return where.registry.keyLifecycle.succeed(names, { recovery: false });
      },
    ],
  ];
  it.each(ends)("%s: begin nothing, and do not stop the other from ending it", async (_, end) => {
    const open = await newCase(world);
    await open.offer();
    const accepted = await newCase(world);
    await accepted.offer();
    await accepted.accept();
    const fresh = await newCase(world);
    for (const key of [open.endorser, accepted.endorser, fresh.endorser]) await end(world, key);
    for (const one of [open, fresh])
      expect((await failure(() => (one === open ? one.accept() : one.offer()))).code).toBe("key-not-active");
    expect((await failure(() => new Case(world, fresh.endorsed, fresh.endorser).offer())).code).toBe("key-not-active");
    expect((await failure(() => open.withdraw())).code).toBe("key-not-active");
    expect((await accepted.revoke()).endorsement.status).toBe("acceptance_revoked");

    const other = await newCase(world);
    await other.offer();
    await end(world, other.endorsed);
    expect((await failure(() => other.accept())).code).toBe("key-not-active");
    expect((await other.withdraw()).endorsement.status).toBe("withdrawn");
  });

  it("expired ones neither", async () => {
    const own = await openWorld();
    const expiring = await own.registry.keys.register(registration(nodeSigner(), "x", at(own.now + DAY)));
    const [out, back] = [new Case(own, expiring.fingerprint, await newKey(own)), await newCase(own)];
    await out.offer();
    own.now += DAY;
    expect((await failure(() => out.accept())).code).toBe("key-not-active");
    expect((await failure(() => out.withdraw())).code).toBe("key-not-active");
    expect((await failure(() => new Case(own, back.endorser, expiring.fingerprint).offer())).code).toBe(
      "key-not-active",
    );
  });
});

describe("time alone", () => {
  it("activates an accepted endorsement to the microsecond, and expires it", async () => {
    const own = await openWorld();
    const one = await newCase(own);
    const until = own.now + 3 * DAY;
    await one.offer({ valid_until: at(until) });
    own.now += SECOND;
    await one.accept();
    const steps: [number, string][] = [
      [own.now + DAY - 1, "pending_activation"],
      [own.now + DAY, "active"],
      [until - 1, "active"],
      [until, "expired"],
    ];
    const { size } = own.registry.log;
    for (const [time, status] of steps) {
      own.now = time;
      expect((await one.record()).status).toBe(status);
      const counts = await own.registry.endorsementQueries.statusCounts(one.endorsed);
      expect(counts.received).toMatchObject({ [status]: 1 });
    }
    expect(own.registry.log.size).toBe(size);
  });
});

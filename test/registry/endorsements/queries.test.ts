import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { at, closeWorlds, DAY, failure, nodeSigner, openWorld, SECOND, type World } from "../world.js";
import { Case, entryOf, HUMAN, INSTITUTIONAL, newCase, newKey, offerOf } from "./endorsementcase.js";

const MAX_EDGES = 10_000;

afterAll(closeWorlds);

let world: World;
beforeAll(async () => {
  world = await openWorld();
});

describe("lists", () => {
  it("show received and issued endorsements, oldest offer first, by status and category, in pages", async () => {
    const [hub, ...others] = await Promise.all(Array.from({ length: 6 }, () => newKey(world)));
    const cases = others.map((other) => new Case(world, hub!, other));
    for (const [i, one] of cases.entries()) await one.offer({ category: i % 2 ? HUMAN : INSTITUTIONAL });
    const back = new Case(world, others[0]!, hub!);
    await back.offer();
    await cases[1]!.accept();
    await cases[2]!.withdraw();
    const { endorsementQueries: queries } = world.registry;
    const ids = async (list: Promise<{ endorsements: readonly { offer_entry_id: number }[] }>) =>
      (await list).endorsements.map(({ offer_entry_id }) => offer_entry_id);

    expect(await ids(queries.issued(hub!))).toEqual(cases.map(({ id }) => id));
    expect(await ids(queries.received(hub!))).toEqual([back.id]);
    expect(await ids(queries.received(others[0]!))).toEqual([cases[0]!.id]);
    expect(await ids(queries.issued(hub!, { category: HUMAN }))).toEqual([cases[1]!.id, cases[3]!.id]);
    expect(await ids(queries.issued(hub!, { status: "withdrawn" }))).toEqual([cases[2]!.id]);
    expect(await ids(queries.issued(hub!, { status: "offered", category: HUMAN }))).toEqual([cases[3]!.id]);
    expect(await queries.issued(hub!, { status: "active" })).toEqual({
      endorsements: [],
      page: 1,
      per_page: 50,
      total: 0,
    });
    const page = await queries.issued(hub!.toUpperCase().slice(7), { page: 2, per_page: 2 });
    expect(page).toMatchObject({ page: 2, per_page: 2, total: 5 });
    expect(page.endorsements.map(({ offer_entry_id }) => offer_entry_id)).toEqual([cases[2]!.id, cases[3]!.id]);
    expect(await queries.issued(hub!, { page: 9, per_page: 200 })).toEqual({
      endorsements: [],
      page: 9,
      per_page: 200,
      total: 5,
    });
    expect(await queries.statusCounts(hub!)).toEqual({
      received: { offered: 1, pending_activation: 0, active: 0, expired: 0, withdrawn: 0, acceptance_revoked: 0 },
      issued: { offered: 3, pending_activation: 1, active: 0, expired: 0, withdrawn: 1, acceptance_revoked: 0 },
      alerts: 0,
    });
  });

  it("refuse unknown keys, statuses and categories", async () => {
    const { endorsementQueries: queries } = world.registry;
    const key = await newKey(world);
    const nobody = nodeSigner().fingerprint;
    const questions = [
      () => queries.received(nobody),
      () => queries.issued(nobody),
      () => queries.alerts(nobody),
      () => queries.statusCounts(nobody),
    ];
    for (const ask of questions) expect((await failure(ask)).code).toBe("not-found");
    for (const filter of [
      { page: 0 },
      { page: 1.5 },
      { per_page: 0 },
      { per_page: 201 },
      { status: "x" },
      { category: "x" },
    ])
      expect((await failure(() => queries.received(key, filter as never))).code).toBe("invalid-input");
    expect((await failure(() => queries.alerts(key, { per_page: 201 }))).code).toBe("invalid-input");
  });

  it("are complete even if they are longer than one slice", async () => {
    const own = await openWorld();
    const hub = await newKey(own);
    const keys = Array.from({ length: 600 }, (_, i) => `sha256:${`${i}`.padStart(64, "0")}`);
    await own.append(
      ...keys.map((key) => ({
        event_type: "endorsement_offer",
        payload: { endorser_key_fingerprint: key, endorsed_key_fingerprint: hub, category: HUMAN, valid_until: null },
      })),
      ...keys.map((key) => ({
        event_type: "endorser_revocation_alert",
        payload: { endorser_key_fingerprint: key, compromised_key_fingerprint: hub, reason: "r", evidence: null },
      })),
    );
    const { endorsementQueries: queries } = own.registry;
    const last = await queries.received(hub, { page: 3, per_page: 200 });
    expect(last.total).toBe(600);
    expect(last.endorsements.map(({ endorser_fingerprint }) => endorser_fingerprint)).toEqual(keys.slice(400));
    const alerts = await queries.alerts(hub, { page: 6, per_page: 100 });
    expect(alerts.total).toBe(600);
    expect(alerts.alerts.map(({ endorser_fingerprint }) => endorser_fingerprint)).toEqual(keys.slice(500));
    expect(await queries.statusCounts(hub)).toMatchObject({ received: { offered: 600 }, alerts: 600 });
    const [unknown] = last.endorsements;
    const { offer_entry_id } = unknown!;
    const accept = () => own.registry.endorsements.accept({ offer_entry_id, endorsed_fingerprint: hub });
    expect((await failure(accept)).code).toBe("not-found");
  });

  it("read the oldest offers to a key, and everything that it has accepted, however many offers others make", async () => {
    const own = await openWorld();
    const { endorsementQueries: queries } = own.registry;
    const hub = await newKey(own);
    const offers = (count: number) =>
      own.append(
        ...Array.from({ length: count }, (_, i) => ({
          event_type: "endorsement_offer",
          payload: {
            endorser_key_fingerprint: `sha256:${`${i}`.padStart(64, "0")}`,
            endorsed_key_fingerprint: hub,
            category: HUMAN,
            valid_until: null,
          },
        })),
      );
    while ((await queries.statusCounts(hub)).received.offered < MAX_EDGES) await offers(1_000);
    expect(await queries.statusCounts(hub)).not.toHaveProperty("truncated");
    expect(await queries.received(hub, { page: 2 })).not.toHaveProperty("truncated");
    const late = new Case(own, await newKey(own), hub);
    await late.offer();
    await late.accept();

    const { truncated, total, endorsements } = await queries.received(hub, { page: 50, per_page: 200 });
    expect({ truncated, total }).toEqual({ truncated: true, total: MAX_EDGES });
    expect(endorsements).toHaveLength(200);
    expect(await queries.received(hub, { status: "offered", page: 51, per_page: 200 })).toMatchObject({
      endorsements: [],
      truncated: true,
    });
    const pending = await queries.received(hub, { status: "pending_activation" });
    expect(pending).toMatchObject({ total: 1, endorsements: [{ offer_entry_id: late.id }] });
    expect(pending).not.toHaveProperty("truncated");
    expect(await queries.statusCounts(hub)).toMatchObject({
      received: { offered: MAX_EDGES, pending_activation: 1 },
      truncated: true,
    });
    await late.revoke();
    expect((await queries.received(hub, { status: "acceptance_revoked" })).total).toBe(1);
  });
});

describe("alerts", () => {
  const alert = (endorser_fingerprint: string, compromised_fingerprint: string) =>
    world.registry.endorsements.alert({ endorser_fingerprint, compromised_fingerprint, reason: "the key was stolen" });

  it("are for keys between which an endorsement was ever accepted, even if it has ended", async () => {
    const one = await newCase(world);
    const stranger = await newKey(world);
    const refused = async (by: string, about: string) =>
      expect((await failure(() => alert(by, about))).code).toBe("forbidden");
    await refused(one.endorser, one.endorsed);
    await one.offer();
    await refused(one.endorser, one.endorsed);
    await refused(one.endorsed, one.endorser);
    await one.accept();
    const first = await alert(one.endorser, one.endorsed);
    expect(entryOf(first)).toMatchObject({
      event_type: "endorser_revocation_alert",
      payload: {
        endorser_key_fingerprint: one.endorser,
        compromised_key_fingerprint: one.endorsed,
        reason: "the key was stolen",
        evidence: null,
      },
    });
    expect(first.alert).toEqual({
      alert_entry_id: entryOf(first).id,
      endorser_fingerprint: one.endorser,
      compromised_fingerprint: one.endorsed,
      reason: "the key was stolen",
      evidence: null,
      filed_at: at(world.now),
    });
    await one.revoke();
    world.now += SECOND;
    const second = await alert(one.endorser, one.endorsed);
    const third = await alert(one.endorsed, one.endorser);
    await refused(stranger, one.endorsed);
    await refused(one.endorsed, one.endorsed);
    const { endorsementQueries: queries } = world.registry;
    expect((await queries.alerts(one.endorsed)).alerts).toEqual([first.alert, second.alert]);
    expect((await queries.alerts(one.endorser)).alerts).toEqual([third.alert]);
    expect(await queries.alerts(one.endorsed, { page: 2, per_page: 1 })).toEqual({
      alerts: [second.alert],
      page: 2,
      per_page: 1,
      total: 2,
    });
  });

  it("are filed by active keys, on keys of any status", async () => {
    const one = await newCase(world);
    await one.offer();
    await one.accept();
    await world.registry.keyLifecycle.revoke(one.endorsed);
    await alert(one.endorser, one.endorsed);
    expect((await failure(() => alert(one.endorsed, one.endorser))).code).toBe("key-not-active");
    expect((await failure(() => alert(one.endorser, nodeSigner().fingerprint))).code).toBe("not-found");
  });
});

describe("at one moment", () => {
  const outcomes = async (attempts: readonly Promise<unknown>[]) =>
    (await Promise.allSettled(attempts)).map((outcome) =>
      outcome.status === "fulfilled" ? "done" : (outcome.reason as { code: string }).code,
    );

  it("of many acceptances of one offer one wins", async () => {
    const one = await newCase(world);
    await one.offer();
    const { size } = world.registry.log;
    const results = await outcomes(Array.from({ length: 20 }, () => one.accept()));
    expect(results.filter((result) => result === "done")).toHaveLength(1);
    expect(new Set(results)).toEqual(new Set(["done", "precondition-failed"]));
    expect(world.registry.log.size).toBe(size + 1);
  });

  it("of many equal offers one is made", async () => {
    const one = await newCase(world);
    const { endorsements } = world.registry;
    const offer = () => endorsements.offer(offerOf(one.endorser, one.endorsed));
    const results = await outcomes(Array.from({ length: 20 }, offer));
    expect(results.filter((result) => result === "done")).toHaveLength(1);
    expect(new Set(results)).toEqual(new Set(["done", "already-exists"]));
  });

  it("an offer and the revocation of either key leave no offer made after the revocation", async () => {
    for (const which of ["endorser", "endorsed"] as const) {
      const one = await newCase(world);
      const [revoked, offered] = await outcomes([world.registry.keyLifecycle.revoke(one[which]), one.offer()]);
      expect(revoked).toBe("done");
      const { ended_at } = world.registry.keys.find(one[which]);
      const { endorsements } = await world.registry.endorsementQueries.received(one.endorsed);
      if (offered === "done") expect(endorsements[0]!.offered_at <= ended_at!).toBe(true);
      else expect([offered, endorsements]).toEqual(["key-not-active", []]);
    }
  });

  it("simultaneous acceptance, withdrawal and revocation give the result of some order", async () => {
    for (let round = 0; round < 10; round++) {
      const one = await newCase(world);
      await one.offer();
      const results = await outcomes([one.accept(), one.revoke(), one.withdraw()]);
      const { status } = await one.record();
      const [accepted, revoked, withdrawn] = results.map((result) => result === "done");
      expect(status).toBe(withdrawn ? "withdrawn" : revoked ? "acceptance_revoked" : "pending_activation");
      expect(revoked && withdrawn).toBe(false);
      expect(accepted || withdrawn).toBe(true);
    }
    expect(world.registry.log.stateDifferences()).toEqual([]);
  });
});

it("nothing is different after a restart", async () => {
  const own = await openWorld();
  const cases = [await newCase(own), await newCase(own), await newCase(own)];
  for (const one of cases) await one.offer({ institutional_metadata: { z: 1, name: "N", a: [1e21, -0] } });
  for (const one of cases.slice(1)) await one.accept();
  await cases[2]!.revoke();
  own.now += DAY;
  const before = await Promise.all(cases.map((one) => one.record()));
  expect(before.map(({ status }) => status)).toEqual(["offered", "active", "acceptance_revoked"]);
  await own.reopen();
  expect(await Promise.all(cases.map((one) => one.record()))).toEqual(before);
  expect(own.registry.log.stateDifferences()).toEqual([]);
});

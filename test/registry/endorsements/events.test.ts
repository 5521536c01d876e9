import { afterAll, describe, expect, it } from "vitest";
import type { EventInput } from "#cairnlog/engine/log/state/projection.js";
import { at, closeWorlds, DAY, nodeSigner, openWorld, type World } from "../world.js";
import { Case, HUMAN, newCase } from "./endorsementcase.js";

afterAll(closeWorlds);

/** Every derived row about endorsements. */
function state(world: World) {
  const { log } = world.registry;
  return {
    endorsements: log.rows("endorsements", 0, Number.MAX_SAFE_INTEGER),
    byEndorser: log.rows("endorsementsByEndorser", ["", 0], ["~", 0]),
    byEndorsed: log.rows("endorsementsByEndorsed", ["", 0], ["~", 0]),
    pairs: log.rows("endorsementPairs", ["", "", ""], ["~", "", ""]),
    alerts: log.rows("revocationAlerts", ["", 0], ["~", 0]),
  };
}

const ODD: readonly unknown[] = [undefined, null, 1e9, "", "x", false, [], {}, "x".repeat(5000), 2 ** 53, -1, 1.5];

/** Copies of `event`, each with one of `members` replaced by an odd value that is not in `allowed`. */
const spoilt = (event: EventInput, members: readonly string[], allowed: readonly unknown[] = []): EventInput[] =>
  members.flatMap((member) =>
    ODD.filter((value) => !allowed.includes(value)).map((value) => {
      const { [member]: _, ...rest } = event.payload;
      return { ...event, payload: value === undefined ? rest : { ...rest, [member]: value } };
    }),
  );

describe("events that make no sense", () => {
  const FIELDS = ["endorser_key_fingerprint", "endorsed_key_fingerprint"];

  it("change nothing", async () => {
    const world = await openWorld();
    const one = await newCase(world);
    await one.offer();
    await one.accept();
    const open = await newCase(world);
    await open.offer();
    const pair = { endorser_key_fingerprint: one.endorser, endorsed_key_fingerprint: one.endorsed };
    const openPair = { endorser_key_fingerprint: open.endorser, endorsed_key_fingerprint: open.endorsed };
    const other = nodeSigner().fingerprint;
    const offer = { event_type: "endorsement_offer", payload: { ...pair, category: HUMAN, valid_until: null } };
    const about = (event_type: string, offered: Case): EventInput => ({
      event_type,
      payload: {
        endorser_key_fingerprint: offered.endorser,
        endorsed_key_fingerprint: offered.endorsed,
        offer_entry_id: offered.id,
        note: "n",
      },
    });
    const changes = [
      about("endorsement_acceptance", open),
      about("endorsement_withdrawal", one),
      about("acceptance_revocation", one),
    ];
    const alert = {
      event_type: "endorser_revocation_alert",
      payload: {
        endorser_key_fingerprint: one.endorser,
        compromised_key_fingerprint: one.endorsed,
        reason: "r",
        evidence: null,
      },
    };
    const odd: EventInput[] = [
      ...spoilt(offer, [...FIELDS, "category"]),
      ...spoilt(offer, ["valid_until"], [undefined, null]),
      { ...offer, payload: { ...offer.payload, endorsed_key_fingerprint: one.endorser } },
      { ...offer, payload: { ...offer.payload, endorser_key_fingerprint: one.endorser.toUpperCase() } },
      ...changes.flatMap((event) => [
        ...spoilt(event, [...FIELDS, "offer_entry_id"]),
        { ...event, payload: { ...event.payload, endorsed_key_fingerprint: other } },
        { ...event, payload: { ...event.payload, offer_entry_id: 1 } },
      ]),
      // A second acceptance, and the end of an acceptance that does not exist.
      about("endorsement_acceptance", one),
      about("acceptance_revocation", open),
      { event_type: "endorsement_acceptance", payload: { ...openPair, offer_entry_id: one.id } },
      ...spoilt(alert, ["endorser_key_fingerprint", "compromised_key_fingerprint"]),
      ...spoilt(alert, ["reason"], ["", "x", "x".repeat(5000)]),
      ...spoilt(alert, ["evidence"], [undefined, null, "", "x", "x".repeat(5000)]),
    ];
    const before = state(world);
    await world.append(...odd);
    expect(state(world)).toEqual(before);
    expect(world.registry.log.stateDifferences()).toEqual([]);
  });

  it("change nothing after the end of an endorsement", async () => {
    const world = await openWorld();
    const one = await newCase(world);
    await one.offer();
    await one.accept();
    await one.withdraw();
    const before = state(world);
    const payload = {
      endorser_key_fingerprint: one.endorser,
      endorsed_key_fingerprint: one.endorsed,
      offer_entry_id: one.id,
      note: "again",
    };
    for (const event_type of ["endorsement_acceptance", "endorsement_withdrawal", "acceptance_revocation"])
      await world.append({ event_type, payload });
    expect(state(world)).toEqual(before);
    expect(world.registry.log.stateDifferences()).toEqual([]);
  });
});

describe("offers of imported history", () => {
  it("lose invalid extras, and still count", async () => {
    const world = await openWorld();
    const one = await newCase(world);
    const pair = { endorser_key_fingerprint: one.endorser, endorsed_key_fingerprint: one.endorsed };
    const odd = [7, "x", [], [{}], [{ type: "orcid" }], { name: 7 }];
    await world.append(
      ...odd.map((extra) => ({
        event_type: "endorsement_offer",
        payload: { ...pair, category: HUMAN, institutional_metadata: extra, external_identifiers: extra },
      })),
    );
    const { endorsements } = await world.registry.endorsementQueries.received(one.endorsed);
    expect(endorsements.map(({ institutional_metadata }) => institutional_metadata)).toEqual([
      ...[null, null, null, null, null],
      { name: 7 },
    ]);
    expect(endorsements.map(({ external_identifiers }) => external_identifiers)).toEqual([
      ...[null, null, [], null, null],
      null,
    ]);
    expect(state(world).byEndorsed.map(({ row }) => row.institution)).toEqual(odd.map(() => null));
  });

  it("may be live twice, and each goes its own way", async () => {
    const world = await openWorld();
    const one = await newCase(world);
    await one.offer();
    const { payload } = world.registry.log.entry(one.id)!;
    await world.append({ event_type: "endorsement_offer", payload: payload! });
    const twin = new Case(world, one.endorser, one.endorsed);
    twin.id = one.id + 1;
    await twin.accept();
    await one.withdraw();
    expect([(await one.record()).status, (await twin.record()).status]).toEqual(["withdrawn", "pending_activation"]);
    expect(world.registry.log.stateDifferences()).toEqual([]);
  });
});

it("edges contain everything that a walk over the graph needs", async () => {
  const world = await openWorld();
  const one = await newCase(world);
  const valid_until = at(world.now + 9 * DAY);
  await one.offer({ valid_until, institutional_metadata: { name: "Institute", more: 1 } });
  const offered_at = at(world.now);
  world.now += DAY;
  await one.accept();
  const accepted_at = at(world.now);
  const edge = { category: HUMAN, valid_until, offered_at, accepted_at, institution: "Institute" };
  const live = { ...edge, ended_at: null, end_kind: null };
  const { byEndorser, byEndorsed } = state(world);
  expect(byEndorser).toEqual([{ key: [one.endorser, one.id], row: { ...live, other_fingerprint: one.endorsed } }]);
  expect(byEndorsed).toEqual([{ key: [one.endorsed, one.id], row: { ...live, other_fingerprint: one.endorser } }]);
  await one.revoke();
  const ended = { ...edge, ended_at: accepted_at, end_kind: "acceptance_revoked" };
  expect(state(world).byEndorsed[0]!.row).toEqual({ ...ended, other_fingerprint: one.endorser });
});

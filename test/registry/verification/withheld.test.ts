/** Attestations whose entry is withheld: only whoever has all that was recorded learns which entry it is, and that it is withheld. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { withhold } from "#cairnlog/engine/log/operator/entries.js";
import { attest, attestationOf, changed, statuses, verify } from "../attestations/manifests.js";
import { closeWorlds, compact, manifestOf, nodeSigner, openWorld, submission, type World } from "../world.js";

afterAll(closeWorlds);

let world: World;
beforeAll(async () => {
  world = await openWorld();
});

const take = (id: number) => withhold(world.registry, id, { reason: "An order.", basis: null });

it("is withheld if nothing else is wrong, whatever the signature covers, and names both entries", async () => {
  const [signer, second, third] = [nodeSigner(), nodeSigner("ecdsa-p256"), nodeSigner("rsa-2048")];
  let manifest = await attest(world, signer, manifestOf("One"), { intent_statement: "I did." });
  manifest = await attest(world, second, manifest);
  // Signed over the document alone: sent with the attestations before it, and without.
  const alone = third.sign(compact({ ...manifest, attestations: [] }));
  const { attestations: submitted } = world.registry;
  const withPrior = await submitted.submit({ ...submission(third, manifest), signature: alone } as never);
  manifest = { ...manifest, attestations: [...manifest.attestations, withPrior.attestation] };
  const fourth = nodeSigner();
  const bare = await submitted.submit(submission(fourth, { ...manifest, attestations: [] }) as never);
  manifest = { ...manifest, attestations: [...manifest.attestations, bare.attestation] };
  const before = await verify(world, manifest);
  expect(statuses(before)).toEqual(["valid", "valid", "valid"]);

  const by: number[] = [];
  for (const { logged } of before.attestations) by.push((await take(logged!.entry_id)).log_entry_id);
  const result = await verify(world, manifest);
  expect(statuses(result)).toEqual(["withheld", "valid", "withheld"]);
  for (const [i, { layer1, layer2, logged }] of result.attestations.entries()) {
    expect(logged).toEqual({ ...before.attestations[i]!.logged, withheld_by: by[i] });
    expect([layer1.status, layer2.status]).toEqual(["withheld", "valid"]);
    expect(layer1.details).toContain(`The operator withholds what the log recorded of it, as entry ${by[i]} says.`);
  }
  expect(result.layer1.details).toContain("of 4 of them");

  // Who has not all of it learns nothing, and what is wrong stays so.
  const first = { ...manifest, attestations: [attestationOf(manifest)] };
  for (const changes of [{ intent_statement: "I did not." }, { id: "another" }, { type: "peer_review" }]) {
    const { attestations } = await verify(world, changed(first, changes));
    expect(attestations).toMatchObject([{ layer1: { status: "valid" }, logged: null }]);
  }
  const other = nodeSigner();
  const forged = await verify(
    world,
    changed(first, { signature: other.sign(compact({ ...manifest, attestations: [] })) }),
  );
  expect(forged).toMatchObject({ overall_status: "invalid", attestations: [{ logged: null }] });
  expect(statuses(await verify(world, first, "ab".repeat(32)))).toEqual(["invalid", "valid", "invalid"]);
});

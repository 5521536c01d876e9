import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runIn } from "../../log/inline.js";
import { attest, attestationOf, changed, register, statuses, unlogged, verify } from "../attestations/manifests.js";
import {
  at,
  closeWorlds,
  DAY,
  heldRegistration,
  manifestOf,
  nodeSigner,
  openWorld,
  type TestSigner,
  type World,
} from "../world.js";

afterAll(closeWorlds);

let world: World;
beforeAll(async () => {
  world = await openWorld();
});

describe("layer 2", () => {
  const signing = async (ends: (own: World, signer: TestSigner) => Promise<void>, expires?: number) => {
    const own = await openWorld();
    const signer = nodeSigner();
    await register(own, signer, expires === undefined ? null : at(own.now + expires));
    const manifest = await attest(own, signer, manifestOf());
    own.now += DAY;
    await ends(own, signer);
    const ended = own.now;
    own.now += DAY;
    const judge = async (time?: number) => {
      const one = time === undefined ? manifest : unlogged(world, signer, manifestOf(), { timestamp: at(time) });
      const result = await verify(own, one);
      expect(result.layer1.status).toBe("valid");
      expect(result.layer2.status).toBe(result.attestations[0]!.layer2.status);
      expect(result.overall_status).toBe(result.layer2.status);
      return result.attestations[0]!;
    };
    return { own, signer, manifest, ended, judge };
  };
  const revoke = (own: World, signer: TestSigner) =>
    own.append({ event_type: "key_revocation", payload: { fingerprint: signer.fingerprint } });
  const succeed = (own: World, old: TestSigner, next: TestSigner, isConfirmed = true) =>
    own.append({
      event_type: "key_succession",
      payload: {
        old_fingerprint: old.fingerprint,
        fingerprint: next.fingerprint,
        public_key: next.pem,
        pseudonym: "x",
        key_algorithm: next.algorithm,
        expiration_date: null,
        new_key_signature: isConfirmed
          ? next.sign(`service.key.succession.v1:${old.fingerprint}:${next.fingerprint}`)
          : null,
      },
    });

  it("refuses a signer that was never registered", async () => {
    const result = await verify(world, unlogged(world, nodeSigner(), manifestOf()));
    expect(statuses(result)).toEqual(["invalid", "invalid", "invalid"]);
    expect(result.layer2.details).toContain("not fit");
    expect(result.attestations[0]!.layer2.details).toContain("never registered");
  });

  it("refuses a key registered later, to the microsecond", async () => {
    const { own, judge } = await signing(async () => {});
    const start = own.now - 2 * DAY;
    expect((await judge(start)).layer2.status).toBe("valid");
    expect((await judge(start - 1)).layer2.status).toBe("invalid");
  });

  it("refuses revocation before, and warns of one after", async () => {
    const { ended, judge } = await signing(revoke);
    expect(await judge()).toMatchObject({ layer2: { status: "warning" }, logged: { entry_id: 2, leaf_index: 1 } });
    expect((await judge(ended - 1)).layer2).toMatchObject({
      status: "warning",
      details: expect.stringContaining("presenter"),
    });
    expect((await judge(ended)).layer2.status).toBe("invalid");
    expect((await judge(ended + 1)).layer2.status).toBe("invalid");
  });

  it("refuses expiry before, and warns of one after", async () => {
    const { ended, judge } = await signing(async () => {}, DAY);
    expect((await judge()).layer2.status).toBe("warning");
    expect((await judge(ended - 1)).layer2.status).toBe("warning");
    expect((await judge(ended)).layer2.status).toBe("invalid");
    const unexpired = await signing(async () => {}, 3 * DAY);
    expect((await unexpired.judge()).layer2.status).toBe("valid");
  });

  it("accepts a succeeded key and names its successors, also for later signatures", async () => {
    const [second, third] = [nodeSigner(), nodeSigner("rsa-2048")];
    const { own, signer, ended, judge, manifest } = await signing(async (own, signer) => {
      await succeed(own, signer, second);
      await succeed(own, second, third);
    });
    const { layer2 } = await judge();
    expect(layer2.status).toBe("valid");
    expect(layer2.details).toContain(`${second.fingerprint}, then by ${third.fingerprint}`);
    expect((await judge(ended - 1)).layer2.status).toBe("valid");
    expect((await judge(ended)).layer2).toMatchObject({
      status: "valid",
      details: expect.stringContaining("before the attestation"),
    });
    const { edges } = (await verify(own, manifest)).attestation_graph;
    expect(edges).toContainEqual({ from: signer.fingerprint, to: second.fingerprint, kind: "succeeded_by" });
    expect(edges).toContainEqual({ from: second.fingerprint, to: third.fingerprint, kind: "succeeded_by" });
  });

  it("refuses signatures of a succeeded key from after its expiration", async () => {
    const { ended, judge } = await signing((own, signer) => succeed(own, signer, nodeSigner()), DAY / 2);
    expect((await judge(ended - DAY / 2)).layer2).toMatchObject({
      status: "invalid",
      details: expect.stringContaining("expired"),
    });
    expect((await judge(ended - DAY / 2 - 1)).layer2.status).toBe("valid");
  });

  it("refuses a succession chain whose successor has lost its row", async () => {
    const second = nodeSigner();
    const { own, judge } = await signing((own, signer) => succeed(own, signer, second));
    await runIn(own.registry.log, (transaction) => transaction.put("keys", second.fingerprint, undefined));
    expect((await judge()).layer2).toMatchObject({ status: "invalid", details: expect.stringContaining("broken") });
  });

  it("warns of a successor whose own holder does not confirm the succession, and names it nowhere", async () => {
    const second = nodeSigner();
    const { own, judge, manifest } = await signing((own, signer) => succeed(own, signer, second, false));
    const denials = [
      () => undefined,
      () => attest(own, second, manifestOf("another")),
      () => own.registry.keys.register(heldRegistration(second, "not me")),
    ];
    for (const denial of denials) {
      await denial();
      const { layer2 } = await judge();
      expect(layer2).toMatchObject({ status: "warning", details: expect.stringContaining("does not confirm") });
      expect(layer2.details).not.toContain(second.fingerprint);
      const { edges } = (await verify(own, manifest)).attestation_graph;
      expect(edges.filter(({ kind }) => kind === "succeeded_by")).toEqual([]);
    }
  });

  it("warns of a chain that is confirmed only in its beginning", async () => {
    const [second, third] = [nodeSigner(), nodeSigner()];
    const { own, judge, manifest, signer } = await signing(async (own, signer) => {
      await succeed(own, signer, second);
      await succeed(own, second, third, false);
    });
    expect((await judge()).layer2.status).toBe("warning");
    const { edges } = (await verify(own, manifest)).attestation_graph;
    expect(edges.filter(({ kind }) => kind === "succeeded_by")).toEqual([
      { from: signer.fingerprint, to: second.fingerprint, kind: "succeeded_by" },
    ]);
  });

  it("follows a long chain only so far, and a circle not for ever", async () => {
    const chain = Array.from({ length: 70 }, () => nodeSigner());
    const { own, signer, judge } = await signing(async (own, signer) => {
      for (const [i, next] of chain.entries()) await succeed(own, chain[i - 1] ?? signer, next);
    });
    const { status, details } = (await judge()).layer2;
    expect(status).toBe("valid");
    expect(details).toContain(chain[63]!.fingerprint);
    expect(details).not.toContain(chain[64]!.fingerprint);
    await runIn(own.registry.log, (transaction) => {
      const first = transaction.get("keys", signer.fingerprint)!;
      const next = transaction.get("keys", chain[0]!.fingerprint)!;
      transaction.put("keys", signer.fingerprint, {
        ...first,
        predecessor_fingerprint: next.fingerprint,
        named: true,
      });
      transaction.put("keys", next.fingerprint, { ...next, successor_fingerprint: first.fingerprint });
    });
    expect((await judge()).layer2.status).toBe("valid");
  });

  it("refuses a logged attestation that claims another time", async () => {
    const { own, manifest, ended } = await signing(revoke);
    const back = changed(manifest, { timestamp: at(ended - 1) });
    const result = await verify(own, back);
    expect(statuses(result)).toEqual(["valid", "invalid", "invalid"]);
    expect(result.attestations[0]!.layer2.details).toContain("the log recorded");
    const { timestamp } = attestationOf(manifest);
    const respelt = changed(manifest, { timestamp: timestamp.replace("Z", "+00:00") });
    expect((await verify(own, respelt)).layer2.status).toBe("warning");
  });

  it("knows the operator key without registration", async () => {
    const own = await openWorld();
    const manifest = unlogged(world, own.operator, manifestOf(), { timestamp: at(own.now) });
    expect(statuses(await verify(own, manifest))).toEqual(["valid", "valid", "valid"]);
  });

  it("is the worst of its attestations", async () => {
    const { own, signer } = await signing(revoke);
    const good = await attest(own, nodeSigner(), manifestOf());
    const both = unlogged(world, signer, good, { timestamp: at(own.now - 3 * DAY) });
    expect((await verify(own, both)).attestations.map(({ layer2 }) => layer2.status)).toEqual(["valid", "invalid"]);
    const late = unlogged(world, signer, good, { timestamp: at(own.now - DAY - 1) });
    expect(statuses(await verify(own, late))).toEqual(["valid", "warning", "warning"]);
  });
});

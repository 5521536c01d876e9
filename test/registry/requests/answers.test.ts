/**
 * Who may answer a request, and what the status follows (docs/spec §10.2). Anybody may answer; nobody can
 * answer in the target's place, or shut the target out.
 */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { attest, attestationOf } from "../attestations/manifests.js";
import {
  closeWorlds,
  failure,
  heldRegistration,
  manifestOf,
  newFolder,
  nodeSigner,
  openWorld,
  type TestSigner,
  type World,
} from "../world.js";

afterAll(closeWorlds);

let world: World;
let asker: TestSigner;
beforeAll(async () => {
  world = await openWorld(newFolder(), undefined, { requestQuota: null });
  asker = await registered();
});

async function registered(): Promise<TestSigner> {
  const signer = nodeSigner();
  await world.registry.keys.register(heldRegistration(signer));
  return signer;
}

async function asked() {
  const target = await registered();
  const { request_id } = await world.registry.requests.create(asker.fingerprint, {
    target_fingerprint: target.fingerprint,
    attestation_type: "authorship",
    nonce: randomUUID(),
  });
  return { target, request_id };
}

let titles = 0;
const attested = async (signer: TestSigner) =>
  attestationOf(await attest(world, signer, manifestOf(`attested ${++titles}`))).id;
const accept = (request_id: string, { fingerprint }: TestSigner, attestation_id: string) =>
  world.registry.requests.respond(fingerprint, request_id, { decision: "accept", attestation_id });
const decline = (request_id: string, { fingerprint }: TestSigner) =>
  world.registry.requests.respond(fingerprint, request_id, { decision: "decline", reason: "no" });
const find = (request_id: string) => world.registry.requestQueries.find(request_id);

async function succeed(old: TestSigner, isConfirmed: boolean): Promise<TestSigner> {
  const next = nodeSigner();
  const signature = next.sign(`service.key.succession.v1:${old.fingerprint}:${next.fingerprint}`);
  await world.registry.keyLifecycle.succeed(
    {
      old_fingerprint: old.fingerprint,
      new_public_key: next.pem,
      new_algorithm: next.algorithm,
      ...(isConfirmed ? { new_key_signature: signature } : {}),
    },
    { recovery: false },
  );
  return next;
}

/** Signers of the attestation with which a stranger accepts, and whether it is taken. */
const SIGNERS: readonly (readonly [string, boolean, (target: TestSigner, responder: TestSigner) => Promise<string>])[] =
  [
    ["the responder", true, (_, responder) => attested(responder)],
    ["the target", true, (target) => attested(target)],
    ["anybody else", false, async () => attested(nodeSigner())],
    ["the requester", false, async () => attested(asker)],
    ["a confirmed successor of the target", true, async (target) => attested(await succeed(target, true))],
    [
      "a confirmed successor of a confirmed successor",
      true,
      async (target) => attested(await succeed(await succeed(target, true), true)),
    ],
    ["an unconfirmed successor of the target", false, async (target) => attested(await succeed(target, false))],
    [
      "a confirmed successor behind an unconfirmed one",
      false,
      async (target) => attested(await succeed(await succeed(target, false), true)),
    ],
    [
      "a predecessor of the responder",
      false,
      async (_, responder) => {
        const before = await registered();
        const id = await attested(before);
        expect(responder.fingerprint).not.toBe((await succeed(before, true)).fingerprint);
        return id;
      },
    ],
  ];

describe("to accept takes an attestation", () => {
  it.each(SIGNERS)("by %s: %s", async (_, isTaken, make) => {
    const { target, request_id } = await asked();
    const responder = await registered();
    const id = await make(target, responder);
    if (isTaken) expect(await accept(request_id, responder, id)).toMatchObject({ status: "accepted" });
    else {
      expect(await failure(() => accept(request_id, responder, id))).toMatchObject({
        code: "invalid-input",
        paths: ["/attestation_id"],
      });
      expect(find(request_id)).toMatchObject({ status: "open", responses: [], response: null });
    }
  });

  it("that the log has, whoever declines", async () => {
    const { target, request_id } = await asked();
    const named = { decision: "decline", attestation_id: randomUUID() } as const;
    const declining = () => world.registry.requests.respond(target.fingerprint, request_id, named);
    expect(await failure(declining)).toMatchObject({ code: "invalid-input", paths: ["/attestation_id"] });
    const attestation_id = await attested(nodeSigner());
    await world.registry.requests.respond(target.fingerprint, request_id, { ...named, attestation_id });
  });
});

describe("the status", () => {
  const listed = (status: "open" | "accepted" | "declined", target: TestSigner) =>
    world.registry.requestQueries
      .list({ target: target.fingerprint, requester: asker.fingerprint, status })
      .requests.map(({ request_id }) => request_id);

  it("follows the target's answer after a stranger's, and so do the lists", async () => {
    const { target, request_id } = await asked();
    const stranger = await registered();
    await accept(request_id, stranger, await attested(stranger));
    expect(find(request_id)).toMatchObject({ status: "accepted", response: { by_target: false } });
    expect(listed("accepted", target)).toEqual([request_id]);
    const receipt = await decline(request_id, target);
    expect(receipt).toMatchObject({ status: "declined", responder_fingerprint: target.fingerprint });
    const found = find(request_id);
    expect(found).toMatchObject({ status: "declined", response: { log_entry_id: receipt.log_entry_id } });
    expect(
      found.responses.map(({ responder_fingerprint, by_target, decision }) => [
        responder_fingerprint,
        by_target,
        decision,
      ]),
    ).toEqual([
      [stranger.fingerprint, false, "accept"],
      [target.fingerprint, true, "decline"],
    ]);
    expect([listed("open", target), listed("accepted", target), listed("declined", target)]).toEqual([
      [],
      [],
      [request_id],
    ]);
    expect(world.registry.requestQueries.list({ target: target.fingerprint }).requests).toMatchObject([
      { request_id, responses: found.responses },
    ]);
  });

  it("stays the target's when a stranger answers later", async () => {
    const { target, request_id } = await asked();
    const stranger = await registered();
    await accept(request_id, target, await attested(target));
    expect(await decline(request_id, stranger)).toMatchObject({ decision: "decline", status: "accepted" });
    expect(find(request_id)).toMatchObject({ status: "accepted", response: { by_target: true } });
    expect(find(request_id).responses).toHaveLength(2);
  });

  it("without the target is the first answer's", async () => {
    const { target, request_id } = await asked();
    const [first, second] = [await registered(), await registered()];
    await decline(request_id, first);
    expect(await accept(request_id, second, await attested(second))).toMatchObject({ status: "declined" });
    expect(listed("declined", target)).toEqual([request_id]);
  });

  it("of a request that a policy has declined follows the target all the same", async () => {
    const target = await registered();
    await world.registry.policies.publish(target.fingerprint, {
      predicates: { any: [] },
      default_action_on_failure: "decline",
    });
    const request = await world.registry.requests.create(asker.fingerprint, {
      target_fingerprint: target.fingerprint,
      attestation_type: "authorship",
      nonce: randomUUID(),
    });
    const operator = { responder_fingerprint: world.operator.fingerprint, by_target: false, decision: "decline" };
    expect(request).toMatchObject({ status: "declined", response: operator, responses: [operator] });
    expect(find(request.request_id)).toEqual(request);
    expect(await accept(request.request_id, target, await attested(target))).toMatchObject({ status: "accepted" });
  });
});

describe("answers", () => {
  it("are one for each key", async () => {
    const { target, request_id } = await asked();
    const stranger = await registered();
    for (const responder of [stranger, target]) {
      await decline(request_id, responder);
      expect(await failure(() => decline(request_id, responder))).toMatchObject({ code: "already-exists" });
    }
  });

  it("by others than the target are eight; the target's always has room", async () => {
    const { target, request_id } = await asked();
    const others = await Promise.all(Array.from({ length: 9 }, registered));
    for (const other of others.slice(0, 8)) await decline(request_id, other);
    expect(await failure(() => decline(request_id, others[8]!))).toMatchObject({
      code: "already-exists",
      message: expect.stringContaining("only the target"),
    });
    expect(await accept(request_id, target, await attested(target))).toMatchObject({ status: "accepted" });
    expect(find(request_id).responses).toHaveLength(9);
    // Imported history may have more. They do not count.
    const payload = { request_id, responder_fingerprint: others[8]!.fingerprint, decision: "decline" };
    await world.append({ event_type: "attestation_request_response", payload });
    expect(find(request_id).responses).toHaveLength(9);
  });

  it("are told to the requester with who has given them", async () => {
    const { target, request_id } = await asked();
    const stranger = await registered();
    await decline(request_id, stranger);
    await accept(request_id, target, await attested(target));
    const { inbox } = world.registry;
    const told = inbox.list(asker.fingerprint, {}).notifications.slice(0, 2);
    expect(told).toMatchObject([
      { kind: "attestation_request_accepted", request_id, responder_fingerprint: target.fingerprint },
      { kind: "attestation_request_declined", request_id, responder_fingerprint: stranger.fingerprint },
    ]);
    expect(await inbox.markRead(asker.fingerprint, told[0]!.id)).toEqual({ ...told[0]!, read: true });
    expect(inbox.list(target.fingerprint, {}).notifications).toMatchObject([
      { kind: "attestation_request", responder_fingerprint: null },
    ]);
  });

  it("follow from the log", async () => {
    expect(world.registry.log.stateDifferences()).toEqual([]);
    await world.reopen();
    expect(world.registry.log.stateDifferences()).toEqual([]);
  });
});

describe("a notification for a key that was succeeded", () => {
  const kindsFor = ({ fingerprint }: TestSigner) =>
    world.registry.inbox.list(fingerprint, {}).notifications.map(({ kind }) => kind);
  const ask = (requester: TestSigner, target: TestSigner) =>
    world.registry.requests.create(requester.fingerprint, {
      target_fingerprint: target.fingerprint,
      attestation_type: "authorship",
      nonce: randomUUID(),
    });
  const hold = (target: TestSigner) =>
    world.registry.policies.publish(target.fingerprint, {
      predicates: { any: [] },
      default_action_on_failure: "hold",
    });

  it.each([
    ["the newest key that has confirmed to be its successor", [true, true], 2],
    ["the last one before a key that has not", [true, false], 1],
    ["itself, if its successor has not", [false], 0],
  ])("goes to %s", async (_, links, reached) => {
    const chain = [await registered()];
    const { request_id } = await ask(chain[0]!, asker);
    for (const isConfirmed of links) chain.push(await succeed(chain.at(-1)!, isConfirmed));
    await decline(request_id, asker);
    await ask(asker, chain[0]!);
    const kinds = ["attestation_request", "attestation_request_declined"];
    for (const [i, key] of chain.entries()) expect(kindsFor(key), `${i}`).toEqual(i === reached ? kinds : []);
  });

  it("also if a policy of its holds the request", async () => {
    const target = await registered();
    await hold(target);
    const next = await succeed(target, true);
    await ask(asker, target);
    expect(kindsFor(next)).toEqual(["attestation_request_held"]);
  });
});

/** Hostile history: for any content of an imported entry, rows, terms and queries work, and nothing crashes. */
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { openHistory } from "#cairnlog/engine/log/history/history.js";
import { projection } from "#cairnlog/engine/registry/events/projection.js";
import { chain, line, type Wanted } from "../log/history/entries.js";
import { jsonValues } from "../texts.js";
import { closeWorlds, newFolder, nodeSigner, openWorld } from "./world.js";

afterAll(closeWorlds);

const [a, b] = [nodeSigner(), nodeSigner()];
const TYPES = [
  ...["key_registration", "key_succession", "key_revocation", "endorsement_offer", "endorsement_acceptance"],
  ...["endorsement_withdrawal", "acceptance_revocation", "endorser_revocation_alert", "attestation_request"],
  ...[
    "attestation_request_response",
    "request_policy",
    "encrypted_claim",
    "operator_key_rotation",
    "https://x-service.example/predicates/a",
  ],
];
/** Values with a meaning somewhere, so that events pass the first check. */
const plausible = fc.constantFrom<unknown>(
  ...[a.fingerprint, b.fingerprint, a.pem, b.pem, "ed25519", "Somebody", "2025-01-01T00:00:00Z", "2030-01-01", null],
  ...[
    "x-service:human_attestation",
    1,
    2,
    3,
    4,
    "accept",
    "decline",
    "allow",
    "active",
    [],
    {},
    { name: "Uni" },
    ["t"],
  ],
  ...["1b4e28ba-2fa1-4d1e-883f-0016d3cca427", "ab".repeat(32), "cd".repeat(16), { field: "claims.x", op: "exists" }],
);
const MEMBERS = [
  ...["fingerprint", "old_fingerprint", "public_key", "pseudonym", "key_algorithm", "expiration_date", "tags"],
  ...["attestation_id", "signer_key_fingerprint", "document_hash", "manifest_hash", "timestamp", "signature", "nonce"],
  ...["endorser_key_fingerprint", "endorsed_key_fingerprint", "compromised_key_fingerprint", "category", "note"],
  ...["valid_until", "institutional_metadata", "external_identifiers", "offer_entry_id", "reason", "lookup_key"],
  ...["request_id", "requester_fingerprint", "target_fingerprint", "attestation_type", "deadline", "claims", "status"],
  ...["predicates", "default_action_on_failure", "effective_from", "decision", "responder_fingerprint"],
  ...["old_public_key", "tree_size", "root_hash", "old_key_signature", "new_key_signature"],
];
/** Possible lines of history; a member named `__proto__` is refused earlier. */
const readable = jsonValues().filter((value) => !JSON.stringify(value).includes('"__proto__":'));
const payload = fc.dictionary(fc.constantFrom(...MEMBERS), fc.oneof({ weight: 4, arbitrary: plausible }, readable), {
  maxKeys: MEMBERS.length,
  size: "max",
}) as fc.Arbitrary<Record<string, unknown>>;

test("any payload under any event type: the state equals a rebuild, and every query works", async () => {
  const pem = generatePrivateKey("ed25519");
  const registered = (signer: typeof a): Wanted => ({
    event_type: "key_registration",
    payload: { fingerprint: signer.fingerprint, public_key: signer.pem, pseudonym: "P", key_algorithm: "ed25519" },
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ event_type: fc.constantFrom(...TYPES), payload }), { minLength: 5, maxLength: 40 }),
      async (events) => {
        const path = join(newFolder(), "log");
        const entries = chain([registered(a), registered(b), ...events]);
        const operator = operatorKey(pem);
        const { checksEvents: _, ...unchecked } = projection;
        const options = { path, operatorKey: operator.public.pem, projection: unchecked, mapSize: 2 ** 28 };
        const writer = await openHistory(options);
        await writer.add(entries.map((entry) => ({ entry: line(entry), otsProof: null, head: null })));
        await writer.close();
        const world = await openWorld(path, pem);
        const { log, keys, endorsementQueries, graphs, trust, requestQueries, policies } = world.registry;
        expect(log.stateDifferences()).toEqual([]);
        for (const { fingerprint } of [a, b]) {
          keys.find(fingerprint);
          await endorsementQueries.received(fingerprint);
          await endorsementQueries.issued(fingerprint);
          await endorsementQueries.alerts(fingerprint);
          await endorsementQueries.statusCounts(fingerprint);
          await graphs.around(fingerprint);
          await trust.standing(fingerprint);
          for (const { request_id } of requestQueries.list({ target: fingerprint }).requests)
            requestQueries.find(request_id);
          policies.view(fingerprint);
        }
        const { errors } = await log.verify();
        expect(errors.filter(({ code }) => code !== "wrong-event")).toEqual([]);
        await world.registry.close();
      },
    ),
    { numRuns: 25 },
  );
});

test("any damaged line is either an entry or a coded error", async () => {
  const path = newFolder();
  const operator = operatorKey(generatePrivateKey("ed25519"));
  const writer = await openHistory({ path, operatorKey: operator.public.pem, projection, mapSize: 2 ** 28 });
  const [entry] = chain([{ chain_version: 2, ots_proof: "AAAA", payload: { tags: ["a"], n: 1.5, text: "\u0000ü" } }]);
  const bytes = line(entry!);
  await fc.assert(
    fc.asyncProperty(fc.nat(bytes.length), fc.nat(40), fc.uint8Array({ maxLength: 20 }), async (at, cut, inserted) => {
      const damaged = Buffer.concat([bytes.subarray(0, at), inserted, bytes.subarray(at + cut)]);
      await writer.add([{ entry: damaged, otsProof: null, head: null }]).then(
        () => expect(writer.lastHash).toBe(entry!.entry_hash),
        (error: unknown) => expect(error).toBeInstanceOf(CairnlogError),
      );
    }),
    { numRuns: 400 },
  );
  await writer.close();
});

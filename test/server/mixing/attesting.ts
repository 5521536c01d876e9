/**
 * Attestations, one by one and in batches of many keys: what is right is recorded as it was sent, what is wrong is refused in its own
 * words, and what was sent before is answered with the first receipt. Every receipt is compared byte for byte with what the
 * submission decides, and verified by the client's own code.
 */
import { expect } from "vitest";
import { type PublicKey, parsePublicKey, verifyBundle } from "#cairnlog/engine/verify/index.js";
import { createClient } from "#cairnlog/server/client/index.js";
import { asSigner } from "../../client/clients.js";
import { proofOf } from "../proofs.js";
import { canonical, newManifest, newSigner, sha256, submission, type TestSigner } from "../signers.js";
import { nameOf, register } from "../writes.js";
import type { Client, Traffic } from "./traffic.js";

const PASSWORDS = ["correct horse battery", "another battery"] as const;
/** Wrong passwords of one key that are no reason to refuse the right one. */
const WRONG_TRIES = 3;
const TYPES = ["authorship", "editorial_review", "peer_review", "publication"] as const;

export interface Signer extends TestSigner {
  readonly password: string | null;
  wrongTries: number;
}

/** What is sent, and whether it is right. */
export type Fault = "none" | "signature" | "password" | "no password" | "type" | "form";
export interface Wish {
  readonly key: number;
  readonly title: string;
  readonly statement: string | null;
  readonly type: number;
  readonly fault: Fault;
  /** Sent again, from elsewhere: everybody gets the receipt of the first. */
  readonly isAgain: boolean;
}

export interface Sent {
  readonly signer: Signer;
  readonly body: ReturnType<typeof submission> & Record<string, unknown>;
  readonly fault: Fault;
  readonly type: (typeof TYPES)[number];
  readonly statement: string | null;
}

/** A key that is not registered. */
export const newStranger = (): Signer => ({ ...newSigner(), password: null, wrongTries: 0 });

/** Registered keys of all algorithms; every other one has a password, of which two share the text. */
export async function newSigners({ service }: Traffic): Promise<Signer[]> {
  const algorithms = ["ed25519", "ecdsa-p256", "rsa-2048", "ed25519", "ed25519", "ed25519"] as const;
  const make = async (algorithm: (typeof algorithms)[number], i: number): Promise<Signer> => {
    const signer = newSigner(algorithm);
    await register(service.server.registry, signer);
    const password = i % 2 ? PASSWORDS[(i >> 1) % 2]! : null;
    if (password) {
      const set = await service.post("/auth/password", { ...(await proofOf(service, signer)), password });
      expect(set.status, set.text).toBe(200);
    }
    return { ...signer, password, wrongTries: 0 };
  };
  return Promise.all(algorithms.map(make));
}

/**
 * The submission of a wish. What cannot be wrong with its key is right.
 * @param isPlain whether it is of ASCII and in canonical form, as most are, which the service then takes as it came
 */
export function sentOf(wish: Wish, signers: readonly Signer[], isPlain: boolean): Sent {
  const signer = signers[wish.key % signers.length]!;
  const type = TYPES[wish.type % TYPES.length]!;
  const { statement } = wish;
  const title = isPlain ? wish.title.replace(/[^ -~]/g, "?") : wish.title;
  const made = newManifest(title);
  made.document.tags = [sha256(title).slice(0, 8), `tag of ${signer.fingerprint.slice(-6)}`];
  const manifest: typeof made = isPlain ? JSON.parse(canonical(made)) : made;
  const isPassword = wish.fault === "password" || wish.fault === "no password";
  const isSpent = wish.fault === "password" && signer.wrongTries >= WRONG_TRIES;
  const fault = isPassword && (!signer.password || isSpent) ? "none" : wish.fault;
  if (fault === "password") signer.wrongTries++;
  const good = submission(signer, manifest, {
    attestation_type: type,
    pseudonym: nameOf(signer),
    ...(statement !== null && { intent_statement: statement }),
    ...(signer.password && { password: signer.password }),
  });
  const body: Record<Fault, Record<string, unknown>> = {
    none: {},
    signature: { signature: signer.sign(`not ${canonical(manifest)}`) },
    // That of another key.
    password: { password: PASSWORDS.find((text) => text !== signer.password) },
    "no password": { password: null },
    type: { attestation_type: "https://x-service.example/predicates/of-the-operator/v1" },
    form: { manifest: { ...manifest, attestations: [7] } },
  };
  return { signer, fault, type, statement, body: { ...good, ...body[fault] } };
}

/** What the service makes up. */
interface Receipt {
  readonly attestation: { readonly id: string; readonly timestamp: string };
  readonly log_entry_id: number;
  readonly leaf_index: number;
  readonly entry_hash: string;
  readonly sth: { readonly tree_size: number } & Readonly<Record<string, unknown>>;
}

/** The receipt of a submission, as it must be spelled. @param made of which only that is taken which the service makes up */
function receiptOf({ signer, body, type, statement }: Sent, made: Receipt, duplicate: boolean): object {
  const { root_hash, signature, timestamp, key_id } = made.sth;
  const head = { root_hash, signature, timestamp, key_id, tree_version: 2 };
  return {
    attestation: {
      id: made.attestation.id,
      type,
      scope: { content_hash: body.manifest.document.content_hash },
      signer_key_fingerprint: signer.fingerprint,
      signature_algorithm: signer.algorithm,
      signature: body.signature,
      timestamp: made.attestation.timestamp,
      ...(statement !== null && { intent_statement: statement }),
    },
    fingerprint: signer.fingerprint,
    pseudonym: nameOf(signer),
    log_entry_id: made.leaf_index + 1,
    leaf_index: made.leaf_index,
    entry_hash: made.entry_hash,
    manifest_hash: sha256(canonical(body.manifest)),
    sth: { tree_size: made.leaf_index + 1, ...head },
    duplicate,
    signed: { attestation_type: false, intent_statement: false },
  };
}

/** Sends a submission twice at once, by two clients, if it is wished; then verifies what became of it. */
export async function attest(traffic: Traffic, sent: Sent, clients: readonly Client[]): Promise<() => Promise<void>> {
  const ask = { method: "POST", path: "/api/v1/attestations", body: sent.body };
  const all = await Promise.all(clients.map((client) => traffic.ask(ask, client)));
  if (sent.fault !== "none") {
    for (const { status } of all) expect(status).toBeGreaterThan(400);
    return async () => {
      if (sent.fault === "password") return;
      const [client] = clients;
      for (const { body } of all) {
        const again = await traffic.ask(ask, client!);
        expect({ ...body, request_id: again.body.request_id }).toEqual(again.body);
      }
    };
  }
  for (const said of all) {
    expect(said.status, said.text).toBe(200);
    expect(said.text).toBe(JSON.stringify(receiptOf(sent, said.body, said.body.duplicate)));
  }
  const [first, ...others] = all.sort((a, b) => Number(a.body.duplicate) - Number(b.body.duplicate));
  expect(first!.body.duplicate).toBe(false);
  for (const { body } of others) expect(body).toEqual({ ...first!.body, duplicate: true });
  return () => verify(traffic, sent, first!.body, clients.at(-1)!);
}

/** Sends a submission from an address that may store nothing more: nothing of it is left, and from elsewhere it is taken. */
export async function attestSpent(
  traffic: Traffic,
  sent: Sent,
  spent: Client,
  other: Client,
): Promise<() => Promise<void>> {
  const said = await traffic.ask({ method: "POST", path: "/api/v1/attestations", body: sent.body }, spent);
  if (sent.fault === "none") expect([said.status, said.body.code]).toEqual([429, "budget-spent"]);
  else expect(said.status).toBeGreaterThan(400);
  return async () => {
    if (sent.fault === "none") await (await attest(traffic, sent, [other]))();
  };
}

/** Sends a batch; then verifies what became of each. */
export async function attestBatch(
  traffic: Traffic,
  all: readonly Sent[],
  client: Client,
): Promise<() => Promise<void>> {
  const body = { submissions: all.map((sent) => sent.body) };
  const said = await traffic.ask({ method: "POST", path: "/api/v1/attestations/batch", body }, client, all.length);
  expect(said.status, said.text).toBe(200);
  const { results } = said.body;
  const seen = new Set<unknown>();
  const expected = all.map((sent, i) => {
    if (sent.fault !== "none") return results[i];
    const isAgain = seen.has(sent);
    seen.add(sent);
    return {
      status: isAgain ? 200 : 201,
      receipt: results[i].receipt ? receiptOf(sent, results[i].receipt, isAgain) : "a receipt",
    };
  });
  expect(said.text).toBe(JSON.stringify({ results: expected }));
  // In the order of the batch.
  const places = results.flatMap((one: { status: number; receipt: Receipt }) =>
    one.status === 201 ? [one.receipt.leaf_index] : [],
  );
  expect(places).toEqual(places.toSorted((a: number, b: number) => a - b));
  return async () => {
    for (const [i, sent] of all.entries()) {
      if (sent.fault === "none") await verify(traffic, sent, results[i].receipt, client);
      else {
        expect(results[i].receipt, sent.fault).toBeUndefined();
        if (sent.fault === "password")
          expect(results[i].problem).toMatchObject({ code: "forbidden", detail: /password/ });
        else {
          const alone = await traffic.ask({ method: "POST", path: "/api/v1/attestations", body: sent.body }, client);
          const problem = { ...alone.body, request_id: said.headers["x-request-id"] };
          expect(results[i]).toEqual({ status: alone.status, problem });
        }
      }
    }
  };
}

const operatorKeys = new WeakMap<Traffic, Promise<PublicKey>>();

/** The receipt, the stored entry, its proof, and the head, by the text that was sent. */
async function verify(
  traffic: Traffic,
  { body, signer, type, statement }: Sent,
  receipt: Receipt,
  client: Client,
): Promise<void> {
  const get = async (path: string) => (await traffic.ask({ path: `/api/v1${path}` }, client)).body;
  const key =
    operatorKeys.get(traffic) ?? get("/log/operator-key").then(({ public_key }) => parsePublicKey(public_key));
  operatorKeys.set(traffic, key);
  const { log_entry_id, leaf_index, sth, attestation, entry_hash } = receipt;
  const entry = await get(`/log/${log_entry_id}`);
  const proof = await get(`/log/proof/${leaf_index}?tree_size=${sth.tree_size}`);
  const { manifest } = body;
  const { payload, previous_hash, timestamp } = entry;
  expect(entry).toMatchObject({ id: log_entry_id, entry_hash });
  expect(entry_hash).toBe(sha256(`service.log.entry.v2\0${canonical({ payload, previous_hash, timestamp })}`));
  expect(payload).toMatchObject({
    attestation_id: attestation.id,
    attestation_type: type,
    signer_key_fingerprint: signer.fingerprint,
    document_hash: manifest.document.content_hash,
    document_title: manifest.document.title,
    tags: manifest.document.tags,
    signature: body.signature,
    intent_statement: statement,
    manifest_hash: sha256(canonical(manifest)),
  });
  const bundle = {
    format: "cairnlog-attestation/v1",
    ...{ manifest, attestation, public_key: signer.publicKey, entry, proof, tree_head: sth },
  };
  const trust = { fileHash: manifest.document.content_hash, operatorKey: await key };
  expect(await verifyBundle(bundle, trust)).toMatchObject({ valid: true });
}

/** One client of `server/client` that does several things at once. It throws where an answer is not that of its own question. */
export async function byClient(
  traffic: Traffic,
  titles: readonly string[],
  { address }: Client,
): Promise<() => Promise<void>> {
  const signer = newSigner();
  const { connections } = traffic;
  let asked = 0;
  // Each over another connection, so that their answers overtake each other.
  const overConnections: typeof fetch = async (input, init) => {
    const { pathname, search } = new URL(String(input));
    const body = init?.body === undefined ? undefined : JSON.parse(String(init.body));
    const headers = Object.fromEntries(new Headers(init?.headers));
    delete headers["content-length"];
    const parts = body?.submissions?.length ?? 0;
    const said = await traffic.ask(
      { method: init?.method ?? "GET", path: pathname + search, body, headers },
      { address, connection: connections[asked++ % connections.length]! },
      parts,
    );
    const lasting = Object.entries(said.headers).map(([name, value]) => [name, String(value)] as [string, string]);
    return new Response(new Uint8Array(said.bytes), { status: said.status, headers: lasting });
  };
  const client = createClient({ server: traffic.service.url, signer: asSigner(signer), fetch: overConnections });
  const documents = titles.map((title) => newManifest(title).document);
  const [one, ...many] = documents;
  const pseudonym = nameOf(signer);
  await client.keys.register({ pseudonym });
  const singles = Promise.all(
    [one!, ...many].map((document) => client.attest(document, { type: "peer_review", intent: document.title })),
  );
  const batch = async () => {
    const receipts = [];
    for await (const outcome of client.attestAll(documents, { type: "publication" })) receipts.push(outcome);
    return receipts;
  };
  const [alone, together, session, known] = await Promise.all([
    singles,
    batch(),
    client.login(),
    client.keys.find(signer.fingerprint),
  ]);
  expect(session.fingerprint).toBe(signer.fingerprint);
  expect(known).toMatchObject({ fingerprint: signer.fingerprint, pseudonym });
  for (const [i, { receipt, bundle }] of alone.entries()) {
    expect(receipt.attestation).toMatchObject({ type: "peer_review", intent_statement: documents[i]!.title });
    expect(bundle.entry.payload).toMatchObject({
      document_title: documents[i]!.title,
      document_hash: documents[i]!.content_hash,
    });
  }
  for (const [i, { subject, bundle, error }] of together.entries()) {
    expect(error).toBeUndefined();
    expect(subject).toBe(documents[i]);
    expect(bundle!.entry.payload).toMatchObject({
      attestation_type: "publication",
      document_hash: documents[i]!.content_hash,
    });
  }
  return async () => {};
}

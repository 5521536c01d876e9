/** Load through all nodes: appends that are new, repeated and wrong, private rows that come and go, and reads. */
import { Random } from "../../reliability/random.js";
import { newManifest, newSigner, registration, submission, type TestSigner } from "../../server/signers.js";
import type { Node } from "../rig/node.js";
import { Client, type Reply } from "./client.js";
import type { Facts, Receipt } from "./facts.js";

/** Submissions that are kept to be sent again, in this round or a later one. */
const KEPT = 300;
const SIGNERS = 8;

type Submission = ReturnType<typeof submission>;

export class Load {
  readonly #nodes: readonly Node[];
  readonly #facts: Facts;
  readonly #kept: Submission[] = [];
  readonly #signers: TestSigner[] = Array.from({ length: SIGNERS }, () => newSigner());
  /** By key: how many trust configurations were sent. */
  readonly #configurations = new Map<string, number>();
  readonly #tokens = new Map<string, string>();
  readonly answers = new Map<string, number>();
  /** Set when the operator ends the log. From then on every write may be refused for that. */
  isEnding = false;

  constructor(nodes: readonly Node[], facts: Facts) {
    this.#nodes = nodes;
    this.#facts = facts;
  }

  /** Works until `signal`. */
  async work(workers: number, random: Random, signal: AbortSignal): Promise<void> {
    await Promise.all(Array.from({ length: workers }, () => this.#workAlone(random.fork(), signal)));
  }

  async #workAlone(random: Random, signal: AbortSignal): Promise<void> {
    const client = new Client(this.#nodes, this.#facts, random, signal, this.answers);
    while (!signal.aborted) {
      const choice = random.below(100);
      if (choice < 66) await this.#attest(client, random);
      else if (choice < 74) await this.#attestAgain(client, random);
      else if (choice < 78) await this.#attestWrongly(client, random);
      else if (choice < 84) await this.#subscribe(client, random);
      else if (choice < 88) await this.#configureTrust(client, random);
      else await this.#read(client, random);
    }
  }

  async #attest(client: Client, random: Random): Promise<void> {
    await this.send(client, submission(random.pick(this.#signers), newManifest()));
  }

  /** Has an attestation recorded, however often it takes. @returns its receipt; null if the round is over before */
  async send(client: Client, body: Submission): Promise<Receipt | null> {
    const document = body.manifest.document.content_hash;
    if (!this.#facts.receipts.has(document)) this.#facts.open.add(document);
    const reply = await client.insist("POST", "/attestations", body);
    if (!reply) return null;
    if (reply.status !== 200) {
      this.#problem(`POST /attestations at ${reply.by.name}`, reply);
      return null;
    }
    this.#facts.acknowledge(document, reply.body, reply.by.name);
    await this.#readBack(client, reply);
    if (this.#kept.length < KEPT) this.#kept.push(body);
    return reply.body;
  }

  /** A node that has acknowledged an entry shows it from then on, whoever leads. */
  async #readBack(client: Client, { by, body: { log_entry_id, entry_hash } }: Reply): Promise<void> {
    const entry = await client.send(by, "GET", `/log/${log_entry_id}`);
    if (entry?.status === 404 || (entry?.status === 200 && entry.body.entry_hash !== entry_hash))
      this.#problem(`invariant 2: ${by.name} has acknowledged entry ${log_entry_id} and does not show it`, entry);
  }

  async #attestAgain(client: Client, random: Random): Promise<void> {
    if (this.#kept.length) await this.send(client, random.pick(this.#kept));
  }

  async #attestWrongly(client: Client, random: Random): Promise<void> {
    const signer = random.pick(this.#signers);
    const body = { ...submission(signer, newManifest()), signature: signer.sign("something else") };
    this.#facts.refused.add(body.manifest.document.content_hash);
    const reply = await client.insist("POST", "/attestations", body);
    if (reply && reply.status !== 422) this.#problem("a wrong signature", reply);
  }

  /** A webhook comes, and mostly goes again: a private row that must be gone everywhere. */
  async #subscribe(client: Client, random: Random): Promise<void> {
    const signer = random.pick(this.#signers);
    const token = await this.#login(client, signer);
    if (!token) return;
    // The events never happen. There may be only so many webhooks to one host.
    const body = {
      url: `https://h${random.below(2 ** 32)}.example/hook`,
      events: ["key.revoked"],
      key_fingerprint: signer.fingerprint,
    };
    const made = await client.insist("POST", "/webhooks", body, token);
    if (!made || this.#isFull(made, signer) || !this.#isDone("POST /webhooks", made, signer)) return;
    const fact = { table: "webhooks" as const, key: Number(made.body.id), isThere: true as boolean | null };
    this.#facts.rows.push(fact);
    if (random.chance(0.2)) return;
    fact.isThere = null;
    const deleted = await client.insist("DELETE", `/webhooks/${fact.key}`, undefined, token);
    // Deleted by an earlier try that was not answered.
    if (deleted && (deleted.status === 404 || this.#isDone("DELETE /webhooks", deleted, signer))) fact.isThere = false;
  }

  async #configureTrust(client: Client, random: Random): Promise<void> {
    const signer = random.pick(this.#signers);
    const { fingerprint } = signer;
    const token = await this.#login(client, signer);
    if (!token) return;
    const body = { fingerprint, direct_signer_anchors: [{ fingerprint, weight: 0.5 }], minimum_threshold: 0.3 };
    // Of each key the newest two are kept, so a request may remove earlier ones, answered or not.
    const sent = (this.#configurations.get(fingerprint) ?? 0) + 1;
    this.#configurations.set(fingerprint, sent);
    const facts = this.#facts.rows.filter(({ table, owner }) => table === "trustConfigs" && owner === fingerprint);
    for (const fact of facts) fact.isThere = null;
    const reply = await client.insist("POST", "/trust-configs", body, token);
    if (!reply || this.#isFull(reply, signer) || !this.#isDone("POST /trust-configs", reply, signer)) return;
    const isNewest = this.#configurations.get(fingerprint) === sent;
    const key = Number(reply.body.id);
    this.#facts.rows.push({ table: "trustConfigs", key, owner: fingerprint, isThere: isNewest || null });
  }

  async #login(client: Client, signer: TestSigner): Promise<string | null> {
    const { fingerprint } = signer;
    const known = this.#tokens.get(fingerprint);
    if (known) return known;
    const registered = await client.insist("POST", "/keys/register", registration(signer));
    if (registered && ![200, 409].includes(registered.status)) this.#problem("POST /keys/register", registered);
    const challenge = await client.insist("POST", "/auth/challenge", { fingerprint });
    if (challenge?.status !== 200) return null;
    const { challenge_id, nonce } = challenge.body;
    // Who takes over may not have the newest rows yet, or the key may have ended: nothing is wrong with a refusal.
    const proof = { challenge_id, challenge_signature: signer.sign(nonce) };
    const login = await client.send(challenge.by, "POST", "/auth/login", proof);
    if (login?.status !== 200) return null;
    this.#tokens.set(fingerprint, login.body.token);
    return login.body.token;
  }

  /** Whether a request with a session was executed. If the session has ended, the next one begins another. */
  #isDone(what: string, reply: { status: number; body: object }, signer: TestSigner): boolean {
    if (reply.status === 401) this.#tokens.delete(signer.fingerprint);
    else if (reply.status >= 300) this.#problem(what, reply);
    return reply.status < 300;
  }

  /** Whether a key has as many private rows as one may have. Another one takes its place. */
  #isFull({ status, body }: Reply, signer: TestSigner): boolean {
    if (status !== 409 || body.code !== "precondition-failed") return false;
    const i = this.#signers.indexOf(signer);
    if (i >= 0) this.#signers[i] = newSigner();
    return true;
  }

  /** Asks any node for something acknowledged. It may be behind; what it shows must be right. */
  async #read(client: Client, random: Random): Promise<void> {
    const node = client.any();
    const head = await client.send(node, "GET", "/log/sth");
    if (head?.status === 200) this.#facts.show(head.body, node.name);
    const known = this.#kept.length ? random.pick(this.#kept) : undefined;
    const receipt = known && this.#facts.receipts.get(known.manifest.document.content_hash);
    if (!receipt) return;
    const entry = await client.send(node, "GET", `/log/${receipt.log_entry_id}`);
    if (entry?.status === 200 && entry.body.entry_hash !== receipt.entry_hash)
      this.#facts.problems.push(`invariant 2: ${node.name} shows another entry ${receipt.log_entry_id}`);
  }

  #problem(what: string, { status, body }: { status: number; body: { readonly code?: string } }): void {
    if (this.isEnding && status === 410 && body.code === "frozen") return;
    this.#facts.problems.push(`${what}: ${status} ${JSON.stringify(body).slice(0, 300)}`);
  }
}

/** A client that never gives up before `signal`. */
export const patient = (nodes: readonly Node[], facts: Facts, seed: number, signal: AbortSignal): Client =>
  new Client(nodes, facts, new Random(seed), signal, new Map());

/** Clients of a service whose system calls fail: what they were promised, and every answer that breaks a promise. */
import { Ledger, type Receipt } from "../crash/ledger.js";
import { newManifest, newSigner, registration, submission, type TestSigner } from "../server/signers.js";
import { PATIENCE_MS } from "./process.js";

const ROUNDS_OF_LOAD = 6;
const WORKERS = 3;
/** Appends at once that must pass when the fault is over. */
const AFTERWARDS = 3;
const RETRY_MS = 200;

/** All that was promised about one data directory. */
export class Facts {
  readonly ledger = new Ledger();
  /** Entries as they were served. */
  readonly texts = new Map<number, string>();
  /** The one head of each size. */
  readonly heads = new Map<number, string>();

  /** The same promises, for a copy of the data directory. */
  copy(): Facts {
    const facts = new Facts();
    facts.ledger.entries.push(...this.ledger.entries);
    for (const value of this.ledger.refused) facts.ledger.refused.add(value);
    for (const { table, key, row } of this.ledger.rows) facts.ledger.holds(table, key as never, row!);
    for (const [id, title] of this.ledger.asked) facts.ledger.asked.set(id, title);
    for (const id of this.ledger.withheld) facts.ledger.withheld.add(id);
    for (const [id, text] of this.texts) facts.texts.set(id, text);
    for (const [size, head] of this.heads) facts.heads.set(size, head);
    return facts;
  }
}

export interface Reply {
  readonly status: number;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
  readonly body: any;
}

export interface Actor {
  readonly signer: TestSigner;
  readonly token: string;
}

export class Client {
  readonly #url: string;
  readonly #facts: Facts;
  readonly problems: string[] = [];
  /** Codes of the refusals because of the service's state (503). */
  readonly refusals = new Set<string>();
  acknowledged = 0;
  /** Requests whose connection was closed without an answer. */
  cut = 0;
  /** Whether the log may have ended, and an append be refused for that. */
  mayHaveEnded = false;
  #hasEnded = false;

  constructor(url: string, facts: Facts) {
    this.#url = url;
    this.#facts = facts;
  }

  /** @returns null when the connection was closed; then the request may or may not have been executed */
  async send(method: "GET" | "POST", path: string, body?: object, token?: string): Promise<Reply | null> {
    let status: number;
    let text: string;
    let retryAfter: string | null;
    try {
      const response = await fetch(this.#url + path, {
        method,
        headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
        signal: AbortSignal.timeout(PATIENCE_MS),
        ...(body && { body: JSON.stringify(body) }),
      });
      text = await response.text();
      status = response.status;
      retryAfter = response.headers.get("retry-after");
    } catch (error) {
      if ((error as Error).name === "TimeoutError") this.problems.push(`${method} ${path} was not answered`);
      this.cut++;
      return null;
    }
    const parsed = text.startsWith("{") || text.startsWith("[") ? JSON.parse(text) : {};
    if (status === 503) {
      // The probes answer with a status and a reason.
      const code = String(parsed.code ?? (parsed.detail ? "unavailable" : ""));
      if (!code) this.problems.push(`${method} ${path} answered 503 without a code: ${text.slice(0, 200)}`);
      if (parsed.code) this.refusals.add(code);
      if (code === "storage-full" && retryAfter === null)
        this.problems.push(`${method} ${path} answered storage-full without Retry-After`);
    } else if (status >= 500) this.problems.push(`${method} ${path} answered ${status}: ${text.slice(0, 300)}`);
    return { status, text, body: parsed };
  }

  #wrong(what: string, { status, text }: Reply): void {
    if (status < 500) this.problems.push(`${what} answered ${status}: ${text.slice(0, 300)}`);
  }

  /** Two different heads of one size would be a fork. */
  #keepHead(head: { readonly tree_size: number } | undefined): void {
    if (!head) return;
    const text = JSON.stringify(head);
    const known = this.#facts.heads.get(head.tree_size);
    if (known !== undefined && known !== text) this.problems.push(`size ${head.tree_size} has two heads`);
    this.#facts.heads.set(head.tree_size, text);
  }

  async #append(path: string, body: object, says: Record<string, string>): Promise<Receipt | null> {
    const { ledger } = this.#facts;
    const reply = await this.send("POST", `/api/v1${path}`, body);
    if (reply?.status === 200) {
      this.acknowledged++;
      ledger.add(reply.body, says);
      this.#keepHead(reply.body.sth);
      return reply.body;
    }
    this.#hasEnded = this.mayHaveEnded && reply?.body.code === "frozen";
    // After any other refusal the entry may be on the log: the service does not know.
    if (reply?.body.code === "storage-full" || this.#hasEnded)
      for (const value of Object.values(says)) ledger.refused.add(value);
    if (reply && !this.#hasEnded) this.#wrong(path, reply);
    return null;
  }

  /** Ends the log. @param token of the operator */
  async end(token: string): Promise<void> {
    const end = { reason: "It is full." };
    this.mayHaveEnded = true;
    const reply = await this.send("POST", "/api/v1/log/freeze", end, token);
    if (reply?.status === 200) {
      this.acknowledged++;
      this.#facts.ledger.add(reply.body, end);
      this.#facts.ledger.end = reply.body.log_entry_id;
      this.#keepHead(reply.body.sth);
    } else if (reply) this.#wrong("/log/freeze", reply);
  }

  /** Attests something and withholds it. @param token of the operator */
  async withhold(token: string): Promise<void> {
    const { ledger } = this.#facts;
    const title = "Zwetschgenkuchen";
    const receipt = await this.attest(newSigner(), title);
    if (!receipt) return;
    const { log_entry_id: id } = receipt;
    ledger.asked.set(id, title);
    const said = { reason: "An order." };
    const reply = await this.send("POST", `/api/v1/log/${id}/withhold`, said, token);
    if (reply?.status === 200) {
      this.acknowledged++;
      ledger.add(reply.body, { entry_id: id, ...said });
      ledger.withheld.add(id);
      this.#keepHead(reply.body.sth);
    } else if (reply) this.#wrong("withhold", reply);
  }

  attest(signer: TestSigner = newSigner(), title?: string): Promise<Receipt | null> {
    const manifest = newManifest(title);
    const { content_hash: document_hash } = manifest.document;
    return this.#append("/attestations", submission(signer, manifest), { document_hash });
  }

  async register(signer: TestSigner): Promise<Receipt | null> {
    const { fingerprint, publicKey: public_key } = signer;
    const receipt = await this.#append("/keys/register", registration(signer), { fingerprint });
    if (receipt) this.#facts.ledger.holds("keys", fingerprint, { public_key });
    return receipt;
  }

  /** A key with a session; null if the service refuses. */
  async actor(): Promise<Actor | null> {
    const signer = newSigner();
    if (!(await this.register(signer))) return null;
    const token = await this.login(signer);
    return token === null ? null : { signer, token };
  }

  /** A new session; null if the service refuses. */
  async login(signer: TestSigner): Promise<string | null> {
    const { fingerprint } = signer;
    const challenge = await this.send("POST", "/api/v1/auth/challenge", { fingerprint });
    if (challenge?.status !== 200) return null;
    const { challenge_id, nonce } = challenge.body;
    const proof = { challenge_id, challenge_signature: signer.sign(nonce) };
    const login = await this.send("POST", "/api/v1/auth/login", proof);
    return login?.status === 200 ? login.body.token : null;
  }

  /** A private row, which is no entry. */
  async #configureTrust({ signer: { fingerprint }, token }: Actor): Promise<void> {
    const body = { fingerprint, direct_signer_anchors: [{ fingerprint, weight: 0.5 }], minimum_threshold: 0.3 };
    const reply = await this.send("POST", "/api/v1/trust-configs", body, token);
    // Later ones take the place of this one: only that there is one is certain.
    if (reply?.status === 200) this.#facts.ledger.holds("trustConfigHeads", fingerprint, {});
    else if (reply) this.#wrong("/trust-configs", reply);
  }

  /** Asks for an acknowledged entry and its head: they must be those, or the service says that it cannot. */
  async readBack({ log_entry_id: id, entry_hash, sth }: Receipt): Promise<void> {
    const entry = await this.send("GET", `/api/v1/log/${id}`);
    if (entry?.status === 200) {
      const known = this.#facts.texts.get(id);
      if ((known !== undefined && known !== entry.text) || entry.body.entry_hash !== entry_hash)
        this.problems.push(`entry ${id} is not the acknowledged one: ${entry.text.slice(0, 200)}`);
      this.#facts.texts.set(id, entry.text);
    } else if (entry) this.#wrong(`acknowledged entry ${id}`, entry);
    if (!sth) return;
    const head = await this.send("GET", `/api/v1/log/sth/${sth.tree_size}`);
    if (head?.status === 200) this.#keepHead(head.body);
    else if (head) this.#wrong(`acknowledged head ${sth.tree_size}`, head);
  }

  /** Everything that was acknowledged, as far as `most` receipts go back. */
  async readAll(most = Number.POSITIVE_INFINITY): Promise<void> {
    for (const { log_entry_id, entry_hash, sth } of this.#facts.ledger.entries.slice(-most))
      await this.readBack({ log_entry_id, ...(entry_hash && { entry_hash }), sth: sth ?? null });
  }

  /** Questions whose answer tells whether the service takes the log for shorter than it is. */
  async #askForSize(): Promise<void> {
    const acknowledged = Math.max(0, ...this.#facts.ledger.entries.map(({ log_entry_id: id }) => id));
    const list = await this.send("GET", "/api/v1/log?per_page=1");
    if (list?.status === 200) {
      if (list.body.total < acknowledged)
        this.problems.push(`the log is said to have ${list.body.total} entries, and ${acknowledged} were acknowledged`);
    } else if (list) this.#wrong("/log", list);
    const head = await this.send("GET", "/api/v1/log/sth");
    if (head?.status === 200) this.#keepHead(head.body);
    // While every write is refused, there is no head to be shown.
    else if (head && (acknowledged > 0 || head.status !== 404)) this.#wrong("/log/sth", head);
  }

  /** Writes and reads of every kind, in three workers, until they are through or the service is gone. */
  async work(actor: Actor): Promise<void> {
    await Promise.all(
      Array.from({ length: WORKERS }, async (_, worker) => {
        for (let n = 0; n < ROUNDS_OF_LOAD && !this.cut; n++) {
          const receipt = await this.attest(n % 3 ? actor.signer : newSigner());
          if (receipt) await this.readBack(receipt);
          if (n % 4 === worker) await this.register(newSigner());
          if (n % 4 === worker + 1) await this.#configureTrust(actor);
          if (n % 5 === worker) await this.#askForSize();
        }
      }),
    );
  }

  /** Whether the process is well, by its own word; null if it does not answer. */
  async isAlive(): Promise<boolean | null> {
    const probes = [await this.send("GET", "/readyz"), await this.send("GET", "/livez")];
    const live = probes[1];
    return live ? live.status === 200 : null;
  }

  /** Looks at the state in which the fault has left the service. */
  async probe(): Promise<void> {
    await this.readAll(3);
    await this.#askForSize();
  }

  /** Appends until it works again, or the log is found to have ended. @returns whether that was in time */
  async goesOn(): Promise<boolean> {
    const until = Date.now() + PATIENCE_MS;
    for (let done = 0; done < AFTERWARDS; ) {
      if ((await this.attest()) || this.#hasEnded) done++;
      else if (this.cut || Date.now() > until) return false;
      else await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
    return true;
  }
}

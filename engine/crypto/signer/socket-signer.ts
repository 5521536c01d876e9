/**
 * An operator key that another process holds and that signs over a Unix socket (docs/spec §18.1). The signer is not
 * believed: every signature is verified here before anybody gets it, so a wrong one reaches no disk and no client.
 * Belongs to the thread that made it.
 */
import { CairnlogError } from "../../base/error.js";
import { decodeBase64 } from "../../verify/bytes/encoding.js";
import { ecdsaCompact } from "../../verify/keys/signature.js";
import { verifySync } from "../keys/signatures.js";
import { importPublicKey, type ServerKey } from "../keys/spki.js";
import { type Pool, SignatureVerifier } from "../pool/pool.js";
import { SignerConnection, unavailable } from "./connection.js";
import type { OperatorKey } from "./operator-key.js";

// What a signer answers, checked for its form. The signer may be wrong or hostile.

/** The protocol's version, which both sides name in the first exchange. */
const PROTOCOL = "cairnlog-signer/1";
/** Characters of a signer's own error text that are repeated. */
const SHOWN_CHARACTERS = 200;

/**
 * The key in the answer to `key`.
 * @throws CairnlogError `signer-unavailable` for an answer in another form; `invalid-key` for a key that cannot be used
 */
function signerKeyIn(answer: unknown): ServerKey {
  checkRefusal(answer);
  const { protocol, public_key } = membersOf(answer);
  if (protocol !== PROTOCOL || typeof public_key !== "string")
    throw unavailable(`The signer does not speak ${PROTOCOL}: its answer to "key" has another form.`);
  try {
    return importPublicKey(public_key);
  } catch (cause) {
    throw new CairnlogError("invalid-key", "The signer's public key is not one that can be used.", { cause });
  }
}

/**
 * The signatures in the answer to `sign`, in order, in the form in which they are stored. They are not verified yet.
 * @throws CairnlogError `signer-unavailable`
 */
function readSignatures(answer: unknown, count: number, key: ServerKey): Uint8Array[] {
  const { signatures } = membersOf(answer);
  if (!Array.isArray(signatures) || signatures.length !== count)
    throw unavailable(`The signer did not answer with ${count} signatures.`);
  return signatures.map((text) => {
    const bytes = decodeBase64(text);
    // Cards and libraries give a P-256 signature as DER or as 64 bytes. Tree heads and tokens hold 64 bytes.
    const signature = bytes && key.algorithm === "ecdsa-p256" ? ecdsaCompact(bytes) : bytes;
    if (!signature) throw unavailable("The signer answered something that is no signature.");
    return signature;
  });
}

/**
 * Passes over an answer that is no refusal.
 * @throws CairnlogError `signer-unavailable` with the signer's own words, in printable ASCII: they may reach a terminal
 */
function checkRefusal(answer: unknown): void {
  const { error } = membersOf(answer);
  if (typeof error !== "string") return;
  throw unavailable(`The signer refused: ${error.slice(0, SHOWN_CHARACTERS).replace(/[^ -~]/g, "?")}`);
}

const membersOf = (answer: unknown): Readonly<Record<string, unknown>> =>
  typeof answer === "object" && answer !== null ? (answer as Readonly<Record<string, unknown>>) : {};

/** Milliseconds in which a request must be answered, unless the caller sets another time. */
export const DEFAULT_SIGNER_DEADLINE_MS = 10_000;
/**
 * Messages of one request. A batch of the service has fewer, so its heads always come in one request: a signer that
 * guards against forks counts on it.
 */
const MAX_MESSAGES = 1_024;
/** Bytes of one message. Heads have about 100 bytes, session tokens below 1,000. */
const MAX_MESSAGE_BYTES = 64 * 1024;
/** Bytes of all messages of one request. */
const MAX_REQUEST_BYTES = 512 * 1024;
/** Milliseconds before a lost connection is made again: the first pause, which doubles, and the longest. */
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 2_000;
/** The longest path that a Unix socket can have on Linux. */
const MAX_PATH_BYTES = 107;

export interface SignerOptions {
  /** Milliseconds in which a request must be answered; 10,000 unless given. */
  readonly deadlineMs?: number;
  /** Verifies large batches; without it, the calling thread does. */
  readonly pool?: Pool;
}

/** An operator key behind a socket. `close` it, or the process does not end by itself. */
export interface SocketSigner extends OperatorKey {
  /** Why the signer cannot be used at the moment; null while it is connected. */
  readonly trouble: CairnlogError | null;
  /** Calls `observer` whenever the connection is lost or made again, with the new `trouble`. */
  observe(observer: (trouble: CairnlogError | null) => void): void;
  /** Ends the connection. Requests that were not answered fail, and so do later ones. */
  close(): Promise<void>;
}

/** The path in `unix:/path`; undefined for any other text. */
export function signerPath(address: string): string | undefined {
  const path = /^unix:(\/[^\0]+)$/.exec(address)?.[1];
  return path !== undefined && Buffer.byteLength(path) <= MAX_PATH_BYTES ? path : undefined;
}

/**
 * Connects to the signer at `address` (`unix:/path`) and asks for its key. A connection that is lost later is made again,
 * also to a signer that was restarted, but only to one with the same key.
 * @throws CairnlogError `invalid-input` for another form of address; `signer-unavailable` if nobody answers there as a
 *   signer does; `invalid-key`
 */
export async function signerAt(address: string, options: SignerOptions = {}): Promise<SocketSigner> {
  const path = signerPath(address);
  if (path === undefined)
    throw new CairnlogError("invalid-input", `The address of a signer is unix:/path/of/socket, not ${address}.`);
  const { deadlineMs = DEFAULT_SIGNER_DEADLINE_MS, pool } = options;
  const connection = new SignerConnection(path);
  const key = await keyBehind(connection, deadlineMs);
  return new ReconnectingSigner({ path, deadlineMs, pool, key }, connection);
}

/** Asks for the key. If that fails, the connection is of no use and ends. */
async function keyBehind(connection: SignerConnection, deadlineMs: number): Promise<ServerKey> {
  try {
    return signerKeyIn(await connection.ask({ request: "key", protocol: PROTOCOL }, deadlineMs));
  } catch (error) {
    connection.end(error as CairnlogError);
    throw error;
  }
}

interface SignerParts {
  readonly path: string;
  readonly deadlineMs: number;
  readonly pool: Pool | undefined;
  readonly key: ServerKey;
}

class ReconnectingSigner implements SocketSigner {
  readonly #parts: SignerParts;
  readonly #verifier: SignatureVerifier | null;
  /** The connection whose key was checked, or the newest that was tried. */
  #connection: SignerConnection;
  #pause = FIRST_PAUSE_MS;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;
  #observers: ((trouble: CairnlogError | null) => void)[] = [];
  trouble: CairnlogError | null = null;

  constructor(parts: SignerParts, connection: SignerConnection) {
    this.#parts = parts;
    this.#verifier = parts.pool ? new SignatureVerifier(parts.pool) : null;
    this.#connection = connection;
    connection.observeEnd((why) => this.#lost(why));
  }

  get fingerprint(): string {
    return this.#parts.key.fingerprint;
  }

  get public(): ServerKey {
    return this.#parts.key;
  }

  /**
   * While there is no connection, this rejects at once: an append must not wait for a signer that may never come back.
   * @throws CairnlogError `signer-unavailable`; `wrong-operator` while a signer with another key answers
   */
  async sign(messages: readonly Uint8Array[]): Promise<readonly Uint8Array[]> {
    const signed: Uint8Array[] = [];
    for (const part of requestsOf(messages)) signed.push(...(await this.#signPart(part)));
    return signed;
  }

  observe(observer: (trouble: CairnlogError | null) => void): void {
    this.#observers.push(observer);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#connection.end(unavailable("The connection to the signer was closed."));
  }

  async #signPart(messages: readonly Uint8Array[]): Promise<Uint8Array[]> {
    if (this.trouble) throw this.trouble;
    const connection = this.#connection;
    const request = { request: "sign", messages: messages.map((message) => Buffer.from(message).toString("base64")) };
    const answer = await connection.ask(request, this.#parts.deadlineMs);
    checkRefusal(answer);
    try {
      const signatures = readSignatures(answer, messages.length, this.#parts.key);
      await this.#verify(messages, signatures);
      this.#pause = FIRST_PAUSE_MS;
      return signatures;
    } catch (error) {
      // A signer that answers wrongly may have lost its place among the questions.
      connection.end(error as CairnlogError);
      throw error;
    }
  }

  async #verify(messages: readonly Uint8Array[], signatures: readonly Uint8Array[]): Promise<void> {
    const { key } = this.#parts;
    const verdicts = this.#verifier
      ? await Promise.all(messages.map((message, i) => this.#verifier!.verify(key, message, signatures[i]!)))
      : messages.map((message, i) => verifySync(key, message, signatures[i]!));
    if (!verdicts.every(Boolean)) throw unavailable("The signer answered a signature that does not verify.");
  }

  #lost(why: CairnlogError): void {
    if (this.#closed) {
      this.trouble = why;
      return;
    }
    this.#tell(why);
    this.#timer = setTimeout(() => void this.#reconnect(), this.#pause);
    this.#pause = Math.min(2 * this.#pause, LONGEST_PAUSE_MS);
  }

  /** Never rejects. */
  async #reconnect(): Promise<void> {
    const { path, deadlineMs, key } = this.#parts;
    const connection = new SignerConnection(path);
    this.#connection = connection;
    connection.observeEnd((why) => this.#lost(why));
    const found = await keyBehind(connection, deadlineMs).catch(() => null);
    if (!found) return;
    if (found.fingerprint === key.fingerprint) this.#tell(null);
    else
      connection.end(
        new CairnlogError(
          "wrong-operator",
          `The signer at ${path} has the key ${found.fingerprint} now, not ${key.fingerprint}.`,
        ),
      );
  }

  #tell(trouble: CairnlogError | null): void {
    this.trouble = trouble;
    for (const observer of this.#observers) observer(trouble);
  }
}

/** Splits the messages of one call into requests. @throws CairnlogError `payload-too-large` */
function requestsOf(messages: readonly Uint8Array[]): Uint8Array[][] {
  const requests: Uint8Array[][] = [];
  let bytes = 0;
  for (const message of messages) {
    if (message.length > MAX_MESSAGE_BYTES)
      throw new CairnlogError("payload-too-large", `A signer signs messages of at most ${MAX_MESSAGE_BYTES} bytes.`);
    bytes += message.length;
    const last = requests.at(-1);
    if (last && last.length < MAX_MESSAGES && bytes <= MAX_REQUEST_BYTES) last.push(message);
    else {
      requests.push([message]);
      bytes = message.length;
    }
  }
  return requests;
}

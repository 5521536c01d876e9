/** HTTP requests that may be cut off at any moment. */
import type { TestSigner } from "../server/signers.js";
import type { Ledger } from "./ledger.js";

/** The service has stopped or is stopping. The request may or may not have been executed. */
export class CutOff extends Error {}

/** The service gave a wrong answer. */
export class WrongAnswer extends Error {}

// biome-ignore lint/suspicious/noExplicitAny: answers of every shape
export type Answer = any;

export interface Expectation {
  readonly token?: string;
  /** The expected status; 200 if absent. */
  readonly status?: number;
  readonly method?: string;
}

export class Connection {
  readonly url: string;
  readonly #ledger: Ledger;
  /** Set when the service is asked to stop. From then on it may refuse requests. */
  isStopping = false;
  /** Set when the operator ends the log. From then on every write may be refused for that. */
  isEnding = false;
  answered = 0;

  constructor(url: string, ledger: Ledger) {
    this.url = url;
    this.#ledger = ledger;
  }

  /** @throws CutOff; WrongAnswer */
  async send(
    path: string,
    body: object | null,
    { token, status = 200, method = "POST" }: Expectation = {},
  ): Promise<Answer> {
    let response: Response;
    let answer: Answer;
    try {
      response = await fetch(`${this.url}/api/v1${path}`, {
        method,
        headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
        ...(body && method === "POST" ? { body: JSON.stringify(body) } : {}),
      });
      answer = await response.json();
    } catch (error) {
      if (error instanceof TypeError || error instanceof SyntaxError) throw new CutOff(path, { cause: error });
      throw error;
    }
    this.answered++;
    if (this.isStopping && response.status === 503) throw new CutOff(path);
    if (this.isEnding && response.status === 410 && answer.code === "frozen") throw new CutOff(path);
    if (response.status !== status)
      throw new WrongAnswer(`${method} ${path} answered ${response.status}, not ${status}: ${JSON.stringify(answer)}`);
    if (method !== "GET" && status < 300) {
      const route = `${method} ${path.replace(/\/(?:\d+|[0-9a-f-]{36})(?=\/|$)/g, "/{id}")}`;
      this.#ledger.writes.set(route, (this.#ledger.writes.get(route) ?? 0) + 1);
    }
    return answer;
  }

  /** A signed challenge. */
  async proof(signer: TestSigner, more: object = {}): Promise<{ challenge_id: string; challenge_signature: string }> {
    const { challenge_id, nonce } = await this.send("/auth/challenge", { fingerprint: signer.fingerprint, ...more });
    return { challenge_id, challenge_signature: signer.sign(nonce) };
  }

  async login(signer: TestSigner, more: object = {}): Promise<string> {
    return (await this.send("/auth/login", { ...(await this.proof(signer)), ...more })).token;
  }
}

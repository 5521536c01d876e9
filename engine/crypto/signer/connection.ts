/**
 * One connection to a signer: a line of JSON out, a line of JSON back, one question at a time. The signer may be wrong or
 * hostile: anything but one line of bounded length after each question ends the connection.
 */
import { createConnection, type Socket } from "node:net";
import { CairnlogError } from "../../base/error.js";

/** Bytes of an answer. 1,024 signatures by an RSA key of 8192 bits take 1.4 MB. */
const MAX_ANSWER_BYTES = 2 * 1024 * 1024;
const NEWLINE = 0x0a;

interface Question {
  readonly line: string;
  readonly deadlineMs: number;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: CairnlogError) => void;
  timer: NodeJS.Timeout;
}

/** Why a signer cannot be used now. */
export const unavailable = (why: string, cause?: unknown): CairnlogError =>
  new CairnlogError("signer-unavailable", why, cause === undefined ? {} : { cause });

export class SignerConnection {
  readonly #socket: Socket;
  /** Called when the connection ends. */
  #observer: (why: CairnlogError) => void = () => {};
  /** Written to the signer, and not answered yet. */
  #asked: Question | null = null;
  #waiting: Question[] = [];
  #pieces: Buffer[] = [];
  #bytes = 0;
  #failure: CairnlogError | null = null;

  /** Begins to connect to the Unix socket `path`. Questions may be asked at once: the first deadline counts for both. */
  constructor(path: string) {
    let isConnected = false;
    const socket = createConnection({ path }, () => {
      isConnected = true;
    });
    this.#socket = socket;
    socket.on("data", (piece) => this.#take(piece));
    socket.on("error", (error: NodeJS.ErrnoException) => {
      const what = isConnected ? "The connection to the signer broke" : `No signer can be reached at ${path}`;
      this.end(unavailable(`${what} (${error.code}).`, error));
    });
    // A signer that has closed its half has no more to say. What comes after it is of no use to it either.
    for (const event of ["end", "close"])
      socket.on(event, () => this.end(unavailable("The signer closed the connection.")));
  }

  /** Calls `observer` with the reason when the connection ends, or at once if it has ended. */
  observeEnd(observer: (why: CairnlogError) => void): void {
    if (this.#failure) observer(this.#failure);
    else this.#observer = observer;
  }

  /**
   * Asks one question, after all that were asked before.
   * @param deadlineMs time to wait for earlier answers, and then again for this one. A late answer ends the connection
   * @returns any JSON value
   * @throws CairnlogError `signer-unavailable`
   */
  ask(question: object, deadlineMs: number): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#failure) {
        reject(this.#failure);
        return;
      }
      const line = `${JSON.stringify(question)}\n`;
      const timer = setTimeout(() => this.#giveUp(waiting), deadlineMs);
      const waiting: Question = { line, deadlineMs, resolve, reject, timer };
      this.#waiting.push(waiting);
      this.#next();
    });
  }

  /** Closes the connection. Every question that is not answered is rejected with `why`. */
  end(why: CairnlogError): void {
    if (this.#failure) return;
    this.#failure = why;
    this.#socket.destroy();
    this.#pieces = [];
    for (const { reject, timer } of [...(this.#asked ? [this.#asked] : []), ...this.#waiting.splice(0)]) {
      clearTimeout(timer);
      reject(why);
    }
    this.#asked = null;
    this.#observer(why);
  }

  #next(): void {
    const question = this.#asked ? undefined : this.#waiting.shift();
    if (!question) return;
    this.#asked = question;
    clearTimeout(question.timer);
    // Its answer may come later, and would be taken for that of the next question.
    question.timer = setTimeout(() => this.end(late(question)), question.deadlineMs);
    this.#socket.write(question.line);
  }

  /** Nothing was written of this question, so the others are not concerned. */
  #giveUp(question: Question): void {
    this.#waiting = this.#waiting.filter((other) => other !== question);
    question.reject(late(question));
  }

  #take(piece: Buffer): void {
    const at = piece.indexOf(NEWLINE);
    this.#bytes += piece.length;
    this.#pieces.push(piece);
    const asked = this.#asked;
    if (!asked) this.end(unavailable("The signer sent something that it was not asked for."));
    else if (this.#bytes > MAX_ANSWER_BYTES)
      this.end(unavailable(`The signer's answer is longer than ${MAX_ANSWER_BYTES} bytes.`));
    else if (at >= 0 && at < piece.length - 1) this.end(unavailable("The signer sent more than one answer."));
    else if (at >= 0) this.#answer(asked, Buffer.concat(this.#pieces));
  }

  #answer({ resolve, timer }: Question, line: Buffer): void {
    let answer: unknown;
    try {
      answer = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(line));
    } catch (cause) {
      this.end(unavailable("The signer's answer is not a line of JSON.", cause));
      return;
    }
    clearTimeout(timer);
    this.#pieces = [];
    this.#bytes = 0;
    this.#asked = null;
    resolve(answer);
    this.#next();
  }
}

const late = ({ deadlineMs }: Question): CairnlogError =>
  unavailable(`The signer did not answer within ${deadlineMs / 1000} s.`);

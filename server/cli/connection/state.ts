/**
 * The command's state between runs, in one set of files for each service: the operator key of its log and the last seen
 * head, the session, and evidence of misbehaviour. Anybody who can write here decides what the command trusts, and a
 * session is a secret. Folder and files are therefore accessible only to their owner.
 */
import { createHash, randomUUID } from "node:crypto";
import { chmodSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Check } from "typebox/value";
import { CairnlogError } from "../../../engine/base/error.js";
import { makeFolders, throughDraft } from "../../../engine/base/files.js";
import { LoginResult } from "../../../engine/contract/identity/auth.js";
import { ClientState, type Evidence, type Session, type State, type Store } from "../../client/index.js";
import { readText } from "../files/files.js";
import { configFolder, serverAddress } from "./config-file.js";

/** Codes of what keeps a user from having a folder. */
const UNWRITABLE: ReadonlySet<string> = new Set(["EACCES", "EPERM", "EROFS", "ENOTDIR"]);

export class StateFolder {
  readonly path: string;
  /** Beginning of the names of this service's files. */
  readonly #prefix: string;
  /** Whether somebody chose the folder. */
  readonly #isNamed: boolean;
  #isTold = false;

  /** @param folder default: `cairnlog` below `XDG_CONFIG_HOME`, or `~/.config/cairnlog` */
  constructor(server: string, folder?: string) {
    this.path = folder === undefined ? configFolder() : resolve(folder);
    this.#isNamed = folder !== undefined || Boolean(process.env.XDG_CONFIG_HOME);
    const address = serverAddress(server);
    const { host } = new URL(address);
    // Addresses that differ only in their path are different services.
    const digest = createHash("sha256").update(address).digest("hex").slice(0, 12);
    this.#prefix = `${host.replaceAll(/[^\w.-]/g, "_")}-${digest}`;
  }

  /** The file of the operator key and the last head. */
  get memoryFile(): string {
    return this.#file("log.json");
  }

  /** The client's store: `….log.json`. */
  get store(): Store {
    return {
      load: async () => this.loadMemory(),
      save: async (state) => this.#remember(state),
    };
  }

  /** A user without a home can use a log all the same, as on the first day each time. */
  #remember(state: State): void {
    try {
      this.#write("log.json", state);
    } catch (error) {
      const { code = "" } = error as NodeJS.ErrnoException;
      if (this.#isNamed || !UNWRITABLE.has(code)) throw error;
      if (!this.#isTold)
        console.error(
          `Nothing is remembered of this log: ${this.path} cannot be written (${code}). --state names another folder.`,
        );
      this.#isTold = true;
    }
  }

  /** What is known of the log: its operator key, and the head that was seen last. Undefined before the first use. */
  loadMemory(): State | undefined {
    const state = this.#read("log.json");
    if (state === undefined || Check(ClientState, state)) return state;
    throw this.#damaged("log.json");
  }

  /** The kept session, unless it has expired. */
  loadSession(): Session | undefined {
    const session = this.#read("session.json");
    if (session === undefined) return undefined;
    if (!Check(LoginResult, session)) throw this.#damaged("session.json");
    return Date.parse(session.expires_at) > Date.now() ? session : undefined;
  }

  /** @returns the file */
  saveSession(session: Session): string {
    return this.#write("session.json", session);
  }

  /** Removes what is known of the log, and the session. Evidence stays. */
  forget(): void {
    for (const file of [this.memoryFile, this.#file("session.json")]) rmSync(file, { force: true });
  }

  /** Keeps evidence of a log's misbehaviour, which may never be shown again: it is on disk then. @returns the file */
  saveEvidence(evidence: Evidence): string {
    return this.#write(`evidence-${randomUUID()}.json`, evidence, true);
  }

  /**
   * Makes an empty file for a secret that is shown only once, before it is asked for.
   * @returns its path. @throws the file system's error
   */
  openSecret(name: string): string {
    makeFolders(this.path, 0o700);
    const file = this.#file(`${name}-${randomUUID()}.txt`);
    writeFileSync(file, "", { mode: 0o600, flag: "wx" });
    return file;
  }

  #file(name: string): string {
    return join(this.path, `${this.#prefix}.${name}`);
  }

  #read(name: string): unknown {
    let text: string;
    try {
      text = readText(this.#file(name));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
    try {
      return JSON.parse(text);
    } catch {
      throw this.#damaged(name);
    }
  }

  /** Writes the whole file or nothing. Other users can never read it, not even for a moment. */
  #write(name: string, value: unknown, flush = false): string {
    makeFolders(this.path, 0o700);
    const file = this.#file(name);
    throughDraft(file, (fresh) => {
      writeFileSync(fresh, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600, flag: "wx", flush });
      chmodSync(fresh, 0o600);
    });
    return file;
  }

  #damaged(name: string): CairnlogError {
    return new CairnlogError(
      "invalid-input",
      `${this.#file(name)} is damaged. Without it the log is got to know anew: move it away if you accept that.`,
    );
  }
}

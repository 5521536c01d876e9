/**
 * One connection to one PostgreSQL server, over `pg`, which is loaded when the first one is opened. A connection that
 * does not answer in time is broken off: what became of its statement is then unknown, and stays so.
 */

import type { ConnectionOptions } from "node:tls";
import { CairnlogError } from "../../base/error.js";
import { type ConnectionString, hostAndPort, type ServerAddress } from "./connection-string.js";
import { CopyReader, type CopyRow } from "./copy.js";

// What can go wrong, as sentences.

/** PostgreSQL's code for a table that does not exist. */
export const UNDEFINED_TABLE = "42P01";
/** And for a schema that exists. */
export const DUPLICATE_SCHEMA = "42P06";

export const notLeading = (): CairnlogError =>
  new CairnlogError("not-leader", "Another node writes this log now.", { retryAfter: 1 });

export const refusedByServer = (cause: Error): CairnlogError =>
  new CairnlogError("storage-failed", `PostgreSQL refused a record: ${cause.message}.`, { cause });

export const serverSilent = (cause: unknown): CairnlogError =>
  new CairnlogError("storage-failed", `PostgreSQL does not answer: ${(cause as Error).message}.`, { cause });

/** Milliseconds in which a server must accept a connection. */
const CONNECT_MS = 1_500;
/** Milliseconds in which it must answer the simplest of questions. */
const PROBE_MS = 1_000;

type Value = string | number | Buffer | null | readonly (string | null)[];
export type SqlRow = Readonly<Record<string, unknown>>;

export interface Sql {
  readonly text: string;
  readonly values?: readonly Value[];
  /** It is prepared under this name at its first use on a connection. */
  readonly name?: string;
}

/** The part of a client of `pg` that is used here. */
interface Client {
  connect(): Promise<unknown>;
  query(statement: object): Promise<{ rows: SqlRow[] }>;
  on(event: "error" | "end" | "notice", listener: () => void): void;
  readonly connection: { readonly stream: { destroy(): void } };
}
type ClientClass = new (options: {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string | undefined;
  readonly database: string;
  readonly ssl: ConnectionOptions | false;
  readonly connectionTimeoutMillis: number;
  readonly keepAlive: boolean;
  readonly application_name: string;
}) => Client;

/** Loads `pg`, each time anew if it could not be loaded before. @throws CairnlogError `precondition-failed` if it is not installed */
export const loadDriver = (): Promise<ClientClass> =>
  import("pg").then(
    ({ default: { Client } }) => Client as unknown as ClientClass,
    (cause) => {
      throw new CairnlogError(
        "precondition-failed",
        "Replication needs the package pg, which is not installed. Install it beside cairnlog: npm install pg.",
        { cause },
      );
    },
  );

export class PgConnection {
  readonly place: ServerAddress;
  readonly #client: Client;
  #isOpen = true;
  #notices = 0;
  #broken: (error: Error) => void = () => {};

  private constructor(client: Client, place: ServerAddress) {
    this.place = place;
    this.#client = client;
    // A session that ends while nobody waits for it: the next statement finds it closed.
    client.on("error", () => this.close());
    client.on("end", () => this.close());
    client.on("notice", () => this.#notices++);
  }

  /** @throws Error if the server cannot be reached, or refuses */
  static async open(target: ConnectionString, place: ServerAddress): Promise<PgConnection> {
    const Driver = await loadDriver();
    const { user, password, database } = target;
    const ssl = target.tls();
    const limits = { connectionTimeoutMillis: CONNECT_MS, keepAlive: true, application_name: "cairnlog" };
    const client = new Driver({ ...place, user, password, database, ssl, ...limits });
    const connection = new PgConnection(client, place);
    try {
      await connection.#within(CONNECT_MS, client.connect());
      // A primary must not acknowledge a commit before a standby has it, whatever its default is.
      await connection.query({ text: "SET synchronous_commit TO on" }, PROBE_MS);
    } catch (error) {
      connection.close();
      throw error;
    }
    return connection;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Notices that the server has sent: a wait for standbys that was cancelled ends in one, and in success. */
  get notices(): number {
    return this.#notices;
  }

  /** Runs a statement. @throws Error: whether it took effect, says `isAlive` if the server answered at all */
  async query({ text, values, name }: Sql, milliseconds: number): Promise<SqlRow[]> {
    const { rows } = await this.#within(milliseconds, this.#client.query({ text, values, name }));
    return rows;
  }

  /** Runs `COPY … TO STDOUT (FORMAT binary)`. @param milliseconds in which the whole answer must come */
  async copy(text: string, milliseconds: number): Promise<CopyRow[]> {
    const reader = new CopyReader(text);
    void this.#client.query(reader);
    return this.#within(milliseconds, reader.done);
  }

  /**
   * Whether the session survived an error. Then the error ended the transaction, and nothing of it took effect; otherwise
   * nobody knows.
   */
  async isAlive(): Promise<boolean> {
    if (!this.#isOpen) return false;
    return this.query({ text: "SELECT 1" }, PROBE_MS).then(
      () => true,
      () => false,
    );
  }

  /** Ends it at once. */
  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#client.connection.stream.destroy();
    this.#broken(new Error(`${hostAndPort(this.place)}: the connection has ended`));
  }

  /** One statement at a time. */
  async #within<T>(milliseconds: number, work: Promise<T>): Promise<T> {
    // Whoever loses the race may still fail, and what is asked for behind the end.
    work.catch(() => {});
    if (!this.#isOpen) throw new Error(`${hostAndPort(this.place)}: the connection has ended`);
    let timer: NodeJS.Timeout | undefined;
    const broken = new Promise<never>((_, reject) => {
      this.#broken = reject;
      timer = setTimeout(() => {
        this.close();
        reject(new Error(`${hostAndPort(this.place)}: no answer in ${milliseconds} ms`));
      }, milliseconds);
    });
    broken.catch(() => {});
    try {
      return await Promise.race([work, broken]);
    } finally {
      clearTimeout(timer);
      this.#broken = () => {};
    }
  }
}

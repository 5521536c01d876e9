/**
 * The connection on which a leader changes the journal, one statement at a time, and what became of each. A statement
 * whose answer is lost may have taken effect, and may still: nobody guesses, and the same bytes are sent again.
 */
import { Lock } from "../../base/lock.js";
import type { PgConnection, Sql, SqlRow } from "./connection.js";
import type { Servers } from "./servers.js";

/** Milliseconds for which an answer is waited for before the primary is looked for anew. */
const STATEMENT_MS = 5_000;

/** What became of a statement. */
type Outcome =
  /** It took effect on the primary, which waited for its standbys. */
  | { readonly kind: "done"; readonly rows: readonly SqlRow[] }
  /** It took no effect, and never will. */
  | { readonly kind: "refused"; readonly error: Error }
  /** Nobody knows. */
  | { readonly kind: "unknown"; readonly error: Error };

/** Classes of errors that say something of the server and not of the statement: the next primary may take it. */
const OF_THE_SERVER = /^(?:08|25006|57P|58|XX)/;

export class RecordWriter {
  readonly #servers: Servers;
  #connection: PgConnection | null = null;
  /** Held by whatever must see no other change between its statements. */
  readonly lock = new Lock();

  constructor(servers: Servers) {
    this.#servers = servers;
  }

  /** Runs a statement on the primary. Never rejects. */
  async run(statement: Sql): Promise<Outcome> {
    let connection: PgConnection;
    try {
      connection = await this.#opened();
    } catch (error) {
      // It was not sent. An earlier one with the same bytes may be under way.
      return { kind: "unknown", error: error as Error };
    }
    const { notices } = connection;
    try {
      const rows = await connection.query(statement, STATEMENT_MS);
      if (connection.notices === notices) return { kind: "done", rows };
      // The wait for the standbys was cancelled: it is done here, and perhaps on no other disk.
      this.#drop();
      return { kind: "unknown", error: new Error("the server did not wait for its standbys") };
    } catch (error) {
      const code = (error as { code?: unknown }).code;
      const isOfTheStatement = typeof code === "string" && !OF_THE_SERVER.test(code) && (await connection.isAlive());
      if (isOfTheStatement) return { kind: "refused", error: error as Error };
      this.#drop();
      return { kind: "unknown", error: error as Error };
    }
  }

  async #opened(): Promise<PgConnection> {
    if (!this.#connection?.isOpen) this.#connection = await this.#servers.openPrimary();
    return this.#connection;
  }

  #drop(): void {
    this.#servers.forget();
    this.close();
  }

  close(): void {
    this.#connection?.close();
    this.#connection = null;
  }
}

/**
 * The PostgreSQL servers of a journal: which one is the primary, and what its standbys show. Each has one connection for
 * questions; whoever appends has another one. It belongs to the thread that opened it.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Lock } from "../../base/lock.js";
import { PgConnection, type Sql } from "./connection.js";
import { type ConnectionString, hostAndPort, type ServerAddress } from "./connection-string.js";

/** Milliseconds in which a server must answer a question of a few bytes. */
const QUESTION_MS = 1_000;
/** Milliseconds for which others are waited for when a primary has answered: one of them may have been promoted. */
const OTHERS_MS = 250;
/** Milliseconds in which one standby must answer before another one is asked. */
const SOON_MS = 3;
/** Milliseconds for which an answer about a server's role is believed while its connection lives. */
const BELIEVED_MS = 1_000;

const IDENTIFY = {
  name: "cairnlog-identify",
  text: `SELECT pg_is_in_recovery() AS standby,
    CASE WHEN pg_is_in_recovery() THEN NULL ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END AS timeline`,
};
const SHOWN = {
  name: "cairnlog-shown",
  text: "SELECT 1 FROM cairnlog.record WHERE sequence = $1 AND hash = $2 AND pg_is_in_recovery()",
};
const MARKED = { text: "SELECT 1 FROM cairnlog.lead WHERE mark = $1 AND pg_is_in_recovery()" };

type Role = "primary" | "standby" | "unreachable";

export interface ServerStatus {
  /** `host:port` */
  readonly address: string;
  readonly role: Role;
  /** Of a primary: each promotion begins another one, with a higher number. */
  readonly timeline: number | null;
  /** Why it cannot be reached. */
  readonly trouble: string | null;
}

class Server {
  readonly place: ServerAddress;
  readonly #target: ConnectionString;
  #connection: PgConnection | null = null;
  readonly #lock = new Lock();
  #waiting = 0;
  #isClosed = false;
  status: ServerStatus;

  constructor(target: ConnectionString, place: ServerAddress) {
    this.#target = target;
    this.place = place;
    this.status = { address: hostAndPort(place), role: "unreachable", timeline: null, trouble: null };
  }

  /** Whether a question is under way. */
  get isBusy(): boolean {
    return this.#waiting > 0;
  }

  /** Another connection, unless this is closed, also while it is being opened: nobody would close it. */
  async open(): Promise<PgConnection> {
    const connection = this.#isClosed ? null : await PgConnection.open(this.#target, this.place);
    if (connection && !this.#isClosed) return connection;
    connection?.close();
    throw new Error("the journal is closed");
  }

  /**
   * Asks on its own connection, which is opened if there is none. One question at a time, in order. A question that fails ends
   * the connection: it may have left a transaction open, which would refuse all later ones.
   */
  ask<T>(question: (connection: PgConnection) => Promise<T>): Promise<T> {
    this.#waiting++;
    const answer = this.#lock.run(async () => {
      if (!this.#connection?.isOpen) this.#connection = await this.open();
      try {
        return await question(this.#connection);
      } catch (error) {
        this.#connection.close();
        throw error;
      }
    });
    return answer.finally(() => this.#waiting--);
  }

  async identify(): Promise<void> {
    const { address } = this.status;
    try {
      const [row] = await this.ask((connection) => connection.query(IDENTIFY, QUESTION_MS));
      const { standby, timeline } = row as { standby: boolean; timeline: string | null };
      const number = timeline === null ? null : Number.parseInt(timeline, 16);
      this.status = { address, role: standby ? "standby" : "primary", timeline: number, trouble: null };
    } catch (error) {
      this.status = { address, role: "unreachable", timeline: null, trouble: (error as Error).message };
    }
  }

  /** Whether a question to this server has an answer with rows. */
  async has(question: Sql): Promise<boolean> {
    return (await this.ask((connection) => connection.query(question, QUESTION_MS))).length > 0;
  }

  close(): void {
    this.#isClosed = true;
    this.#connection?.close();
  }
}

export class Servers {
  readonly #servers: readonly Server[];
  #primary: Server | null = null;
  /** The standby that has shown the newest record. */
  #shower: Server | null = null;
  #until = 0;

  constructor(target: ConnectionString) {
    this.#servers = target.places.map((place) => new Server(target, place));
  }

  /** What is known of each server. */
  get statuses(): readonly ServerStatus[] {
    return this.#servers.map(({ status }) => status);
  }

  /** Asks every server what it is. */
  async identify(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.identify()));
  }

  /**
   * Asks the primary. Of several that say they are, the one of the newest timeline is asked: an older one was replaced,
   * and does not know it yet.
   * @throws Error if there is none, or it does not answer
   */
  async askPrimary<T>(question: (connection: PgConnection) => Promise<T>): Promise<T> {
    const server = await this.#locate();
    try {
      return await server.ask(question);
    } catch (error) {
      this.forget();
      throw error;
    }
  }

  /** Opens another connection to the primary. @throws Error if there is none */
  async openPrimary(): Promise<PgConnection> {
    const server = await this.#locate();
    try {
      return await server.open();
    } catch (error) {
      this.forget();
      throw error;
    }
  }

  /** The next question looks for the primary anew. */
  forget(): void {
    this.#primary = null;
  }

  async #locate(): Promise<Server> {
    const known = this.#primary;
    if (known && performance.now() < this.#until) return known;
    const asked = this.#servers.map((server) => server.identify());
    const all = Promise.all(asked);
    // A server that stands still accepts connections and says nothing.
    const first = Promise.any(asked.map((one, i) => one.then(() => this.#primaryAt(i))));
    await Promise.race([
      all,
      first.then(
        () => sleep(OTHERS_MS),
        () => all,
      ),
    ]);
    const found = this.#newestPrimary();
    if (!found) throw new Error(`no primary answers: ${this.statuses.map(described).join("; ")}`);
    return this.#chosen(found);
  }

  #chosen(server: Server): Server {
    this.#primary = server;
    this.#until = performance.now() + BELIEVED_MS;
    return server;
  }

  #primaryAt(i: number): void {
    if (this.#servers[i]!.status.role !== "primary") throw new Error("not a primary");
  }

  #newestPrimary(): Server | undefined {
    return this.#servers
      .filter(({ status }) => status.role === "primary")
      .sort((a, b) => b.status.timeline! - a.status.timeline!)[0];
  }

  /**
   * Whether a standby shows the record: it has it on its disk then, because it replays what it has flushed.
   * @param milliseconds after which the answer is no
   */
  areShown(sequence: number, hash: Buffer, milliseconds: number): Promise<boolean> {
    return this.#anyHas({ ...SHOWN, values: [sequence, hash] }, milliseconds);
  }

  /** Whether a standby shows the mark that the leader has made last, and so has everything before it. */
  areMarked(mark: string, milliseconds: number): Promise<boolean> {
    return this.#anyHas({ ...MARKED, values: [mark] }, milliseconds);
  }

  /**
   * Asks standbys until one has an answer with rows. The one that had it the last time is asked first, by itself: most times
   * it has it, and each question costs the leader 80 µs.
   */
  async #anyHas(question: Sql, milliseconds: number): Promise<boolean> {
    const until = performance.now() + milliseconds;
    const standbys = this.#servers.filter((server) => server !== this.#primary);
    for (const server of standbys.sort((a, b) => Number(b === this.#shower) - Number(a === this.#shower)))
      if (await this.#hasAtOnce(server, question)) return true;
    let isShown = false;
    const watch = async (server: Server) => {
      for (let pause = 0; !isShown && performance.now() < until; pause = Math.min(pause + 1, 10)) {
        if (pause > 1) await sleep(pause);
        if (server.isBusy) {
          await sleep(5);
          continue;
        }
        // One that cannot be asked is asked again later: it may come back.
        const answer = await server.has(question).catch(() => sleep(50, false));
        if (!answer) continue;
        isShown = true;
        this.#shower = server;
      }
      if (!isShown) throw new Error("not shown");
    };
    return Promise.any(standbys.map(watch)).then(
      () => true,
      () => false,
    );
  }

  /** Whether a standby has an answer with rows; false if it does not say so soon. */
  async #hasAtOnce(server: Server, question: Sql): Promise<boolean> {
    if (server.isBusy) return false;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<false>((resolve) => {
      timer = setTimeout(resolve, SOON_MS, false);
    });
    const answer = server.has(question).catch(() => false);
    const isShown = await Promise.race([answer, late]);
    clearTimeout(timer);
    if (isShown) this.#shower = server;
    return isShown;
  }

  close(): void {
    for (const server of this.#servers) server.close();
  }
}

const described = ({ address, role, trouble }: ServerStatus): string => `${address} ${trouble ?? `is a ${role}`}`;

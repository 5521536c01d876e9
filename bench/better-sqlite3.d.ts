/** Types for the part of `better-sqlite3` that is used here; the package has none. */
declare module "better-sqlite3" {
  export default class Database {
    constructor(path: string);
    pragma(text: string): unknown;
    exec(sql: string): this;
    prepare(sql: string): { run(...values: unknown[]): unknown };
    transaction<A extends unknown[]>(work: (...args: A) => void): (...args: A) => void;
    close(): this;
  }
}

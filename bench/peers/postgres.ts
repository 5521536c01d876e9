/** PostgreSQL: all entries that came during a commit are one prepared statement, which is one commit and one round trip. */
import pg from "pg";
import { type Row, type Store, storeOver } from "./store.js";

const INSERT = {
  name: "insert",
  text: "INSERT INTO entries SELECT * FROM unnest($1::bigint[], $2::text[], $3::bytea[], $4::bytea[], $5::bigint[], $6::bytea[])",
};

/** @param folder of the server's socket */
export async function openPostgres(folder: string): Promise<Store> {
  const client = new pg.Client({ host: folder, user: "postgres", database: "postgres" });
  await client.connect();
  await client.query("SET synchronous_commit = on");
  await client.query(`CREATE TABLE entries (leaf_index bigint PRIMARY KEY, body text NOT NULL, hash bytea NOT NULL,
    root bytea NOT NULL, timestamp bigint NOT NULL, signature bytea NOT NULL)`);
  return storeOver({
    async commit(rows: readonly Row[]) {
      const values = [
        rows.map(({ index }) => index),
        rows.map(({ text }) => text),
        rows.map(({ hash }) => `\\x${hash}`),
        rows.map(({ root }) => `\\x${root.toString("hex")}`),
        rows.map(({ timestamp }) => timestamp),
        rows.map(({ signature }) => `\\x${signature.toString("hex")}`),
      ];
      await client.query({ ...INSERT, values });
    },
    close: () => client.end(),
  });
}

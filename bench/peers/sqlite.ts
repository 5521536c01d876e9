/** SQLite: WAL, and a flush for each commit. A commit blocks this thread; requests that come meanwhile share the next. */
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { type Row, type Store, storeOver } from "./store.js";

export async function openSqlite(folder: string): Promise<Store> {
  const file = new Sqlite(join(folder, "log.sqlite"));
  file.pragma("journal_mode = WAL");
  file.pragma("synchronous = FULL");
  file.exec(`CREATE TABLE entries (leaf_index INTEGER PRIMARY KEY, body TEXT NOT NULL, hash BLOB NOT NULL,
    root BLOB NOT NULL, timestamp INTEGER NOT NULL, signature BLOB NOT NULL)`);
  const insert = file.prepare("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)");
  const commit = file.transaction((rows: readonly Row[]) => {
    for (const { index, text, hash, root, timestamp, signature } of rows)
      insert.run(index, text, Buffer.from(hash, "hex"), root, timestamp, signature);
  });
  return storeOver({
    commit: async (rows) => commit(rows),
    close: async () => void file.close(),
  });
}

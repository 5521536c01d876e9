/** docs/deploy/replication as PostgreSQL sees it: roles, settings, who may connect, and TLS between nodes and servers. */
import { execFileSync } from "node:child_process";
import { chownSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { cairnlog, scratchFolder } from "../service.js";
import { type Cluster, DATABASE, startCluster } from "./servers/cluster.js";

const sample = (name: string) => fileURLToPath(new URL(`../../docs/deploy/replication/${name}`, import.meta.url));
const folder = scratchFolder();
const authority = join(folder.path, "ca.crt");
const PASSWORD = "a password of the test";

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster();
  const { primary } = cluster;
  await primary.query(`DROP DATABASE ${DATABASE}`);
  await primary.runFile(sample("roles.sql"));
});
afterAll(async () => {
  await cluster.remove();
  folder.remove();
});

/** Writes a file into the data directory of the primary, for its user alone. */
function place(name: string, text: string): void {
  const path = join(cluster.primary.dataDir, name);
  const { uid, gid } = statSync(cluster.primary.dataDir);
  writeFileSync(path, text, { mode: 0o600 });
  chownSync(path, uid, gid);
}

/** Settings of postgresql.conf, as the server is given them. */
const settings = Object.fromEntries(
  readFileSync(sample("postgresql.conf"), "utf8")
    .split("\n")
    .filter((line) => line && !line.startsWith("#"))
    .map((line) => /^(\w+) = '?(.*?)'?$/.exec(line)!.slice(1) as [string, string]),
);

test("no file of a server is where pg_basebackup and pg_rewind put that of another one", () => {
  const files = Object.entries(settings).filter(([name]) => name.endsWith("_file"));
  expect(files.map(([name]) => name)).toEqual(["hba_file", "ssl_cert_file", "ssl_key_file"]);
  for (const [, path] of files) expect(path).toMatch(/^\/etc\/postgresql\//);
});

test("a standby that does not come back keeps only so much of the primary's log of writes", () => {
  const patroni = readFileSync(sample("patroni.yml"), "utf8");
  expect(settings.max_slot_wal_keep_size).toMatch(/^\d+GB$/);
  expect(patroni).toContain(`max_slot_wal_keep_size: ${settings.max_slot_wal_keep_size}\n`);
});

test("the samples make a server that lets nodes in by TLS and a password, and nobody else", async () => {
  const { primary } = cluster;
  const openssl = (args: string) => execFileSync("openssl", args.split(" "), { cwd: folder.path, stdio: "ignore" });
  openssl("req -x509 -newkey rsa:2048 -nodes -days 2 -keyout ca.key -out ca.crt -subj /CN=authority");
  openssl("req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=localhost");
  writeFileSync(join(folder.path, "names"), "subjectAltName=DNS:localhost\n");
  openssl("x509 -req -days 2 -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -extfile names -out server.crt");
  for (const name of ["server.crt", "server.key"]) place(name, readFileSync(join(folder.path, name), "utf8"));
  await primary.query(`ALTER ROLE cairnlog_owner PASSWORD '${PASSWORD}'`);
  await primary.query(`ALTER ROLE cairnlog_reader PASSWORD '${PASSWORD}'`);
  const rules = readFileSync(sample("pg_hba.conf"), "utf8").replaceAll("10.0.0.0/24", "127.0.0.1/32");
  // The test itself asks as ever.
  place("pg_hba.conf", `host all postgres 127.0.0.1/32 trust\nhost replication postgres 127.0.0.1/32 trust\n${rules}`);
  const here = (text: string) => text.replace("/etc/postgresql", primary.dataDir);
  primary.configure(Object.fromEntries(Object.entries(settings).map(([name, text]) => [name, here(text)])));
  await primary.stop();
  await primary.start();
  await cluster.settled();
  expect(await primary.query("SELECT * FROM pg_hba_file_rules WHERE error IS NOT NULL")).toEqual([]);
  expect(await primary.query("SELECT name, error FROM pg_file_settings WHERE error IS NOT NULL")).toEqual([]);

  const init = (url: string) =>
    cairnlog(["replicate", "init", "--json"], {
      env: { ...process.env, SERVICE_DATA_DIR: join(folder.path, "data"), SERVICE_REPLICATION: url },
    });
  const at = (host: string, more: string) =>
    `postgres://cairnlog_owner:${encodeURIComponent(PASSWORD)}@${host}:${primary.port}/${DATABASE}${more}`;
  const plain = await init(at("localhost", "?sslmode=disable"));
  expect(plain).toMatchObject({ code: 1 });
  expect(plain.stderr).toContain("no encryption");
  // The certificate is of localhost.
  const misnamed = await init(at("127.0.0.1", `?sslmode=verify-full&sslrootcert=${authority}`));
  expect(misnamed.code).toBe(1);
  const unknown = await init(at("localhost", "?sslmode=verify-full"));
  expect(unknown.code).toBe(1);
  const made = await init(at("localhost", `?sslmode=verify-full&sslrootcert=${authority}`));
  expect(made).toMatchObject({ code: 0, stderr: "" });
});

test("a node of others reads entries and heads, and no private row", async () => {
  const as = (role: string, sql: string) => cluster.primary.query(`SET ROLE ${role}; ${sql}`, DATABASE);
  expect(await as("cairnlog_reader", "SELECT count(*) FROM cairnlog.record")).toEqual([["1"]]);
  expect(await as("cairnlog_reader", "SELECT count(*) FROM cairnlog.lead")).toEqual([["1"]]);
  for (const table of ["private_row", "private_change"])
    await expect(as("cairnlog_reader", `SELECT count(*) FROM cairnlog.${table}`)).rejects.toThrow("permission denied");
  await expect(as("cairnlog_reader", "UPDATE cairnlog.lead SET beat = 0")).rejects.toThrow("permission denied");
  expect(await as("cairnlog_a", "SELECT count(*) FROM cairnlog.private_row")).toHaveLength(1);
  await expect(as("cairnlog_a", "DROP TABLE cairnlog.record")).rejects.toThrow("must be owner");
});

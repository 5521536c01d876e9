/** Connection strings of a replicated log. */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { hostAndPort, parseConnectionString } from "#cairnlog/engine/journal/postgres/connection-string.js";
import { readSettings } from "#cairnlog/server/index.js";
import { scratchFolder } from "../../service.js";

const folder = scratchFolder();
afterAll(() => folder.remove());

test("several servers, a user, a password and a database", () => {
  const { places, user, password, database, tls } = parseConnectionString(
    "postgresql://log%40a:p%3Aw@10.0.0.1,db.example:6000,[fd00::1]:7000/log?sslmode=verify-full",
  );
  expect(places.map(hostAndPort)).toEqual(["10.0.0.1:5432", "db.example:6000", "[fd00::1]:7000"]);
  expect([user, password, database]).toEqual(["log@a", "p:w", "log"]);
  expect(tls()).toMatchObject({ rejectUnauthorized: true });
});

describe("TLS", () => {
  test.each([
    ["postgres://u@127.0.0.1,localhost/d", false],
    ["postgres://u@db.example/d", { rejectUnauthorized: true }],
    ["postgres://u@127.0.0.1,db.example/d", { rejectUnauthorized: true }],
    ["postgres://u@db.example/d?sslmode=disable", false],
    ["postgres://u@db.example/d?sslmode=require", { rejectUnauthorized: false }],
    ["postgres://u@db.example/d?sslmode=verify-ca", { rejectUnauthorized: true }],
  ])("%s", (url, tls) => {
    if (tls === false) expect(parseConnectionString(url).tls()).toBe(false);
    else expect(parseConnectionString(url).tls()).toMatchObject(tls as object);
  });

  test("certificates and keys that are renewed while a node runs count from its next connection on", () => {
    const paths = ["ca.crt", "node.crt", "node.key"].map((name) => join(folder.path, name));
    const write = (text: string) => {
      for (const path of paths) writeFileSync(path, text);
    };
    const [ca, cert, key] = paths;
    write("old");
    const { tls } = parseConnectionString(`postgres://u@db.example/d?sslrootcert=${ca}&sslcert=${cert}&sslkey=${key}`);
    const read = () => Object.values(tls()).filter(Buffer.isBuffer).map(String);
    expect(read()).toEqual(["old", "old", "old"]);
    write("new");
    expect(read()).toEqual(["new", "new", "new"]);
    rmSync(cert!);
    expect(tls).toThrow("sslcert cannot be read (ENOENT)");
    write("newest");
    expect(read()).toEqual(["newest", "newest", "newest"]);
  });
});

test.each([
  "mysql://u@h/d",
  "postgres://h/d",
  "postgres://u@h",
  "postgres://u@h:0/d",
  "postgres://u@h:70000/d",
  "postgres://u@h,/d",
  "postgres://u%@h/d",
  "postgres://u@h/d?sslmode=prefer",
  "postgres://u@h/d?options=-c",
  "postgres://u@h/d?sslrootcert=/does/not/exist",
])("%s is refused, and a password is not shown", (url) => {
  expect(() => parseConnectionString(url)).toThrow(expect.objectContaining({ code: "invalid-input" }));
  const secret = url.replace("u@", "u:hunter2@");
  expect(() => readSettings({ SERVICE_REPLICATION: secret })).toThrow(/^SERVICE_REPLICATION must be (?!.*hunter2)/);
});

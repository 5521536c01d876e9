/**
 * Folders of other owners in a data directory, and maintenance by root: the service's own user can go on afterwards. Where
 * the tests do not run as root, one user does both, and what belongs to whom is all that is tested.
 */
import {
  chmodSync,
  chownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { giveToOwner } from "#cairnlog/engine/base/files.js";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { chain } from "../../log/history/entries.js";
import { cairnlog, scratchFolder, startService } from "../../service.js";
import { newSigner, registration } from "../signers.js";

const IS_ROOT = process.getuid!() === 0;
/** The user of the service, who has no name here and needs none. */
const USER = IS_ROOT ? 54_321 : process.getuid!();
const GROUP = IS_ROOT ? 54_322 : process.getgid!();
const wrapper = IS_ROOT ? ["setpriv", `--reuid=${USER}`, `--regid=${GROUP}`, "--clear-groups"] : [];

const folder = scratchFolder();
afterAll(() => folder.remove());
/** What the maintenance leaves outside of data directories. */
const outside = (name: string) => join(folder.path, name);
/** A volume of the service's user. */
const volume = join(folder.path, "volume");
const at = (name: string) => join(volume, name);
beforeAll(() => {
  chmodSync(folder.path, 0o755);
  mkdirSync(volume, { mode: 0o700 });
  chownSync(volume, USER, GROUP);
  const lines = chain([{}, {}]).map((entry) => `${JSON.stringify(entry)}\n`);
  writeFileSync(outside("history.ndjson"), lines.join(""));
  writeFileSync(outside("next.pem"), generatePrivateKey("ed25519"), { mode: 0o600 });
});

/** Starts the service as its user, appends, and stops it. */
async function serve(dataDir: string, as: readonly string[] = wrapper): Promise<void> {
  const service = await startService(dataDir, {}, { wrapper: as });
  const body = JSON.stringify(registration(newSigner()));
  expect((await fetch(`${service.url}/api/v1/keys/register`, { method: "POST", body })).status).toBe(200);
  expect(await service.stop()).toBe(0);
}

/** Everything at and below `path` that does not belong to the service's user, with its owner. */
function foreign(path: string): string[] {
  const { uid, gid, ...found } = lstatSync(path);
  const own = uid === USER && gid === GROUP ? [] : [`${path} ${uid}:${gid}`];
  const isFolder = (found.mode & 0o170_000) === 0o040_000;
  return isFolder ? [...own, ...readdirSync(path).flatMap((name) => foreign(join(path, name)))] : own;
}

/** Command lines of root's maintenance on the data directory `data`, which exists, or makes it in the volume. */
const MAINTENANCE: Readonly<Record<string, (data: string) => readonly string[]>> = {
  fsck: (data) => ["fsck", "--data", data],
  "fsck --rebuild": (data) => ["fsck", "--rebuild", "--data", data],
  backup: (data) => ["backup", "--data", data, "--to", outside("saved")],
  "operator vkey": (data) => ["operator", "vkey", "--data", data],
  "operator token": (data) => ["operator", "token", "--read-only", "--data", data],
  "operator rotate": (data) => ["operator", "rotate", "--to", outside("next.pem"), "--data", data],
};

test.each(Object.keys(MAINTENANCE))("%s leaves a directory that its owner can go on with", async (name) => {
  const data = at(name.replaceAll(" ", "-"));
  await serve(data);
  // What is made again if it is missing.
  for (const lock of ["log/lock.mdb", "log/postings/lock.mdb", "log/writer/lock.mdb", "log/writer/data.mdb"])
    rmSync(join(data, lock));
  if (name === "fsck --rebuild") rmSync(join(data, "log/postings"), { recursive: true });
  const { stderr, code } = await cairnlog(MAINTENANCE[name]!(data));
  expect([code, stderr]).toEqual([
    name === "fsck --rebuild" ? expect.any(Number) : 0,
    expect.not.stringMatching(/error/i),
  ]);
  expect(foreign(data)).toEqual([]);
  await serve(data);
});

test("import and restore make a directory for the owner of the folder above it", async () => {
  const imported = at("imported");
  const restored = at("restored");
  expect(await cairnlog(["import", outside("history.ndjson"), "--data", imported])).toMatchObject({ code: 0 });
  expect(foreign(imported)).toEqual([]);
  await serve(imported);
  expect(await cairnlog(["backup", "--data", imported, "--to", outside("copy")])).toMatchObject({ code: 0 });
  const published = join(imported, "published.json");
  const restore = ["restore", outside("copy"), "--to", restored, "--published", published];
  expect(await cairnlog(restore)).toMatchObject({ code: 0 });
  expect(foreign(restored)).toEqual([]);
  const key = { SERVICE_OPERATOR_KEY: join(imported, "operator.pem") };
  const service = await startService(restored, key, { wrapper });
  expect(await service.stop()).toBe(0);
});

test("so does a service that root starts once", async () => {
  const data = at("served");
  await serve(data, []);
  expect(foreign(data)).toEqual([]);
  await serve(data);
});

test("a folder of another owner is left alone", async () => {
  const data = at("mounted");
  const lost = join(data, "lost+found");
  mkdirSync(lost, { recursive: true });
  chownSync(data, USER, GROUP);
  // Of root, where root runs the tests, as in every new ext4 volume: the service may not even look into it.
  chmodSync(lost, 0o700);
  await serve(data);
  expect(lstatSync(lost)).toMatchObject({ uid: process.getuid!(), mode: 0o040_700 });
});

test("what has a second name, or is a link, is not given away", () => {
  writeFileSync(outside("secret"), "");
  linkSync(outside("secret"), at("secret"));
  symlinkSync(outside("secret"), at("link"));
  for (const name of ["secret", "link"]) giveToOwner(at(name));
  for (const path of [outside("secret"), at("link")]) expect(lstatSync(path).uid).toBe(process.getuid!());
});

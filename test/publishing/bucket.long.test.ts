/** `cairnlog publish` into a bucket of a real S3 store: conditions, headers, and kills at every request and system call. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import type { OutgoingHttpHeaders } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { cairnlog } from "../cli/harness.js";
import { compileShim, Injector } from "../faults/shim.js";
import { temporaryFolder } from "../server/harness.js";
import { MAIN } from "../service.js";
import { expectEntries } from "./entries.js";
import { expectWhole, LiveLog, served } from "./logs.js";
import { before } from "./proxy.js";
import { CREDENTIALS, Radosgw } from "./radosgw.js";

let store: Radosgw;
let log: LiveLog;
/** Plain files: the log at 3 and at 4 entries. */
let small: string;
let grown: string;
beforeAll(async () => {
  [store, log] = await Promise.all([Radosgw.start(), LiveLog.start(3)]);
  const filed = async () => {
    const folder = temporaryFolder();
    expect(await cairnlog(["publish", log.url, folder])).toMatchObject({ code: 0 });
    return served(folder);
  };
  small = await filed();
  await log.grow(4);
  grown = await filed();
  await log.grow(300);
});
afterAll(() => store?.stop());

const publish = (source: string, prefix: string, endpoint = store.url, ...more: string[]) =>
  cairnlog(["publish", source, `s3://logs/${prefix}`, "--endpoint", endpoint, "--json", ...more], CREDENTIALS);
const reader = (prefix: string) => async (path: string) => {
  const answer = await store.ask("GET", `/${prefix}/${path}`);
  return answer.ok ? new Uint8Array(await answer.arrayBuffer()) : undefined;
};
const whole = (prefix: string, size: number) => expectWhole(reader(prefix), size);

/** Does `work` with 1, 2, 3 …, a few at a time, until it returns false. @returns how often it has not */
async function counting(work: (number: number) => Promise<boolean>): Promise<number> {
  let [next, last] = [1, Number.POSITIVE_INFINITY];
  const lane = async () => {
    for (let number = next++; number < last; number = next++) if (!(await work(number))) last = Math.min(last, number);
  };
  await Promise.all([lane(), lane(), lane()]);
  return last - 1;
}

test("a log is published twice, and is a whole one, with the headers of tlog-tiles", async () => {
  const first = await publish(small, "twice/tlog");
  expect([first.code, JSON.parse(first.stdout)]).toEqual([0, expect.objectContaining({ published: 3, made: 2 })]);
  await whole("twice/tlog", 3);
  const second = await publish(log.url, "twice/tlog/");
  expect([second.code, JSON.parse(second.stdout)]).toEqual([0, expect.objectContaining({ published: 300, made: 5 })]);
  expect(second.stderr).toBe("");
  await whole("twice/tlog", 300);
  const headersOf = async (path: string) => {
    const { headers } = await store.ask("GET", `/twice/tlog/${path}`);
    return [headers.get("content-type"), headers.get("cache-control")];
  };
  for (const path of ["checkpoint", "vkey"])
    expect(await headersOf(path)).toEqual(["text/plain; charset=utf-8", "no-cache"]);
  for (const path of ["tile/0/000", "tile/0/001.p/44", "tile/entries/000"])
    expect(await headersOf(path)).toEqual(["application/octet-stream", "public, max-age=31536000, immutable"]);
  const back = await publish(small, "twice/tlog");
  expect([back.code, back.stderr]).toEqual([4, expect.stringContaining("what was published is never taken back")]);
  await whole("twice/tlog", 300);
});

test("an object with other bytes is found, and stays; one that is lost is made again", async () => {
  await publish(log.url, "lies");
  await store.ask("PUT", "/lies/tile/0/000", "no tile");
  const { code, stderr } = await publish(log.url, "lies", undefined, "--audit");
  expect([code, stderr]).toEqual([3, expect.stringContaining("s3://logs/lies has another tile/0/000 than the log")]);
  expect(Buffer.from((await reader("lies")("tile/0/000"))!).toString()).toBe("no tile");
  await store.ask("DELETE", "/lies/tile/0/000");
  expect((await publish(log.url, "lies", undefined, "--audit")).code).toBe(0);
  await whole("lies", 300);
});

test("a publisher that another one overtakes does not put an older checkpoint over a newer one", async () => {
  let hasOvertaken = false;
  const proxy = await before(store.url, async (asked, pass) => {
    if (asked.request.method === "PUT" && asked.request.url!.endsWith("/checkpoint") && !hasOvertaken) {
      hasOvertaken = true;
      expect((await publish(log.url, "race")).code).toBe(0);
    }
    await pass(asked);
  });
  const { code, stderr } = await publish(small, "race", proxy);
  expect([code, hasOvertaken, stderr]).toEqual([4, true, expect.stringContaining("never taken back")]);
  await whole("race", 300);
});

/** Conditions do not come to the store behind. */
const withoutConditions =
  (how: string): Parameters<typeof before>[1] =>
  async (asked, pass) => {
    const { "if-match": match, "if-none-match": none } = asked.request.headers;
    if (match === undefined && (none === undefined || how === "half-knows")) return pass(asked);
    const { status } = await store.ask("PUT", asked.request.url!.slice("/logs".length), asked.body);
    return asked.response.writeHead(status).end();
  };

test.each(["ignores", "half-knows"])("a store that %s conditions is read first, and that is said", async (how) => {
  const proxy = await before(store.url, withoutConditions(how));
  for (const [source, size] of [
    [small, 3],
    [log.url, 300],
  ] as const) {
    const { code, stderr } = await publish(source, how, proxy);
    expect([code, stderr]).toEqual([0, expect.stringContaining("does not know conditional requests")]);
    await whole(how, size);
  }
  expect((await publish(small, how, proxy)).code).toBe(4);
  await store.ask("PUT", `/${how}/tile/0/001.p/44`, "no tile");
  expect((await publish(log.url, how, proxy)).code).toBe(3);
  expect(Buffer.from((await reader(how)("tile/0/001.p/44"))!).toString()).toBe("no tile");
});

test("a proxy that takes the ETag away is named, and no other publisher is blamed", async () => {
  expect((await publish(small, "tagless")).code).toBe(0);
  const proxy = await before(store.url, (asked, pass) => {
    const { response } = asked;
    const writeHead = response.writeHead.bind(response);
    response.writeHead = ((status: number, { etag: _, ...headers }: OutgoingHttpHeaders = {}) =>
      writeHead(status, headers)) as typeof writeHead;
    return pass(asked);
  });
  const { code, stderr } = await publish(log.url, "tagless", proxy);
  expect([code, stderr]).toEqual([1, expect.stringContaining("without an ETag")]);
});

test("partial tiles are listed over several pages, and removed when the full one is a day old", async () => {
  expect((await publish(small, "pruned")).code).toBe(0);
  expect((await publish(log.url, "pruned")).code).toBe(0);
  // The store's clock cannot be set, but what it says of it can.
  const proxy = await before(store.url, async (asked, pass) => {
    const { url = "" } = asked.request;
    if (!url.includes("list-type=2")) return pass(asked);
    const listed = await store.ask("GET", `${url.slice("/logs".length)}&max-keys=2`);
    const old = (await listed.text()).replaceAll(/<LastModified>\d{4}/g, "<LastModified>2020");
    return asked.response.writeHead(listed.status).end(old);
  });
  const { code, stdout } = await publish(log.url, "pruned", proxy);
  expect([code, JSON.parse(stdout)]).toEqual([0, expect.objectContaining({ removed: 2, made: 0 })]);
  expect(await reader("pruned")("tile/0/000.p/3")).toBe(undefined);
  await whole("pruned", 300);
});

/** The command as a process of its own. */
function spawned(args: readonly string[], env: Readonly<Record<string, string>>) {
  // A group of its own, which the shim kills as a whole.
  const child = spawn(process.execPath, [MAIN, "publish", ...args], {
    env: { ...process.env, ...env },
    stdio: "ignore",
    detached: true,
  });
  return { child, ended: once(child, "exit") as Promise<[number | null, string | null]> };
}

/** Asserts that the checkpoint which is there, if any, covers nothing that is missing. */
async function sound(read: (path: string) => Promise<Uint8Array | undefined>): Promise<void> {
  const note = await read("checkpoint");
  if (note) await expectWhole(read, Number(Buffer.from(note).toString().split("\n")[1]));
}

test("killed after each of its requests, it goes on where it was", async () => {
  const kills = await counting(async (number) => {
    const prefix = `killed-${number}`;
    expect((await publish(small, prefix)).code).toBe(0);
    let asked = 0;
    const counted = (url: string) =>
      before(url, async (all, pass) => {
        // Carried out, and not answered.
        const isLast = ++asked === number;
        await pass(all, !isLast);
        if (isLast) child.kill("SIGKILL");
      });
    const [source, endpoint] = [await counted(grown), await counted(store.url)];
    const { child, ended } = spawned([source, `s3://logs/${prefix}`, "--endpoint", endpoint], CREDENTIALS);
    const [code, signal] = await ended;
    expect([code, signal]).toEqual(asked >= number ? [null, "SIGKILL"] : [0, null]);
    await sound(reader(prefix));
    expect((await publish(grown, prefix)).code).toBe(0);
    await whole(prefix, 4);
    return signal !== null;
  });
  expect(kills).toBeGreaterThan(10);
});

test("entries are published, read and restored, and what is missing of them is named", async () => {
  const prefix = "entries";
  expect(await publish(log.url, prefix, undefined, "--entries")).toMatchObject({ code: 0 });
  await whole(prefix, 300);
  await expectEntries(reader(prefix), log.service, 300);
  const environment = { ...CREDENTIALS, AWS_ENDPOINT_URL: store.url };
  const key = ["--vkey", await log.vkey()];
  const read = (...args: string[]) => cairnlog([...args, ...key], environment);
  expect(await read("fsck", `s3://logs/${prefix}`)).toMatchObject({ code: 0 });
  expect(await read("log", "show", "300", "--log", `s3://logs/${prefix}`)).toMatchObject({ code: 0 });
  expect(await read("restore", `s3://logs/${prefix}`, "--to", temporaryFolder())).toMatchObject({ code: 0 });
  const page = await store.ask("GET", `/${prefix}/index.html`);
  expect([page.headers.get("content-type"), page.headers.get("cache-control")]).toEqual([
    "text/html; charset=utf-8",
    "no-cache",
  ]);
  const [, part] = /src="\.\/(explorer\/[^"]+\.js)"/.exec(await page.text())!;
  const { headers } = await store.ask("GET", `/${prefix}/${part}`);
  expect([headers.get("content-type"), headers.get("cache-control")]).toEqual([
    "text/javascript; charset=utf-8",
    "public, max-age=31536000, immutable",
  ]);
  await store.ask("DELETE", `/${prefix}/entries/000`);
  const { code, stdout } = await read("fsck", `s3://logs/${prefix}`);
  expect([code, stdout]).toEqual([1, expect.stringContaining("entries/000 is missing.")]);
});

test("killed in each of its system calls on a folder, it goes on where it was", async () => {
  const library = compileShim(temporaryFolder());
  const kills = await counting(async (number) => {
    const [target, files] = [temporaryFolder(), temporaryFolder()];
    const read = (path: string) => readFile(join(target, path)).catch(() => undefined);
    expect((await cairnlog(["publish", small, target])).code).toBe(0);
    const injector = new Injector(library, files, target);
    injector.arm({ call: "*", path: "*", nth: number, error: "killed", lasts: false });
    const [, signal] = await spawned([grown, target], injector.environment).ended;
    injector.close();
    await sound(read);
    expect((await cairnlog(["publish", grown, target])).code).toBe(0);
    await expectWhole(read, 4);
    return signal !== null;
  });
  expect(kills).toBeGreaterThan(15);
});

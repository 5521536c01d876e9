/** Answers of a service cannot control the terminal, fill the memory, or keep a command running for ever. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { printableJson } from "#cairnlog/server/cli/terminal/printable.js";
import { byTheClock, type Patience, patientFetch, throughLimits } from "#cairnlog/server/outgoing/patience.js";
import { startTestService, type TestService, temporaryFolder } from "../server/harness.js";
import { cairnlog } from "./harness.js";

const folder = temporaryFolder();
const servers: Server[] = [];
afterAll(() => {
  for (const server of servers) server.close().closeAllConnections();
});

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Control sequence introducer, overrides of the writing direction, line separators, tags, a private character. */
const STEERING = "\u009b31m \u0085 \u200f \u202a\u202e \u2028\u2029 \u2066\u2069 \u{e0041} \ue000 \u007f";

describe("what steers a terminal", () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startTestService();
    const payload = { note: STEERING, [STEERING]: ["harmless: ä € 😀"] };
    const claim = {
      commitment_alg: "",
      ephemeral_public_key: "",
      nonce: "",
      ciphertext: "",
      commitment: "",
      lookup_key: "",
    };
    const event_type = "encrypted_claim";
    await service.server.registry.log.append({ event_type, payload: { event_type, ...claim, ...payload } });
  });
  const expectHarmless = (text: string) => expect(text.replaceAll(/[\n\r]/g, "")).toMatch(/^[^\p{C}\p{Zl}\p{Zp}]*$/u);
  const truth = async () => (await service.get("/log/1")).body;

  test("is escaped in --json, which stays the same value", async () => {
    const run = await cairnlog(["log", "search", "--json", "--server", service.url, "--state", join(folder, "state")]);
    expectHarmless(run.stdout);
    expect(JSON.parse(run.stdout)).toEqual(await truth());
    expect(run.stdout).toContain("harmless: ä € 😀");
  });

  test("and so are the names of files, which come with an archive, where a command line is refused", async () => {
    const receipt = join(folder, `${STEERING.replace(/[\u2028\u2029]/g, "")}\u001b[2J.attestation.json`);
    const { code, stderr } = await cairnlog(["verify", receipt]);
    expect([code, stderr]).toEqual([2, expect.stringContaining("is a receipt")]);
    expectHarmless(stderr);
  });

  test("and in both formats of an export", async () => {
    for (const format of ["ndjson", "csv"]) {
      const out = join(folder, `log.${format}`);
      await cairnlog(["export", "--server", service.url, "--out", out, "--format", format]);
      const text = readFileSync(out, "utf8");
      expectHarmless(text);
      if (format === "ndjson") expect(JSON.parse(text)).toEqual(await truth());
      else {
        const cell = /,"(\{.*\})"\r\n$/s.exec(text)![1]!.replaceAll('""', '"');
        expect(JSON.parse(cell)).toEqual((await truth()).payload);
      }
    }
  });

  test.each([STEERING, "\ud800", "\u{10ffff}", "line\nfeed", '"\\'])("%j keeps its value", (text) => {
    expectHarmless(printableJson({ [text]: text }));
    expect(JSON.parse(printableJson({ [text]: text }))).toEqual({ [text]: text });
  });

  test("line feeds in the names of files are no lines of their own, whether a file is attested or is not there", async () => {
    const [files, key] = [join(folder, "archive"), join(folder, "me.pem")];
    mkdirSync(files);
    writeFileSync(join(files, "a\nb.txt: verified"), "a document");
    expect(await cairnlog(["keygen", "--out", key])).toMatchObject({ code: 0 });
    const attest = (...named: string[]) =>
      cairnlog(["attest", ...named, "--key", key, "--server", service.url, "--state", join(folder, "attesting")]);
    const attested = await attest(files, "--pseudonym", "Ada");
    expect(attested).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^.*a\\u\{a\}b\.txt: verified: entry .*\n$/),
    });
    expect(await attest(join(files, "c\nd"))).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^.*c\\u\{a\}d.*\n$/),
    });
  });
});

describe("an answer without end", () => {
  const endless: RequestListener = (_, response) => {
    const chunk = Buffer.alloc(2 ** 20, " ");
    const more = () => {
      while (!response.destroyed && response.write(chunk));
    };
    response.writeHead(200, { "content-type": "application/json" }).on("drain", more);
    more();
  };

  test.each([
    ["log", "head"],
    ["export", "--out", "-"],
  ])("ends %s", async (...args) => {
    const state = args[0] === "log" ? ["--state", join(folder, "endless")] : [];
    const run = await cairnlog([...args, "--server", await serve(endless), ...state]);
    expect(run).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("with too much") });
  });
});

test.each([
  [500, "abc-1", "cairnlog: It broke.\n  Request id: abc-1\n"],
  [404, "abc-1", "cairnlog: It broke.\n"],
  [500, undefined, "cairnlog: It broke.\n"],
  [500, STEERING, expect.stringContaining("without saying why")],
])("a fault of the service is shown with its request id: %i, %j", async (status, request_id, stderr) => {
  const url = await serve((_, response) => {
    const problem = { type: "about:blank", title: "No", status, detail: "It broke.", code: "not-found", request_id };
    response.writeHead(status, { "content-type": "application/problem+json" }).end(JSON.stringify(problem));
  });
  const run = await cairnlog(["log", "head", "--server", url, "--state", join(folder, "faulty")]);
  expect(run).toMatchObject({ code: 1, stderr });
});

describe("a limit", () => {
  async function limited(
    retryAfter: string | undefined,
    times = Number.POSITIVE_INFINITY,
    { isEndless, ...patience }: Patience & { isEndless?: boolean } = {},
    headers: Readonly<Record<string, string>> = {},
  ) {
    let asked = 0;
    const url = await serve((_, response) => {
      const isOver = ++asked > times;
      const wait = retryAfter === undefined ? {} : { "retry-after": retryAfter };
      response.writeHead(isOver ? 200 : 429, { ...wait, ...headers }).end();
    });
    const pauses: number[] = [];
    const pause = async (ms: number) => void pauses.push(ms);
    const { status } = await patientFetch(throughLimits(isEndless), { say: () => {}, sleep: pause, ...patience })(url);
    return { status, pauses, asked };
  }

  test.each(["0", "", "-5", "000", "soon", "1e1", undefined])(
    "of Retry-After %j is asked again five times in all, with growing pauses",
    async (retryAfter) => {
      expect(await limited(retryAfter)).toEqual({ status: 429, pauses: [1_000, 2_000, 4_000, 8_000], asked: 5 });
    },
  );

  test("that always names a second is given up, too", async () => {
    expect(await limited("1")).toEqual({ status: 429, pauses: Array(4).fill(1_000), asked: 5 });
  });

  test("of a minute is waited out, and a longer one is not", async () => {
    expect(await limited("60", 1)).toEqual({ status: 200, pauses: [60_000], asked: 2 });
    expect(await limited("61")).toEqual({ status: 429, pauses: [], asked: 1 });
  });

  // A timer of Node that should wait longer than 2^31 ms ends at once.
  test.each(["2147483", "2147484", "999999999"])(
    "of %s s, which may be more than a timer can, is waited for",
    async (s) => {
      const ended = new AbortController();
      const fetched = limited(s, 3, { isEndless: true, sleep: byTheClock, signal: ended.signal });
      const first = await Promise.race([fetched.catch(() => "asked again"), sleep(200, "waits")]);
      ended.abort();
      await expect(fetched).rejects.toThrow();
      expect(first).toBe("waits");
    },
  );

  test("of any length is waited out on request, as often as it comes, and the time of its end is said", async () => {
    const said: string[] = [];
    const patience = { isEndless: true, say: (sentence: string) => said.push(sentence) };
    expect(await limited("3600", 7, patience)).toEqual({ status: 200, pauses: Array(7).fill(3_600_000), asked: 8 });
    expect(said[0]).toMatch(
      /^The service's limit is reached; trying again at (?:\w+ \w+ \d+ \d+ )?\d\d:\d\d, in 1 h\.$/,
    );
    // A smaller request can use what is left.
    const some = await limited("3600", 7, patience, { "ratelimit-remaining": "2" });
    expect(some).toEqual({ status: 429, pauses: [], asked: 1 });
  });
});

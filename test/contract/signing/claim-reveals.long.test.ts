/** Revealing claims over HTTP: the limit, and that nothing of a reveal is stored. */
import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, describe, expect, test, vi } from "vitest";
import { expectProblem, startTestService, temporaryFolder } from "../../server/harness.js";
import { MAIN } from "../../service.js";
import { holder, newLookupKey, type Post, plaintext, sealed, signIn } from "./claimants.js";

async function posted(post: Post, headers: Record<string, string>, value: unknown = plaintext) {
  const { payload, commitmentKey } = sealed(newLookupKey(), value);
  const { body } = await post("/claims", { payload }, headers);
  return { entry_id: body.entry_id as number, payload, commitmentKey };
}

afterEach(() => {
  vi.restoreAllMocks();
});

describe("budgets", () => {
  const limited = async (settings: Record<string, string> = {}) => {
    const proxies = { SERVICE_RATE_LIMITS: "on", SERVICE_TRUSTED_PROXIES: "127.0.0.1" };
    const at = await startTestService({ ...proxies, ...settings });
    const post: Post = (...parts) => at.post(...parts);
    const headers = await signIn(post, await holder(post, "hardware"));
    const claims = [await posted(post, headers), await posted(post, headers)];
    const ask = (n: number, from: string, as = headers) => {
      const { entry_id, commitmentKey } = claims[n]!;
      const body = { plaintext, commitment_key: commitmentKey };
      return at.post(`/claims/${entry_id}/reveal`, body, { ...as, "x-forwarded-for": from });
    };
    return { post, ask };
  };
  const statuses = (replies: readonly { status: number }[], status: number) =>
    replies.filter((reply) => reply.status === status).length;

  test("429: per-IP budget spent, of 30 an hour, however many ask at once", async () => {
    const { ask } = await limited();
    vi.spyOn(Date, "now").mockReturnValue(Date.now());
    const replies = await Promise.all(Array.from({ length: 40 }, (_, i) => ask(i % 2, "192.0.2.1")));
    expect([statuses(replies, 200), statuses(replies, 429)]).toEqual([30, 10]);
    const refused = await ask(0, "192.0.2.1");
    expectProblem(refused, 429, "rate-limited");
    expect(refused.headers.get("ratelimit-policy")).toBe('"claim-reveal";q=30;w=3600');
    expect(refused.headers.get("retry-after")).toBe("3600");
    expect((await ask(0, "192.0.2.2")).status).toBe(200);
  });

  test("429: per-(entry, caller) budget spent, of 30 an hour, from however many addresses at once", async () => {
    const { ask, post } = await limited();
    const replies = await Promise.all(Array.from({ length: 40 }, (_, i) => ask(0, `192.0.2.${i}`)));
    expect([statuses(replies, 200), statuses(replies, 429)]).toEqual([30, 10]);
    const refused = await ask(0, "198.51.100.1");
    expectProblem(refused, 429, "rate-limited");
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect((await ask(1, "198.51.100.1")).body).toEqual({ valid: true });
    const another = await signIn(post, await holder(post, "software"));
    expect((await ask(0, "198.51.100.1", another)).body).toEqual({ valid: true });
  });

  test("SERVICE_RATE_LIMIT_CLAIM_REVEAL sets the per-IP budget alone", async () => {
    const { ask } = await limited({ SERVICE_RATE_LIMIT_CLAIM_REVEAL: "2" });
    expect([(await ask(0, "192.0.2.1")).status, (await ask(0, "192.0.2.1")).status]).toEqual([200, 200]);
    expectProblem(await ask(0, "192.0.2.1"), 429, "rate-limited");
    const { ask: askMore } = await limited({ SERVICE_RATE_LIMIT_CLAIM_REVEAL: "1000" });
    const replies = await Promise.all(Array.from({ length: 40 }, () => askMore(0, "192.0.2.1")));
    expect(statuses(replies, 200)).toBe(30);
  });
});

describe("a revealed plaintext leaves no trace", () => {
  const dataDir = temporaryFolder();
  const marker = `plaintext-${randomUUID()}`;

  test("neither in the data directory nor in the service's log at its most verbose level", async () => {
    const child = spawn(process.execPath, [MAIN, "serve", "--json"], {
      env: {
        ...process.env,
        PORT: "0",
        SERVICE_DATA_DIR: dataDir,
        SERVICE_WORKERS: "1",
        SERVICE_RATE_LIMITS: "off",
        LOG_LEVEL: "trace",
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const told = output(child);
    const [line] = (await once(createInterface({ input: child.stdout! }), "line")) as [string];
    const base = `${JSON.parse(line).url}/api/v1`;
    const answers: string[] = [];
    const post = async (path: string, body: unknown, headers: Record<string, string> = {}) => {
      const text = typeof body === "string" ? body : JSON.stringify(body);
      const reply = await fetch(base + path, { method: "POST", body: text, headers });
      const answer = await reply.text();
      if (path.endsWith("/reveal")) answers.push(answer);
      return { status: reply.status, body: JSON.parse(answer) };
    };
    const headers = await signIn(post, await holder(post, "hardware"));
    const value = { secret: marker };
    const { entry_id, payload, commitmentKey } = await posted(post, headers, value);
    const path = `/claims/${entry_id}/reveal`;
    const right = { plaintext: value, commitment_key: commitmentKey };
    expect((await post(path, right, headers)).body).toEqual({ valid: true });
    const statuses: number[] = [];
    for (const [request, as] of [
      [{ ...right, plaintext: { ...value, more: 1 } }, headers],
      [{ ...right, commitment_key: `${commitmentKey}0` }, headers],
      [{ plaintext: value }, headers],
      [{ plaintext: marker, commitment_key: commitmentKey }, headers],
      [{ plaintext: { secret: `${marker}\ud800` }, commitment_key: commitmentKey }, {}],
      [right, {}],
    ] as const)
      statuses.push((await post(path, request, as)).status);
    statuses.push((await post("/claims/999999/reveal", right, headers)).status);
    expect(statuses).toEqual([200, 422, 400, 422, 422, 401, 404]);
    const metrics = await (await fetch(`${JSON.parse(line).url}/metrics`)).text();
    child.kill("SIGTERM");
    await once(child, "close");

    expect(told()).toContain("/api/v1/claims/{entry_id}/reveal");
    const places: [string, string][] = [
      ["log output", told()],
      ["metrics", metrics],
      ["answers", answers.join("\n")],
      ...files(dataDir).map((file): [string, string] => [file, readFileSync(file, "latin1")]),
    ];
    // Entries are stored in shorthand: hexadecimal digits as bytes.
    const commitment = Buffer.from(payload.commitment, "hex").toString("latin1");
    expect(places.some(([, content]) => content.includes(commitment))).toBe(true);
    const key = Buffer.from(commitmentKey, "hex");
    const secrets = [marker, commitmentKey, key.toString("base64").slice(0, 40), key.toString("latin1")];
    for (const [place, content] of places)
      for (const secret of secrets)
        expect(content.includes(secret), `${place} holds ${JSON.stringify(secret)}`).toBe(false);
  });
});

function output(child: ChildProcess): () => string {
  let text = "";
  for (const stream of [child.stdout!, child.stderr!])
    stream.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1");
    });
  return () => text;
}

const files = (folder: string): string[] =>
  readdirSync(folder)
    .map((name) => join(folder, name))
    .flatMap((path) => (statSync(path).isDirectory() ? files(path) : [path]));

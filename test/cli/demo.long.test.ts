/** `cairnlog demo`: the tour that it prints, run as it is written, and nothing is left when it ends. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { temporaryFolder } from "../server/harness.js";
import { MAIN } from "../service.js";

test("the tour shows what it says, and the demonstration leaves nothing", async () => {
  const demo = spawn(process.execPath, [MAIN, "demo", "--port", "0"], { stdio: ["ignore", "pipe", "pipe"] });
  // A service must not outlive a test that fails.
  onTestFinished(() => void demo.kill());
  let [tour, complaints] = ["", ""];
  demo.stdout.on("data", (data) => {
    tour += data;
  });
  demo.stderr.on("data", (data) => {
    complaints += data;
  });
  const ended = once(demo, "close");
  while (!tour.includes("Sign something yourself") || !tour.endsWith("\n\n"))
    await Promise.race([once(demo.stdout, "data"), ended]);
  expect(complaints).toBe("");
  expect(tour.trimStart()).toMatch(
    /^ready {4}http:\/\/127\.0\.0\.1:\d+\/ \(a demonstration: 1\d entries|^ready {4}.*: 2\d entries/,
  );

  const lines = [...tour.matchAll(/^ {2}(cd|alias|export|cairnlog) (.*)$/gm)].map(
    ([, word, rest]) => `${word} ${rest}`,
  );
  const commands = lines.filter((line) => line.startsWith("cairnlog "));
  expect(commands.length).toBeGreaterThan(6);
  const script = lines.map((line) =>
    line.startsWith("cairnlog ") ? `${line.replace(/ +#.*/, "")}; echo "exit $?"` : line,
  );
  const { stdout, stderr } = await promisify(execFile)("bash", [
    "-O",
    "expand_aliases",
    "-c",
    // An alias counts from the line after the one that makes it.
    script.join("\n"),
  ]);
  const codes = [...stdout.matchAll(/^exit (\d+)$/gm)].map(([, code]) => Number(code));
  const expected = commands.map((line) => (/# NOT verified/.test(line) ? 1 : /# ALARM/.test(line) ? 3 : 0));
  expect(codes, stdout + stderr).toEqual(expected);
  expect(expected.filter((code) => code !== 0)).toEqual([1, 3]);
  expect(stdout).toContain("notes.txt: verified\n");
  expect(stdout).toContain("changed/notes.txt: NOT verified\n");
  expect(stdout).toContain("relay 70");
  expect(stdout).toMatch(/Ada Lovelace[\s\S]*Grace Hopper/);
  expect(stdout.match(/^[│ ]*[├└]─ endorses “[A-Z][^”]+” sha256:[0-9a-f]{12}…, human, active$/gm)).toHaveLength(3);
  expect(stderr).toMatch(/ALARM changed-entry: /);

  const [, folder] = /^ {2}cd (\S+)$/m.exec(tour)!;
  expect(existsSync(folder!)).toBe(true);
  demo.kill("SIGTERM");
  expect(await ended).toEqual([0, null]);
  expect(existsSync(folder!)).toBe(false);
});

test.each([
  ["SIGINT", /^[^/]+$/],
  ["SIGTERM", /data\/log\/data\.mdb$/],
  ["SIGHUP", /rewritten\/log$/],
] as const)("%s while it starts, when there is %s, leaves nothing", async (signal, made) => {
  const folder = temporaryFolder();
  const demo = spawn(process.execPath, [MAIN, "demo", "--port", "0", "--json"], {
    env: { ...process.env, TMPDIR: folder },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => void demo.kill());
  let said = "";
  demo.stdout.on("data", (data) => {
    said += data;
  });
  demo.stderr.on("data", (data) => {
    said += data;
  });
  const ended = once(demo, "close");
  const isDemo = (name: string) => name.startsWith("cairnlog-demo-");
  const names = () => readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(isDemo);
  while (!names().some((name) => made.test(name)) && demo.exitCode === null) await setTimeout(5);
  demo.kill(signal);
  expect(await ended).toEqual([0, null]);
  expect(names()).toEqual([]);
  // It may have been ready by then.
  expect(said).toMatch(/^(\{"url":.*\}\n)?$/);
});

test("on all addresses it is filled, and called by its public address", async () => {
  const demo = spawn(process.execPath, [MAIN, "demo", "--host", "0.0.0.0", "--port", "0", "--json"], {
    env: { ...process.env, SERVICE_PUBLIC_URL: "http://demo.example:8080" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void demo.kill());
  const ended = once(demo, "close");
  const [line] = (await Promise.race([once(demo.stdout, "data"), ended])) as [unknown];
  expect(JSON.parse(String(line))).toEqual({
    url: "http://demo.example:8080",
    rewritten_url: "http://demo.example:8081",
    folder: expect.any(String),
    entries: 19,
  });
  demo.kill("SIGTERM");
  expect(await ended).toEqual([0, null]);
});

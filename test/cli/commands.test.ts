/** The common behaviour of all commands: help, options, exit codes, and the completion generated from them. */
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { COMMANDS } from "#cairnlog/server/cli/commands.js";
import { readInterval } from "#cairnlog/server/cli/connection/connection.js";
import type { Subcommand } from "#cairnlog/server/cli/line/subcommand.js";
import { SETTING_OPTIONS } from "#cairnlog/server/cli/operate/environment.js";
import { temporaryFolder } from "../server/harness.js";
import { cairnlog } from "./harness.js";

const commands = Object.keys(COMMANDS);

test("the overview lists the commands with their purposes", async () => {
  expect(commands.length).toBeGreaterThan(20);
  const { code, stdout } = await cairnlog(["--help"]);
  expect(code).toBe(0);
  const lines = [...stdout.matchAll(/^ {2}([a-z-]+) {2,}(\S.*)$/gm)].map((match) => match.slice(1));
  const listed = Object.entries(COMMANDS).map(([name, { summary }]) => [name, summary]);
  expect(lines).toEqual([...listed, ["help", "show the help of a command"]]);
  // All summaries begin in the same column.
  const columns = [...stdout.matchAll(/^( {2}[a-z-]+ {2,})\S.*$/gm)].map((match) => match[1]!.length);
  expect(new Set(columns).size).toBe(1);
});

test("every option says what it is for, and speaks of itself alone", async () => {
  for (const name of commands) {
    const { options } = await COMMANDS[name]!.load();
    for (const [option, { help }] of Object.entries(options)) {
      expect(help, `${name} --${option}`).toMatch(/^\S+( \S+)+$/);
      // A list of options, or the beginning of the description of another one.
      expect(help, `${name} --${option}`).not.toMatch(/ --[a-z-]+, --|TODO|FIXME/);
    }
  }
});

test("every option is given to its command by some test", async () => {
  const folder = new URL("..", import.meta.url).pathname;
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) =>
    /^(?!build\/).*\.(?:ts|mjs|sh)$/.test(name),
  );
  /** The words of each file, and the options that it names. */
  const named = files.map((name) => {
    const text = readFileSync(join(folder, name), "utf8");
    return new Set([...text.matchAll(/--[a-z][a-z-]*[a-z]|(?<=["`\s])[a-z]+(?=["`\s])/g)].map(([word]) => word));
  });
  const untried: string[] = [];
  for (const name of commands) {
    const { options } = await COMMANDS[name]!.load();
    for (const option of Object.keys(options))
      if (!named.some((words) => words.has(name) && words.has(`--${option}`))) untried.push(`${name} --${option}`);
  }
  // Those of `serve` that are settings too are compared with these, one by one (`server/life/reach.test.ts`).
  const ofSettings = Object.keys(SETTING_OPTIONS).flatMap((option) => [`serve --${option}`, `settings --${option}`]);
  // Nothing of this answer is signed, so nothing is kept for the next one.
  const unsigned = ["writers --state"];
  expect(untried.filter((option) => ![...ofSettings, ...unsigned].includes(option))).toEqual([]);
});

test.each([
  ["endorse offer", ["human: ", "institutional: "]],
  ["export", ["--start-date", "--end-date", "a date includes its whole day"]],
])("the help of %s names the values that an option takes", async (name, words) => {
  const { stdout } = await cairnlog([...name.split(" "), "--help"]);
  for (const word of words) expect(stdout.replace(/\s+/g, " ")).toContain(word);
});

test("the commands that do several things say so", async () => {
  const several: string[] = [];
  for (const name of commands) {
    const { actions = {} } = await COMMANDS[name]!.load();
    const { stdout } = await cairnlog([name, "--help"]);
    const [, section = ""] = /^Actions:\n((?: {2,}.*\n)+)/m.exec(stdout) ?? [];
    expect(
      [...section.matchAll(/^ {2}([a-z-]+)/gm)].map(([, word]) => word),
      name,
    ).toEqual(Object.keys(actions));
    if (Object.keys(actions).length) several.push(name);
  }
  expect(several).toContain("inbox");
});

test.each([
  ["0", 1],
  ["1", 1],
  ["60", 60],
  ["2147483", 2_147_483],
  // A timer that is set for longer than 31 bits of milliseconds ends at once.
  ["2147484", 2_147_483],
  ["999999999999999", 2_147_483],
])("an interval of %s s is one of %d s", (text, seconds) => {
  expect(readInterval(text)).toBe(seconds);
});

describe.each(commands)("%s", (name) => {
  let command: Subcommand;
  /** The help of the command, and of each of its actions. */
  const helps = new Map<string | undefined, string>();
  beforeAll(async () => {
    command = await COMMANDS[name]!.load();
    for (const action of [undefined, ...Object.keys(command.actions ?? {})]) {
      const { code, stdout, stderr } = await cairnlog([name, ...(action === undefined ? [] : [action]), "--help"]);
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      helps.set(action, stdout);
    }
  });

  test("has a synopsis, options and an example in its help, which fits a terminal", () => {
    expect(helps.get(undefined)).toMatch(new RegExp(`^Examples?:\\n(?:.*\\n)*?.*\\bcairnlog ${name}\\b`, "m"));
    for (const [action, help] of helps) {
      expect(help).toMatch(new RegExp(`^Usage: cairnlog ${name}${action === undefined ? "" : ` ${action}`}\\b`));
      expect(help).toMatch(/^Options:$/m);
      for (const line of help.split("\n")) expect(line.length, line).toBeLessThan(132);
    }
  });

  test("explains each of its options, and no other", () => {
    const explained = [...helps.values()].flatMap((help) => {
      const [, section] = /^Options:\n((?: {2,}.*\n?)+)/m.exec(help)!;
      return [...section!.matchAll(/^ {2}(?:-(\w), )?--([a-z-]+)(?: <\S+>)? {2,}\S/gm)].map(([, short, option]) => [
        option,
        short,
      ]);
    });
    const expected = Object.entries(command.options).map(([option, { short }]) => [option, short]);
    const once = new Map([...explained, ...explained].map(([option, short]) => [option, short]));
    once.delete("help");
    expect([...once].sort()).toEqual(expected.sort());
  });

  test("refuses unknown options and actions", async () => {
    const actions = Object.keys(command.actions ?? {});
    for (const words of actions.length ? actions.map((action) => [action]) : [[]])
      expect(await cairnlog([name, ...words, "--no-such-option"])).toEqual({
        code: 2,
        stdout: "",
        stderr: `cairnlog: unknown option '--no-such-option'\nTry: ${["cairnlog", name, ...words].join(" ")} --help\n`,
      });
    if (!actions.length) return;
    expect(await cairnlog([name, "no-such-action"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`say what to do: ${actions.join(", ")}; unknown command 'no-such-action'`),
    });
  });
});

describe("wrong usage is exit code 2, with a message and without a stack trace", () => {
  test.each([
    [["no-such-command"], /unknown command 'no-such-command'/],
    [["keygen", "--no-such-option"], /unknown option '--no-such-option'/],
    [["log", "no-such-action"], /say what to do/],
    [["trust", "show"], /FINGERPRINT is missing/],
    [["trust", "revoke", "x"], /x is one argument too many/],
    [["trust", "list", "x"], /x is one argument too many/],
    [["keys", "list", "x", "y"], /y is one argument too many/],
    [["log", "consistency", "1", "2", "3"], /3 is one argument too many/],
    [["log", "tail", "--interval", "soon"], /--interval must be a whole number/],
    [["log", "tail", "--server", "xhttp://127.0.0.1:10"], /--server must be an address such as/],
    [["export", "--out", "x", "--server", "xhttp://127.0.0.1:10"], /--server must be an address/],
    [["completion", "tcsh"], /say what to do: bash, zsh, fish/],
    [["bench", "--seconds", "0"], /--seconds must be a whole number/],
  ])("%j", async (args, sentence) => {
    const { code, stdout, stderr } = await cairnlog(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(sentence);
    expect(stderr).toMatch(/\nTry: cairnlog .*--help\n$/);
    expect(stderr).not.toMatch(/\n\s+at /);
  });
});

describe("completion", () => {
  let script: string;
  beforeAll(async () => {
    const { code, stdout, stderr } = await cairnlog(["completion", "bash"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    script = stdout;
  });

  /** The completions of bash for the last of these words. */
  async function offered(...words: string[]): Promise<string[]> {
    const line = words.map((word) => `'${word}'`).join(" ");
    const ask = `COMP_WORDS=(${line}); COMP_CWORD=${words.length - 1}; _cairnlog; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { stdout } = await promisify(execFile)("bash", ["--norc", "-uc", `${script}\n${ask}`]);
    return stdout.split("\n").filter((word) => word !== "");
  }

  test("in bash offers commands, actions, options, and leaves file names to bash", async () => {
    expect(await offered("cairnlog", "")).toEqual([...commands, "--help", "--version"]);
    expect(await offered("cairnlog", "att")).toEqual(["attest"]);
    expect(await offered("cairnlog", "endorse", "w")).toEqual(["withdraw"]);
    expect(await offered("cairnlog", "attest", "report.pdf", "--pass")).toEqual([
      "--password-file",
      "--passphrase-file",
    ]);
    expect(await offered("cairnlog", "attest", "rep")).toEqual([]);
    expect(await offered("cairnlog", "nothing", "--")).toEqual([]);
  });

  test.each(["zsh", "fish"])("in %s names every command, action and option", async (shell) => {
    const { code, stdout } = await cairnlog(["completion", shell]);
    expect(code).toBe(0);
    for (const name of commands) {
      const { actions = {}, options } = await COMMANDS[name]!.load();
      for (const word of [name, ...Object.keys(actions), ...Object.keys(options)]) expect(stdout).toContain(word);
    }
  });

  test.each([
    ["zsh", (name: string, summary: string) => `'${name}:${summary.replaceAll(":", "\\:")}'`],
    ["fish", (name: string, summary: string) => `-a ${name} -d '${summary}'`],
  ])("in %s says what each command is for", async (shell, described) => {
    const { stdout } = await cairnlog(["completion", shell]);
    for (const name of commands)
      expect(stdout.replaceAll("'\\''", "’")).toContain(described(name, COMMANDS[name]!.summary.replaceAll("'", "’")));
  });
});

test("a fault of the program is told with its stack, and one outside of it in a sentence", async () => {
  const load = vi.spyOn(COMMANDS.keygen!, "load");
  const failing = (error: Error) => load.mockRejectedValueOnce(error);
  failing(new TypeError("a fault"));
  expect(await cairnlog(["keygen"])).toMatchObject({
    code: 1,
    stdout: "",
    stderr: expect.stringMatching(/^cairnlog: TypeError: a fault\n\s+at /),
  });
  failing(Object.assign(new Error("no room"), { syscall: "write" }));
  expect(await cairnlog(["keygen"])).toEqual({ code: 1, stdout: "", stderr: "cairnlog: no room\n" });
  load.mockRestore();
});

test("bench needs no --seconds", async () => {
  const none = join(temporaryFolder(), "none");
  // It is refused for the directory, and not for the seconds.
  expect(await cairnlog(["bench", "--dir", none])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("ENOENT"),
  });
});

test("bench measures, and leaves nothing behind", async () => {
  const folder = temporaryFolder();
  const { code, stdout } = await cairnlog(["bench", "--seconds", "1", "--dir", folder, "--json"]);
  expect(code).toBe(0);
  expect(readdirSync(folder)).toEqual([]);
  const { sign_per_s, verify_per_s, appends } = JSON.parse(stdout);
  expect([sign_per_s, verify_per_s].every((rate) => rate > 100)).toBe(true);
  expect(appends).toMatchObject([{ in_flight: 1 }, { in_flight: 64 }]);
  for (const { per_s, flush_per_s, of_flush, of_signatures } of appends) {
    expect([per_s, flush_per_s].every((rate) => rate > 0)).toBe(true);
    // The time of one append, as a multiple of the time of one flush.
    expect(of_flush).toBeCloseTo(flush_per_s / per_s);
    expect(of_signatures).toBeCloseTo((sign_per_s * verify_per_s) / (sign_per_s + verify_per_s) / per_s);
  }
});

test("bench says what it measured", async () => {
  const { code, stdout, stderr } = await cairnlog(["bench", "--seconds", "1"]);
  // On a busy machine it takes so long that it tells its progress.
  expect({ code, stderr: stderr.replace(/^Measuring: .*\n/gm, "") }).toEqual({ code: 0, stderr: "" });
  const rate = String.raw`^(?= *[\d,]+/s)[ \d,]{9,}/s  `;
  const lines = [
    "Ed25519 signatures$",
    "Ed25519 verifications$",
    ...[1, 64].flatMap((inFlight) => [
      `puts of 400 bytes on disk, ${inFlight} in flight$`,
      String.raw`appends on disk, ${inFlight} in flight: \d+\.\d\d × such a put, \d+\.\d\d × a signature and its verification$`,
    ]),
  ];
  const said = stdout.trimEnd().split("\n");
  expect(said).toHaveLength(lines.length);
  for (const [i, line] of lines.entries()) expect(said[i]).toMatch(new RegExp(rate + line));
});

describe("a word that is nearly right is answered with the right one", () => {
  test.each([
    [["atest"], "unknown command 'atest' (Did you mean attest?)"],
    [["helps"], "unknown command 'helps' (Did you mean help?)"],
    [["log", "tial"], "say what to do: show, search"],
    [["log", "tial"], "; unknown command 'tial' (Did you mean tail?)"],
    [["log", "tail", "--folow"], "unknown option '--folow' (Did you mean --follow?)"],
    [["keygen", "--algoritm", "x"], "unknown option '--algoritm' (Did you mean --algorithm?)"],
    [["keygen", "--out"], "option '--out <KEY.pem>' argument missing"],
    [["keygen", "--out", "--json"], "--out lacks its value (--out=--json if that is meant)"],
    [["help", "sreve"], "unknown command 'sreve' (Did you mean serve?)"],
  ])("%j: %s", async (args, sentence) => {
    const { code, stdout, stderr } = await cairnlog(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(sentence);
  });
});

test("help and -V are what --help and --version are", async () => {
  const same = async (one: string[], other: string[]) => {
    const [first, second] = [await cairnlog(one), await cairnlog(other)];
    expect(first).toEqual(second);
    expect(first).toMatchObject({ code: 0, stderr: "" });
  };
  await same(["help"], ["--help"]);
  await same(["help", "attest"], ["attest", "--help"]);
  await same(["help", "log", "tail"], ["log", "tail", "--help"]);
  await same(["-V"], ["--version"]);
});

test("CAIRNLOG_SERVER is the service of commands without --server, which goes before it", async () => {
  const env = { CAIRNLOG_SERVER: "http://127.0.0.1:10" };
  for (const args of [
    ["log", "tail"],
    ["export", "--out", "unused"],
  ]) {
    expect((await cairnlog(args, env)).stderr).toBe(
      "cairnlog: No service answers at http://127.0.0.1:10. Is it running?\n",
    );
    const { stderr } = await cairnlog([...args, "--server", "http://127.0.0.1:8"], env);
    expect(stderr).toContain("http://127.0.0.1:8.");
    expect((await cairnlog(args, { CAIRNLOG_SERVER: "" })).stderr).toContain("--server is missing");
  }
});

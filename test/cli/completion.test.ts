/** The completion scripts for zsh and fish, line by line, and how they are asked for. For that of bash see `commands.test.ts`. */
import { describe, expect, test } from "vitest";
import { completion, type ListedCommand } from "#cairnlog/server/cli/completion.js";
import { subcommand, subcommandWithActions, text } from "#cairnlog/server/cli/line/subcommand.js";
import { cairnlog } from "./harness.js";

const TEXT = text("VALUE", "a value");
const ACTION = { form: "", about: "" };
const DESCRIBED = { about: "", examples: "", run: () => 0 };
const group = "Commands:";
const COMMANDS: Record<string, ListedCommand> = {
  plain: {
    summary: "does one thing: what it's for",
    group,
    load: async () => subcommand({ ...DESCRIBED, forms: [], options: { out: TEXT } }),
  },
  several: {
    summary: "does two things",
    group,
    load: async () =>
      subcommandWithActions({
        ...DESCRIBED,
        options: { "max-depth": TEXT, key: TEXT },
        actions: { one: ACTION, another: ACTION },
      }),
  },
};

/** What it prints for these two commands. */
async function script(shell: string): Promise<string[]> {
  const printed: string[] = [];
  const { log } = console;
  console.log = (text: string) => printed.push(text);
  try {
    expect(await completion(COMMANDS).run([], {}, shell)).toBe(0);
  } finally {
    console.log = log;
  }
  expect(printed).toHaveLength(1);
  return printed[0]!.split("\n");
}

test("for fish has a line for each command, for all its actions, and for each option", async () => {
  const within = (name: string) => `complete -c cairnlog -n '__fish_seen_subcommand_from ${name}'`;
  expect(await script("fish")).toEqual([
    "complete -c cairnlog -n __fish_use_subcommand -f -a plain -d 'does one thing: what it'\\''s for'",
    `${within("plain")} -l out`,
    `${within("plain")} -l help`,
    "complete -c cairnlog -n __fish_use_subcommand -f -a several -d 'does two things'",
    `${within("several")} -a 'one another'`,
    `${within("several")} -l max-depth`,
    `${within("several")} -l key`,
    `${within("several")} -l help`,
  ]);
});

test("for zsh describes each command, and has its actions and options", async () => {
  const lines = await script("zsh");
  expect(lines[0]).toBe("#compdef cairnlog");
  expect(lines.slice(lines.indexOf("  commands=(") + 1, lines.indexOf("  )"))).toEqual([
    "    'plain:does one thing\\: what it'\\''s for'",
    "    'several:does two things'",
  ]);
  expect(lines.slice(lines.indexOf("  case $words[2] in") + 1, lines.indexOf("  esac"))).toEqual([
    "    plain) actions=() options=(--out --help) ;;",
    "    several) actions=(one another) options=(--max-depth --key --help) ;;",
  ]);
});

test("for bash has the commands and both options of all, and the words of each command", async () => {
  const lines = await script("bash");
  expect(lines.join("\n")).toContain("compgen -W 'plain several --help --version' --");
  expect(lines.slice(lines.indexOf(`  case \${COMP_WORDS[1]} in`) + 1, lines.indexOf("  esac"))).toEqual([
    "    plain) actions='' options='--out --help' ;;",
    "    several) actions='one another' options='--max-depth --key --help' ;;",
  ]);
});

describe("is refused with exit code 2", () => {
  test.each([
    [[], "say what to do: bash, zsh, fish"],
    [["constructor"], "say what to do: bash, zsh, fish"],
    [["bash", "zsh"], "zsh is one argument too many"],
    [["fish", "--shell"], "unknown option '--shell'"],
  ])("%j: %s", async (args, sentence) => {
    const { code, stdout, stderr } = await cairnlog(["completion", ...args]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(new RegExp(`^cairnlog: ${sentence}`));
  });
});

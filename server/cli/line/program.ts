/** The command line, parsed by commander: the overview, the help of each command, options, and errors in them. */
import { styleText } from "node:util";
import { Command, type CommanderError, Option } from "commander";
import { VERSION } from "../../process/version.js";
import { type OptionTable, optionsOf, type Subcommand, type Values } from "./subcommand.js";
import { UsageError } from "./usage.js";

/** Help is no wider than this, because long lines are hard to read. */
const WIDEST = 120;
/** Width of the help where there is no terminal. */
const WIDTH = 100;

/** A command in the overview. */
export interface OverviewLine {
  readonly summary: string;
  /** The heading under which the overview has it. */
  readonly group: string;
}

/** Runs the work that a command line asks for. */
type Start = (work: () => number | Promise<number>) => Promise<void>;

/** The parser has answered the command line itself: with help, or with the version. */
class Answered extends Error {}

/**
 * Parses a command line and runs what it names.
 * @param listed all commands, for the overview and for suggestions
 * @param loaded the one that the command line names, if there is such a command
 * @returns the exit code
 * @throws UsageError; what the command throws
 */
export async function runLine(
  argv: readonly string[],
  listed: Readonly<Record<string, OverviewLine>>,
  loaded: { readonly name: string; readonly command: Subcommand } | null,
): Promise<number> {
  let exitCode = 0;
  const start: Start = async (work) => {
    exitCode = await work();
  };
  const program = overview(listed);
  for (const [name, { summary, group }] of Object.entries(listed)) {
    const isNamed = loaded?.name === name;
    const command = (isNamed ? bare(name) : new Command(name)).summary(summary).helpGroup(group);
    program.addCommand(command);
    if (isNamed) complete(command, loaded.command, start);
  }
  if (!argv.length) {
    program.outputHelp();
    return 2;
  }
  try {
    await program.parseAsync(argv, { from: "user" });
  } catch (error) {
    if (!(error instanceof Answered)) throw error;
  }
  return exitCode;
}

function overview(listed: Readonly<Record<string, OverviewLine>>): Command {
  // The group of the help command, too, which the overview has last.
  const last = Object.values(listed).at(-1)!.group;
  return bare("cairnlog")
    .commandsGroup(last)
    .usage("COMMAND [options]")
    .version(VERSION, "-V, --version", "show the version")
    .helpCommand("help [COMMAND]", "show the help of a command")
    .addHelpText(
      "after",
      `
CAIRNLOG_SERVER, or "cairnlog config set server URL", is the service of commands without --server.`,
    );
}

/** A command with nothing but a name: how it shows help, and how it reports errors. */
function bare(name: string): Command {
  const command = new Command(name);
  return command
    .helpOption("-h, --help", "show this help")
    .helpCommand(false)
    .allowExcessArguments()
    .configureHelp({
      styleTitle: (title) => styleText("bold", title),
      subcommandTerm: (shown) => (shown.parent?.parent ? `${shown.name()} ${formOf(shown)}`.trimEnd() : shown.name()),
    })
    .configureOutput({
      writeOut: (shown) => console.log(shown.trimEnd()),
      // The error comes as an exception, too.
      writeErr: () => {},
      getOutHelpWidth: () => Math.min(process.stdout.columns ?? WIDTH, WIDEST),
    })
    .exitOverride((error) => {
      throw error.exitCode === 0 ? new Answered() : usageError(error, command);
    });
}

/** What follows an action's name up to the first option: with all of it, the list of actions would be too wide. */
const formOf = (action: Command): string => action.usage().replace(/(?:^| )[[(]*(?:-|options\]).*$/, "");

function usageError({ code, message }: CommanderError, command: Command): UsageError {
  const actions = command.commands.map((action) => action.name()).join(", ");
  const fault = message.replace(/^error: /, "").replace(/\n\(([^\n]*)\)$/, " ($1)");
  const isAction = command.parent !== null && actions !== "";
  const sentence = isAction ? `say what to do: ${actions}${code === "commander.help" ? "" : `; ${fault}`}` : fault;
  return new UsageError(sentence, { command: pathOf(command) });
}

const pathOf = (command: Command): string =>
  command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name();

/** Gives a command its actions or options, and its help. */
function complete(command: Command, described: Subcommand, start: Start): void {
  const { about, notes, examples, forms, actions } = described;
  command.description(joined(about));
  if (!actions) {
    command.usage(forms.map((form) => `${form} [options]`.trimStart()).join(`\n       ${pathOf(command)} `));
    takeOptions(command, described.options, start, (operands, values) => described.run(operands, values, ""));
    addEnding(command, notes, examples.split("\n"));
    return;
  }
  command.usage("ACTION [options]").commandsGroup("Actions:");
  addEnding(command, `"${pathOf(command)} ACTION --help" shows the options of an action.\n\n${notes ?? ""}`.trim(), [
    ...examples.split("\n"),
  ]);
  for (const [name, { form, about: what }] of Object.entries(actions)) {
    const action = bare(name).description(joined(what)).usage(`${form} [options]`.trimStart());
    command.addCommand(action);
    takeOptions(action, optionsOf(described, name), start, (operands, values) =>
      described.run(operands, { ...defaultsOf(described.options), ...values }, name),
    );
    const own = examples.split("\n").filter((line) => line.includes(`${pathOf(action)} `));
    addEnding(action, notes, own);
  }
}

function takeOptions(
  command: Command,
  options: OptionTable,
  start: Start,
  run: (operands: readonly string[], values: Values<OptionTable>) => number | Promise<number>,
): void {
  for (const [name, option] of Object.entries(options)) {
    const short = option.short === undefined ? "" : `-${option.short}, `;
    if (option.type === "boolean") {
      command.addOption(new Option(`${short}--${name}`, option.help));
      continue;
    }
    const taken = new Option(`${short}--${name} <${option.value}>`, option.help);
    if (option.default) taken.default(option.default, option.default);
    if (option.multiple) taken.argParser((value, before: string[] | undefined) => [...(before ?? []), value]);
    command.addOption(taken);
  }
  command.action(async () => {
    const given = Object.keys(options).flatMap((name) => {
      const value: unknown = command.getOptionValue(attributeOf(name));
      return value === undefined ? [] : [[name, value] as const];
    });
    const values = { ...defaultsOf(options), ...Object.fromEntries(given) } as Values<OptionTable>;
    try {
      refuseOptionsAsValues(command, options, values);
      await start(() => run(command.args, values));
    } catch (error) {
      if (error instanceof UsageError) error.command ??= pathOf(command);
      throw error;
    }
  });
}

/** The name under which commander keeps the value of `--some-option`: `someOption`. */
const attributeOf = (name: string): string => new Option(`--${name}`).attributeName();

/** Values of options that are not given. Those without a default are present, so that the option is known to be taken. */
function defaultsOf(options: OptionTable): Values<OptionTable> {
  const absent = (option: OptionTable[string]) => {
    if (option.type === "boolean") return false;
    return option.default ?? (option.multiple ? [] : undefined);
  };
  return Object.fromEntries(
    Object.entries(options).map(([name, option]) => [name, absent(option)]),
  ) as Values<OptionTable>;
}

/** `--out --json` lacks a value, and must not write to a file `--json`. @throws UsageError */
function refuseOptionsAsValues(command: Command, options: OptionTable, values: Values<OptionTable>): void {
  const words = new Set(rootOf(command).rawArgs);
  for (const name of Object.keys(options))
    for (const value of [values[name]].flat())
      if (typeof value === "string" && /^-./.test(value) && words.has(value))
        throw new UsageError(`--${name} lacks its value (--${name}=${value} if that is meant)`);
}

const rootOf = (command: Command): Command & { readonly rawArgs: readonly string[] } =>
  command.parent ? rootOf(command.parent) : (command as Command & { readonly rawArgs: readonly string[] });

/** Lines that were broken in the source become paragraphs, which the help breaks for the terminal. */
const joined = (text: string): string => text.replace(/(\S)\n(?=[^\s])/g, "$1 ");

function addEnding(command: Command, notes: string | undefined, examples: readonly string[]): void {
  command.addHelpText("after", ({ command: shown }) => {
    const help = shown.createHelp();
    const width = shown.configureOutput().getOutHelpWidth?.() ?? WIDTH;
    const paragraphs = notes === undefined ? [] : joined(notes).split("\n\n");
    // A list, whose lines begin with spaces, stays as it is.
    const shownNotes = paragraphs.map((text) => (/^ /m.test(text) ? text : help.boxWrap(text, width)));
    const title = `${help.styleTitle(examples.length > 1 ? "Examples:" : "Example:")}\n`;
    const shownExamples = examples.length ? [title + examples.map((line) => `  ${line}`).join("\n")] : [];
    return ["", ...shownNotes, ...shownExamples].join("\n\n").slice(1);
  });
}

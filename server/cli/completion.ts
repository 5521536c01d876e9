/** `cairnlog completion`: completion scripts for shells, made from the tables of subcommands and options. */
import type { OverviewLine } from "./line/program.js";
import { type Subcommand, subcommandWithActions } from "./line/subcommand.js";
import { none } from "./line/usage.js";

/** A subcommand's name and the words that a shell completes after it. */
interface Word {
  readonly name: string;
  readonly summary: string;
  readonly actions: readonly string[];
  /** Names of options, including the dashes. */
  readonly options: readonly string[];
}

const SHELLS = { bash, zsh, fish };

/** A subcommand in the list. The overview needs only its name and summary, so its code is loaded on use. */
export interface ListedCommand extends OverviewLine {
  readonly load: () => Promise<Subcommand>;
}

/** @param commands name → subcommand, this one among them */
export function completion(commands: Readonly<Record<string, ListedCommand>>): Subcommand {
  return subcommandWithActions({
    about: "Prints a script by which the shell completes commands, actions, options and file names.",
    options: {},
    actions: {
      bash: { form: "", about: "For bash." },
      zsh: { form: "", about: "For zsh." },
      fish: { form: "", about: "For fish." },
    },
    examples: `source <(cairnlog completion bash)                                        # in ~/.bashrc
cairnlog completion zsh > "\${fpath[1]}/_cairnlog"
cairnlog completion fish > ~/.config/fish/completions/cairnlog.fish`,
    async run(operands, _, shell) {
      none(operands);
      const words = Object.entries(commands).map(async ([name, { summary, load }]): Promise<Word> => {
        const command = await load();
        return {
          name,
          summary,
          actions: Object.keys(command.actions ?? {}),
          options: [...Object.keys(command.options), "help"].map((option) => `--${option}`),
        };
      });
      console.log(SHELLS[shell](await Promise.all(words)));
      return 0;
    },
  });
}

/** In single quotes, as all three shells read them. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

function bash(words: readonly Word[]): string {
  const cases = words.map(
    ({ name, actions, options }) => `    ${name}) actions='${actions.join(" ")}' options='${options.join(" ")}' ;;`,
  );
  return `_cairnlog() {
  local word=\${COMP_WORDS[COMP_CWORD]} actions= options=
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W '${words.map(({ name }) => name).join(" ")} --help --version' -- "$word"))
    return
  fi
  case \${COMP_WORDS[1]} in
${cases.join("\n")}
  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$word"))
  elif ((COMP_CWORD == 2)) && [[ -n $actions ]]; then
    COMPREPLY=($(compgen -W "$actions" -- "$word"))
  fi
}
complete -o default -F _cairnlog cairnlog`;
}

function zsh(words: readonly Word[]): string {
  const described = words.map(({ name, summary }) => `    ${quoted(`${name}:${summary.replaceAll(":", "\\:")}`)}`);
  const cases = words.map(
    ({ name, actions, options }) => `    ${name}) actions=(${actions.join(" ")}) options=(${options.join(" ")}) ;;`,
  );
  return `#compdef cairnlog
_cairnlog() {
  local -a commands actions options
  commands=(
${described.join("\n")}
  )
  if ((CURRENT == 2)); then
    _describe command commands
    return
  fi
  case $words[2] in
${cases.join("\n")}
  esac
  if [[ $PREFIX == -* ]]; then
    compadd -- $options
  elif ((CURRENT == 3 && $#actions)); then
    compadd -- $actions
  else
    _files
  fi
}
compdef _cairnlog cairnlog`;
}

function fish(words: readonly Word[]): string {
  const lines = words.flatMap(({ name, summary, actions, options }) => {
    const within = `complete -c cairnlog -n '__fish_seen_subcommand_from ${name}'`;
    return [
      `complete -c cairnlog -n __fish_use_subcommand -f -a ${name} -d ${quoted(summary)}`,
      ...(actions.length ? [`${within} -a '${actions.join(" ")}'`] : []),
      ...options.map((option) => `${within} -l ${option.slice("--".length)}`),
    ];
  });
  return lines.join("\n");
}

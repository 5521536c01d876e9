/** `cairnlog settings`: what holds for a service that is started here, and where each value has come from. */
import { CairnlogError } from "../../../engine/base/error.js";
import { readSettings, type Settings, type SettingText, settingTexts, strangeNames } from "../../settings/settings.js";
import { faultsBeforeStart } from "../../startcheck.js";
import { printAnswer } from "../connection/connection.js";
import { flag, subcommand } from "../line/subcommand.js";
import { none } from "../line/usage.js";
import { printable } from "../terminal/printable.js";
import { table } from "../terminal/table.js";
import { ENV_FILE_OPTION, isFromFile } from "./env-file.js";
import { SETTING_OPTIONS, settingsGiven } from "./environment.js";

type Source = "option" | "environment" | "file" | "default";

export const settings = subcommand({
  forms: ["[--env-file FILE] [--data DIR] [--check]"],
  about: `Shows the settings that cairnlog serve would have here, and where each value comes from: an option goes before the
environment, that before the file, and that before the default. What may hold a password is not shown.`,
  options: {
    ...SETTING_OPTIONS,
    ...ENV_FILE_OPTION,
    check: flag(
      "say instead what would keep the service from starting: settings and the files that they name. A running service is not disturbed",
    ),
    json: flag("answer in JSON"),
  },
  notes: "Exit codes: 0 nothing is wrong; 1 the service would not start so; 2 the command was not understood.",
  examples: `cairnlog settings --env-file /etc/cairnlog/environment
cairnlog settings --env-file /etc/cairnlog/environment --check && systemctl restart cairnlog`,
  async run(operands, values) {
    none(operands);
    const given = settingsGiven(values);
    const environment = { ...process.env, ...given };
    const shown = settingTexts(environment).map((setting) => ({ ...setting, from: sourceOf(setting, given) }));
    const faults = await faultsOf(environment, values.check);
    const unknown = strangeNames(environment);
    for (const name of unknown) console.error(`cairnlog: ${name} is not a setting, and has no effect`);
    if (!values.json) for (const fault of faults) console.error(`cairnlog: ${printable(fault)}`);
    const answer = {
      settings: shown.map(({ name, value, from }) => ({ name, value, from })),
      faults,
      unknown,
    };
    if (values.json || !values.check) printAnswer(values, answer, described(shown));
    else if (!faults.length) console.log("nothing is wrong");
    return faults.length ? 1 : 0;
  },
});

function sourceOf({ name, isDefault }: SettingText, given: Readonly<Record<string, string>>): Source {
  if (isDefault) return "default";
  if (Object.hasOwn(given, name)) return "option";
  return isFromFile(name) ? "file" : "environment";
}

/** @param isThorough whether files are looked at, too */
async function faultsOf(environment: NodeJS.ProcessEnv, isThorough: boolean): Promise<readonly string[]> {
  let settings: Settings;
  try {
    settings = readSettings(environment);
  } catch (error) {
    if (!(error instanceof CairnlogError) || !error.details) throw error;
    return error.details.map(({ message }) => message);
  }
  return isThorough ? faultsBeforeStart(settings) : [];
}

const described = (shown: readonly (SettingText & { readonly from: Source })[]) =>
  table(
    ["SETTING", "FROM", "VALUE"],
    shown.map(({ name, from, value }) => [name, from, value ?? "(not shown)"]),
  );

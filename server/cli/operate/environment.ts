/** The service's settings, for commands that run it or work on its data directory. */
import { CairnlogError } from "../../../engine/base/error.js";
import { readSettings, type Settings } from "../../settings/settings.js";
import { flag, text, type Values } from "../line/subcommand.js";
import { UsageError } from "../line/usage.js";

/** Options of commands that run a service, which go before variables. */
export const LISTENING_OPTIONS = {
  port: text("PORT", "TCP port to listen on, instead of the variable PORT; 0 chooses a free one"),
  host: text("ADDRESS", "address to listen on, instead of the variable HOST"),
} as const;

/** Options of `cairnlog serve` that go before variables. */
export const SETTING_OPTIONS = {
  ...LISTENING_OPTIONS,
  data: text("DIR", "the data directory, instead of SERVICE_DATA_DIR"),
  "read-only": flag(
    "serve the mirror that cairnlog monitor keeps there (DIR/mirror of its --state), also while it goes on; or with SERVICE_REPLICATION follow a replicated log without its private rows. Without a private key, and refusing every write. The same as SERVICE_READ_ONLY=on",
  ),
  "obey-withholding": flag(
    "with --read-only: take payloads that the operator withholds from this disk, too, at the start. The same as SERVICE_OBEY_WITHHOLDING=on",
  ),
} as const;

/** What the options of where to listen stand for. */
export const listeningEnvironment = ({ port, host }: Values<typeof LISTENING_OPTIONS>) => ({
  ...(port === undefined ? {} : { PORT: port }),
  ...(host === undefined ? {} : { HOST: host }),
});

/** The variables whose place all of them take. */
export const settingsGiven = (values: Values<typeof SETTING_OPTIONS>): Readonly<Record<string, string>> => ({
  ...listeningEnvironment(values),
  ...(values.data === undefined ? {} : { SERVICE_DATA_DIR: values.data }),
  ...(values["read-only"] ? { SERVICE_READ_ONLY: "on" } : {}),
  ...(values["obey-withholding"] ? { SERVICE_OBEY_WITHHOLDING: "on" } : {}),
});

/** @param environment in the place of the process's own. @throws UsageError for a setting that is not understood */
export function settingsOf(environment: NodeJS.ProcessEnv = process.env): Settings {
  try {
    return readSettings(environment);
  } catch (error) {
    if (error instanceof CairnlogError) throw new UsageError(error.message, { cause: error });
    throw error;
  }
}

/** The settings of a command with the option `--data`. @throws UsageError as `settingsOf` does */
export const settingsAt = ({ data }: { readonly data?: string | undefined }): Settings =>
  settingsOf(data === undefined ? process.env : { ...process.env, SERVICE_DATA_DIR: data });

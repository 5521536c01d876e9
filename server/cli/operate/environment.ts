/** The service's settings, for commands that work on its data directory. */
import { CairnlogError } from "../../../engine/error.js";
import { readSettings, type Settings } from "../../settings.js";
import { UsageError } from "../usage.js";

/** @param environment in the place of the process's own. @throws UsageError for a setting that is not understood */
export function settingsOf(environment: NodeJS.ProcessEnv = process.env): Settings {
  try {
    return readSettings(environment);
  } catch (error) {
    if (error instanceof CairnlogError) throw new UsageError(error.message, { cause: error });
    throw error;
  }
}

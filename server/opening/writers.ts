/** Who may write, as `SERVICE_WRITERS` says: the rule, and the list that it may name. */
import { readFileSync } from "node:fs";
import { CairnlogError } from "../../engine/base/error.js";
import type { WritersRule, WritersSettings } from "../../engine/registry/writes/writes.js";
import type { AllowedSigner } from "../../engine/verify/index.js";
import type { Settings } from "../settings/settings.js";
import { WRITERS_RULES } from "../settings/settingvalues.js";
import { readAllowedSigners } from "./allowed-signers.js";

type Given = Pick<Settings, "writers">;

/** Everything but the name of a rule is the path of a list. */
const ruleOf = ({ writers }: Given): WritersRule => WRITERS_RULES.find((rule) => rule === writers) ?? "file";

/**
 * The list that the settings name; null where they name none, or the log is written elsewhere.
 * @throws CairnlogError `precondition-failed` if it cannot be read; `invalid-input` with the line, or if it is empty
 */
export function readWriters(settings: Given & { readonly readOnly?: boolean }): readonly AllowedSigner[] | null {
  if (settings.readOnly || ruleOf(settings) !== "file") return null;
  const path = settings.writers;
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    throw new CairnlogError(
      "precondition-failed",
      `SERVICE_WRITERS ${path} cannot be read, and is none of ${WRITERS_RULES.join(", ")}.`,
      { cause },
    );
  }
  const listed = readAllowedSigners(text, `SERVICE_WRITERS ${path}`);
  // A file that is being written may be empty. Whoever wants the operator alone to write can list the operator key.
  if (!listed.length) throw new CairnlogError("invalid-input", `SERVICE_WRITERS ${path} lists nobody.`);
  return listed;
}

/** @param listed as `readWriters` gives it */
export const writersOf = (settings: Given, listed: readonly AllowedSigner[] | null): WritersSettings => ({
  rule: ruleOf(settings),
  listed,
});

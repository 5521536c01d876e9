/** Settings that change what a log answers. They are in the first record of a replicated log, and the same at every node. */
import { CairnlogError } from "../../engine/base/error.js";
import type { LogMeta } from "../../engine/store/schema/rows.js";
import type { Settings } from "../settings/settings.js";
import { TABLE } from "../settings/settingtable.js";

const BINDING = [
  "predicateBase",
  "endorsementActivationDelaySeconds",
  "endorsementBaseCapacity",
  "endorsementMinTrust",
  "trustAnchors",
  "logName",
  "tlogOrigin",
] as const satisfies readonly (keyof Settings)[];

/** The verifier key of the checkpoints at `/tlog/`, which every node signs. */
export const VKEY = "verifier key of /tlog/";

/** Their values as texts, by the names of their variables. @param vkey null at a node that signs nothing */
export function bindingSettings(settings: Settings, vkey: string | null): Readonly<Record<string, string>> {
  const own = BINDING.map((key) => [TABLE[key].name, String(settings[key] ?? "")] as const);
  return { ...Object.fromEntries(own), ...(vkey !== null && { [VKEY]: vkey }) };
}

/**
 * Compares this node's settings with those of the log. @param meta undefined as long as nothing was applied
 * @throws CairnlogError `precondition-failed`
 */
export function checkSettings(meta: LogMeta | undefined, own: Readonly<Record<string, string>>): void {
  if (!meta?.settings) return;
  const compared = Object.entries(meta.settings).filter(([name]) => name !== VKEY || VKEY in own);
  const others = compared.filter(([name, value]) => own[name] !== value);
  if (!others.length) return;
  const list = others.map(([name, value]) => `${name} is ${quoted(value)} there and ${quoted(own[name])} here`);
  throw new CairnlogError(
    "precondition-failed",
    `This node may not join the replicated log, because it would answer otherwise: ${list.join("; ")}. Give it the settings of the log.`,
  );
}

const quoted = (value: string | undefined): string => (value ? JSON.stringify(value) : "not set");

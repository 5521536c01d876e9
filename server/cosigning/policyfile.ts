/** The file that SERVICE_WITNESSES names: a policy whose witnesses the log asks. */
import { readFileSync } from "node:fs";
import { CairnlogError } from "../../engine/base/error.js";
import { isQuorum, type Policy, type PolicyWitness, parsePolicy } from "../../engine/verify/index.js";

/** Whether a witness is asked: it has an address, and a key with which its cosignatures can be verified. */
export const isAsked = ({ url, key }: PolicyWitness): boolean => url !== null && key.type !== "unknown";

/**
 * Reads the policy.
 * @throws CairnlogError `invalid-input` if it is none, if the address of a witness is not one, or if the witnesses that
 *   are asked are no quorum: then no checkpoint could ever be shown; `storage-failed` if the file cannot be read
 */
export function readWitnessPolicy(path: string): Policy {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(readFileSync(path));
  } catch (cause) {
    throw new CairnlogError("storage-failed", `The policy ${path} of SERVICE_WITNESSES cannot be read.`, { cause });
  }
  const policy = parsePolicy(text);
  for (const { name, url } of policy.witnesses)
    if (url !== null && !isAddress(url))
      throw new CairnlogError(
        "invalid-input",
        `The witness ${name} of ${path} needs an http: or https: URL, not ${url}.`,
      );
  const asked = policy.witnesses.filter(isAsked);
  if (!isQuorum(policy, new Set(asked.map(({ name }) => name))))
    throw new CairnlogError(
      "invalid-input",
      `The witnesses of ${path} that have a URL and a key of a known type are no quorum of its policy.`,
    );
  return policy;
}

function isAddress(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : null;
  return /^https?:$/.test(url?.protocol ?? "") && !url!.search && !url!.hash && !url!.username && !url!.password;
}

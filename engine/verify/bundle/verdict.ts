/** What the checks of a bundle say together. */
import type { SignedMembers } from "../events/manifest.js";
import type { EntryVerdict } from "../events/withheld.js";

/** The result of one check. `detail` says in sentences what was verified, or lists everything that is wrong. */
export interface BundleCheck {
  readonly name:
    | "format"
    | "file"
    | "manifest"
    | "signature"
    | "attestation"
    | "entry"
    | "inclusion"
    | "tree-head"
    | "anchor"
    | "envelope"
    | "signer"
    | "witnesses"
    | "key"
    | "trust"
    | "withholding"
    | "withheld";
  readonly ok: boolean;
  readonly detail: string;
}

/** `valid` only if every check is `ok`. A bundle of the wrong form has only the check `format`. */
export interface BundleVerdict {
  readonly valid: boolean;
  /** `withheld` if nothing is wrong but that the operator withholds the entry's payload: then the check `withheld` is not `ok`. */
  readonly verdict: EntryVerdict;
  /** The entry by which the payload is withheld; null unless the verdict is `withheld`. */
  readonly withheld_by: number | null;
  readonly checks: readonly BundleCheck[];
  /**
   * Whether the signer has signed type and statement; otherwise only the log says them. Null if the signature is not
   * valid or the bundle has another form.
   */
  readonly signed: SignedMembers | null;
}

/** The verdict that follows from checks. @param by the entry that withholds the payload */
export function verdictOf(
  checks: readonly BundleCheck[],
  signed: SignedMembers | null = null,
  by: number | null = null,
): BundleVerdict {
  const valid = checks.every(({ ok }) => ok);
  const isHeld = checks.every(({ name, ok }) => ok || name === "withheld");
  const verdict = valid ? "valid" : isHeld ? "withheld" : "invalid";
  const withheld_by = verdict === "withheld" ? by : null;
  return { valid, verdict, withheld_by, checks, signed };
}

/** A condition, and the sentence that reports its failure. */
export type Condition = readonly [holds: boolean, otherwise: string];

export function bundleCheck(name: BundleCheck["name"], success: string, conditions: readonly Condition[]): BundleCheck {
  const failures = conditions.filter(([holds]) => !holds).map(([, otherwise]) => otherwise);
  return { name, ok: failures.length === 0, detail: failures.length === 0 ? success : failures.join(" ") };
}

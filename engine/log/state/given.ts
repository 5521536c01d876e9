/** What a program gives to open a log. One in JavaScript may have left out any of it. */
import { inputError } from "../../base/error.js";

/** @throws CairnlogError `invalid-input` for what is no text, or an empty one */
export function checkText(caller: string, option: string, value: unknown, what: string): void {
  if (typeof value !== "string" || value === "") throw inputError(`${caller} needs \`${option}\`, ${what}.`);
}

/** @throws CairnlogError `invalid-input` without the path of a log */
export function checkPath(caller: string, options: { readonly path: unknown } | null | undefined): void {
  checkText(caller, "path", options?.path, "the directory of the log");
}

interface GivenSigner {
  readonly sign?: unknown;
  readonly fingerprint?: unknown;
  readonly public?: { readonly pem?: unknown };
}

/** @throws CairnlogError `invalid-input` for what is no signer */
export function checkSigner(caller: string, signer: GivenSigner | null | undefined): void {
  const texts = [signer?.fingerprint, signer?.public?.pem];
  if (typeof signer?.sign === "function" && texts.every((text) => typeof text === "string")) return;
  throw inputError(`${caller} needs \`signer\`, a key that signs tree heads: openOperatorKey(file) makes one.`);
}

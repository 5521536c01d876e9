/** Errors of commands, as they are printed. */
import { CairnlogError } from "../../../engine/base/error.js";
import { ClientError } from "../../client/base/error.js";
import { printable, printableLine } from "../terminal/printable.js";
import { isSystemError, systemSentence } from "../terminal/system-error.js";
import { ServiceError } from "./service.js";

/** The text for an error: a sentence if its cause is outside the program, otherwise the stack as well. */
export function explain(error: unknown): string {
  if (error instanceof ClientError) return refusal(error);
  const isExpected = error instanceof CairnlogError || error instanceof ServiceError;
  if (isExpected) return printable(error.message);
  if (isSystemError(error)) return printableLine(systemSentence(error));
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** What a sentence of the service means for whoever types commands. */
const HINTS: readonly (readonly [sentence: RegExp, hint: string])[] = [
  [
    /has a password, which must come/,
    "--password-file FILE gives it (of password set: --current-password-file); commands without that option take the session of cairnlog login.",
  ],
  [/ is expired\.|^The key is expired;/, "cairnlog succeed --recovery replaces an expired key."],
];

/** Escaped, because the service wrote most of the text. */
function refusal({ message: said, errors, status, requestId }: ClientError): string {
  const hint = HINTS.find(([sentence]) => sentence.test(said))?.[1];
  const message = hint === undefined ? said : `${said} ${hint}`;
  const members = errors.map(({ path, message: fault }) => `  ${path}: ${fault}`);
  // What went wrong in the service its operator can look up; a refusal says itself what is wrong.
  const ids = status >= 500 && requestId !== undefined ? [`  Request id: ${requestId}`] : [];
  return printable([message, ...members, ...ids].join("\n"));
}

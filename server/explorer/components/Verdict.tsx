/**
 * The verdict of a page: one sentence about what the reader asked. Every page about something that can be verified has
 * exactly one, at its top; the single checks behind it are `Check`s.
 */
import type { ComponentChildren } from "preact";
import { ClientError } from "../../client/index.js";
import { CheckIcon, CrossIcon, DashIcon } from "../look/icons.js";

/** `open`: it is neither proven nor refuted. `busy`: it is being checked. */
export type CheckState = "holds" | "wrong" | "open" | "busy";

const LOOKS = {
  holds: ["good", CheckIcon, "Verified: "],
  wrong: ["bad", CrossIcon, "Not verified: "],
  open: ["open", DashIcon, "Not decided: "],
  busy: ["busy", DashIcon, ""],
} as const;

interface VerdictProps {
  readonly finding: CheckState;
  readonly children: ComponentChildren;
}

export function Verdict({ finding, children }: VerdictProps) {
  const [kind, Icon, word] = LOOKS[finding];
  return (
    <p class={`verdict verdict-${kind}`} aria-busy={finding === "busy"}>
      <span class="verdict-icon">
        <Icon />
      </span>
      <span class="breakable">
        {word && <span class="visually-hidden">{word}</span>}
        {children}
      </span>
    </p>
  );
}

/** The verdict where something failed: the log is caught, or the check could not be made. `what` begins the sentence. */
export function FailedVerdict({ error, what }: { readonly error: unknown; readonly what: string }) {
  if (isMisbehaviour(error)) return <Verdict finding="wrong">{error.detail}</Verdict>;
  return <Verdict finding="open">{what} could not be checked.</Verdict>;
}

/** Whether the log is caught. */
export const isMisbehaviour = (error: unknown): error is ClientError =>
  error instanceof ClientError && (error.code === "log-misbehaved" || error.code === "operator-key-mismatch");

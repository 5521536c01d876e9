/** The result of a check that this page made itself: a tick or a cross, and a sentence about the check. */
import type { ComponentChildren } from "preact";
import { CheckIcon, CrossIcon, DashIcon } from "../look/icons.js";

export interface VerdictProps {
  /** Null if there is nothing yet to compare with. */
  readonly holds: boolean | null;
  readonly children: ComponentChildren;
}

export function Verdict({ holds, children }: VerdictProps) {
  const [kind, Icon, word] =
    holds === null
      ? ["open", DashIcon, "Nothing to check yet: "]
      : holds
        ? ["good", CheckIcon, "Verified: "]
        : ["bad", CrossIcon, "Not verified: "];
  return (
    <p class={`verdict verdict-${kind}`}>
      <span class="verdict-icon">
        <Icon />
      </span>
      <span>
        <span class="visually-hidden">{word}</span>
        {children}
      </span>
    </p>
  );
}

/** One check that this page made itself: a tick or a cross, and a sentence about it. What follows from all of them, `Verdict` says. */
import type { ComponentChildren } from "preact";
import { CheckIcon, CrossIcon, DashIcon } from "../look/icons.js";

interface CheckProps {
  /** Null if there is nothing yet to compare with. */
  readonly holds: boolean | null;
  readonly children: ComponentChildren;
}

export function Check({ holds, children }: CheckProps) {
  const [kind, Icon, word] =
    holds === null
      ? ["open", DashIcon, "Nothing to check yet: "]
      : holds
        ? ["good", CheckIcon, "Verified: "]
        : ["bad", CrossIcon, "Not verified: "];
  return (
    <p class={`check check-${kind}`}>
      <span class="check-icon">
        <Icon />
      </span>
      <span>
        <span class="visually-hidden">{word}</span>
        {children}
      </span>
    </p>
  );
}

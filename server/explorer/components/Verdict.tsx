/** Something that this page checked itself: a tick or a cross, and in words what was checked. */
import type { ComponentChildren } from "preact";
import { CheckIcon, CrossIcon } from "./icons.js";

export function Verdict({ holds, children }: { readonly holds: boolean; readonly children: ComponentChildren }) {
  return (
    <p class={`verdict ${holds ? "verdict-good" : "verdict-bad"}`}>
      <span class="verdict-icon">{holds ? <CheckIcon /> : <CrossIcon />}</span>
      <span>
        <span class="visually-hidden">{holds ? "Verified: " : "Not verified: "}</span>
        {children}
      </span>
    </p>
  );
}

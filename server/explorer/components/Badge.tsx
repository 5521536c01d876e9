/** A word in a colour that shows its meaning. The colour repeats the word; it never replaces it. */
import type { ComponentChildren } from "preact";

export type Tone = "neutral" | "good" | "warning" | "bad" | "info";

export function Badge({ tone = "neutral", children }: { readonly tone?: Tone; readonly children: ComponentChildren }) {
  return <span class={`badge badge-${tone}`}>{children}</span>;
}

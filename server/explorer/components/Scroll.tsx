/** A box for long content that scrolls on its own, also by keyboard. */
import type { ComponentChildren } from "preact";

export function Scroll({ label, children }: { readonly label: string; readonly children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: without focus it could not be scrolled by keyboard
    <section class="scroll" aria-label={label} tabIndex={0}>
      {children}
    </section>
  );
}

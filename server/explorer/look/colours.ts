/**
 * The page's colours for components that paint on their own, such as charts, and a notification when the colours
 * change.
 */

/** The current colour of a token such as `--line`. It is computed, because the token's text contains both schemes. */
export function colourOf(token: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${token})`;
  document.documentElement.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** Calls `act` when the system or the reader changes between light and dark. @returns a function that stops this */
export function whenColoursChange(act: () => void): () => void {
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const chosen = new MutationObserver(act);
  chosen.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  system.addEventListener("change", act);
  return () => {
    chosen.disconnect();
    system.removeEventListener("change", act);
  };
}

/** The page's colours for what paints itself, and so has to be told them, and told when they are others. */

/** The colour of a token, `--line`, as it is now: computed, since the token's own text has both, light and dark. */
export function colourOf(token: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${token})`;
  document.documentElement.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** Calls `act` when the system changes between light and dark, or the reader does. @returns what ends that */
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

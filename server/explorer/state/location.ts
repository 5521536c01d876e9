/** The address of the current view: the part of the URL behind `#`. Only `/` is a page of the service. */
import { Cell } from "./cell.js";

interface Place {
  /** Decoded parts of the path. */
  readonly path: readonly string[];
  readonly query: URLSearchParams;
}

export const place = new Cell<Place>(readPlace());
window.addEventListener("hashchange", () => {
  place.value = readPlace();
});

/** The address of a view, for `href`: `addressOf(["entries", 5])` is `#/entries/5`. Empty members are omitted. */
export function viewAddress(
  path: readonly (string | number)[],
  query: Readonly<Record<string, string | number | undefined>> = {},
): string {
  const pairs = Object.entries(query).flatMap(([name, value]) => (value ? [[name, `${value}`]] : []));
  return `#/${path.map((part) => encodeURIComponent(part)).join("/")}${pairs.length ? `?${new URLSearchParams(pairs)}` : ""}`;
}

/** Opens an address made by `addressOf`; with `replace` the browser's history gets no new step. */
export function goTo(address: string, { replace = false } = {}): void {
  if (!replace) {
    window.location.hash = address;
    return;
  }
  history.replaceState(null, "", address);
  place.value = readPlace();
}

function readPlace(): Place {
  const [path = "", query = ""] = window.location.hash.replace(/^#\/?/, "").split("?", 2);
  return { path: path.split("/").filter(Boolean).map(decoded), query: new URLSearchParams(query) };
}

/** A part that is not validly encoded stays unchanged; it matches no view. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

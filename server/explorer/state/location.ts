/** Where the reader is: the part of the address behind `#`. Only `/` is a page of the service. */
import { Cell } from "./cell.js";

export interface Place {
  /** Decoded parts of the path. */
  readonly path: readonly string[];
  readonly query: URLSearchParams;
}

export const place = new Cell<Place>(readPlace());
window.addEventListener("hashchange", () => {
  place.value = readPlace();
});

/** The address of a view, for `href`: `addressOf(["entries", 5])` is `#/entries/5`. Members that are empty are left out. */
export function addressOf(
  path: readonly (string | number)[],
  query: Readonly<Record<string, string | number | undefined>> = {},
): string {
  const pairs = Object.entries(query).flatMap(([name, value]) => (value ? [[name, `${value}`]] : []));
  return `#/${path.map((part) => encodeURIComponent(part)).join("/")}${pairs.length ? `?${new URLSearchParams(pairs)}` : ""}`;
}

/** Goes to an address made by `addressOf`; `replace` leaves no step to go back to. */
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

/** A part that is not validly encoded stays as it is: it names nothing. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

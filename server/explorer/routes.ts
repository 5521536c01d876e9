/**
 * Every view of the explorer. A view is a folder under `views/` whose `index.tsx` exports its component by default; it is
 * loaded when it is first shown. What follows its name in the address is its own: `#/entries/5?tags=a` gives the view
 * `entries` the path `["5"]` and the query `tags=a`.
 */
import type { ComponentType } from "preact";
import type { ViewProps } from "./views/view.js";

export interface ViewRoute {
  /** First part of the address; empty for the view that `#/` shows. */
  readonly name: string;
  /** In the navigation. */
  readonly label: string;
  load(): Promise<{ readonly default: ComponentType<ViewProps> }>;
}

export const ROUTES: readonly ViewRoute[] = [
  { name: "", label: "Head", load: () => import("./views/head/index.js") },
  { name: "entries", label: "Entries", load: () => import("./views/entries/index.js") },
  { name: "keys", label: "Keys", load: () => import("./views/keys/index.js") },
  { name: "file", label: "File", load: () => import("./views/file/index.js") },
  { name: "operator", label: "Operator", load: () => import("./views/operator/index.js") },
];

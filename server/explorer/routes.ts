/**
 * Every view of the explorer. A view is a folder under `views/` whose `index.tsx` exports its component by default. It
 * is loaded when it is first shown. The rest of the address belongs to the view: `#/entries/5?tags=a` gives the view
 * `entries` the path `["5"]` and the query `tags=a`.
 */
import type { ViewRoute } from "./state/view.js";

export const ROUTES: readonly ViewRoute[] = [
  { name: "", label: "Head", load: () => import("./views/head/index.js") },
  { name: "search", label: "Search", isUnlisted: true, load: () => import("./search/index.js") },
  { name: "entries", label: "Entries", load: () => import("./views/entries/index.js") },
  { name: "keys", label: "Keys", load: () => import("./views/keys/index.js") },
  { name: "file", label: "File", load: () => import("./views/file/index.js") },
  { name: "operator", label: "Operator", load: () => import("./views/operator/index.js") },
];

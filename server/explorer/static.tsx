/** The explorer for published files, which any web server can serve: without the views that need the service. */
import { start } from "./app/start.js";
import { fileSource } from "./state/reading/files.js";

start(fileSource, [
  { name: "", label: "Head", load: () => import("./views/published/head.js") },
  { name: "entries", label: "Entries", load: () => import("./views/entries/index.js") },
  { name: "keys", label: "Keys", isUnlisted: true, load: () => import("./views/published/key.js") },
  { name: "file", label: "File", load: () => import("./views/published/file.js") },
]);

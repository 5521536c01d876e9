/**
 * Loads the binaries of LMDB and of msgpackr through the check. Their packages load them when they are imported, and find them
 * loaded then: Node keeps what was loaded, by its path.
 */
import { createRequire } from "node:module";
import { dirname } from "node:path";
import { CairnlogError } from "../base/error.js";
import { loadChecked, requireOf } from "./checked.js";
import { shortenMessage } from "./mend.js";

const require = requireOf(import.meta.url, "preload.js");
/** `dist/index.cjs` of the package. */
const lmdb = require.resolve("lmdb");
const requireOfLmdb = createRequire(lmdb);
/** The package whose only function finds and loads the binary that belongs to a folder. */
const load = requireOfLmdb("node-gyp-build-optional-packages") as (folder: string) => unknown;

loadChecked("lmdb", () => load(dirname(dirname(lmdb))));
// Before anything is written. A later thread of this process finds the message shortened.
shortenMessage();

// As msgpackr reads it. Then it loads no binary.
if (process.env.MSGPACKR_NATIVE_ACCELERATION_DISABLED?.toLowerCase() !== "true")
  for (const msgpackr of [require.resolve("msgpackr"), requireOfLmdb.resolve("msgpackr")]) loadExtractor(msgpackr);

/** msgpackr, of which lmdb may have another version, does without this binary where there is none. */
function loadExtractor(msgpackr: string): void {
  try {
    loadChecked("msgpackr-extract", () => createRequire(msgpackr)("msgpackr-extract"));
  } catch (error) {
    if (error instanceof CairnlogError) throw error;
  }
}

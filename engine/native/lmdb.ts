/** LMDB and msgpackr, whose native code was checked before it was loaded. Values of these packages are imported from here. */

// Modules are run in the order in which they are imported: the check comes first.
import "./preload.js";

import * as lmdb from "lmdb";

export { compareKeys, open } from "lmdb";
export { Encoder } from "msgpackr";

/** The bytes of a key in a table. The package's types leave it out. */
export const { keyValueToBuffer } = lmdb as unknown as { keyValueToBuffer(key: unknown): Uint8Array };

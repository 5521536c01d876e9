/** The version of this package, from its one source. */
import { createRequire } from "node:module";

export const VERSION: string = createRequire(import.meta.url)("cairnlog/package.json").version;

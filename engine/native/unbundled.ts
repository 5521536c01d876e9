/**
 * Native code and worker threads are files of their own, so a module that needs them cannot run from a bundle. It would fail
 * at the first binary, or much later at the first worker thread, with an error that says nothing of bundles.
 */
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { CairnlogError } from "../base/error.js";

const REASON =
  "cairnlog does not run inside a bundle: its native code and worker threads are files of their own. Leave the package out of the bundle (esbuild: --external:cairnlog), and install it beside; docs/bundlers.md has the other tools.";

/**
 * The `require` of a module.
 * @param url its `import.meta.url`; bundlers may have put another one in its place, or none
 * @param name of its file
 * @throws CairnlogError `precondition-failed` inside a bundle
 */
export function requireOf(url: string | undefined, name: string): NodeJS.Require {
  if (url?.startsWith("file:")) {
    const file = new URL(url);
    if (file.pathname.endsWith(`/${name}`) && existsSync(file)) return createRequire(file);
  }
  throw new CairnlogError("precondition-failed", REASON);
}

/**
 * Native code of dependencies is checked before it is loaded: its file must have a hash that this version knows. Every binary
 * of a dependency is loaded through `loadChecked`; `test/native/imports.test.ts` holds this.
 *
 * It shows that a binary is the published one that this version was tested with. It does not defend against somebody who
 * can write to `node_modules`: he can change the JavaScript beside it, or this file.
 */
import { hash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { getEnvironmentData, setEnvironmentData } from "node:worker_threads";
import { CairnlogError } from "../base/error.js";
import { KNOWN_BINARIES } from "./known.generated.js";

type NativePackage = keyof typeof KNOWN_BINARIES;

/** The setting; it is read here because native code is loaded with the modules, before the settings are read. */
export const NATIVE_CODE_VARIABLE = "SERVICE_NATIVE_CODE";

/** Paths of binaries that this process has checked. Threads that are started later inherit the list. */
const CHECKED = "cairnlog: checked binaries";

/**
 * Calls `load`, which loads the binary of `name`. Whichever file the package's own loader chooses is hashed before it is
 * loaded. With `SERVICE_NATIVE_CODE=any` nothing is hashed. A package that is loaded already is not checked any more.
 * @throws CairnlogError `precondition-failed` for a binary that is not known, which then was not loaded; also if the package
 *   catches the error itself. Whatever `load` throws otherwise.
 */
export function loadChecked<T>(name: NativePackage, load: () => T): T {
  if (process.env[NATIVE_CODE_VARIABLE] === "any") return load();
  const { dlopen } = process;
  let refused: CairnlogError | null = null;
  // Node loads each binary through this function. `load` is synchronous, so nobody else can call it in between.
  process.dlopen = (target: object, path: string, ...flags: number[]): void => {
    refused ??= refusalOf(name, path);
    if (refused) throw refused;
    Reflect.apply(dlopen, process, [target, path, ...flags]);
  };
  try {
    const loaded = load();
    if (!refused) return loaded;
  } catch (error) {
    // uWebSockets.js puts an error of its own in place of this one.
    throw refused ?? error;
  } finally {
    process.dlopen = dlopen;
  }
  throw refused;
}

/** Why this file is not loaded as a binary of the package; null if it is known. */
function refusalOf(name: NativePackage, path: string): CairnlogError | null {
  const checked = (getEnvironmentData(CHECKED) ?? []) as readonly string[];
  if (checked.includes(path)) return null;
  const digest = hash("sha256", readFileSync(path));
  if (Object.values<string>(KNOWN_BINARIES[name]).includes(digest)) {
    setEnvironmentData(CHECKED, [...checked, path]);
    return null;
  }
  const reason = `The native code of ${name} was not loaded, because its hash is not known: ${path} (SHA-256 ${digest}). Install the dependencies again, or set ${NATIVE_CODE_VARIABLE}=any if you built this file yourself.`;
  return new CairnlogError("precondition-failed", reason);
}

// Native code and worker threads are files of their own, so a module that needs them cannot run from a bundle. It would fail
// at the first binary, or much later at the first worker thread, with an error that says nothing of bundles.

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

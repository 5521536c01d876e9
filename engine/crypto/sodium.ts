/** Loads libsodium when it is first needed: the addon takes 40 ms to load, and most subcommands sign nothing. */
import { createRequire } from "node:module";

type Sodium = typeof import("sodium-native").default;

const require = createRequire(import.meta.url);
let loaded: Sodium | undefined;

/** The bindings to libsodium. The first call opens files. */
export function loadSodium(): Sodium {
  loaded ??= require("sodium-native") as Sodium;
  return loaded;
}

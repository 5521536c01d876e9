/** Loads libsodium when it is first needed: the addon takes 40 ms to load, and most subcommands sign nothing. */
import { loadChecked } from "../../native/checked.js";
import { requireOf } from "../../native/unbundled.js";

type Sodium = typeof import("sodium-native").default;

const require = requireOf(import.meta.url, "sodium.js");
let loaded: Sodium | undefined;

/** The bindings to libsodium. The first call opens files. @throws CairnlogError as `loadChecked` does */
export function loadSodium(): Sodium {
  loaded ??= loadChecked("sodium-native", () => require("sodium-native") as Sodium);
  return loaded;
}

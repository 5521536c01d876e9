/** libsodium, loaded by the first signature: its addon takes 40 ms to load, and much of the command signs nothing. */
import { createRequire } from "node:module";

type Sodium = typeof import("sodium-native").default;

const require = createRequire(import.meta.url);
let loaded: Sodium | undefined;

/** The bindings to libsodium. */
export function sodium(): Sodium {
  loaded ??= require("sodium-native") as Sodium;
  return loaded;
}

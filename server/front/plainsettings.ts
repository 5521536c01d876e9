/** Settings as plain data, for a message to another thread. */
import { type Network, parseNetwork } from "../http/transport/client-address.js";
import type { Settings } from "../settings.js";

export type PlainSettings = Omit<Settings, "trustedProxies"> & {
  /** `10.0.0.0/8` */
  readonly trustedProxies: readonly string[];
};

export const plainSettings = (settings: Settings): PlainSettings => ({
  ...settings,
  trustedProxies: settings.trustedProxies.map(([address, bits]) => `${address}/${bits}`),
});

/** The networks of `PlainSettings`. */
export const networksOf = (texts: readonly string[]): Network[] => texts.map((text) => parseNetwork(text)!);

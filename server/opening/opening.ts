/** What the settings say about the log, for whoever opens its registry: the writer, and every front end. */
import { join } from "node:path";
import { HardwareRoots, openHardwareRoots } from "../../engine/crypto/hardware.js";
import type { OperatorKey } from "../../engine/crypto/signer/operator-key.js";
import { NO_BUDGETS } from "../../engine/log/state/executor.js";
import { DEFAULT_GRAPH_BOUNDS } from "../../engine/registry/graph/graph.js";
import type { ServedOptions } from "../../engine/registry/registry.js";
import { DEFAULT_WEBHOOKS_PER_ADDRESS } from "../../engine/registry/webhooks/commands.js";
import type { AllowedSigner } from "../../engine/verify/index.js";
import type { Settings } from "../settings/settings.js";
import { writersOf } from "./writers.js";

/** A log that is created now is named as the service is. Nodes of a replicated log agree on a name by their settings. */
function nameOf({ publicUrls: [origin], replication, tlogOrigin }: Settings): { readonly name?: string } {
  if (origin === undefined || replication !== null) return {};
  const name = new URL(origin).host;
  // One origin with two roots for a size would look like a fork.
  return name === tlogOrigin ? {} : { name };
}

/** @param listed who may write, as `readWriters` gives it. @throws CairnlogError as `openHardwareRoots` does */
export function openingOf(
  settings: Settings,
  operator: OperatorKey,
  listed: readonly AllowedSigner[] | null,
): ServedOptions {
  return {
    path: join(settings.dataDir, "log"),
    operator,
    predicateBase: settings.predicateBase,
    ...nameOf(settings),
    minFreeBytes: settings.minFreeBytes,
    hardwareRoots: settings.hardwareRoots ? openHardwareRoots(settings.hardwareRoots) : new HardwareRoots(),
    challengeTtlSeconds: settings.challengeTtlSeconds,
    passwordTries: settings.passwordTries,
    endorsementActivationDelaySeconds: settings.endorsementActivationDelaySeconds,
    trust: {
      anchors: settings.trustAnchors,
      baseCapacity: settings.endorsementBaseCapacity,
      minTrust: settings.endorsementMinTrust,
    },
    graphs: {
      bounds: { ...DEFAULT_GRAPH_BOUNDS, seconds: settings.graphTimeoutSeconds },
      cacheSeconds: settings.graphCacheSeconds,
    },
    ...(settings.rateLimits ? {} : { claimReveals: null }),
    claimBytesPerKey: settings.claimBytesPerKey,
    webhooksPerAddress: settings.rateLimits ? DEFAULT_WEBHOOKS_PER_ADDRESS : null,
    requestQuota: settings.rateLimits ? settings.requestQuota : null,
    policyQuota: settings.rateLimits ? settings.policyQuota : null,
    ...(settings.rateLimits ? {} : { trustConfigQuota: null }),
    budgets: settings.rateLimits
      ? { perAddress: settings.bytesPerAddress, fromStrangers: settings.bytesFromStrangers }
      : NO_BUDGETS,
    webhookAllowPrivate: settings.webhookAllowPrivate,
    writers: writersOf(settings, listed),
  };
}

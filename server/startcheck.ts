/** What would keep a service from starting, as far as its settings and the files that they name show it. */
import { accessSync, constants, existsSync } from "node:fs";
import { dirname } from "node:path";
import { CairnlogError } from "../engine/base/error.js";
import { openHardwareRoots } from "../engine/crypto/hardware.js";
import { readWitnessPolicy } from "./cosigning/policyfile.js";
import { requirePublicUrl } from "./http/origins.js";
import { type ChosenTransport, chooseTransport } from "./http/servers/choose.js";
import { checkTls } from "./http/transport/tls.js";
import { UWS_IDLE_S } from "./http/transport/transport.js";
import { checkOperatorKey } from "./opening/operator.js";
import { readWriters } from "./opening/writers.js";
import type { Settings } from "./settings/settings.js";

/** @throws CairnlogError `precondition-failed` if the library does not load, or closes idle connections at another time */
export async function transportOf(settings: Settings): Promise<ChosenTransport> {
  const chosen = await chooseTransport(settings.transport);
  if (chosen.transport.name === "uws" && settings.idleTimeoutSeconds !== UWS_IDLE_S)
    throw new CairnlogError(
      "precondition-failed",
      `uWebSockets.js closes idle connections after ${UWS_IDLE_S} s: with another SERVICE_IDLE_TIMEOUT_S, set SERVICE_TRANSPORT=node.`,
    );
  return chosen;
}

/**
 * Sentences, one for each fault. Nothing is opened for longer, made or changed, so a service may be running; what only a
 * start shows (a port that is taken, a signer or a database that does not answer) is not looked at.
 */
export async function faultsBeforeStart(settings: Settings): Promise<readonly string[]> {
  const { tlsCertificate: certificate, tlsKey: key, hardwareRoots, witnesses, readOnly, dataDir } = settings;
  const checks: readonly (() => unknown)[] = [
    () => requirePublicUrl(settings),
    () => transportOf(settings),
    () => certificate !== null && key !== null && checkTls({ certificate, key }),
    () => hardwareRoots !== null && openHardwareRoots(hardwareRoots),
    () => witnesses !== null && readWitnessPolicy(witnesses),
    () => readWriters(settings),
    () => readOnly || checkOperatorKey(settings),
    () => checkDirectory(dataDir),
  ];
  const faults: string[] = [];
  for (const check of checks)
    try {
      await check();
    } catch (error) {
      faults.push((error as Error).message);
    }
  return faults;
}

/** @throws CairnlogError `storage-failed` if the directory can neither be used nor made */
function checkDirectory(path: string): void {
  let there = path;
  while (!existsSync(there)) there = dirname(there);
  try {
    accessSync(there, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (cause) {
    throw new CairnlogError("storage-failed", `The data directory ${path} cannot be read and written.`, { cause });
  }
}

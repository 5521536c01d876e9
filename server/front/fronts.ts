/** The front ends of a service: threads of their own, or one in the writer's thread. */
import type { OperatorKey } from "../../engine/crypto/signer/operator-key.js";
import type { LogWriter } from "../../engine/log/writer.js";
import type { Registry } from "../../engine/registry/registry.js";
import type { AllowedSigner } from "../../engine/verify/index.js";
import type { Limits } from "../http/limits/limits.js";
import type { FrontReport } from "../http/observing/metrics.js";
import type { ChosenTransport } from "../http/servers/choose.js";
import type { Services } from "../http/services.js";
import type { TlsFiles } from "../http/transport/tls.js";
import type { Logger } from "../process/logger.js";
import { stderrLines } from "../process/stderr.js";
import type { Settings } from "../settings/settings.js";
import { Front } from "./front.js";
import { FrontThreads } from "./threads.js";

export interface FrontsParts {
  readonly settings: Settings;
  readonly registry: Registry;
  readonly operator: OperatorKey;
  readonly services: Services;
  readonly chosen: ChosenTransport;
  readonly limits: Limits | null;
  readonly tls: TlsFiles | null;
  readonly maxConnections: number;
  /** The list of those who may write, as `readWriters` gives it. */
  readonly listed: readonly AllowedSigner[] | null;
  readonly logger: Logger;
  /** Whether `logger` is one of the embedding program. */
  readonly isOwnLogger: boolean;
}

export interface Fronts {
  /**
   * Starts to listen; port 0 takes a free one.
   * @returns the port
   * @throws CairnlogError `precondition-failed` when the port is taken or the host is not this machine's; what a front end
   *   says that cannot start
   */
  listen(host: string, port: number): Promise<number>;
  /**
   * Reads certificate and key again. New connections get the new certificate; those that are open go on with the old one.
   * @throws CairnlogError what a front end says that cannot
   */
  renewCertificate(): Promise<void>;
  /** Tells front ends in other threads who may write, for requests to come. */
  renewWriters(listed: readonly AllowedSigner[]): void;
  /** Names of those that do not answer. */
  readonly stuck: readonly string[];
  reports(): Promise<readonly FrontReport[]>;
  /** Takes no more requests, answers those being handled, then closes every connection. */
  close(): Promise<void>;
}

/** The front ends of a service that writes `log`. */
export function openFronts(parts: FrontsParts, log: LogWriter): Fronts {
  const { settings, chosen } = parts;
  // With `node:http` threads cannot share a port on Node 20.
  const count = chosen.transport.name === "uws" ? settings.frontEnds : Math.min(1, settings.frontEnds);
  return count > 0 ? threads(parts, log, count) : openFront(parts);
}

/** The one front end of a service whose log is written elsewhere, in this thread. */
export function openFront(parts: FrontsParts): Fronts {
  const front = new Front({ ...parts, maxPendingBytes: parts.settings.maxPendingBytes });
  return {
    listen: (host, port) => front.listen(host, port, false),
    renewCertificate: async () => front.renewCertificate(),
    // It has the registry of this thread.
    renewWriters() {},
    stuck: [],
    reports: async () => [{ thread: "writer", figures: front.figures, lateness: null }],
    close: () => front.close(),
  };
}

function threads(parts: FrontsParts, log: LogWriter, count: number): Fronts {
  const { settings, registry, operator, services, limits, tls, maxConnections, listed, logger, isOwnLogger } = parts;
  return new FrontThreads({
    count,
    log,
    shared: { ...registry, ...services, operator, log },
    data: {
      settings,
      count,
      operatorKey: operator.public.pem,
      metricsType: services.metrics.contentType,
      vkey: services.tlog.vkey,
      role: services.replication?.role.buffer ?? null,
      limits: limits?.buffer ?? null,
      tls,
      maxConnections,
      listed,
      forwardsLog: isOwnLogger,
      droppedLines: stderrLines().dropped.buffer,
    },
    logger,
  });
}

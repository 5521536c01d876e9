/**
 * A front end: transport, routes, schemas, sessions and all reads. It runs in the writer's thread or in one of its own, and
 * finds what there is one of for the service behind `Services` and `Served`. It belongs to the thread that made it.
 */
import { DEMONSTRATION } from "../../engine/contract/service/health.js";
import type { OperatorKey } from "../../engine/crypto/signer/operator-key.js";
import type { Served } from "../../engine/registry/registry.js";
import { HttpServer } from "../http/app.js";
import { Gate } from "../http/gate.js";
import type { Limits } from "../http/limits/limits.js";
import { type FrontFigures, Measures } from "../http/observing/measures.js";
import { Origins, ServicePages } from "../http/origins.js";
import { asHere, routeTable } from "../http/routes/index.js";
import { furtherTileRoutes } from "../http/routes/log/tlog.js";
import { explorerRoutes } from "../http/routes/service/explorer.js";
import type { ChosenTransport } from "../http/servers/choose.js";
import type { Services } from "../http/services.js";
import { Sessions } from "../http/sessions.js";
import { parseNetwork } from "../http/transport/client-address.js";
import type { TlsFiles } from "../http/transport/tls.js";
import type { ConnectionCount } from "../http/transport/transport.js";
import type { Logger } from "../process/logger.js";
import type { Settings } from "../settings/settings.js";

interface FrontParts {
  readonly settings: Settings;
  readonly registry: Served;
  /** Verifies sessions and makes them. */
  readonly operator: OperatorKey;
  readonly services: Services;
  readonly chosen: ChosenTransport;
  /** Null when nothing is limited. */
  readonly limits: Limits | null;
  readonly tls: TlsFiles | null;
  /** Of the whole service. */
  readonly maxConnections: number;
  /** Bytes held for clients of this front end. */
  readonly maxPendingBytes: number;
  readonly connectionCount?: ConnectionCount;
  readonly catchUp?: () => void;
  readonly logger: Logger;
}

/** The share of the time for a stop in which clients may read their answers. */
const DRAIN_SHARE = 0.7;

export class Front {
  readonly #http: HttpServer;
  readonly #measures = new Measures();
  readonly #origins: Origins;

  constructor(parts: FrontParts) {
    const { settings, registry, operator, services, chosen, connectionCount, catchUp } = parts;
    const { maxConnections, maxPendingBytes, limits, tls, logger } = parts;
    const { challenges, keys, passwords } = registry;
    const sessions = new Sessions({ operator, keys, passwords, ttlSeconds: settings.sessionTtlSeconds });
    this.#origins = new Origins(settings);
    const access = { origins: this.#origins, sessions, gate: new Gate({ challenges, sessions, keys, operator }) };
    // A mirror does not know the rule of the log that it shows.
    const sentence = settings.readOnly ? null : registry.writers.view.sentence;
    this.#http = new HttpServer({
      transport: chosen.transport,
      drainMs: settings.stopTimeoutSeconds * 1000 * DRAIN_SHARE,
      routes: [
        ...routeTable(registry, services, chosen, access, {
          isReadOnly: settings.readOnly,
          attestations: settings.rateLimits ? settings.rateLimitAttestation : null,
          isDemonstration: settings.operatorName === DEMONSTRATION,
          operatesApart: settings.metricsAddress !== null,
          explorer: settings.explorer,
        }),
        ...asHere(furtherTileRoutes(registry.log), registry.log, services.replication, settings.readOnly),
        ...(settings.explorer ? explorerRoutes({ ...settings, writers: sentence }) : []),
      ],
      pages: new ServicePages(this.#origins, settings),
      limits,
      trustedProxies: settings.trustedProxies.map((text) => parseNetwork(text)!),
      bounds: { ...settings, maxConnections, maxPendingBytes },
      ...(connectionCount && { connectionCount }),
      ...(catchUp && { catchUp }),
      tls,
      measures: this.#measures,
      logger,
    });
  }

  /**
   * Starts to listen; port 0 takes a free one.
   * @param isShared whether other front ends listen on the same port
   * @returns the port
   * @throws CairnlogError `precondition-failed` when the port is taken or the host is not this machine's
   */
  async listen(host: string, port: number, isShared: boolean): Promise<number> {
    const taken = await this.#http.listen(host, port, isShared);
    this.#origins.listensOn(taken);
    return taken;
  }

  /** Reads certificate and key again, for connections to come. @throws CairnlogError `precondition-failed` */
  renewCertificate(): void {
    this.#http.renewCertificate();
  }

  get figures(): FrontFigures {
    return this.#measures.figures(this.#http);
  }

  /** Takes no more requests, answers those being handled, then closes every connection. */
  close(): Promise<void> {
    return this.#http.close();
  }

  /** Closes every connection at once, with what is being answered. */
  abandon(): void {
    this.#http.abandon();
  }
}

/** A running witness: its directory, its key, its HTTP server. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import Type from "typebox";
import { closeAfter, closeAll } from "../../engine/base/closing.js";
import { CairnlogError } from "../../engine/base/error.js";
import { freeBytes } from "../../engine/store/lmdb/health.js";
import { makePrivateFolder } from "../../engine/store/lmdb/private.js";
import { isHexHash } from "../../engine/verify/bytes/encoding.js";
import { HttpServer } from "../http/app.js";
import { Measures } from "../http/observing/measures.js";
import { livenessRoute, metricsRoute } from "../http/observing/probes.js";
import { NO_PAGES } from "../http/origins.js";
import { HttpError } from "../http/route/problems.js";
import { type Route, route } from "../http/route/route.js";
import { chooseTransport } from "../http/servers/choose.js";
import { Answer } from "../http/transport/answer.js";
import { checkTls, type TlsFiles } from "../http/transport/tls.js";
import type { TransportName } from "../http/transport/transport.js";
import type { Logger } from "../process/logger.js";
import { connectionsWithin, isReadableByOthers } from "../process/machine.js";
import { parseWitnessedLogs, type WitnessedLogs } from "./logs.js";
import { WitnessMetrics } from "./metrics.js";
import { WitnessRows } from "./rows.js";
import { openWitnessSigner, type WitnessAlgorithm } from "./signer.js";
import { parseAddCheckpoint, Witness } from "./witness.js";

// What a witness answers over HTTP (c2sp.org/tlog-witness), and to those who look after it.

const TEXT = "text/plain; charset=utf-8";
/** The type of the answer to a request that starts from another size than the witness. */
const SIZE = "text/x.tlog.size";

interface WitnessServices {
  readonly witness: Witness;
  readonly rows: WitnessRows;
  readonly metrics: WitnessMetrics;
}

/**
 * The routes of a witness.
 * @param prefix of the two paths of the specification: empty, or a slash and a path without one at its end
 */
function witnessRoutes({ witness, rows, metrics }: WitnessServices, prefix: string): Route[] {
  return [
    route({
      method: "POST",
      path: `${prefix}/add-checkpoint`,
      summary: "Cosign a checkpoint",
      isRaw: true,
      answer: Type.String(),
      limit: null,
      async handle({ body }) {
        const request = parseAddCheckpoint(body as Buffer);
        const verdict = await witness.addCheckpoint(request);
        if (verdict.kind === "conflict") return new Answer(`${verdict.size}\n`, { status: 409, contentType: SIZE });
        metrics.cosigned(request.checkpoint.origin);
        return new Answer(Buffer.from(verdict.line), { contentType: TEXT });
      },
    }),
    route({
      method: "GET",
      path: `${prefix}/{origin_hash}/checkpoint`,
      summary: "The newest cosigned checkpoint of a log",
      params: Type.Object({ origin_hash: Type.String() }),
      answer: Type.String(),
      limit: null,
      handle({ params }) {
        const row = isHexHash(params.origin_hash) ? rows.byHash(params.origin_hash) : undefined;
        if (!row) throw new CairnlogError("not-found", "No checkpoint of this log was cosigned.");
        return new Answer(Buffer.from(row.note), { contentType: TEXT, cacheControl: "no-cache" });
      },
    }),
    route({
      method: "GET",
      path: `${prefix}/vkey`,
      summary: "The verifier key of the cosignatures",
      answer: Type.String(),
      limit: null,
      handle: () => new Answer(Buffer.from(`${witness.vkey}\n`), { contentType: TEXT, cacheControl: "no-cache" }),
    }),
    livenessRoute(() => requireUsable(rows)),
    route({
      method: "GET",
      path: "/readyz",
      summary: "Whether a checkpoint would be cosigned",
      answer: Type.Object({ status: Type.Literal("ok"), vkey: Type.String(), logs: Type.Integer() }),
      limit: null,
      handle() {
        requireUsable(rows);
        const { shortage } = rows;
        if (shortage !== null) throw unready(shortage);
        if (!witness.logs.size) throw unready("The file of logs names no log.");
        return { status: "ok", vkey: witness.vkey, logs: witness.logs.size } as const;
      },
    }),
    metricsRoute(metrics),
  ];
}

/** @throws HttpError 503 when the process can write no more and ends */
function requireUsable({ health }: WitnessRows): void {
  if (health.failure) throw unready(health.failure.message);
}

const unready = (why: string): HttpError => new HttpError("not-ready", why, { "retry-after": "10" });

/**
 * Largest body: 63 hashes and a note with 16 signatures of 5 kB fit twice. All bodies together are bounded, too; what the
 * specification asks for takes a few kilobytes.
 */
const MAX_BODY_BYTES = 256 * 1024;
const MAX_PENDING_BYTES = 16 * 1024 * 1024;
/** Seconds in which a body must arrive. */
const REQUEST_TIMEOUT_S = 10;
const MAX_CONNECTIONS = 1_000;
const DIRECTORY = "A witness answers POST add-checkpoint and GET {SHA-256 of an origin}/checkpoint below its prefix.";

export interface WitnessSettings {
  /** Directory of rows and key. */
  readonly dataDir: string;
  /** File of the private key, which is made if it does not exist; in the directory if absent. */
  readonly keyFile?: string | undefined;
  /** Of the key: of one that is made, and of the one that must be there. */
  readonly algorithm: WitnessAlgorithm;
  /** File that names the logs. */
  readonly logsFile: string;
  readonly name: string;
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** Empty, or a slash and a path without one at its end. */
  readonly prefix: string;
  /** Null for plain HTTP. */
  readonly tls: TlsFiles | null;
  /** Null for uWebSockets.js where it loads. */
  readonly transport: TransportName | null;
}

export interface RunningWitness {
  /** `http://host:port` and the prefix. */
  readonly url: string;
  readonly vkey: string;
  /** Resolves when a row could not be written, so that this process must end without `close`. */
  readonly failed: Promise<CairnlogError>;
  /** Number of logs. */
  readonly logs: number;
  /**
   * Reads the file of logs again.
   * @throws CairnlogError `invalid-input`, `storage-failed`; then the logs stay as they were
   */
  reload(): void;
  /** Reads certificate and key again, if there are any. @throws CairnlogError `precondition-failed`; then the old ones stay */
  renewCertificate(): void;
  /** Answers what was accepted, closes every connection and the rows. */
  close(): Promise<void>;
}

/**
 * Starts a witness. Nothing is cosigned before the key is on disk.
 * @throws CairnlogError `invalid-input` for a file of logs that cannot be read or a name that notes cannot hold;
 *   `invalid-key`, `storage-failed`, `in-use`, `corrupt-log`; `precondition-failed` when it cannot listen
 */
export async function startWitness(settings: WitnessSettings, logger: Logger): Promise<RunningWitness> {
  const { dataDir, host, prefix, tls } = settings;
  const logs = readLogs(settings.logsFile);
  if (tls) checkTls(tls);
  const { transport } = await chooseTransport(settings.transport);
  const opened: (() => Promise<void>)[] = [];
  const close = () => closeAll(...opened.splice(0).reverse());
  try {
    openDataDir(dataDir);
    const rows = await WitnessRows.open(join(dataDir, "witness"));
    opened.push(() => rows.close());
    const failed = new Promise<CairnlogError>((resolve) => rows.health.observe(resolve));
    const keyFile = settings.keyFile ?? join(dataDir, "witness.pem");
    const signer = await openWitnessSigner(keyFile, settings.algorithm, settings.name);
    if (isReadableByOthers(keyFile))
      logger.warn({ keyFile }, "the key can be read by others than its owner: set the file's mode to 0600");
    const witness = new Witness({
      signer,
      rows,
      logs,
      resumed({ origin }, { end, refused }) {
        metrics.forked(origin);
        logger.error({ origin, end, refused }, "the log signed a checkpoint behind its end: keep this note");
      },
      forked({ origin }, { cosigned, refused }) {
        metrics.forked(origin);
        logger.error({ origin, cosigned, refused }, "the log signed two roots for one size: keep these two notes");
      },
    });
    const measures = new Measures();
    const metrics: WitnessMetrics = new WitnessMetrics(
      witness,
      () => measures.figures(http),
      () => freeBytes(dataDir),
    );
    const http: HttpServer = new HttpServer({
      transport,
      routes: witnessRoutes({ witness, rows, metrics }, prefix),
      directory: DIRECTORY,
      pages: NO_PAGES,
      limits: null,
      trustedProxies: [],
      bounds: {
        maxBodyBytes: MAX_BODY_BYTES,
        maxPendingBytes: MAX_PENDING_BYTES,
        requestTimeoutSeconds: REQUEST_TIMEOUT_S,
        maxConnections: connectionsWithin(MAX_CONNECTIONS, 0, logger),
      },
      tls,
      measures,
      logger,
    });
    opened.push(() => http.close());
    const port = await http.listen(host, settings.port);
    const url = `${tls ? "https" : "http"}://${host.includes(":") ? `[${host}]` : host}:${port}${prefix}`;
    logger.info({ url, vkey: witness.vkey, dataDir, logs: logs.size, transport: transport.name }, "listening");
    return {
      url,
      vkey: witness.vkey,
      failed,
      get logs() {
        return witness.logs.size;
      },
      reload() {
        witness.logs = readLogs(settings.logsFile);
      },
      renewCertificate: () => http.renewCertificate(),
      close,
    };
  } catch (error) {
    return closeAfter(error, close);
  }
}

/** @throws CairnlogError `invalid-input`, `storage-failed` */
function readLogs(path: string): WitnessedLogs {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new CairnlogError("storage-failed", `The file of logs ${path} cannot be read (${code}).`, { cause });
  }
  return parseWitnessedLogs(text);
}

/** @throws CairnlogError `storage-failed` */
function openDataDir(path: string): void {
  try {
    makePrivateFolder(path);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new CairnlogError("storage-failed", `The directory ${path} cannot be written (${code}).`, { cause });
  }
}

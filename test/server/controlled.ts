/**
 * The service over real HTTP, with its clock, operator key, gate and log lines controlled by the test. Besides the
 * service's routes there is one route for each kind of authentication.
 */
import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { join } from "node:path";
import { Writable } from "node:stream";
import { pino } from "pino";
import Type from "typebox";
import { afterAll } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { createPool } from "#cairnlog/engine/crypto/pool/pool.js";
import { type OperatorKey, operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { Checkpoints, defaultLogName } from "#cairnlog/engine/log/tlog/checkpoints.js";
import { CheckpointPublisher } from "#cairnlog/engine/log/tlog/publisher.js";
import { openRegistry } from "#cairnlog/engine/registry/registry.js";
import { DEFAULT_MIN_FREE_BYTES } from "#cairnlog/engine/store/lmdb/health.js";
import { formatVkey } from "#cairnlog/engine/verify/index.js";
import { Anchoring } from "#cairnlog/server/anchoring/anchoring.js";
import { HttpServer } from "#cairnlog/server/http/app.js";
import { Gate } from "#cairnlog/server/http/gate.js";
import { Measures } from "#cairnlog/server/http/observing/measures.js";
import { Metrics } from "#cairnlog/server/http/observing/metrics.js";
import { Readiness } from "#cairnlog/server/http/observing/readiness.js";
import { Origins, ServicePages } from "#cairnlog/server/http/origins.js";
import { type Route, route } from "#cairnlog/server/http/route/route.js";
import { routeTable } from "#cairnlog/server/http/routes/index.js";
import { descriptionRoutes } from "#cairnlog/server/http/routes/service/openapi.js";
import { chooseTransport } from "#cairnlog/server/http/servers/choose.js";
import { Sessions } from "#cairnlog/server/http/sessions.js";
import { SharedVerification } from "#cairnlog/server/verification.js";
import type { WrittenRegistry } from "../registry/world.js";
import { TestService, temporaryFolder, WANTED_TRANSPORT } from "./harness.js";
import type { Algorithm } from "./signers.js";

const cleanups: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

export interface Controlled {
  readonly service: TestService;
  readonly registry: WrittenRegistry;
  readonly sessions: Sessions;
  /** Its background work is not started, so the test decides about rounds. */
  readonly anchoring: Anchoring;
  /** Signs as the operator: Ed25519, ECDSA in IEEE P1363 form, or RSASSA-PKCS1-v1_5. */
  operatorSign(message: Uint8Array): Buffer;
  readonly operatorFingerprint: string;
  /** Microseconds since the epoch. */
  now: number;
  /** Whether the provider of the operator key answers. */
  operatorAnswers: boolean;
  /** Free bytes of the disk for readiness. */
  freeBytes: number;
  /** All log lines, at the level trace. */
  log(): string;
}

const KEY_PAIRS: Readonly<Record<Algorithm, () => { privateKey: KeyObject }>> = {
  ed25519: () => generateKeyPairSync("ed25519"),
  "ecdsa-p256": () => generateKeyPairSync("ec", { namedCurve: "P-256" }),
  "rsa-2048": () => generateKeyPairSync("rsa", { modulusLength: 2048 }),
};

/**
 * Starts a service, which is closed after the file's tests. `POST /test/{operator,session,proof}` authenticate the
 * client and return its key.
 */
export async function startControlled(
  algorithm: Algorithm = "ed25519",
  calendars: Pick<ConstructorParameters<typeof Anchoring>[0], "calendars" | "timeoutMs"> = { calendars: [] },
): Promise<Controlled> {
  const dataDir = temporaryFolder();
  const pool = createPool(1);
  const { privateKey } = KEY_PAIRS[algorithm]();
  const lines: string[] = [];
  const state = {
    now: Date.parse("2025-01-01T00:00:00Z") * 1000,
    operatorAnswers: true,
    freeBytes: 2 ** 40,
  };
  const key = operatorKey(privateKey.export({ type: "pkcs8", format: "pem" }).toString());
  const operator: OperatorKey = {
    ...key,
    sign: (messages) =>
      state.operatorAnswers ? key.sign(messages) : Promise.reject(new Error("the provider is away")),
  };
  const clock = () => state.now;
  const predicateBase = "https://x-service.example/predicates";
  const registry = await openRegistry({ path: join(dataDir, "log"), operator, pool, predicateBase, clock });
  const { challenges, keys } = registry;
  const sessions = new Sessions({ operator, keys, passwords: registry.passwords, ttlSeconds: 3600, clock });
  const gate = new Gate({ challenges, sessions, keys, operator });
  const origins = new Origins({ publicUrls: [], nodeUrl: null, host: "127.0.0.1", port: 0, tlsCertificate: null });
  const metrics = new Metrics(registry.log, registry.log);
  const measures = new Measures();
  const readiness = new Readiness({
    log: registry.log,
    writer: registry.log,
    operator,
    stuck: () => [],
    freeBytes: () => state.freeBytes,
    minFreeBytes: DEFAULT_MIN_FREE_BYTES,
  });
  const chosen = await chooseTransport(WANTED_TRANSPORT);
  const anchoring = new Anchoring({ ...registry, logger: pino({ level: "silent" }), clock, ...calendars });
  const checkpoints = new Checkpoints(registry.log, operator, defaultLogName(operator.fingerprint));
  const publisher = new CheckpointPublisher({
    log: registry.log,
    origin: `${defaultLogName(operator.fingerprint)}/tlog`,
    signer: algorithm === "ed25519" ? key : operatorKey(generatePrivateKey("ed25519")),
    file: join(dataDir, "tlog-checkpoint.txt"),
    intervalMs: 0,
    told: () => {},
  });
  await publisher.open();
  publisher.start();
  const tlog = { vkey: formatVkey(publisher.key), checkpoint: () => publisher.newest(), witnesses: () => [] };
  const verification = new SharedVerification(registry.log);
  const services = { metrics, readiness, anchoring, verification, checkpoints, tlog, replication: null };
  const served = routeTable(registry, services, chosen, { origins, sessions, gate }).filter(
    ({ path }) => path !== "/api/v1/openapi.json" && !path.startsWith("/docs"),
  );
  const routes = [...served, ...gateRoutes(gate)];
  const sink = new Writable({
    write(chunk, _, done) {
      lines.push(String(chunk));
      done();
    },
  });
  const logger = pino({ level: "trace" }, sink);
  const http = new HttpServer({
    transport: chosen.transport,
    routes: [...routes, ...descriptionRoutes(routes)],
    pages: new ServicePages(origins, { allowedOrigins: [], allowedHosts: [], host: "127.0.0.1" }),
    limits: null,
    trustedProxies: [],
    bounds: { maxBodyBytes: 1 << 20, maxPendingBytes: 1 << 26, requestTimeoutSeconds: 30, maxConnections: 1000 },
    tls: null,
    measures,
    logger,
  });
  metrics.watchFronts(async () => [{ thread: "writer", figures: measures.figures(http), lateness: null }]);
  const port = await http.listen("127.0.0.1", 0);
  origins.listensOn(port);
  const close = async () => {
    await anchoring.stop();
    await http.close();
    await publisher.stop();
    await registry.close();
    await pool.close();
  };
  cleanups.push(close);
  const address = { host: "127.0.0.1", port };
  const url = `http://127.0.0.1:${port}`;
  const operatorFingerprint = operator.fingerprint;
  const service = new TestService({
    address,
    url,
    transport: chosen.transport.name,
    metricsUrl: null,
    operatorFingerprint,
    dataDir,
    registry,
    logger,
    renewCertificate: async () => null,
    renewWriters: () => null,
    failed: new Promise(() => {}),
    close: async () => {
      await close();
      return { hanging: [], isSettled: true };
    },
  });
  const parts = { service, registry, sessions, anchoring, operatorFingerprint, log: () => lines.join("") };
  const digest = algorithm === "ed25519" ? null : "sha256";
  const operatorSign = (message: Uint8Array) => sign(digest, message, { key: privateKey, dsaEncoding: "ieee-p1363" });
  return Object.assign(state, parts, { operatorSign });
}

function gateRoutes(gate: Gate): Route[] {
  const Passed = Type.Object({ fingerprint: Type.String(), recovery: Type.Boolean() });
  const body = Type.Object({ required: Type.String() });
  const row = { method: "POST", summary: "Pass the gate", answer: Passed, limit: "general" } as const;
  const refusals = [401, 403, 404, 409, 410, 503];
  return [
    route({
      ...row,
      path: "/api/v1/test/operator",
      authorize: (asking) => gate.operatorOnly(asking),
      refusals,
      handle: ({ proof }) => proof,
    }),
    route({
      ...row,
      path: "/api/v1/test/session",
      authorize: (asking) => gate.sessionKey(asking),
      refusals,
      handle: ({ proof }) => proof,
    }),
    route({
      ...row,
      path: "/api/v1/test/proof",
      authorize: (asking) => gate.provenKey(asking, asking.body),
      body,
      refusals,
      handle: ({ proof }) => proof,
    }),
  ];
}

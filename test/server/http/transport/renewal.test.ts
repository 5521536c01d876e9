/** A certificate that is read again while the service runs: new connections get it, open ones go on. */
import { execFileSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { beforeAll, expect, test } from "vitest";
import { type RunningServer, startServer } from "#cairnlog/server/index.js";
import { temporaryFolder } from "../../harness.js";

const folder = temporaryFolder();
const at = (name: string) => join(folder, name);

beforeAll(() => {
  for (const [name, days] of [
    ["old", "5"],
    ["new", "9"],
  ] as const) {
    const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-keyout", at(`${name}.key`)];
    const subject = ["-out", at(`${name}.pem`), "-subj", `/CN=${name}`, "-days", days];
    execFileSync("openssl", ["req", "-x509", ...key, ...subject], { stdio: "pipe" });
  }
});

function install(name: string): void {
  copyFileSync(at(`${name}.pem`), at("served.pem"));
  copyFileSync(at(`${name}.key`), at("served.key"));
}

function connected({ address: { host, port } }: RunningServer): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, rejectUnauthorized: false }, () => resolve(socket));
    socket.once("error", reject);
  });
}

/** The name in the certificate of a new connection. */
async function shown(server: RunningServer): Promise<string> {
  const socket = await connected(server);
  const name = socket.getPeerCertificate().subject.CN;
  socket.destroy();
  return `${name}`;
}

/** The status line of an answer on an open connection. */
function asked(socket: TLSSocket): Promise<string> {
  return new Promise((resolve, reject) => {
    socket.once("data", (data) => resolve(data.toString("latin1").split("\r\n")[0]!));
    socket.once("close", () => reject(new Error("closed")));
    socket.write("GET /livez HTTP/1.1\r\nhost: x\r\n\r\n");
  });
}

test.each([
  ["the library that the service takes, in the writer's thread", null, 0],
  ["the same in two threads that share the port", null, 2],
  ["node:https", "node", 1],
] as const)("over %s", async (_, transport, frontEnds) => {
  install("old");
  const server = await startServer({
    port: 0,
    dataDir: temporaryFolder(),
    workers: 1,
    frontEnds,
    transport,
    logLevel: "silent",
    tlsCertificate: at("served.pem"),
    tlsKey: at("served.key"),
  });
  try {
    const held = await connected(server);
    expect(await shown(server)).toBe("old");
    expect(await asked(held)).toBe("HTTP/1.1 200 OK");

    install("new");
    expect(await shown(server)).toBe("old");
    const { validTo } = new X509Certificate(readFileSync(at("new.pem")));
    expect(await server.renewCertificate()).toBe(new Date(validTo).toISOString());
    // Several, because the kernel spreads connections over the threads.
    for (let i = 0; i < 8; i++) expect(await shown(server)).toBe("new");
    expect(await asked(held)).toBe("HTTP/1.1 200 OK");
    held.destroy();

    writeFileSync(at("served.pem"), "nonsense");
    await expect(server.renewCertificate()).rejects.toMatchObject({ code: "precondition-failed" });
    expect(await shown(server)).toBe("new");
    install("old");
    await server.renewCertificate();
    expect(await shown(server)).toBe("old");
    const text = await metricsOf(server);
    const expiry = Date.parse(new X509Certificate(readFileSync(at("old.pem"))).validTo) / 1000;
    expect(text).toContain(`cairnlog_tls_certificate_expiry_timestamp_seconds ${expiry}\n`);
  } finally {
    await server.close();
  }
  await expect(connected(server)).rejects.toMatchObject({ code: "ECONNREFUSED" });
});

async function metricsOf(server: RunningServer): Promise<string> {
  const socket = await connected(server);
  let text = "";
  socket.setEncoding("utf8").on("data", (part: string) => {
    text += part;
  });
  socket.write("GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n");
  await expect.poll(() => text).toMatch(/cairnlog_http_request_duration_seconds_count/);
  socket.destroy();
  return text;
}

test("without TLS there is nothing to renew", async () => {
  const server = await startServer({
    port: 0,
    dataDir: temporaryFolder(),
    workers: 1,
    frontEnds: 0,
    logLevel: "silent",
  });
  expect(await server.renewCertificate()).toBeNull();
  await server.close();
});

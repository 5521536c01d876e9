/** docs/operating.md and docs/deploy: the metrics, settings and paths in them exist, and the samples are valid. */
import { execFile, execFileSync, spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { describeSettings } from "#cairnlog/server/index.js";
import { TABLE } from "#cairnlog/server/settings/settingtable.js";
import { FakeSigner } from "./crypto/signer/fakesigner.js";
import { startTestService, temporaryFolder } from "./server/harness.js";
import { newSigner, registration } from "./server/signers.js";

const BULK_BODIES = 3;

const at = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url));
const operating = readFileSync(at("docs/operating.md"), "utf8");
const sample = (name: string) => readFileSync(at(`docs/deploy/${name}`), "utf8");

test("every metric that is named is measured", async () => {
  const signer = await new FakeSigner().start();
  const service = await startTestService({ SERVICE_SIGNER: signer.address });
  await service.post("/keys/register", registration(newSigner()));
  await service.get("/nothing");
  const { text } = await service.send("GET", "/metrics");
  const measured = new Set([...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name));
  const named = new Set(operating.match(/\b(?:cairnlog|process|nodejs)_[a-z0-9_]+[a-z]\b/g));
  const families = operating.matchAll(/`(cairnlog_(?:http|webhook))_\w+`((?:, `_\w+`)+)/g);
  for (const [, family, rest] of families)
    for (const [, name] of rest!.matchAll(/`(_\w+)`/g)) named.add(family! + name!);
  expect(named.size).toBeGreaterThan(15);
  for (const name of named) expect(measured, name).toContain(name);
  for (const name of ["cairnlog_batch_entries_count", 'cairnlog_batch_stage_duration_seconds_count{stage="write"}'])
    expect(text).toContain(`${name} 1\n`);
  expect(text).toContain('cairnlog_refusals_total{code="not-found"} 1\n');
  await service.close();
  await signer.remove();
});

test("every metric of the alerts and the dashboard is measured, and every name of a panel is a query's", async () => {
  const signer = await new FakeSigner().start();
  const service = await startTestService({ SERVICE_SIGNER: signer.address });
  const { text } = await service.send("GET", "/metrics");
  await service.close();
  await signer.remove();
  const measured = new Set([...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name));
  const named = (queries: string) => queries.match(/\b(?:cairnlog|process|nodejs)_[a-z0-9_]+[a-z]\b/g) ?? [];
  const alerts = sample("prometheus/alerts.yml").match(/^ +expr: .*$/gm)!;
  const { panels } = JSON.parse(sample("grafana/dashboard.json")) as Dashboard;
  const queries = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
  expect(alerts.length).toBeGreaterThan(12);
  expect(queries.length).toBeGreaterThan(25);
  for (const query of [...alerts, ...queries]) {
    const names = named(query.replace(/job="cairnlog"/, "")).map((name) => name.replace(/_(?:bucket|sum|count)$/, ""));
    if (!query.includes("up{")) expect(names.length, query).toBeGreaterThan(0);
    for (const name of names) expect(measured, query).toContain(name);
  }
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
});

interface Dashboard {
  readonly panels: readonly { readonly id: number; readonly targets: readonly { readonly expr: string }[] }[];
}

test("the files that compose.yaml mounts exist, and only addresses of this machine are published", () => {
  const compose = sample("compose.yaml");
  const mounts = [...compose.matchAll(/^ +- (\.\/[^:]+):/gm)].map(([, path]) => path!);
  expect(mounts).toHaveLength(4);
  for (const path of mounts) expect(existsSync(at(`docs/deploy/${path}`)), path).toBe(true);
  const ports = [...compose.matchAll(/ports: \["(.*)"\]/g)].map(([, port]) => port!);
  expect(ports.filter((port) => !port.startsWith("127.0.0.1:"))).toEqual([]);
  const [, port] = /SERVICE_METRICS_ADDRESS: "0\.0\.0\.0:(\d+)"/.exec(compose)!;
  expect(sample("prometheus/prometheus.yml")).toContain(`targets: ["cairnlog:${port}"]`);
});

test("the image is not root's, and gets what the build needs and nothing else", () => {
  const [, final] = sample("Dockerfile")
    .split(/^FROM .*$/m)
    .slice(1);
  expect(final).toMatch(/^USER [1-9]\d*:\d+$/m);
  const ignore = readFileSync(at(".dockerignore"), "utf8").split("\n");
  expect(ignore.filter((line) => line && !line.startsWith("#"))[0]).toBe("*");
  for (const line of ignore.filter((line) => line.startsWith("!")))
    expect(existsSync(at(line.slice(1))), line).toBe(true);
});

test("every setting that is named exists", () => {
  const known = describeSettings().map(({ name }) => name);
  const names = [
    "cairnlog.service",
    "Dockerfile",
    "compose.yaml",
    "replication/compose.yaml",
    "prometheus/prometheus.yml",
    "nginx.conf",
    "Caddyfile",
    "many/cairnlog@.service",
    "many/new-log.sh",
  ];
  for (const text of [operating, readFileSync(at("docs/replication.md"), "utf8"), ...names.map(sample)])
    for (const name of text.match(/\bSERVICE_[A-Z_]+[A-Z]\b(?!_)/g) ?? []) expect(known, name).toContain(name);
});

test.each(["cairnlog.service", "many/cairnlog@.service"])("%s runs the service and is valid for systemd", (name) => {
  const unit = sample(name);
  const path = /^ExecStart=\S+ \/opt\/cairnlog\/(\S+) serve$/m.exec(unit)![1]!;
  expect(existsSync(at(path))).toBe(true);
  expect(Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)![1])).toBeGreaterThan(10);
  const verified = spawnSync("systemd-analyze", ["verify", at(`docs/deploy/${name}`)], { encoding: "utf8" });
  // On a machine without systemd, this cannot be checked.
  if (verified.error) return;
  const own = verified.stderr.split("\n").filter((line) => /cairnlog@?\.service/.test(line));
  expect(own.filter((line) => !line.includes("is not executable"))).toEqual([]);
});

test("systemd never gives a service or a monitor up that could not start for a while", () => {
  const monitor = readFileSync(at("docs/monitor.md"), "utf8");
  const units = [sample("cairnlog.service"), sample("many/cairnlog@.service"), /```ini\n(.*?)```/s.exec(monitor)![1]!];
  // By default it does after five starts within ten seconds.
  for (const unit of units)
    expect(unit).toMatch(/^\[Unit\]\n(?:.+\n)*StartLimitIntervalSec=0\n(?:.*\n)*Restart=on-failure\n/m);
});

test("the unit of one of many logs is that of a single one, with names of its own", () => {
  const settings = (name: string) => sample(name).match(/^[^#\n].*$/gm)!;
  const many = settings("many/cairnlog@.service").map((line) => line.replace(/[-/ ]%i/g, ""));
  const single = settings("cairnlog.service");
  expect(many.filter((line) => !single.includes(line))).toEqual(["EnvironmentFile=/etc/cairnlog.env"]);
  expect(many).toHaveLength(single.length);
});

test("new-log.sh makes key and settings, each log with another port, and never over what is there", () => {
  const root = temporaryFolder();
  const make = (...args: string[]) => {
    const env = { ...process.env, ROOT: root };
    return spawnSync(at("docs/deploy/many/new-log.sh"), args, { encoding: "utf8", env });
  };
  const made = ["a", "b"].map((name) => make(name, `https://${name}.example.org`));
  expect(made.map(({ status, stderr }) => [status, /:(\d+), then/.exec(stderr)?.[1]])).toEqual([
    [0, "8101"],
    [0, "8102"],
  ]);
  const [key, settings] = [`${root}/var/lib/cairnlog/a/operator.pem`, `${root}/etc/cairnlog/a.env`];
  for (const path of [key, settings]) expect(statSync(path).mode & 0o777).toBe(0o600);
  const before = [key, settings].map((path) => readFileSync(path, "utf8"));
  expect(make("a", "https://other.example.org")).toMatchObject({ status: 1, stderr: expect.stringMatching(/already/) });
  expect([key, settings].map((path) => readFileSync(path, "utf8"))).toEqual(before);
  const wrong = [
    ["c"],
    ["../c", "https://c.example"],
    ["c", "http://c.example"],
    ["c", "https://c.example/d"],
    ["c;d", ""],
  ];
  for (const args of wrong) expect(make(...args).status, args.join(" ")).toBe(1);
  expect(readdirSync(`${root}/etc/cairnlog`)).toEqual(["a.env", "b.env"]);
});

test("new-log.sh makes none in the data directory of a single log, which would close it at its next start", () => {
  const root = temporaryFolder();
  const data = `${root}/var/lib/cairnlog`;
  mkdirSync(`${data}/log`, { recursive: true });
  chmodSync(data, 0o700);
  writeFileSync(`${data}/log/data.mdb`, "");
  const env = { ...process.env, ROOT: root };
  const made = spawnSync(at("docs/deploy/many/new-log.sh"), ["a", "https://a.example"], { encoding: "utf8", env });
  expect(made).toMatchObject({ status: 1, stderr: expect.stringMatching(/is the data directory of a single log/) });
  expect([statSync(data).mode & 0o777, readdirSync(data), existsSync(`${root}/etc`)]).toEqual([0o700, ["log"], false]);
});

test.each([["HTTP"], ["TLS, with a certificate for another name"]])(
  "the image's health check tells a service that lives from one that does not, over %s",
  async (over) => {
    const check = /^ {2}CMD (\[.*\])$/m.exec(sample("Dockerfile"))![1]!;
    const [command, ...args] = JSON.parse(check) as string[];
    const [key, cert] = ["key.pem", "cert.pem"].map((name) => `${temporaryFolder()}/${name}`) as [string, string];
    const made = `-newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -subj /CN=log.example -keyout ${key} -out ${cert}`;
    const tls = over === "HTTP" ? {} : { SERVICE_TLS_CERT: cert, SERVICE_TLS_KEY: key };
    if (over !== "HTTP") execFileSync("openssl", ["req", "-x509", ...made.split(" ")], { stdio: "pipe" });
    const service = await startTestService(tls);
    const { port } = service.server.address;
    const run = promisify(execFile);
    const env = { ...process.env, ...tls, PORT: `${port}` };
    await run(command!, args, { env });
    await service.close();
    await expect(run(command!, args, { env })).rejects.toMatchObject({ code: 1 });
  },
);

test("the proxies of the samples close idle connections before the service does, and take its largest body", () => {
  const largest = (BULK_BODIES * Number(TABLE.maxBodyBytes.fallback)) / 2 ** 20;
  const nginx = sample("nginx.conf");
  const caddy = sample("Caddyfile");
  expect(nginx).toContain(`client_max_body_size ${largest}m;`);
  expect(caddy).toContain(`max_size ${largest}MiB`);
  // The timer of uWebSockets.js has steps of four seconds, so that its ten are eight at least.
  const soonest = Number(TABLE.idleTimeoutSeconds.fallback) - 2;
  const [, ofNginx] = /upstream cairnlog \{[^}]*keepalive_timeout (\d+)s;/.exec(nginx)!;
  const [, ofCaddy] = /transport http \{\s*keepalive (\d+)s/.exec(caddy)!;
  for (const seconds of [ofNginx, ofCaddy]) expect(Number(seconds)).toBeLessThan(soonest);
});

/** docs/deploy/many: logs that new-log.sh makes, behind nginx and Caddy, each by its host name and by its path. */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseEnv, promisify } from "node:util";
import { expect, test } from "vitest";
import { startCaddy, startNginx } from "./proxies.js";
import { startTestService, temporaryFolder } from "./server/harness.js";
import { newSigner, registration } from "./server/signers.js";

const at = (name: string) => fileURLToPath(new URL(`../docs/deploy/many/${name}`, import.meta.url));
const run = promisify(execFile);

test.each(["nginx", "Caddy"])("behind %s, each log answers at its host name, or at its path", async (proxy) => {
  const root = temporaryFolder();
  let site = readFileSync(at(proxy === "nginx" ? "nginx.conf" : "Caddyfile"), "utf8");
  const logs = [];
  for (const [i, address] of ["a.example.org", "logs.example.org/b"].entries()) {
    const name = "ab"[i]!;
    const { stdout: key } = await run(at("new-log.sh"), [name, `https://${address}`], {
      env: { ...process.env, ROOT: root },
    });
    const settings = parseEnv(readFileSync(`${root}/etc/cairnlog/${name}.env`, "utf8")) as Record<string, string>;
    const data = { PORT: "0", SERVICE_DATA_DIR: `${root}/var/lib/cairnlog/${name}` };
    const service = await startTestService({ ...settings, ...data });
    site = site.replaceAll(`127.0.0.1:${settings.PORT}`, service.url.slice("http://".length));
    logs.push({ key, address });
  }
  const { get, url } = await (proxy === "nginx" ? startNginx : startCaddy)(site);
  for (const { key, address } of logs) {
    const [host, name] = address.split("/") as [string, string?];
    const path = name === undefined ? "" : `/${name}`;
    const shown = await get(`${path}/api/v1/log/operator-key`, host);
    expect(JSON.parse(shown.text).public_key, address).toBe(key);
    expect((await get(`${path}/tlog/checkpoint`, host)).text.split("\n")[0]).toBe(`${address}/tlog`);
    expect(await get(`${path}/`, host)).toMatchObject({ status: 200, text: expect.stringContaining("<html") });
    for (const hidden of ["/metrics", "/readyz"])
      expect(await get(path + hidden, host), hidden).toMatchObject({ status: 404 });
    const body = JSON.stringify(registration(newSigner()));
    const sent = ["-sk", "-H", `Host: ${host}`, "-H", "Content-Type: application/json", "--data-binary", body];
    const { stdout } = await run("curl", [...sent, `${url}${path}/api/v1/keys/register`]);
    expect(JSON.parse(stdout), stdout).toMatchObject({ log_entry_id: 1 });
  }
  expect(await get("/c/api/v1/health", "logs.example.org")).toMatchObject({ status: 404 });
});

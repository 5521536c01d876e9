/** nginx and Caddy with the samples of docs/deploy at other addresses, before services of a test. */
import { execFile, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { onTestFinished } from "vitest";
import { freePorts } from "./cluster/servers/cluster.js";
import { temporaryFolder } from "./server/harness.js";

// NGINX is a variable of nginx itself.
const NGINX = process.env.NGINX_PROGRAM ?? "/usr/sbin/nginx";
const CADDY = process.env.CADDY ?? "caddy";
const run = promisify(execFile);

/** nginx with the site of a sample, at another port and with a certificate of its own. */
export async function startNginx(text: string) {
  const folder = temporaryFolder();
  const [port] = await freePorts(1);
  const [key, certificate] = [join(folder, "key.pem"), join(folder, "certificate.pem")];
  const made = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-keyout", key, "-out", certificate];
  execFileSync("openssl", ["req", "-x509", ...made, "-subj", "/CN=log.example.org"], { stdio: "pipe" });
  const site = text
    .replaceAll("listen 443 ssl;", `listen 127.0.0.1:${port} ssl;`)
    .replaceAll(/\/etc\/ssl\/logs?\.example\.org\.pem/g, certificate)
    .replaceAll(/\/etc\/ssl\/logs?\.example\.org\.key/g, key);
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (what) => `${what}_temp_path ${join(folder, what)};`,
  );
  const main = `daemon off; master_process off; pid ${join(folder, "pid")}; events {} http { access_log off; ${temporary.join(" ")} ${site} }`;
  const path = join(folder, "nginx.conf");
  writeFileSync(path, main);
  const url = `https://127.0.0.1:${port}`;
  return { url, get: proxied(NGINX, ["-p", folder, "-c", path, "-e", "stderr"], folder, url) };
}

/** Runs a proxy until the test ends. @returns a request by way of it, of a client who gives itself another address each time */
function proxied(program: string, args: readonly string[], home: string, address: string) {
  const child = spawn(program, args, { stdio: ["ignore", "ignore", "pipe"], env: { ...process.env, HOME: home } });
  const failed = new Promise<never>((_, reject) => child.on("error", reject));
  const ended = once(child, "exit");
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  onTestFinished(async () => {
    child.kill();
    await ended;
  });
  let requests = 0;
  const curl = [
    "-sk",
    "-o",
    join(home, "answer"),
    "-w",
    "%{http_code} %header{ratelimit-remaining}",
    "--max-time",
    "20",
  ];
  const get = async (path: string, host: readonly string[]) => {
    const forged = ["-H", `X-Forwarded-For: 192.0.2.${++requests}`, ...host];
    const { stdout } = await Promise.race([run("curl", [...curl, ...forged, `${address}${path}`]), failed]);
    const [status, remaining] = stdout.split(" ").map(Number);
    return { status, remaining, text: readFileSync(join(home, "answer"), "utf8") };
  };
  return async (path: string, host?: string) => {
    for (;;) {
      const answer = await get(path, host === undefined ? [] : ["-H", `Host: ${host}`]).catch(
        (error: { code?: unknown }) => {
          // 7: nobody listens yet.
          if (error.code !== 7) throw error;
          if (child.exitCode !== null) throw new Error(`${program} ended: ${said}`);
        },
      );
      if (answer) return answer;
      await sleep(50);
    }
  };
}

/** Caddy with the site of a sample, at another address. @returns that, and a request by way of it as `proxied` does */
export async function startCaddy(text: string) {
  const folder = temporaryFolder();
  const [port] = await freePorts(1);
  const address = `http://127.0.0.1:${port}`;
  const path = join(folder, "Caddyfile");
  writeFileSync(
    path,
    `{\n\tadmin off\n}\n${text.replace(/^log\.example\.org \{/m, `${address} {`).replaceAll(/^(\w+\.example\.org) \{/gm, `http://$1:${port} {`)}`,
  );
  const get = proxied(CADDY, ["run", "--adapter", "caddyfile", "--config", path], folder, address);
  return { url: address, get };
}

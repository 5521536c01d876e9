/**
 * The machine on which numbers were measured: a figure without its machine, commit and load is worth nothing. Written
 * into the header of every run and into every `--json` file.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg, release, totalmem } from "node:os";
import { join } from "node:path";
const BENCH = join(import.meta.dirname, "..");
const ROOT = join(BENCH, "..");
const PACKAGES = [
    "lmdb",
    "sodium-native",
    "uWebSockets.js",
    "@chainsafe/as-sha256",
    "@noble/hashes",
    "hash-wasm",
    "hypercore",
    "merkletreejs",
    "fastify",
];
function versionOf(name) {
    const path = [BENCH, ROOT].map((at) => join(at, "node_modules", name, "package.json")).find(existsSync);
    return path === undefined ? "not installed" : JSON.parse(readFileSync(path, "utf8")).version;
}
/** The commit, with `+` if files differ from it; "unknown" outside of a checkout. */
function commit() {
    const git = (...args) => execFileSync("git", args, { cwd: ROOT, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
    try {
        return `${git("rev-parse", "--short=12", "HEAD")}${git("status", "--porcelain") ? "+" : ""}`;
    }
    catch {
        return "unknown";
    }
}
export function describeMachine() {
    return {
        date: new Date().toISOString(),
        commit: commit(),
        cpu: cpus()[0]?.model ?? "unknown",
        cpus: availableParallelism(),
        memoryGiB: Math.round(totalmem() / 2 ** 30),
        platform: `${process.platform} ${release()} ${process.arch}`,
        node: process.version,
        openssl: process.versions.openssl,
        loadAverage: loadavg().map((load) => Number(load.toFixed(2))),
        versions: Object.fromEntries(PACKAGES.map((name) => [name, versionOf(name)])),
    };
}
/** The header of a run. */
export function machineHeader(machine) {
    const { cpu, cpus: count, memoryGiB, platform, node, openssl, date, commit: at, loadAverage, versions } = machine;
    const peers = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
    return [
        `${cpu}, ${count} CPUs, ${memoryGiB} GiB, ${platform}`,
        `Node ${node}, OpenSSL ${openssl}, ${peers.join(", ")}`,
        `commit ${at}, ${date}, load average ${loadAverage.join(" ")}${(loadAverage[0] ?? 0) > 0.5 ? " (not a quiet machine)" : ""}`,
    ].join("\n");
}
//# sourceMappingURL=machine.js.map
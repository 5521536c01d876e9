/** A service as an operator runs it: the command of a built checkout, in a process of its own, without rate limits. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
/** This checkout. */
export const CHECKOUT = "/tmp/v/b9fddb7";
/** The setting for the number of threads that serve HTTP. */
const FRONT_ENDS = "SERVICE_FRONT_ENDS";
const command = (checkout) => join(checkout, "dist", "server", "cli", "main.js");
/** Whether this version has front ends. */
export const knowsFrontEnds = (checkout) => execFileSync(process.execPath, [command(checkout), "serve", "--help"], { encoding: "utf8" }).includes(FRONT_ENDS);
/** Starts a service; resolves when it listens. @throws if it ends before */
export async function startService({ checkout, dataDir, frontEnds }) {
    const child = spawn(process.execPath, [command(checkout), "serve", "--json"], {
        stdio: ["ignore", "pipe", "inherit"],
        env: {
            ...process.env,
            PORT: "0",
            SERVICE_DATA_DIR: dataDir,
            SERVICE_RATE_LIMITS: "off",
            LOG_LEVEL: "error",
            ...(frontEnds === undefined ? {} : { [FRONT_ENDS]: String(frontEnds) }),
        },
    });
    // It would go on without this process.
    const kill = () => child.kill("SIGKILL");
    process.on("exit", kill);
    const exited = once(child, "exit").then(() => null);
    const line = await Promise.race([once(createInterface({ input: child.stdout }), "line"), exited]);
    if (!line)
        throw new Error(`the service of ${checkout} did not start`);
    const { url } = JSON.parse(line[0]);
    return {
        pid: child.pid,
        port: Number(new URL(url).port),
        async size() {
            const answer = await fetch(`${url}/api/v1/log/head`);
            return (await answer.json()).entry_count;
        },
        async close() {
            child.kill("SIGTERM");
            await exited;
            process.off("exit", kill);
        },
    };
}
//# sourceMappingURL=service.js.map
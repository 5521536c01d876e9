/**
 * A service for the load generator, in a separate process: in a temporary directory, without rate limits. Ends when its
 * parent disconnects or dies; `startOwnService` is the parent's side.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readSettings, startServer } from "cairnlog/server";
/** Forks this file; resolves when the service listens. */
export async function startOwnService() {
    const child = fork(import.meta.filename, ["serve"]);
    const exited = once(child, "exit");
    const [url] = (await Promise.race([once(child, "message"), exited.then(() => [undefined])]));
    if (url === undefined)
        throw new Error("the service did not start");
    return {
        url,
        async close() {
            if (child.connected)
                child.disconnect();
            await exited;
        },
    };
}
async function serve() {
    const dataDir = mkdtempSync(join(tmpdir(), "cairnlog-load-"));
    const settings = { PORT: "0", SERVICE_DATA_DIR: dataDir, SERVICE_RATE_LIMITS: "off", LOG_LEVEL: "error" };
    // Ctrl-C reaches the whole group of processes; running requests must be answered first.
    process.on("SIGINT", () => { });
    const server = await startServer(readSettings(settings));
    process.once("disconnect", async () => {
        await server.close();
        rmSync(dataDir, { recursive: true, force: true });
    });
    process.send(server.url);
}
if (process.send && process.argv[2] === "serve")
    await serve();
//# sourceMappingURL=service.js.map
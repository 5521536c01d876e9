/** A forked process of this suite: it gets one order at a time and answers each with one reply. */
import { fork } from "node:child_process";
import { once } from "node:events";
/** Forks a module that calls `answerOrders`. */
export function startChild(module) {
    const child = fork(module, { stdio: ["ignore", "inherit", "inherit", "ipc"] });
    const exited = once(child, "exit").then(() => null);
    return {
        pid: child.pid,
        async ask(order) {
            child.send(order);
            const message = await Promise.race([once(child, "message"), exited]);
            if (!message)
                throw new Error(`${module.pathname} ended before it replied`);
            return message[0];
        },
        async close() {
            if (child.connected)
                child.disconnect();
            await exited;
        },
    };
}
/** The child's side. A handler that throws ends the process, which its parent notices. */
export function answerOrders(handle) {
    process.on("message", async (order) => process.send(await handle(order)));
    // Ctrl-C reaches the whole group of processes; the parent decides what happens.
    process.on("SIGINT", () => { });
    process.on("disconnect", () => process.exit());
}
//# sourceMappingURL=child.js.map
/** CPU of another process, thread by thread, in microseconds: Linux counts it in nanoseconds. */
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
/** Milliseconds in which a process ends what it does after its last answer: commits, garbage, merges. */
const SETTLE_MS = 100;
/** @throws if the process has ended, or the system has no `/proc` */
function read(pid) {
    const times = new Map();
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
        try {
            times.set(thread, Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]) / 1000);
        }
        catch {
            // This thread has just ended.
        }
    }
    return times;
}
/**
 * What `work` costs the process. A thread that ends meanwhile is not counted: a service ends only threads that had
 * nothing to do.
 */
export async function cpuOfProcess(pid, work) {
    const before = read(pid);
    const result = await work();
    await sleep(SETTLE_MS);
    const after = read(pid);
    const grown = [...after].map(([thread, time]) => [thread, time - (before.get(thread) ?? 0)]);
    return {
        cpu: {
            all: grown.reduce((sum, [, time]) => sum + time, 0),
            main: grown.find(([thread]) => thread === String(pid))?.[1] ?? Number.NaN,
        },
        result,
    };
}
//# sourceMappingURL=threads.js.map
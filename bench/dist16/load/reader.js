/**
 * A process that reads one path repeatedly on keep-alive connections, as cheaply as possible: answers have one length,
 * so it only counts bytes. Forked by `reads.ts`; a client that costs more than the server would measure itself.
 */
import { once } from "node:events";
import { connect } from "node:net";
const requestOf = ({ port, path }) => Buffer.from(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`);
/** Bytes of one whole answer, and the length of its body; after this nothing needs to be parsed. */
export async function answerSize(task) {
    const socket = connect({ port: task.port, host: "127.0.0.1", noDelay: true });
    await once(socket, "connect");
    socket.write(requestOf({ ...task, connections: 1, milliseconds: 0 }));
    let received = "";
    for await (const data of socket) {
        received += data.toString("latin1");
        const end = received.indexOf("\r\n\r\n") + 4;
        const body = Number(/content-length: (\d+)/i.exec(received)?.[1]);
        if (end < 4 || received.length < end + body)
            continue;
        if (!received.startsWith("HTTP/1.1 200"))
            throw new Error(`${task.path}: ${received.slice(0, end)}`);
        return { whole: end + body, body };
    }
    throw new Error(`${task.path}: the connection was closed`);
}
async function read(task) {
    const request = requestOf(task);
    const { whole } = await answerSize(task);
    const latencies = [];
    const started = performance.now();
    const until = started + task.milliseconds;
    const client = async () => {
        const socket = connect({ port: task.port, host: "127.0.0.1", noDelay: true });
        await once(socket, "connect");
        let pending = whole;
        let sent = performance.now();
        socket.on("data", (data) => {
            pending -= data.length;
            if (pending < 0)
                socket.destroy(new Error(`${task.path}: an answer of another length`));
            if (pending !== 0)
                return;
            const now = performance.now();
            latencies.push((now - sent) * 1000);
            if (now >= until)
                return socket.end();
            pending = whole;
            sent = now;
            socket.write(request);
        });
        socket.write(request);
        await once(socket, "close");
    };
    await Promise.all(Array.from({ length: task.connections }, client));
    const sorted = Float64Array.from(latencies).sort();
    const at = (share) => sorted[Math.floor(sorted.length * share)];
    return {
        requests: latencies.length,
        seconds: (performance.now() - started) / 1000,
        p50: at(0.5),
        p99: at(0.99),
    };
}
// When imported for `answerSize`, this file has no parent to serve; when forked, it reads as often as its messages say.
if (process.send)
    process.on("message", async (task) => process.send(await read(task)));
//# sourceMappingURL=reader.js.map
/**
 * Servers that only answer, for `http` to compare with: node:http, fastify and bare uWebSockets.js, each with one
 * constant JSON body of a given length.
 */
import uWS from "uWebSockets.js";
import { once } from "node:events";
import { createServer } from "node:http";
import fastify from "fastify";
const HOST = "127.0.0.1";
const TYPE = "application/json; charset=utf-8";
/** A JSON string of this many bytes. */
const bodyOf = (bytes) => `"${"x".repeat(bytes - 2)}"`;
async function nodeEcho(bytes) {
    const body = Buffer.from(bodyOf(bytes));
    const server = createServer((_, response) => {
        response.writeHead(200, { "content-type": TYPE, "content-length": body.length });
        response.end(body);
    });
    server.listen(0, HOST);
    await once(server, "listening");
    const close = async () => {
        server.closeAllConnections();
        server.close();
        await once(server, "close");
    };
    return { name: "node:http echo", port: server.address().port, close };
}
async function fastifyEcho(bytes) {
    const body = Buffer.from(bodyOf(bytes));
    const app = fastify({ forceCloseConnections: true });
    app.get("/*", (_, reply) => reply.type(TYPE).send(body));
    await app.listen({ port: 0, host: HOST });
    return { name: "fastify echo", port: app.server.address().port, close: () => app.close() };
}
async function listening(name, app) {
    const socket = await new Promise((resolve, reject) => {
        app.listen(HOST, 0, (bound) => (bound ? resolve(bound) : reject(new Error("uWS cannot listen"))));
    });
    const close = async () => {
        app.close();
    };
    return { name, port: uWS.us_socket_local_port(socket), close };
}
async function uwsEcho(bytes) {
    const body = Buffer.from(bodyOf(bytes));
    const app = uWS.App();
    app.get("/*", (response) => {
        response.cork(() => response.writeHeader("content-type", TYPE).end(body));
    });
    return listening("bare uWS echo", app);
}
/** Bare uWS that reads the body of a POST and answers it: the cost of HTTP alone for an attestation. */
export async function openReceiver(bytes) {
    const body = Buffer.from(bodyOf(bytes));
    const app = uWS.App();
    app.post("/*", (response) => {
        response.onAborted(() => { });
        response.onData((_, isLast) => {
            if (isLast)
                response.cork(() => response.writeHeader("content-type", TYPE).end(body));
        });
    });
    return listening("bare uWS receiver", app);
}
/** All three, listening; bare uWS first. */
export const openEchoes = (bytes) => Promise.all([uwsEcho(bytes), nodeEcho(bytes), fastifyEcho(bytes)]);
//# sourceMappingURL=floors.js.map
/** A keep-alive connection of the load generators: whole requests as bytes, one at a time. */
import { once } from "node:events";
import { connect } from "node:net";
import { connect as connectSecurely } from "node:tls";

export interface Place {
  readonly host: string;
  readonly port: number;
  /** Over TLS, with any certificate. */
  readonly secure?: boolean;
}

export interface Answer {
  /** 0 for a connection that broke. */
  readonly status: number;
  readonly body: string;
}

export interface Connection {
  /** Sends a request and resolves with its answer; with status 0 if the connection breaks. */
  exchange(request: Buffer): Promise<Answer>;
  close(): void;
}

/** A whole request, including headers, whose body is this JSON text. */
export function postRequest({ host, port }: Place, path: string, body: string): Buffer {
  return Buffer.from(
    `POST ${path} HTTP/1.1\r\nHost: ${host}:${port}\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

/** Connects. @throws the error of the socket if it cannot */
export async function openConnection({ host, port, secure = false }: Place): Promise<Connection> {
  const socket = secure
    ? connectSecurely({ port, host, rejectUnauthorized: false }).setNoDelay()
    : connect({ port, host, noDelay: true });
  await once(socket, secure ? "secureConnect" : "connect");
  let received = "";
  /** Length of the whole answer; 0 until its headers are there. */
  let whole = 0;
  let bodyAt = 0;
  let answered: (answer: Answer) => void = () => {};
  const broken = () => answered({ status: 0, body: "" });
  socket.on("data", (data) => {
    received += data.toString("latin1");
    if (whole === 0) {
      bodyAt = received.indexOf("\r\n\r\n") + 4;
      if (bodyAt < 4) return;
      whole = bodyAt + Number(/content-length: (\d+)/i.exec(received.slice(0, bodyAt))?.[1]);
    }
    if (received.length >= whole) answered({ status: Number(received.slice(9, 12)), body: received.slice(bodyAt) });
  });
  socket.on("close", broken).on("error", broken);
  return {
    exchange(request) {
      received = "";
      whole = 0;
      return new Promise((resolve) => {
        answered = resolve;
        if (socket.destroyed) broken();
        else socket.write(request);
      });
    },
    close: () => socket.destroy(),
  };
}

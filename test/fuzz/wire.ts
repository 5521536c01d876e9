/** Requests as bytes, so that no HTTP library corrects them. */
import { connect } from "node:net";

export interface Input {
  readonly method: string;
  /** With the query, as in the request line. */
  readonly path: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: Buffer | null;
}

export interface Output {
  /** 0: the connection was closed without an answer; −1: there was no answer in time. */
  readonly status: number;
  /** The head of the answer, unchanged. */
  readonly head: string;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Buffer;
}

const TIMEOUT_MS = 20_000;

export function bytesOf({ method, path, headers, body }: Input): Buffer {
  const lines = [`${method} ${path} HTTP/1.1`, ...headers.map(([name, value]) => `${name}: ${value}`)];
  if (body && !headers.some(([name]) => /^(content-length|transfer-encoding)$/i.test(name)))
    lines.push(`Content-Length: ${body.length}`);
  return Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), body ?? Buffer.alloc(0)]);
}

const LAST_CHUNK = Buffer.from("0\r\n\r\n");

function unchunked(bytes: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const line = bytes.indexOf("\r\n", at);
    const length = Number.parseInt(bytes.toString("latin1", at, line), 16);
    if (!(length > 0)) break;
    parts.push(bytes.subarray(line + 2, line + 2 + length));
    at = line + 4 + length;
  }
  return Buffer.concat(parts);
}

export function send(port: number, input: Input): Promise<Output> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const socket = connect(port, "127.0.0.1");
    const done = (status?: number) => {
      clearTimeout(timer);
      socket.destroy();
      const all = Buffer.concat(chunks);
      const end = all.indexOf("\r\n\r\n");
      const head = all.subarray(0, end < 0 ? all.length : end).toString("latin1");
      const headers = new Map(
        head
          .split("\r\n")
          .slice(1)
          .map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 1).trim()]),
      );
      const answered = Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? 0);
      const rest = end < 0 ? Buffer.alloc(0) : all.subarray(end + 4);
      const body = headers.has("transfer-encoding") ? unchunked(rest) : rest;
      resolve({ status: answered || (status ?? 0), head, headers, body });
    };
    const timer = setTimeout(() => done(-1), TIMEOUT_MS);
    socket.on("data", (data) => {
      chunks.push(data);
      const all = chunks.length === 1 ? data : Buffer.concat(chunks);
      const end = all.indexOf("\r\n\r\n");
      if (end < 0) return;
      const head = all.subarray(0, end).toString("latin1");
      if (/\r\ntransfer-encoding: *chunked/i.test(head)) {
        if (all.subarray(-5).equals(LAST_CHUNK)) done();
        return;
      }
      const length = Number(
        /\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? (/^\S+ (?:204|304) /.test(head) ? 0 : Number.NaN),
      );
      if (input.method === "HEAD" || all.length - end - 4 >= length) done();
    });
    socket.on("error", () => done()).on("close", () => done());
    socket.write(bytesOf(input));
  });
}

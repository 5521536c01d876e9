/** A server that lies between a publisher and another one: it sees every request, and decides what becomes of it. */
import { createServer, type IncomingMessage, type ServerResponse, request as send } from "node:http";
import { listening } from "./logs.js";

export interface Asked {
  readonly request: IncomingMessage;
  readonly body: Buffer;
  readonly response: ServerResponse;
}

/** Sends a request on; resolves when it was answered. @param isAnswered whether the asker gets the answer, too */
export type Pass = (asked: Asked, isAnswered?: boolean) => Promise<void>;

/** Stands before a server. @returns its address */
export const before = (url: string, answer: (asked: Asked, pass: Pass) => unknown): Promise<string> =>
  listening(
    createServer((request, response) => {
      const chunks: Buffer[] = [];
      request
        .on("data", (chunk) => chunks.push(chunk))
        .on("end", () => {
          void answer({ request, response, body: Buffer.concat(chunks) }, passTo(url));
        });
    }),
  );

// Requests are signed for the name under which the proxy was asked: the header goes on as it is.
const passTo =
  (url: string): Pass =>
  ({ request: { method, headers, url: path }, body, response }, isAnswered = true) =>
    new Promise((resolve, reject) => {
      const onward = send(new URL(url).origin + path, { method, headers, agent: false }, (answer) => {
        if (isAnswered) answer.pipe(response.writeHead(answer.statusCode!, answer.headers));
        answer.resume().on("end", resolve);
      });
      onward.on("error", reject).end(body);
    });

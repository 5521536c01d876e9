/** `cairnlog webhook listen`: checks and shows deliveries, for developers of receivers. */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { CairnlogError } from "../../../engine/base/error.js";
import { webhookKey } from "../../../engine/registry/webhooks/input.js";
import { deliveryFault } from "../../webhooks/signature.js";
import { flag, text, textOr, type Values } from "../line/subcommand.js";
import { required, UsageError } from "../line/usage.js";
import { interruptible } from "../terminal/interrupt.js";
import { printableJson, steerless } from "../terminal/printable.js";

/** Maximum size of a body. Deliveries have a few kilobytes. */
const MAX_BODY_BYTES = 1 << 20;
const MAX_PORT = 65_535;

export const LISTEN_OPTIONS = {
  port: text("N", "TCP port; 0 takes a free one"),
  host: textOr("ADDRESS", "127.0.0.1", "address to listen on"),
  secret: text("SECRET", "the secret of the subscription; other users of this machine can see it"),
  "secret-file": text("FILE", "a file that holds it"),
  json: flag("answer in JSON; listen: one line for each delivery, {valid, fault, id, timestamp, body}"),
} as const;

/** Listens until interrupted. @throws UsageError; CairnlogError `precondition-failed` when it cannot listen */
export async function listenForDeliveries(values: Values<typeof LISTEN_OPTIONS>): Promise<number> {
  const { host, json: asJson } = values;
  const secret = readWebhookSecret(values);
  const server = receiver(secret, (delivery) => console.log(asJson ? printableJson(delivery) : describe(delivery)));
  await listen(server, readPort(required(values.port, "--port")), host);
  const url = addressOf(server, host);
  console.log(asJson ? printableJson({ url }) : `listening on ${url}`);
  await interruptible((signal) => once(signal, "abort"));
  server.close();
  server.closeAllConnections();
  return 0;
}

/** The secret of a subscription, from either option. @throws UsageError */
export function readWebhookSecret(values: {
  readonly secret?: string | undefined;
  readonly "secret-file"?: string | undefined;
}): string {
  const { secret: given, "secret-file": file } = values;
  if ((given === undefined) === (file === undefined)) throw new UsageError("give either --secret or --secret-file");
  const secret = given ?? readFileSync(file!, "utf8").trim();
  if (!webhookKey(secret)?.length) throw new UsageError("a secret that begins with whsec_ goes on in base64");
  return secret;
}

/** A received delivery. Unless it is `valid`, anybody may have sent it. */
interface Received {
  readonly valid: boolean;
  /** The reason why it is not valid. */
  readonly fault: string | null;
  readonly id: string | null;
  /** Seconds since the epoch, as sent. */
  readonly timestamp: string | null;
  /** The parsed JSON, or the text of any other body. */
  readonly body: unknown;
}

function receiver(secret: string, show: (delivery: Received) => void): Server {
  return createServer((request, response) => {
    const answer = (status: number) => response.writeHead(status).end();
    readBody(request).then(
      (body) => {
        if (!body) return answer(413);
        const delivery = check(secret, request.headers, body);
        show(delivery);
        answer(delivery.valid ? 204 : 401);
      },
      // The sender has closed the connection.
      () => response.destroy(),
    );
  });
}

/** Undefined for a body that is too long. */
async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > MAX_BODY_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function check(secret: string, headers: IncomingHttpHeaders, body: Buffer): Received {
  const text = (name: string) => [headers[name] ?? []].flat()[0];
  const [id, timestamp] = [text("webhook-id"), text("webhook-timestamp")];
  const signed = { id, timestamp, signature: text("webhook-signature") };
  const fault = deliveryFault(secret, signed, body, Math.floor(Date.now() / 1000)) ?? null;
  return { valid: fault === null, fault, id: id ?? null, timestamp: timestamp ?? null, body: parsed(body) };
}

function parsed(body: Buffer): unknown {
  const text = body.toString("utf8");
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function describe({ valid, fault, id, body }: Received): string {
  const text = `${valid ? "valid  " : "INVALID"} ${id ?? "(no id)"}${fault === null ? "" : ` ${fault}`}\n${JSON.stringify(body, null, 2)}`;
  // The text comes from the network and must not control the terminal.
  return steerless(text);
}

function readPort(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (!(port <= MAX_PORT)) throw new UsageError(`--port must be a number from 0 to ${MAX_PORT}, not ${text}`);
  return port;
}

async function listen(server: Server, port: number, host: string): Promise<void> {
  server.listen(port, host);
  try {
    await once(server, "listening");
  } catch (cause) {
    const reason = `Cannot listen on ${host} port ${port}: the port is in use, or the address is not this machine's.`;
    throw new CairnlogError("precondition-failed", reason, { cause });
  }
}

function addressOf(server: Server, host: string): string {
  return `http://${host.includes(":") ? `[${host}]` : host}:${(server.address() as AddressInfo).port}`;
}

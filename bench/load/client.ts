/**
 * A client process of the load generator: signs attestations beforehand, then sends them over keep-alive connections, one
 * request at a time on each.
 */
import { createHash, generateKeyPairSync, sign } from "node:crypto";
import { once, setMaxListeners } from "node:events";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Done, Order, Prepare, Reply, Sample, Start } from "./protocol.js";

const SAMPLE_EVERY = 100;

const stopped = new AbortController();
// Every connection that waits until its request is due listens.
setMaxListeners(0, stopped.signal);

/** Whole requests, including headers. Members are in canonical order, so the sent bytes are the signed bytes. */
function prepare({ requests, name, host, port }: Prepare): Buffer[] {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const public_key_pem = publicKey.export({ type: "spki", format: "pem" });
  return Array.from({ length: requests }, (_, n) => {
    const title = `${name} document ${n}`;
    const content_hash = `sha256:${createHash("sha256").update(title).digest("hex")}`;
    const manifest = { attestations: [], document: { content_hash, tags: ["load"], title } };
    const signature = sign(null, Buffer.from(JSON.stringify(manifest)), privateKey).toString("base64");
    const body = JSON.stringify({ manifest, public_key_pem, signature, attestation_type: "authorship" });
    return Buffer.from(
      `POST /api/v1/attestations HTTP/1.1\r\nHost: ${host}:${port}\r\nContent-Type: application/json\r\n` +
        `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
  });
}

interface Answer {
  /** 0 for a connection that broke. */
  readonly status: number;
  readonly body: string;
}

/** One connection; `exchange` sends a request and resolves with its answer. */
async function openConnection({ host, port }: Prepare) {
  const socket = connect({ port, host, noDelay: true });
  await once(socket, "connect");
  let received = "";
  let answered: (answer: Answer) => void = () => {};
  const broken = () => answered({ status: 0, body: "" });
  socket.on("data", (data) => {
    received += data.toString("latin1");
    const end = received.indexOf("\r\n\r\n");
    if (end < 0) return;
    const length = /content-length: (\d+)/i.exec(received.slice(0, end))?.[1];
    if (received.length >= end + 4 + Number(length))
      answered({ status: Number(received.slice(9, 12)), body: received.slice(end + 4) });
  });
  socket.on("close", broken).on("error", broken);
  return {
    exchange(request: Buffer): Promise<Answer> {
      received = "";
      return new Promise((resolve) => {
        answered = resolve;
        if (socket.destroyed) broken();
        else socket.write(request);
      });
    },
    close: () => socket.destroy(),
  };
}

async function run(requests: readonly Buffer[], prepared: Prepare, { rate }: Start): Promise<Done> {
  const latencies: number[] = [];
  const finished: number[] = [];
  const statuses: Record<number, number> = {};
  const count = (status: number) => {
    statuses[status] = (statuses[status] ?? 0) + 1;
  };
  const started = performance.now();
  let next = 0;

  const work = async () => {
    const connection = await openConnection(prepared).catch(() => count(0));
    if (!connection) return;
    while (next < requests.length && !stopped.signal.aborted) {
      const number = next++;
      let due = performance.now();
      if (rate !== undefined) {
        // Open loop: the delay is counted from the planned time of the request, not from the time when it was really
        // sent.
        due = started + (1000 * number) / rate;
        const wait = due - performance.now();
        if (wait > 0) await sleep(wait, undefined, { signal: stopped.signal }).catch(() => {});
        if (stopped.signal.aborted) break;
      }
      const { status, body } = await connection.exchange(requests[number]!);
      const now = performance.now();
      count(status);
      if (status === 0) return;
      // A refusal is quick; its time would flatter the rest.
      if (status !== 200) continue;
      latencies.push(now - due);
      finished.push(now - started);
      if (number % SAMPLE_EVERY === 0) {
        const { entry_hash, leaf_index, sth } = JSON.parse(body) as Sample;
        void tell({ kind: "sampled", sample: { entry_hash, leaf_index, sth } });
      }
    }
    connection.close();
  };
  await Promise.all(Array.from({ length: prepared.connections }, work));
  return { kind: "done", latencies, finished, statuses };
}

const tell = (reply: Reply) => new Promise<void>((resolve) => process.send!(reply, undefined, {}, () => resolve()));

let prepared: { readonly order: Prepare; readonly requests: readonly Buffer[] } | null = null;
process.on("message", async (order: Order) => {
  if (order.kind === "stop") stopped.abort();
  else if (order.kind === "prepare") {
    prepared = { order, requests: prepare(order) };
    await tell({ kind: "ready" });
  } else if (prepared) {
    // A channel that is closed too soon drops messages that are not sent yet.
    await tell(await run(prepared.requests, prepared.order, order));
    process.disconnect();
  }
});
// Ctrl-C reaches the whole group of processes; the parent decides what happens.
process.on("SIGINT", () => {});
// Without the parent there is nobody to work for.
process.on("disconnect", () => process.exit());

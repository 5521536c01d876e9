/** The log under a service that does not run, changed by a process of its own: entries, and subscriptions of webhooks. */
import { hash } from "node:crypto";
import { readSettings, startServer } from "cairnlog/server";
import { answerOrders, type Child, startChild } from "../front/child.js";
import { signerIn } from "../front/crowd.js";

const BATCH = 500;
/** Signers, tags and words of titles of the entries. */
const [SIGNERS, TAGS, WORDS] = [1_000, 100, 5_000];
/** A key has at most 20 subscriptions. */
const SUBSCRIPTIONS_EACH = 20;
const OWNERS = "owners of subscriptions";

/** Appends attestations until the log has `entries`. */
interface Fill {
  readonly kind: "fill";
  readonly entries: number;
}

/** Subscribes to every event: `count` subscriptions, at these URLs in turn. */
interface Subscribe {
  readonly kind: "subscribe";
  readonly count: number;
  readonly urls: readonly string[];
}

/** Ends all subscriptions. */
interface Unsubscribe {
  readonly kind: "unsubscribe";
}

type Order = (Fill | Subscribe | Unsubscribe) & { readonly dataDir: string };

/** An attestation as the service records it; nobody has signed it, and nothing here verifies it. */
export function attestation(n: number) {
  const document = hash("sha256", `document ${n}`);
  return {
    event_type: "https://example.org/predicates/authorship/v1",
    payload: {
      attestation_id: `attestation-${n}`,
      attestation_type: "authorship",
      document_hash: `sha256:${document}`,
      document_title: `document ${n} about w${n % WORDS} and w${(n * 7919) % WORDS}`,
      intent_statement: null,
      manifest_hash: document,
      signature: `${document}${document}`,
      signature_algorithm: "ed25519",
      signer_key_fingerprint: `sha256:${hash("sha256", `signer ${n % SIGNERS}`)}`,
      tags: [`tag ${n % TAGS}`],
      timestamp: "2026-01-01T00:00:00.000Z",
    },
  };
}

async function change(order: Order): Promise<null> {
  const { registry, close } = await startServer(
    readSettings({
      SERVICE_DATA_DIR: order.dataDir,
      PORT: "0",
      LOG_LEVEL: "error",
      SERVICE_FRONT_ENDS: "0",
      SERVICE_WEBHOOK_ALLOW_PRIVATE: "on",
    }),
  );
  const { keys, log, writer, webhooks } = registry;
  if (order.kind === "fill") {
    for (let n = log.size; n < order.entries; n += BATCH)
      await writer.append(Array.from({ length: Math.min(BATCH, order.entries - n) }, (_, i) => attestation(n + i)));
  } else if (order.kind === "subscribe") {
    for (let n = 0; n < order.count; n += SUBSCRIPTIONS_EACH) {
      const { public_key_pem: public_key } = signerIn(OWNERS, log.size + n);
      const { fingerprint } = await keys.register({ public_key, pseudonym: `owner ${n}`, key_algorithm: "ed25519" });
      for (let i = n; i < Math.min(n + SUBSCRIPTIONS_EACH, order.count); i++)
        await webhooks.subscribe({ url: `${order.urls[i % order.urls.length]}${i}` }, fingerprint);
    }
  } else {
    for (const { key, row } of webhooks.all()) await webhooks.deactivate(key, row.owner_fingerprint);
  }
  await close();
  return null;
}

/** Does this in a process of its own. */
export async function changeLog(order: Order): Promise<void> {
  const child: Child = startChild(new URL(import.meta.url));
  try {
    await child.ask(order);
  } finally {
    await child.close();
  }
}

if (process.argv[1] === import.meta.filename) answerOrders(change);

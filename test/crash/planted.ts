/** Faults in the service that rounds of crashes must find. */
import type { PlantedFault } from "../reliability/planted.js";

export const CRASH_FAULTS: readonly PlantedFault[] = [
  {
    name: "acknowledges before the commit",
    file: "engine/log/write/writing.js",
    text: "await this.#applier.commit({ firstIndex, batch: packed, rows: recorded }, made);",
    replacement: "this.#applier.commit({ firstIndex, batch: packed, rows: recorded }, made).catch(() => {});",
  },
  {
    name: "writes state in a transaction after that of the batch",
    file: "engine/store/store.js",
    text: "for (const change of changes.rows)\n                this.#put(change);",
    replacement: "setTimeout(() => { for (const change of changes.rows) this.#put(change); }, 2);",
  },
  {
    name: "loses a row of state",
    file: "engine/log/write/writing.js",
    text: "const { recorded, derived } = layer.split();",
    replacement:
      "const { recorded, derived: all } = layer.split(); const derived = all.slice(batch.firstIndex % 7 === 3 ? 1 : 0);",
  },
  {
    name: "stores the first head of a batch for all of its sizes",
    file: "engine/log/write/writing.js",
    text: "{ ...shared, roots, timestamp",
    replacement: "{ ...shared, roots: Buffer.concat(events.map(() => roots.subarray(0, 32))), timestamp",
  },
  {
    name: "gives the last id out again after a restart",
    file: "engine/log/read/frontier.js",
    text: "this.size = last ? last.firstIndex + last.count : 0;",
    replacement: "this.size = last ? last.firstIndex + last.count - (last.count > 1 ? 1 : 0) : 0;",
  },
  {
    name: "forgets after a restart by what the newest entries are found",
    file: "engine/log/apply/derive.js",
    text: "for (let index = postings.size; index < size; index++)",
    replacement: "for (let index = size; index < size; index++)",
  },
  {
    name: "counts a delivery as made before the endpoint has answered",
    file: "server/webhooks/attempts.js",
    text: "(signal) => this.#parts.send(request, signal), {",
    replacement: "async (signal) => { this.#parts.send(request, signal); return { isDelivered: true }; }, {",
  },
  {
    name: "finds no delivery for some of the entries that a subscription selects",
    file: "server/webhooks/log-walk.js",
    text: "if (leafIndex < lane.next)",
    replacement: "if (leafIndex < lane.next || leafIndex % 7 === 0)",
  },
  {
    name: "counts a notification that it does not write",
    file: "engine/registry/requests/notifications.js",
    text: 'transaction.put("notifications", [fingerprint, id], { ...rowAt(id), created_at, read: false });',
    replacement: "",
  },
  {
    name: "keeps a password in memory only",
    file: "engine/registry/access/commands.js",
    text: 'transaction.put("passwords", fingerprint, { hash, version });',
    replacement: "",
  },
  {
    name: "serves heads that are signed anew",
    file: "engine/log/view/view.js",
    text: "return (treeSize <= this.#size && this.#reader.head(treeSize)) || null;",
    replacement:
      "const head = treeSize <= this.#size && this.#reader.head(treeSize); return head ? { ...head, timestamp: new Date().toISOString() } : null;",
  },
  {
    name: "records an attestation again when it is sent again",
    file: "engine/registry/attestations/commands.js",
    text: ": transaction.first(signed.submission_term);",
    replacement: ": undefined; signed = { ...signed, may_differ: true };",
  },
  {
    name: "shows what is withheld",
    file: "engine/log/operator/entries.js",
    text: 'state.put("withheld", entry_id, { withheld_by: event.id, entry_hash, ...(shown_hash && { shown_hash }) });',
    replacement: ";",
  },
  {
    name: "leaves what is withheld on the disk",
    file: "engine/log/history/erase.js",
    text: "if (!pending.payloads)",
    replacement: "if (true)",
  },
  {
    name: "goes on behind the end of the log after a restart",
    file: "engine/log/read/frontier.js",
    text: "this.frozen = frozenBy(newest);",
    replacement: "",
  },
];

/** Faults that the injected failures must find. */
export const ENGINE_FAULTS: readonly PlantedFault[] = [
  {
    name: "stores whatever the signer answers",
    file: "engine/crypto/signer/operator-key.js",
    text: "if (answer.length !== count || !isSigned)",
    replacement: "if (false)",
  },
  {
    name: "goes on from memory when a commit has failed",
    file: "engine/log/write/sequencer.js",
    text: "await this.#parts.recover();",
    replacement: "",
  },
  {
    name: "lets batches pass that were built on one that failed",
    file: "engine/log/write/sequencer.js",
    text: "if (this.#failure)\n            throw this.#failure.error;",
    replacement: "",
  },
  {
    name: "keeps the events of a command that was refused",
    file: "engine/log/write/forming.js",
    text: "this.events.length = this.payloads.length = events;",
    replacement: "",
  },
  {
    name: "gives postings up when they cannot be written once",
    file: "engine/store/postings/postings.js",
    text: "this.#failure = undefined;",
    replacement: "",
  },
  {
    name: "writes postings again that were on disk all the same",
    file: "engine/store/postings/postings.js",
    text: "this.#failure = cause;\n            try {\n                this.#adopt();",
    replacement: "this.#failure = cause;\n            try {",
  },
  {
    name: "leaves tasks behind a worker that died",
    file: "engine/crypto/pool/pool.js",
    text: "minThreads: 1,",
    replacement: "minThreads: 0,",
  },
  {
    name: "passes the error of a dead worker on",
    file: "engine/crypto/pool/pool.js",
    text: 'throw new CairnlogError("worker-failed", "A worker thread failed before it finished its task.", { cause });',
    replacement: "throw cause;",
  },
];

/** Reads the log from the service that this page came from. */
import Type from "typebox";
import { KeyDetail } from "../../../../engine/contract/identity/keys.js";
import {
  EntryPage,
  LogHead,
  OperatorPublicKey,
  TreeHead as TreeHeadSchema,
} from "../../../../engine/contract/log/log.js";
import { type Entry, OperatorKeys, verifyCheckpoint } from "../../../../engine/verify/index.js";
import type { ProvenEntry } from "../../../client/index.js";
import { raise } from "../alarm.js";
import { matchingEntries, neighbours, provenEntries, provenEntry } from "../entries.js";
import { recall, remember } from "../memory.js";
import { client, http, store } from "../service.js";
import type { Source } from "../source.js";
import { timelyFetch } from "../timely.js";
import { lastVisit, operators, sight, signedLogName } from "../watching.js";

let isKeyCompared = false;
let isNameSought = false;

export const serviceSource: Source = {
  kind: "service",
  async look() {
    if (!isKeyCompared) await compareKeys();
    const head = (await isStillEmpty()) ? null : ((await client.log.head()) ?? null);
    if (head) operators.value = await client.log.operators();
    if (head && !isNameSought) void learnName();
    return head;
  },
  /** If a head is signed by another key, the service itself may show that key now. */
  async accused() {
    isKeyCompared = false;
    await compareKeys();
  },
  entries: provenEntries,
  matching: (filter, part) => matchingEntries({ path: "/log", filter }, part),
  entry: (id) => client.log.entry(id),
  opened: provenEntry,
  neighbours: (proven) => neighbours(proven as ProvenEntry),
  newestId: async () => (await http.get(LogHead, "/log/head")).head?.id,
  async naming(document_hash, page, per_page) {
    const { entries, total } = await http.get(EntryPage, "/log/audit-trail", { document_hash, page, per_page });
    return { entries: entries as Entry[], total };
  },
  key: (fingerprint) => http.get(KeyDetail, `/keys/${encodeURIComponent(fingerprint)}`),
  operatorKey: () => client.log.operatorKey(),
  async evidence(proven) {
    const { proof, head } = proven as ProvenEntry;
    const { chain } = await client.log.knownOperators();
    return { proof, tree_head: head, ...(chain.length > 1 && { operators: chain }) };
  },
  judged: (check) => check,
  proofFile: async ({ entry }) => (await client.tlog.proofFile(entry.id)).text,
};

/**
 * Whether the log has no entry, as the service says of one in which this browser has never seen any. A head cannot be
 * asked for then; the next entry brings one, which is verified.
 */
async function isStillEmpty(): Promise<boolean> {
  const known = sight.value.status === "proven" ? sight.value.head : (await store.load())?.head;
  return !known && (await http.get(LogHead, "/log/head")).entry_count === 0;
}

/** Compares the operator keys of the service with the pinned one; on the first visit, pins the newest. */
async function compareKeys(): Promise<void> {
  const pinned = await client.log.operatorKey();
  operators.value = OperatorKeys.of(pinned);
  const shown = await http.get(OperatorPublicKey, "/log/operator-key");
  isKeyCompared = true;
  if (shown.fingerprint === pinned.fingerprint) return;
  // Handed over by the pinned key: whether the log has that, too, the client checks with the next head.
  const chain = await OperatorKeys.verify(shown.operators, pinned).catch(() => null);
  if (chain?.current.fingerprint === shown.fingerprint) return;
  const head = await http.get(TreeHeadSchema, "/log/sth").catch(() => null);
  raise({
    detail: "The service shows an operator key that is not the one that this browser pinned.",
    evidence: {
      operatorKey: pinned.pem,
      operators: OperatorKeys.of(pinned).chain,
      known: lastVisit?.head ?? null,
      shown: head,
      proof: null,
      entry: null,
    },
    keys: { pinned: pinned.fingerprint, shown: shown.fingerprint },
  });
}

/** The log's name, as a checkpoint that this key signed had it. */
const KnownName = Type.Object({ key_id: Type.String(), name: Type.String() });

/**
 * Reads the log's name. The operator's signature covers it. Without a name the page shows the service's address.
 */
async function learnName(): Promise<void> {
  isNameSought = true;
  const signer = operators.value?.current.fingerprint;
  const known = recall("name", KnownName);
  if (known && known.key_id === signer) {
    signedLogName.value = known.name;
    return;
  }
  const response = await timelyFetch("api/v1/log/checkpoint").catch(() => null);
  const note = response?.ok ? await response.text().catch(() => null) : null;
  // The next look asks again.
  isNameSought = note !== null;
  if (note === null || !operators.value) return;
  const name = note.slice(0, note.indexOf("\n"));
  if (!(await verifyCheckpoint(note, operators.value, name))) return;
  signedLogName.value = name;
  remember("name", { key_id: signer, name });
}

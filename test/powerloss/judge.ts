/** What must be true of a state, given what clients knew at the moment of the power failure. */
import type { Key, TableName } from "#cairnlog/engine/store/schema/schema.js";
import type { RowFact } from "../crash/ledger.js";
import type { KnownReceipt, KnownRow, ShownHead } from "./known.js";
import type { Answer, Found } from "./openers.js";
import type { Recording } from "./recordings.js";

const json = (value: unknown): string => JSON.stringify(value);

/** What was known at one moment. */
export class Moment {
  readonly receipts: readonly KnownReceipt[];
  readonly heads: readonly ShownHead[];
  readonly facts: readonly RowFact[];
  /** Titles of attestations whose payload was withheld, by the ids of their entries. */
  readonly withheld: ReadonlyMap<number, string>;
  readonly #recording: Recording;
  readonly #cut: number;

  constructor(recording: Recording, cut: number) {
    const { known } = recording;
    const past = <T extends { readonly at: number }>(list: readonly T[]) => list.filter(({ at }) => at <= cut);
    this.#recording = recording;
    this.#cut = cut;
    this.receipts = past(known.receipts);
    this.heads = past(known.heads);
    this.facts = factsOf(past(known.rows));
    const isWithheld = new Set(this.receipts.map(({ says }) => says.entry_id));
    this.withheld = new Map([...known.asked].filter(([id]) => isWithheld.has(id)));
  }

  get rows(): (readonly [TableName, Key])[] {
    return this.facts.map(({ table, key }) => [table, key]);
  }

  /** @param heads of all states so far, by size */
  judge(answer: Answer, heads: Map<number, string>): string[] {
    if ("ended" in answer) return [`opening it ended the process: ${answer.ended}`];
    if ("refused" in answer) return [`it does not open: ${answer.refused}`];
    return [
      ...answer.wrong,
      ...this.#judgeSize(answer),
      ...this.receipts.flatMap((receipt) => judgeReceipt(receipt, answer)),
      ...this.receipts.flatMap((receipt) => this.#judgePayload(receipt, answer)),
      ...this.#judgeHeads(answer, heads),
      ...this.facts.flatMap((fact, i) => judgeRow(fact, answer.rows[i]!)),
    ];
  }

  /** A payload is whole, or withheld as somebody has asked; once that was acknowledged, it is. */
  #judgePayload(receipt: KnownReceipt, { entries }: Found): string[] {
    const { log_entry_id: id, says } = receipt;
    const entry = entryOf(receipt, entries);
    if (!entry || !("document_hash" in says)) return [];
    if (entry.payload === null && !this.#recording.known.asked.has(id)) return [`entry ${id} has lost its payload`];
    return entry.payload !== null && this.withheld.has(id) ? [`entry ${id} was withheld, and is shown`] : [];
  }

  #judgeSize({ entries, operator }: Found): string[] {
    const { sizes, operator: told } = this.#recording.known;
    const problems: string[] = [];
    if (sizes && this.#cut < sizes.until && !sizes.allowed.includes(entries.length))
      problems.push(`it has ${entries.length} entries, which is neither of ${sizes.allowed.join(" and ")}`);
    if (told && told.at <= this.#cut && operator !== told.fingerprint)
      problems.push(`its operator key is ${operator}, not ${told.fingerprint}`);
    return problems;
  }

  #judgeHeads(found: Found, heads: Map<number, string>): string[] {
    const problems: string[] = [];
    for (const { tree_size, root_hash } of this.heads)
      if (tree_size > found.entries.length) problems.push(`the head of size ${tree_size} was shown and is not there`);
      else if (found.heads[tree_size - 1] && found.heads[tree_size - 1]!.root_hash !== root_hash)
        problems.push(`the head of size ${tree_size} has another root than was shown`);
    for (const head of found.heads) {
      if (!head) continue;
      const known = heads.get(head.tree_size);
      if (known !== undefined && known !== json(head)) problems.push(`size ${head.tree_size} has two heads`);
      heads.set(head.tree_size, known ?? json(head));
    }
    return problems;
  }
}

/** The rows that nobody was changing. */
function factsOf(rows: readonly KnownRow[]): RowFact[] {
  const facts = new Map<string, RowFact | null>();
  for (const { name, fact } of rows) facts.set(name, fact);
  return [...facts.values()].filter((fact) => fact !== null);
}

// Ids of imported entries may begin anywhere, but they ascend.
const entryOf = ({ leaf_index, log_entry_id }: KnownReceipt, entries: Found["entries"]) =>
  entries[leaf_index ?? entries.findIndex(({ id }) => id === log_entry_id)];

function judgeReceipt(receipt: KnownReceipt, { entries, heads }: Found): string[] {
  const { log_entry_id: id, entry_hash, sth, says } = receipt;
  const entry = entryOf(receipt, entries);
  if (!entry) return [`entry ${id} was acknowledged and is not there`];
  const problems: string[] = [];
  if (entry.id !== id || (entry_hash !== undefined && entry.entry_hash !== entry_hash))
    problems.push(`entry ${id} is not the acknowledged one`);
  if (sth && json(heads[sth.tree_size - 1]) !== json(sth))
    problems.push(`the head of size ${sth.tree_size} is not the acknowledged one`);
  for (const [name, value] of Object.entries(entry.payload === null ? {} : says))
    if (json(entry.payload![name]) !== json(value)) problems.push(`entry ${id} has another ${name} than was sent`);
  return problems;
}

function judgeRow({ table, key, row }: RowFact, found: Found["rows"][number]): string[] {
  const name = `${table} ${json(key)}`;
  if (!row) return found ? [`${name} was removed and is there`] : [];
  if (!found) return [`${name} was acknowledged and is not there`];
  return Object.entries(row)
    .filter(([member, value]) => json(found[member]) !== json(value))
    .map(([member, value]) => `${name} has ${member} ${json(found[member])}, not ${json(value)}`);
}

/**
 * Checks receipts while the load runs, like a client that trusts nobody: fetches the proofs over HTTP and verifies them
 * with `cairnlog/verify`. A service that is fast but wrong fails here.
 */
import { parsePublicKey, type TreeHead, verifyConsistency, verifyInclusion, verifyTreeHead } from "cairnlog/verify";
import type { Sample } from "./protocol.js";

/** Maximum number of waiting receipts; others are not checked, so that the queue cannot grow without end. */
const WAITING = 1_000;

interface ServedInclusion {
  readonly audit_path: readonly string[];
  readonly root_hash: string;
  readonly tree_version: 1 | 2;
}

interface ServedConsistency extends Pick<ServedInclusion, "tree_version"> {
  readonly from_root: string;
  readonly to_root: string;
  readonly peaks: readonly string[];
  readonly extension: readonly string[];
}

export interface Checked {
  verified: number;
  skipped: number;
  /** A sentence for each receipt that does not verify. */
  readonly problems: string[];
}

export class Checker {
  readonly result: Checked = { verified: 0, skipped: 0, problems: [] };
  readonly #url: string;
  readonly #operator: ReturnType<typeof parsePublicKey>;
  #waiting: Sample[] = [];
  #working: Promise<void> | null = null;

  private constructor(url: string, operatorPem: string) {
    this.#url = url;
    this.#operator = parsePublicKey(operatorPem);
  }

  /** Takes the operator key from the service itself: this checks that the service is consistent. */
  static async of(url: string): Promise<Checker> {
    const { public_key } = await get<{ public_key: string }>(`${url}/api/v1/log/operator-key`);
    return new Checker(url, public_key);
  }

  add(sample: Sample): void {
    if (this.#waiting.length >= WAITING) {
      this.result.skipped++;
      return;
    }
    this.#waiting.push(sample);
    this.#working ??= this.#work().finally(() => {
      this.#working = null;
    });
  }

  /** Resolves when everything added has been checked. */
  async finish(): Promise<Checked> {
    while (this.#working) await this.#working;
    return this.result;
  }

  async #work(): Promise<void> {
    for (let sample = this.#waiting.shift(); sample; sample = this.#waiting.shift()) {
      try {
        await this.#check(sample);
        this.result.verified++;
      } catch (error) {
        this.result.problems.push(`leaf ${sample.leaf_index}: ${(error as Error).message}`);
      }
    }
  }

  /**
   * Checks that the head is signed, that the entry is in its tree, and that the newest signed tree extends that tree.
   */
  async #check({ entry_hash: leaf, leaf_index: leafIndex, sth }: Sample): Promise<void> {
    const log = `${this.#url}/api/v1/log`;
    const treeSize = sth.tree_size;
    require(await verifyTreeHead(sth, this.#operator), "the receipt's head is not signed by the operator");
    const proof = await get<ServedInclusion>(`${log}/proof/${leafIndex}?tree_size=${treeSize}`);
    const claim = { leaf, leafIndex, treeSize, auditPath: proof.audit_path, treeVersion: proof.tree_version };
    require(verifyInclusion({ ...claim, rootHash: sth.root_hash }), "the inclusion proof does not verify");
    const newest = await get<TreeHead>(`${log}/sth`);
    require(await verifyTreeHead(newest, this.#operator), "the newest head is not signed by the operator");
    const { tree_size: toSize, root_hash: toRoot } = newest;
    const path = await get<ServedConsistency>(`${log}/consistency?from=${treeSize}&to=${toSize}`);
    const { peaks, extension, tree_version: treeVersion } = path;
    const roots = { fromRoot: sth.root_hash, toRoot };
    require(verifyConsistency({
      fromSize: treeSize,
      toSize,
      ...roots,
      peaks,
      extension,
      treeVersion,
    }), "the consistency proof does not verify");
  }
}

function require(holds: boolean, problem: string): void {
  if (!holds) throw new Error(problem);
}

async function get<T>(url: string): Promise<T> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`GET ${url} answered ${response.status}`);
  return (await response.json()) as T;
}

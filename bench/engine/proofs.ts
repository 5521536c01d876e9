/**
 * Proofs: the time to make them, for recent and old sizes at 10,000 and 200,000 entries, the time to check them, and
 * the same for merkletreejs at the smaller size. Our proofs are read from disk; the peer's whole tree is in memory, in
 * plain SHA-256 of binary nodes.
 */
import { createHash, hash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generatePrivateKey, type LogWriter, openLog, operatorKey } from "cairnlog";
import { verifyConsistency, verifyInclusion } from "cairnlog/verify";
import { kernel } from "cairnlog/wasm";
import { MerkleTree } from "merkletreejs";
import { median, p50Micros, ratios, spread } from "../stats.js";
import type { Suite } from "../suite.js";

const SMALL = 10_000;
const LARGE = 200_000;
const BATCH = 512;
const ROUNDS = 5;
const SAMPLES = 300;
/** Sizes at most this far from the newest count as recent. */
const RECENT = 1_000;

type Rounds = Record<string, number[]>;

async function fill(log: LogWriter, size: number): Promise<void> {
  while (log.size < size) {
    const count = Math.min(BATCH, size - log.size);
    await log.append(
      Array.from({ length: count }, (_, i) => ({ event_type: "note", payload: { n: log.size + i, text: "a note" } })),
    );
  }
}

/** Number `n` of a sequence scattered over [0, limit), the same in every run. */
const below = (n: number, limit: number): number => (Math.imul(n + 1, 2_654_435_761) >>> 0) % limit;

/** Every kind of proof at one size: a function that makes it, given the number of the sample. */
function makers(log: LogWriter, size: number) {
  const recent = (n: number) => size - RECENT + below(n, RECENT);
  const old = (n: number) => size / 10 + below(n, size / 10);
  return {
    inclusion: {
      "recent leaf, newest size": (n: number) => log.inclusionProof(recent(n), { treeSize: size }),
      "old leaf, newest size": (n: number) => log.inclusionProof(below(n, size / 10), { treeSize: size }),
      "old leaf, old size": (n: number) => log.inclusionProof(below(n, size / 10), { treeSize: old(n) }),
    },
    consistency: {
      "recent to newest": (n: number) => log.consistencyProof(recent(n), size),
      "old to newest": (n: number) => log.consistencyProof(old(n), size),
      "old to old": (n: number) => log.consistencyProof(size / 10 - below(n, size / 20), old(n)),
    },
  };
}

function checkInclusion(proof: ReturnType<LogWriter["inclusionProof"]>): void {
  const { entry_hash: leaf, leaf_index: leafIndex, tree_size: treeSize, tree_version: treeVersion } = proof;
  const claim = { leaf, leafIndex, treeSize, treeVersion, auditPath: proof.audit_path, rootHash: proof.root_hash };
  if (!verifyInclusion(claim)) throw new Error("an inclusion proof does not verify");
}

function checkConsistency(proof: ReturnType<LogWriter["consistencyProof"]>): void {
  const { from_size: fromSize, to_size: toSize, from_root: fromRoot, to_root: toRoot, peaks, extension } = proof;
  const claim = { fromSize, toSize, fromRoot, toRoot, peaks, extension, treeVersion: proof.tree_version };
  if (!verifyConsistency(claim)) throw new Error("a consistency proof does not verify");
}

/** One turn of everything at one size. */
function round(log: LogWriter, size: number, into: Rounds): void {
  const note = (name: string, micros: number) => {
    into[name] ??= [];
    into[name].push(micros);
  };
  const { inclusion, consistency } = makers(log, size);
  const at = size.toLocaleString("en");
  for (const [name, make] of Object.entries(inclusion)) {
    note(`${at}: inclusion, ${name}`, p50Micros(SAMPLES, make));
    const proofs = Array.from({ length: SAMPLES }, (_, n) => make(n));
    note(
      `${at}: inclusion, ${name}: verify`,
      p50Micros(SAMPLES, (n) => checkInclusion(proofs[n]!)),
    );
  }
  for (const [name, make] of Object.entries(consistency)) {
    note(`${at}: consistency, ${name}`, p50Micros(SAMPLES, make));
    const proofs = Array.from({ length: SAMPLES }, (_, n) => make(n));
    note(
      `${at}: consistency, ${name}: verify`,
      p50Micros(SAMPLES, (n) => checkConsistency(proofs[n]!)),
    );
  }
}

/** Microseconds of one node hash by `crypto.hash`, the unit for verification. */
function nodeHash(): number {
  const node = "ab".repeat(64);
  const started = performance.now();
  for (let i = 0; i < 2_000; i++) hash("sha256", node, "hex");
  return ((performance.now() - started) * 1000) / 2_000;
}

const sha256 = (data: Buffer) => createHash("sha256").update(data).digest();

/** One turn of building and proving by us and by the peer, over the same 10,000 digests. */
function peerRound(leaves: readonly Buffer[], into: Rounds): void {
  const note = (name: string, micros: number) => {
    into[name] ??= [];
    into[name].push(micros);
  };
  const digests = Buffer.concat(leaves);
  const timed = <T>(name: string, work: () => T): T => {
    const started = performance.now();
    const value = work();
    note(name, (performance.now() - started) * 1000);
    return value;
  };
  timed("build: our kernel, root of the last size only", () => kernel.extend(0, new Uint8Array(), digests, 2, false));
  timed("build: our kernel, root of every size", () => kernel.extend(0, new Uint8Array(), digests, 2, true));
  const tree = timed("build: merkletreejs", () => new MerkleTree([...leaves], sha256));
  const proofOf = (n: number) => {
    const index = below(n, leaves.length);
    return tree.getProof(leaves[index]!, index);
  };
  note("proof: merkletreejs", p50Micros(SAMPLES, proofOf));
  const root = tree.getRoot();
  const proofs = Array.from({ length: SAMPLES }, (_, n) => proofOf(n));
  note(
    "verify: merkletreejs",
    p50Micros(SAMPLES, (n) => {
      if (!tree.verify(proofs[n]!, leaves[below(n, leaves.length)]!, root))
        throw new Error("the peer's proof is wrong");
    }),
  );
}

export const suite: Suite = {
  summary: "making and checking proofs at 10,000 and 200,000 entries, and merkletreejs at 10,000",
  async run() {
    const path = mkdtempSync(join(tmpdir(), "cairnlog-bench-"));
    const measured: Rounds = {};
    const peer: Rounds = {};
    const nodes: number[] = [];
    const log = await openLog({ path, signer: operatorKey(generatePrivateKey("ed25519")) });
    try {
      await fill(log, LARGE);
      const leaves = Array.from({ length: SMALL }, (_, i) => Buffer.from(log.receipt(i)!.entry_hash, "hex"));
      // A log keeps every earlier size: proofs at 10,000 and 200,000 entries come from the same log, in turns.
      nodeHash();
      round(log, LARGE, {});
      peerRound(leaves, {});
      for (let i = 0; i < ROUNDS; i++) {
        nodes.push(nodeHash());
        round(log, SMALL, measured);
        round(log, LARGE, measured);
        peerRound(leaves, peer);
      }
    } finally {
      await log.close();
      rmSync(path, { recursive: true, force: true });
    }
    console.log(
      `\nProofs, p50 of ${SAMPLES} a round; one node by crypto.hash takes ${spread(nodes, 2)} µs in this run`,
    );
    console.table(
      Object.entries(measured).map(([proof, micros]) => ({
        proof,
        µs: spread(micros),
        "× node hash": median(ratios(micros, nodes)).toFixed(1),
      })),
    );
    const at = SMALL.toLocaleString("en");
    const own = {
      "proof: cairnlog, from disk": measured[`${at}: inclusion, old leaf, newest size`]!,
      "verify: cairnlog": measured[`${at}: inclusion, old leaf, newest size: verify`]!,
    };
    console.log(
      `\nAgainst merkletreejs on ${at} leaves (its nodes are 64 bytes of binary, ours 129 of hex; its tree is in memory)`,
    );
    const table = Object.entries({ ...peer, ...own }).map(([name, micros]) => {
      const base = peer[`${name.slice(0, name.indexOf(":"))}: merkletreejs`]!;
      return { what: name, µs: spread(micros), "× its time": spread(ratios(micros, base), 2) };
    });
    console.table(table.toSorted((a, b) => (a.what < b.what ? -1 : 1)));
    return { measured, peer, nodes };
  },
};

/**
 * Hypercore: a tree, signatures and proofs of its own. Each entry is an append of its own, so that each has a signed head.
 * It waits for no flush: what it acknowledges may be lost with the machine's power.
 */
import { join } from "node:path";
import Hypercore, { type Node, type Proof } from "hypercore";
import type { Store } from "./store.js";

const text = ({ index, size, hash }: Node) => ({ index, size, hash: hash.toString("hex") });
const node = ({ index, size, hash }: ReturnType<typeof text>): Node => ({
  index,
  size,
  hash: Buffer.from(hash, "hex"),
});

function encode({ fork, block, upgrade }: Proof) {
  return {
    fork,
    block: { index: block.index, value: block.value.toString(), nodes: block.nodes.map(text) },
    upgrade: {
      start: upgrade.start,
      length: upgrade.length,
      nodes: upgrade.nodes.map(text),
      additionalNodes: upgrade.additionalNodes.map(text),
      signature: upgrade.signature.toString("base64"),
    },
  };
}

export async function openHypercore(folder: string): Promise<Store> {
  const core = new Hypercore(join(folder, "core"));
  await core.ready();
  return {
    publicKey: core.keyPair.publicKey.toString("base64"),
    async append(entries) {
      const receipts: string[] = [];
      for (const { index, text, hash } of entries) {
        const { length } = await core.append(Buffer.from(text));
        // Nobody else appends, so the newest head is this entry's.
        const signature = core.core.state.signature.toString("base64");
        const root_hash = (await core.treeHash(length)).toString("hex");
        receipts.push(
          JSON.stringify({ entry_hash: hash, leaf_index: index, sth: { tree_size: length, root_hash, signature } }),
        );
      }
      return receipts;
    },
    async proof(index) {
      if (!(index >= 0 && index < core.length)) return null;
      const upgrade = { start: 0, length: core.length };
      return JSON.stringify(encode(await core.proof({ block: { index, nodes: 0 }, upgrade })));
    },
    close: () => core.close(),
  };
}

/** Lets an empty core that knows only the key check a served proof. Resolves with the entry. @throws if it does not hold */
export async function checkProof(folder: string, publicKey: string, served: string): Promise<Buffer> {
  const { fork, block, upgrade } = JSON.parse(served) as ReturnType<typeof encode>;
  const manifest = { version: 1, signers: [{ publicKey: Buffer.from(publicKey, "base64") }] } as const;
  const core = new Hypercore(join(folder, "check"), { manifest });
  await core.ready();
  try {
    const holds = await core.applyProof({
      fork,
      block: { ...block, value: Buffer.from(block.value), nodes: block.nodes.map(node) },
      upgrade: {
        ...upgrade,
        nodes: upgrade.nodes.map(node),
        additionalNodes: upgrade.additionalNodes.map(node),
        signature: Buffer.from(upgrade.signature, "base64"),
      },
      manifest: null,
    });
    if (!holds) throw new Error("hypercore: the proof does not hold");
    return await core.get(block.index);
  } finally {
    await core.close();
  }
}

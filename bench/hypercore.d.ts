/** Types for the part of `hypercore` that is used here; the package has none. */
declare module "hypercore" {
  export interface Node {
    readonly index: number;
    readonly size: number;
    readonly hash: Buffer;
  }

  export interface Proof {
    readonly fork: number;
    readonly block: { readonly index: number; readonly value: Buffer; readonly nodes: readonly Node[] };
    readonly upgrade: {
      readonly start: number;
      readonly length: number;
      readonly nodes: readonly Node[];
      readonly additionalNodes: readonly Node[];
      readonly signature: Buffer;
    };
  }

  export default class Hypercore {
    /** @param options the signer's key, to check proofs of a core that another holds */
    constructor(storage: string, options?: { manifest: { version: 1; signers: readonly [{ publicKey: Buffer }] } });
    readonly keyPair: { readonly publicKey: Buffer };
    readonly length: number;
    /** Of the newest length. */
    readonly core: { readonly state: { readonly signature: Buffer } };
    ready(): Promise<void>;
    append(blocks: Uint8Array | readonly Uint8Array[]): Promise<{ length: number }>;
    get(index: number): Promise<Buffer>;
    treeHash(length?: number): Promise<Buffer>;
    proof(wanted: {
      block: { index: number; nodes: number };
      upgrade: { start: number; length: number };
    }): Promise<Proof>;
    /** Checks a proof with its signature, and keeps what it shows. @throws if it does not hold */
    applyProof(proof: Proof & { readonly manifest: null }): Promise<boolean>;
    close(): Promise<void>;
  }
}

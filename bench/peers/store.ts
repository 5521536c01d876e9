/** What the peers share behind HTTP: entries in a hash chain, and, for databases, the tree with a signed head for each. */
import { createHash, generateKeyPairSync } from "node:crypto";
import sodium from "sodium-native";
import type { Submission } from "../load/submissions.js";
import { leafHash, Tree } from "./tree.js";

export interface Entry {
  readonly index: number;
  /** What is hashed and kept: the submission, and the hash of the entry before. */
  readonly text: string;
  readonly hash: string;
}

/** Where a peer keeps its log. */
export interface Store {
  /** What a client needs to check its heads, base64. */
  readonly publicKey: string;
  /** Keeps these entries, each with a head. Resolves with their receipts, as JSON, when they are as durable as they get. */
  append(entries: readonly Entry[]): Promise<readonly string[]>;
  /** The inclusion proof of an entry under the newest head, as JSON; null if there is no such entry. */
  proof(index: number): Promise<string | null>;
  close(): Promise<void>;
}

/** An entry as a database keeps it. */
export interface Row extends Entry {
  readonly root: Buffer;
  readonly timestamp: number;
  readonly signature: Buffer;
}

export interface Database {
  /** Commits all rows or none. They are on disk when it resolves. */
  commit(rows: readonly Row[]): Promise<void>;
  close(): Promise<void>;
}

export class Chain {
  #previous = "";
  #size = 0;

  add(submission: Submission): Entry {
    const index = this.#size++;
    const text = JSON.stringify({ index, previous_hash: this.#previous, timestamp: Date.now(), ...submission });
    this.#previous = createHash("sha256").update(text).digest("hex");
    return { index, text, hash: this.#previous };
  }
}

/** What is signed of a head. */
export const headText = (size: number, root: string, timestamp: number) =>
  Buffer.from(`${size}\n${root}\n${timestamp}`);

/** A log whose tree is this process's own work, and whose entries and heads a database keeps. */
export function storeOver(database: Database): Store {
  const tree = new Tree();
  const secret = Buffer.alloc(sodium.crypto_sign_SECRETKEYBYTES);
  const publicKey = Buffer.alloc(sodium.crypto_sign_PUBLICKEYBYTES);
  const seed = generateKeyPairSync("ed25519").privateKey.export({ format: "jwk" }).d!;
  sodium.crypto_sign_seed_keypair(publicKey, secret, Buffer.from(seed, "base64url"));
  /** Entries that are on disk; the tree may have more. */
  let committed = 0;

  const toRow = (entry: Entry): Row => {
    tree.push(leafHash(Buffer.from(entry.hash, "hex")));
    const [root, timestamp] = [tree.root(), Date.now()];
    const signature = Buffer.alloc(sodium.crypto_sign_BYTES);
    sodium.crypto_sign_detached(signature, headText(tree.size, root.toString("hex"), timestamp), secret);
    return { ...entry, root, timestamp, signature };
  };
  const receipt = ({ index, hash, root, timestamp, signature }: Row) =>
    `{"entry_hash":"${hash}","leaf_index":${index},"sth":{"tree_size":${index + 1},"root_hash":"${root.toString("hex")}",` +
    `"timestamp":${timestamp},"signature":"${signature.toString("base64")}"}}`;

  return {
    publicKey: publicKey.toString("base64"),
    async append(entries) {
      const rows = entries.map(toRow);
      await database.commit(rows);
      committed += rows.length;
      return rows.map(receipt);
    },
    async proof(index) {
      if (!(index >= 0 && index < committed)) return null;
      const path = tree.path(index, 0, committed).map((node) => node.toString("hex"));
      return JSON.stringify({
        tree_size: committed,
        root_hash: tree.root(0, committed).toString("hex"),
        audit_path: path,
      });
    },
    close: () => database.close(),
  };
}

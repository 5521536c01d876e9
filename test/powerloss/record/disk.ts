/**
 * What is known of the disk at each moment of a trace: for each change of a file or of a folder, when it was made, and since
 * when it is certain to be on disk. A power failure leaves what is certain, and any part of the rest.
 *
 * A flush of a file is not one of the folder that names it. A rename is one change: both names, or neither.
 */
import { lstatSync, readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { type TraceEvent, textsOf } from "./trace.js";

/** Moments are places in the list of events; what was there before the first has the moment -1. */
export interface Change {
  readonly at: number;
  /** From this moment on it is on disk. */
  flushed: number;
}

export interface DataChange extends Change {
  /** Where bytes were written; the new length where there are none. */
  readonly offset: number;
  readonly bytes: Buffer | null;
}

export interface NameChange {
  readonly change: Change;
  readonly name: string;
  /** Null if the name was removed. */
  readonly target: Node | null;
}

export class File {
  readonly changes: DataChange[] = [];
  /** Its first path, below the root. */
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }
}

export class Folder {
  readonly changes: NameChange[] = [];
  /** As the process sees it. */
  readonly names = new Map<string, Node>();
}

export type Node = File | Folder;

/** LMDB writes this file through a mapping, which cannot be recorded; it makes it anew after a power failure. */
export const isLockFile = (name: string): boolean => name === "lock.mdb";

export class Disk {
  readonly root = new Folder();
  readonly #path: string;
  readonly #nodes = new Map<bigint, Node>();
  readonly #locks = new Set<bigint>();
  /** For each event, of what kind it is, and of which file or folder. */
  readonly labels: string[] = [];
  /** Sentences: what could not be followed. */
  readonly gaps: string[] = [];

  /** @param path of the recorded folder, as it is now: all of this is on disk */
  constructor(path: string) {
    this.#path = path;
    this.#nodes.set(lstatSync(path, { bigint: true }).ino, this.root);
    this.#load(this.root, path);
  }

  #load(folder: Folder, path: string): void {
    for (const name of readdirSync(path)) {
      const whole = join(path, name);
      const found = lstatSync(whole, { bigint: true });
      const node = found.isDirectory() ? new Folder() : new File(relative(this.#path, whole));
      this.#nodes.set(found.ino, node);
      if (isLockFile(name)) this.#locks.add(found.ino);
      this.#name(folder, name, node, { at: -1, flushed: -1 });
      if (node instanceof Folder) this.#load(node, whole);
      else node.changes.push({ at: -1, flushed: -1, offset: 0, bytes: readFileSync(whole) });
    }
  }

  #name(folder: Folder, name: string, target: Node | null, change: Change): void {
    folder.changes.push({ change, name, target });
    if (target) folder.names.set(name, target);
    else folder.names.delete(name);
  }

  /** The folder that holds a path, and the name in it. */
  #place(path: string): readonly [Folder, string] {
    const parts = relative(this.#path, path).split("/");
    const name = parts.pop()!;
    let folder = this.root;
    for (const part of parts) {
      const next = folder.names.get(part);
      if (!(next instanceof Folder)) throw new Error(`${path} is in a folder that was never made`);
      folder = next;
    }
    return [folder, name];
  }

  /** Follows all events of a trace. */
  follow(events: readonly TraceEvent[]): void {
    const flushes = new Map<bigint, number>();
    for (const [at, event] of events.entries()) {
      this.labels.push(this.#labelOf(event));
      if (event.kind === "F") flushes.set(event.flush, at);
      else if (event.kind === "G") this.#flush(event, flushes.get(event.flush)!, at);
      else this.#change(event, at);
    }
  }

  #labelOf({ kind, inode, bytes }: TraceEvent): string {
    if ("CKLRU".includes(kind)) return `${kind} ${bytes.subarray(this.#path.length)}`.replace(/\d+/g, "N");
    const node = this.#nodes.get(inode);
    return node instanceof File ? `${kind} ${node.path}` : kind;
  }

  #change(event: TraceEvent, at: number): void {
    const change = { at, flushed: Number.POSITIVE_INFINITY };
    const file = () => {
      const node = this.#nodes.get(event.inode);
      if (!(node instanceof File)) throw new Error(`event ${at} is of a file that was never made`);
      return node;
    };
    switch (event.kind) {
      case "C":
      case "K": {
        const node = event.kind === "K" ? new Folder() : new File(relative(this.#path, textsOf(event)[0]!));
        this.#nodes.set(event.inode, node);
        const [folder, name] = this.#place(textsOf(event)[0]!);
        if (isLockFile(name)) this.#locks.add(event.inode);
        else this.#locks.delete(event.inode);
        this.#name(folder, name, node, change);
        return;
      }
      case "L":
      case "R": {
        const [from, to] = textsOf(event).map((path) => this.#place(path)) as [[Folder, string], [Folder, string]];
        const node = this.#nodes.get(event.inode);
        if (!node) throw new Error(`event ${at} names a file that was never made`);
        if (isLockFile(to[1])) this.#locks.add(event.inode);
        this.#name(...to, node, change);
        if (event.kind === "R") this.#name(...from, null, change);
        return;
      }
      case "U":
        this.#name(...this.#place(textsOf(event)[0]!), null, change);
        return;
      case "W":
        file().changes.push({ ...change, offset: event.offset, bytes: event.bytes });
        return;
      case "T":
        file().changes.push({ ...change, offset: event.offset, bytes: null });
        return;
      case "M":
        if (!this.#locks.has(event.inode))
          this.gaps.push(`${this.labels.at(-1)!.slice(2)} is written through a mapping`);
        return;
      case "X":
        this.gaps.push(textsOf(event)[0]!);
    }
  }

  /** @param since when the flush began: it covers only what was changed before */
  #flush(event: TraceEvent, since: number, at: number): void {
    const node = this.#nodes.get(event.inode);
    if (node instanceof Folder) {
      for (const { change } of node.changes) settle(change, since, at);
    } else {
      for (const change of node?.changes ?? []) {
        const end = change.offset + (change.bytes?.length ?? 0);
        const isOutside = change.offset < event.offset || end > event.offset + event.length;
        if (!event.isRange || !isOutside) settle(change, since, at);
      }
    }
  }
}

function settle(change: Change, since: number, at: number): void {
  if (change.at < since && change.flushed > at) change.flushed = at;
}

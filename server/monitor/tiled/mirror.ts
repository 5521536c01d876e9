/**
 * The verified copy of a tiled log: a directory with the paths of tlog-tiles, which any web server can serve. The
 * checkpoint is written last. What it covers is there, and was compared with its tree.
 *
 * If we crash here: bundles and tiles beyond the checkpoint are taken again by the next round if they fit its tree.
 */
import { readdirSync, readFileSync, rmSync, statSync, utimesSync } from "node:fs";
import { dirname, join } from "node:path";
import { CairnlogError } from "../../../engine/base/error.js";
import {
  type PolicyVerdict,
  parseCheckpointText,
  parseNote,
  type TileName,
  tilePath,
} from "../../../engine/verify/index.js";
import { keepFile } from "../folder.js";
import type { CopyStore, KnownCheckpoint } from "./copy.js";

export interface KeptCheckpoint extends KnownCheckpoint {
  /** When its tree was seen first, ISO 8601. */
  readonly keptAt: string;
}

export class TiledMirror implements CopyStore<KeptCheckpoint> {
  readonly name = "This directory";
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** @throws CairnlogError `corrupt-log` if the file is damaged */
  checkpoint(): KeptCheckpoint | null {
    const path = join(this.path, "checkpoint");
    const note = this.#read("checkpoint")?.toString("utf8");
    if (note === undefined) return null;
    const checkpoint = parseCheckpointText(parseNote(note)?.text ?? "");
    if (checkpoint) return { ...checkpoint, note, keptAt: statSync(path).mtime.toISOString() };
    throw new CairnlogError(
      "corrupt-log",
      `${path} is damaged. Begin anew in another directory, and keep this one: what it holds may be evidence.`,
    );
  }

  /** Bytes of a tile or bundle; undefined if it is not there. */
  read(name: TileName): Buffer | undefined {
    return this.#read(tilePath(name));
  }

  readLeft(name: TileName): Buffer | undefined {
    return this.read(name);
  }

  write(name: TileName, bytes: Uint8Array): void {
    keepFile(join(this.path, tilePath(name)), bytes);
  }

  /**
   * Writes the checkpoint. Everything that it covers has been written.
   * @param known the one before, if it has the same tree
   */
  keep(note: string, _verdict: PolicyVerdict, known?: KeptCheckpoint): void {
    const path = join(this.path, "checkpoint");
    keepFile(path, note);
    if (known) utimesSync(path, new Date(known.keptAt), new Date(known.keptAt));
  }

  /** Removes all partial forms of a tile or bundle but one width. */
  prune(level: TileName["level"], index: number, but: number): void {
    const folder = dirname(join(this.path, tilePath({ level, index, width: 1 })));
    for (const width of list(folder)) if (width !== String(but)) rmSync(join(folder, width));
    if (!but) rmSync(folder, { recursive: true, force: true });
  }

  #read(name: string): Buffer | undefined {
    try {
      return readFileSync(join(this.path, name));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  }
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

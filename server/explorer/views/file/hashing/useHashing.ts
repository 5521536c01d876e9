/** The hashing of the file at hand, as a component shows it. */
import { useEffect, useState } from "preact/hooks";
import { announce } from "../../../state/announcements.js";
import { hashFile } from "./hashing.js";

export interface Hashing {
  /** Bytes that are done. */
  readonly done: number;
  /** `sha256:` and hex, once all of it is. */
  readonly hash: string | null;
  readonly error: Error | null;
}

const NOTHING: Hashing = { done: 0, hash: null, error: null };

/** Hashes a file when it is another one than before; gives up the one before. */
export function useHashing(file: File | null): Hashing {
  const [state, setState] = useState<{ readonly of: File | null } & Hashing>({ of: null, ...NOTHING });
  useEffect(() => {
    if (!file) return undefined;
    const controller = new AbortController();
    const show = (more: Partial<Hashing>) => {
      if (!controller.signal.aborted) setState({ of: file, ...NOTHING, ...more });
    };
    hashFile(file, (done) => show({ done }), controller.signal).then(
      (hash) => {
        show({ done: file.size, hash });
        announce(`${file.name} is hashed.`);
      },
      (error: Error) => show({ error }),
    );
    return () => controller.abort();
  }, [file]);
  // Never the hash of another file, not even for one drawing.
  return state.of === file ? state : NOTHING;
}

/** The hashing of the current file, for components. */
import { useEffect, useState } from "preact/hooks";
import { announce } from "../../state/announcements.js";
import { hashInWorker } from "./hashing.js";

export interface Hashing {
  /** Number of bytes done. */
  readonly done: number;
  /** `sha256:` and hex; null before the whole file is hashed. */
  readonly hash: string | null;
  readonly error: Error | null;
}

const NOTHING: Hashing = { done: 0, hash: null, error: null };

/** Hashes a file when it changes; stops hashing the previous one. */
export function useHashing(file: File | null): Hashing {
  const [state, setState] = useState<{ readonly of: File | null } & Hashing>({ of: null, ...NOTHING });
  useEffect(() => {
    if (!file) return undefined;
    const controller = new AbortController();
    const show = (more: Partial<Hashing>) => {
      if (!controller.signal.aborted) setState({ of: file, ...NOTHING, ...more });
    };
    hashInWorker(file, (done) => show({ done }), controller.signal).then(
      (hash) => {
        show({ done: file.size, hash });
        announce(`${file.name} is hashed.`);
      },
      (error: Error) => show({ error }),
    );
    return () => controller.abort();
  }, [file]);
  // Never return the hash of another file, not even for one rendering.
  return state.of === file ? state : NOTHING;
}

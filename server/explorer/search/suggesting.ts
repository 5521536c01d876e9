/** Suggestions while the reader types: few requests, and none when the limit of this address is near. */
import { useEffect, useState } from "preact/hooks";
import { generalAllowance } from "../state/service.js";
import { type Findings, jumpsTo, seek } from "./seek.js";

/** Characters from which on a text is searched while it is typed. */
const LEAST = 2;
/** Milliseconds without a key press after which the text is searched. */
const PAUSE_MS = 250;
const COUNT = 5;
/** Share of the limit that is left for the reader's own clicks. */
const RESERVE = 0.4;
const MAX_KEPT = 50;

const kept = new Map<string, Findings>();

/** What may be meant by `text`; null while nothing is known. */
export function useSuggestions(text: string): Findings | null {
  const [found, setFound] = useState<{ readonly of: string; readonly findings: Findings } | null>(null);
  useEffect(() => {
    if (text.length < LEAST) return undefined;
    const known = kept.get(text);
    if (known) {
      setFound({ of: text, findings: known });
      return undefined;
    }
    let isWanted = true;
    const timer = setTimeout(() => {
      const allowance = generalAllowance();
      if (allowance && allowance.remaining < allowance.limit * RESERVE) return;
      seek(text, { count: COUNT, hasTags: false }).then(
        (findings) => {
          if (kept.size >= MAX_KEPT) kept.clear();
          kept.set(text, findings);
          if (isWanted) setFound({ of: text, findings });
        },
        // Whoever asks for the results is told why there are none.
        () => {},
      );
    }, PAUSE_MS);
    return () => {
      isWanted = false;
      clearTimeout(timer);
    };
  }, [text]);
  if (found?.of === text) return found.findings;
  const jumps = jumpsTo(text);
  return jumps.length ? { jumps, groups: [], keys: [], namedKeys: 0, notices: [] } : null;
}

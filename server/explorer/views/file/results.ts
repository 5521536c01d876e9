/** What was found about the attestations of one document, over all pages of them that were looked at. */
import { useCallback, useMemo, useState } from "preact/hooks";
import type { Entry } from "../../../../engine/verify/index.js";
import type { CheckedAttestation } from "../../state/attestation.js";

export interface Result {
  readonly entry: Entry;
  /** Undefined while it is checked, and if that failed. */
  readonly checked: CheckedAttestation | undefined;
  readonly error: unknown;
}

export interface Results {
  /** In the order of the log. */
  readonly all: readonly Result[];
  report(result: Result): void;
}

/** @param hash of the document; another one begins anew */
export function useResults(hash: string | null): Results {
  const [held, setHeld] = useState<{ readonly hash: string | null; readonly byId: ReadonlyMap<number, Result> }>({
    hash,
    byId: new Map(),
  });
  const report = useCallback(
    (result: Result) =>
      setHeld((before) => {
        const known = before.hash === hash ? before.byId : [];
        return { hash, byId: new Map([...known, [result.entry.id, result]]) };
      }),
    [hash],
  );
  const all = useMemo(
    () => (held.hash === hash ? [...held.byId.values()].sort((a, b) => a.entry.id - b.entry.id) : []),
    [held, hash],
  );
  return { all, report };
}

/** Work whose result a component shows. It starts when its inputs change, and is dropped when they change again. */
import { useCallback, useEffect, useState } from "preact/hooks";
import { raiseFor } from "./alarm.js";

export interface Task<T> {
  /** Undefined until the first result. After a change of inputs, the previous result until the new one is there. */
  readonly value: T | undefined;
  /** The error of the newest run. */
  readonly error: unknown;
  readonly isBusy: boolean;
  /** Runs the work again. */
  retry(): void;
}

/**
 * @param work must give up, or be harmless, when its signal is aborted
 * @param inputs values that it depends on, compared by identity
 */
export function useTask<T>(work: (signal: AbortSignal) => Promise<T>, inputs: readonly unknown[]): Task<T> {
  const [state, setState] = useState<{ value: T | undefined; error: unknown; isBusy: boolean }>({
    value: undefined,
    error: undefined,
    isBusy: true,
  });
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    setState(({ value }) => ({ value, error: undefined, isBusy: true }));
    work(signal).then(
      (value) => {
        if (!signal.aborted) setState({ value, error: undefined, isBusy: false });
      },
      (error: unknown) => {
        if (signal.aborted) return;
        raiseFor(error);
        setState(({ value }) => ({ value, error, isBusy: false }));
      },
    );
    return () => controller.abort();
  }, [...inputs, attempt]);
  const retry = useCallback(() => setAttempt((count) => count + 1), []);
  return { ...state, retry };
}

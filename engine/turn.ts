/**
 * Resolves in the next turn of the event loop. Long work awaits it between two slices, so that everything else that waits for
 * this thread gets its turn.
 */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

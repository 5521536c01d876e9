/**
 * Things that were opened are closed one after the other, each although one before it has failed: a log whose postings fail
 * must still give back its files and its lock. The first error is told.
 */

type Close = () => unknown;

/** Closes each in turn. @throws the first error, when all have been tried */
export async function closeAll(...all: readonly Close[]): Promise<void> {
  let first: { readonly error: unknown } | undefined;
  for (const close of all)
    try {
      await close();
    } catch (error) {
      first ??= { error };
    }
  if (first) throw first.error;
}

/** Closes all at the same time. @throws the error of the first in the list that failed, when all have ended */
export async function closeTogether(...all: readonly Close[]): Promise<void> {
  const ends = await Promise.allSettled(all.map(async (close) => close()));
  const failed = ends.find((end) => end.status === "rejected");
  if (failed) throw failed.reason;
}

/** Closes each in turn after work that has failed. @throws `error`, which came first */
export async function closeAfter(error: unknown, ...all: readonly Close[]): Promise<never> {
  await closeAll(...all).catch(() => {});
  throw error;
}

/** Does `work`, and then closes each in turn in any case. @throws the first error */
export async function closing<T>(work: () => Promise<T>, ...all: readonly Close[]): Promise<T> {
  let result: T;
  try {
    result = await work();
  } catch (error) {
    return closeAfter(error, ...all);
  }
  await closeAll(...all);
  return result;
}

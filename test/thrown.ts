/** What is thrown, as it is. */
import { expect } from "vitest";

/**
 * @returns what `work`, which must fail, throws. In an object: `throw` without `await` throws a promise of the error, which
 *   nobody can catch as the error, and which a function that returns it would wait for.
 */
export const failureOf = (work: Promise<unknown>): Promise<{ readonly thrown: unknown }> =>
  work.then(
    (value) => expect.fail(`it was taken: ${JSON.stringify(value)}`),
    (thrown: unknown) => ({ thrown }),
  );

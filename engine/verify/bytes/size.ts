/** Whether `value` is the size of a tree, or the number of a leaf: an integer from 0 to 2^53 − 1. */
export function isSize(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

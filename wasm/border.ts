/**
 * Argument checks before any byte reaches WebAssembly: `TypeError` for a wrong type, `RangeError` for a wrong value.
 */

/** Bytes of a node, a leaf hash or a digest. */
export const NODE = 32;

export function assertBytes(value: unknown, name: string): asserts value is Uint8Array {
  if (!(value instanceof Uint8Array)) throw new TypeError(`${name} must be a Uint8Array`);
}

/** `length` bytes, exactly. */
export function assertLength(value: unknown, length: number, name: string): void {
  assertBytes(value, name);
  if (value.length !== length) throw new RangeError(`${name} must be ${length} bytes, not ${value.length}`);
}

/** Checks that the value is any number of items of `unit` bytes, possibly none; returns that number. */
export function countOf(value: unknown, unit: number, name: string): number {
  assertBytes(value, name);
  if (value.length % unit !== 0)
    throw new RangeError(`${name} must be a multiple of ${unit} bytes, not ${value.length}`);
  return value.length / unit;
}

export function assertVersion(version: unknown): void {
  if (typeof version !== "number") throw new TypeError("version must be a number");
  if (version !== 1 && version !== 2) throw new RangeError(`version must be 1 or 2, not ${version}`);
}

export function assertSize(size: unknown, name: string): void {
  if (typeof size !== "number") throw new TypeError(`${name} must be a number`);
  if (!Number.isSafeInteger(size) || size < 0) throw new RangeError(`${name} must be an integer from 0 to 2^53 - 1`);
}

/** A value that changes, and its watchers: the explorer needs no other state management. */
import { useEffect, useState } from "preact/hooks";

export class Cell<T> {
  #value: T;
  readonly #watchers = new Set<(value: T) => void>();

  constructor(value: T) {
    this.#value = value;
  }

  get value(): T {
    return this.#value;
  }

  set value(value: T) {
    if (Object.is(this.#value, value)) return;
    this.#value = value;
    for (const watcher of [...this.#watchers]) watcher(value);
  }

  /** @returns a function that stops watching */
  watch(watcher: (value: T) => void): () => void {
    this.#watchers.add(watcher);
    return () => void this.#watchers.delete(watcher);
  }
}

/** The cell's value; the component renders again when it changes. */
export function useCell<T>(cell: Cell<T>): T {
  const [value, setValue] = useState(() => ({ now: cell.value }));
  useEffect(() => {
    // The value may have changed between rendering and this effect.
    setValue((held) => (Object.is(held.now, cell.value) ? held : { now: cell.value }));
    return cell.watch((now) => setValue({ now }));
  }, [cell]);
  return value.now;
}

/** A value that changes and those who look at it: all the state management that the explorer needs. */
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

  /** @returns what ends it */
  watch(watcher: (value: T) => void): () => void {
    this.#watchers.add(watcher);
    return () => void this.#watchers.delete(watcher);
  }
}

/** The cell's value; the component is drawn again when it changes. */
export function useCell<T>(cell: Cell<T>): T {
  const [value, setValue] = useState(() => ({ now: cell.value }));
  useEffect(() => {
    // It may have changed between drawing and this.
    setValue((held) => (Object.is(held.now, cell.value) ? held : { now: cell.value }));
    return cell.watch((now) => setValue({ now }));
  }, [cell]);
  return value.now;
}

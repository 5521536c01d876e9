/** Whether the reader has just opened another view whose heading has not taken the focus yet. */
let isPending = false;

export const arrivals = {
  /**
   * Called when the path changes, but not for a change of the query alone: a reader who types a filter keeps the focus.
   */
  expect(): void {
    isPending = true;
  },
  /** True once for each newly opened view. */
  take(): boolean {
    const was = isPending;
    isPending = false;
    return was;
  },
};

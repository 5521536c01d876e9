/** Whether the reader has just come to another view and its heading has not taken the focus yet. */
let isPending = false;

export const arrivals = {
  /** Called when the path changes, not when only the query does: who filters a list stays where he types. */
  expect(): void {
    isPending = true;
  },
  /** True once for each arrival. */
  take(): boolean {
    const was = isPending;
    isPending = false;
    return was;
  },
};

/** Timers, which tests replace by their own. */

/** Calls `run` once after this many milliseconds, unless the returned function is called before. */
export type Schedule = (milliseconds: number, run: () => void) => () => void;

export const systemSchedule: Schedule = (milliseconds, run) => {
  const timer = setTimeout(run, milliseconds);
  return () => clearTimeout(timer);
};

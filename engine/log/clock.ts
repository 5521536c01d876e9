/** Time as the log writes it: whole microseconds since the epoch as a number, and `YYYY-MM-DDTHH:MM:SS.ffffffZ`. */

/** Microseconds since the epoch. A clock may step backwards; the sequencer clamps. */
export type Clock = () => number;

export const systemClock: Clock = () => Math.floor((performance.timeOrigin + performance.now()) * 1000);

let lastMillisecond = Number.NaN;
let lastPrefix = "";

/** The canonical form of a timestamp; the milliseconds of a batch are mostly the same, so their text is kept. */
export function formatTimestamp(micros: number): string {
  const millisecond = Math.floor(micros / 1000);
  if (millisecond !== lastMillisecond) {
    lastMillisecond = millisecond;
    lastPrefix = new Date(millisecond).toISOString().slice(0, -1);
  }
  return `${lastPrefix}${String(micros - millisecond * 1000).padStart(3, "0")}Z`;
}

/** Inverse of `formatTimestamp`, for texts in the canonical form. */
export function parseTimestamp(text: string): number {
  return Date.parse(`${text.slice(0, 23)}Z`) * 1000 + Number(text.slice(23, 26));
}

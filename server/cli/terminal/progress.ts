/**
 * Progress of long work: a bar on a terminal, an occasional line elsewhere. It goes to stderr, so that the output stays
 * clean.
 */

import { printableLine } from "./printable.js";

const BAR_WIDTH = 30;
const BAR_INTERVAL_MS = 100;
const LINE_INTERVAL_MS = 5_000;

export interface Progress {
  /** Shows how much is done, in the units of `total`. @param isFirst on a terminal, without waiting for a moment to pass */
  update(done: number, isFirst?: boolean): void;
  /** Removes the bar. Must be called before anything else is printed; a bar that is gone already is no error. */
  end(): void;
}

/**
 * @param label may hold the name of a file, which others chose
 * @param total null if it is not known; there is then no bar
 * @param format formats an amount, e.g. bytes as "1.2 GB"
 */
export function startProgress(
  label: string,
  total: number | null,
  format: (amount: number) => string = String,
): Progress {
  const stream = process.stderr;
  const shownLabel = printableLine(label);
  const started = Date.now();
  const interval = stream.isTTY ? BAR_INTERVAL_MS : LINE_INTERVAL_MS;
  let shown = started;
  let drawn = false;
  return {
    update(done, isFirst = false) {
      const now = Date.now();
      if (now - shown < interval && !(isFirst && stream.isTTY)) return;
      shown = now;
      const share = total ? Math.min(1, done / total) : 1;
      const part = total === null ? "" : ` of ${format(total)} (${Math.floor(share * 100)} %)`;
      const text = `${shownLabel} ${format(done)}${part}`;
      if (stream.isTTY) {
        const filled = Math.round(share * BAR_WIDTH);
        const bar = total === null ? "" : `[${"#".repeat(filled)}${"-".repeat(BAR_WIDTH - filled)}] `;
        stream.write(`\r\x1b[K${bar}${text}`);
        drawn = true;
      } else stream.write(`${text}\n`);
    },
    end() {
      if (drawn) stream.write("\r\x1b[K");
      drawn = false;
    },
  };
}

/** 1536 → "1.5 KB". */
export function formatBytes(bytes: number): string {
  const units = ["bytes", "KB", "MB", "GB", "TB"];
  const power = bytes < 1000 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(bytes) / 3));
  return `${power ? (bytes / 1000 ** power).toFixed(1) : bytes} ${units[power]}`;
}

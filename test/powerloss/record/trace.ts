/** Reads what `recorder.c` has recorded. */
import { readFileSync } from "node:fs";

const HEADER_BYTES = 40;

/** One record. Its place in the list of records is the moment at which it happened. */
export interface TraceEvent {
  /**
   * C file created, K folder made, R renamed, L linked, U name removed; W written, T length set; F flush begun, G flush done; S
   * sent; M mapped to be written; X not recorded.
   */
  readonly kind: "C" | "K" | "R" | "L" | "U" | "W" | "T" | "F" | "G" | "S" | "M" | "X";
  /** Whether a flush is of a range alone. */
  readonly isRange: boolean;
  readonly inode: bigint;
  /** Offset of a write or of a range, or the new length. */
  readonly offset: number;
  readonly length: number;
  /** The same for both records of a flush. */
  readonly flush: bigint;
  /** What was written or sent. */
  readonly bytes: Buffer;
  /** Length of the trace with this record. */
  readonly end: number;
}

/** @throws Error if the trace is cut */
export function readTrace(path: string): TraceEvent[] {
  const trace = readFileSync(path);
  const events: TraceEvent[] = [];
  for (let at = 0; at < trace.length; ) {
    const end = at + trace.readUInt32LE(at);
    if (end < at + HEADER_BYTES || end > trace.length) throw new Error(`${path} is cut at ${at}`);
    events.push({
      kind: String.fromCharCode(trace[at + 4]!) as TraceEvent["kind"],
      isRange: trace[at + 5] === 1,
      inode: trace.readBigUInt64LE(at + 8),
      offset: Number(trace.readBigUInt64LE(at + 16)),
      length: Number(trace.readBigUInt64LE(at + 24)),
      flush: trace.readBigUInt64LE(at + 32),
      bytes: trace.subarray(at + HEADER_BYTES, end),
      end,
    });
    at = end;
  }
  return events;
}

/** The paths or sentences in a record. */
export const textsOf = ({ bytes }: TraceEvent): string[] => bytes.toString().split("\0").slice(0, -1);

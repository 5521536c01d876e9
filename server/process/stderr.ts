/**
 * Lines on stderr that never wait. stderr may be a full disk, a terminal that was closed, or a pipe that nobody reads. A line
 * that cannot be written is dropped and counted, and the service goes on.
 *
 * Writes are synchronous, so that the last lines before an exit are there, and on a file descriptor that does not block. An
 * asynchronous write would occupy a thread of libuv's pool, and the exit of the process waits for these threads.
 */
import { constants, fstatSync, openSync, writeSync } from "node:fs";
import { isatty } from "node:tty";
import { getEnvironmentData, isMainThread, setEnvironmentData } from "node:worker_threads";

const STDERR = 2;
/** Name of the number of another file descriptor. Threads that are started later inherit it. */
const OTHER = "cairnlog: stderr";
/** Where Linux lets a process open its own files once more. */
const OPEN_FILES = "/proc/self/fd";
/** Bytes of lines that wait while a pipe is full. */
const MAX_WAITING_BYTES = 256 * 1024;
/** Milliseconds after which it is tried again to write them. */
const RETRY_MS = 100;
const LINE_FEED = 0x0a;

/** Counts the lines that were dropped, for all threads that share its buffer. */
class DroppedLines {
  readonly buffer: SharedArrayBuffer;
  readonly #count: BigUint64Array;

  constructor(buffer = new SharedArrayBuffer(BigUint64Array.BYTES_PER_ELEMENT)) {
    this.buffer = buffer;
    this.#count = new BigUint64Array(buffer);
  }

  get total(): number {
    return Number(Atomics.load(this.#count, 0));
  }

  add(): void {
    Atomics.add(this.#count, 0, 1n);
  }
}

/** Writes lines to a file descriptor, in order. It belongs to one thread. */
export class LineOutput {
  readonly dropped: DroppedLines;
  readonly #open: () => number;
  #fd: number | null = null;
  /** What a full pipe has not taken of a line yet. */
  #rest: Buffer | null = null;
  /** Lines after that, oldest first. */
  readonly #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #retry: NodeJS.Timeout | null = null;
  /** Whether the last byte that was written is none that ends a line. */
  #isMidLine = false;

  /** @param open gives the file descriptor, at the first line. It should not block; where it does, `write` blocks */
  constructor(open: () => number, dropped = new DroppedLines()) {
    this.#open = open;
    this.dropped = dropped;
  }

  /** Takes one line, with its line feed. Never throws. */
  write(line: string): void {
    const bytes = Buffer.from(line);
    if (this.flush()) this.#begin(bytes);
    else if (this.#waitingBytes + bytes.length > MAX_WAITING_BYTES) this.dropped.add();
    else {
      this.#waiting.push(bytes);
      this.#waitingBytes += bytes.length;
    }
  }

  /** Writes what waits, as far as it is taken now. @returns whether nothing waits any more */
  flush(): boolean {
    const rest = this.#rest;
    this.#rest = null;
    if (rest && !this.#put(rest)) return false;
    for (let line = this.#waiting.shift(); line; line = this.#waiting.shift()) {
      this.#waitingBytes -= line.length;
      if (!this.#begin(line)) return false;
    }
    return true;
  }

  /** A line that was cut off, because the disk was full, must not become the beginning of this one. */
  #begin(line: Buffer): boolean {
    return this.#put(this.#isMidLine ? Buffer.concat([Buffer.of(LINE_FEED), line]) : line);
  }

  /** @returns false if there is a rest that waits */
  #put(bytes: Buffer): boolean {
    this.#fd ??= this.#open();
    for (let rest = bytes; rest.length > 0; ) {
      try {
        const written = writeSync(this.#fd, rest);
        if (written > 0) this.#isMidLine = rest[written - 1] !== LINE_FEED;
        rest = rest.subarray(written);
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        if (code === "EINTR") continue;
        if (code !== "EAGAIN") {
          this.dropped.add();
          return true;
        }
        this.#rest = rest;
        this.#tryLater();
        return false;
      }
    }
    return true;
  }

  #tryLater(): void {
    this.#retry ??= setTimeout(() => {
      this.#retry = null;
      this.flush();
    }, RETRY_MS).unref();
  }
}

/** Makes another file descriptor the stderr of this process, before its first line. */
export const useAsStderr = (fd: number): void => setEnvironmentData(OTHER, fd);
const stderrNumber = () => (getEnvironmentData(OTHER) ?? STDERR) as number;

/** Whether somebody looks at the lines on a terminal. */
export const isStderrTerminal = (): boolean => isatty(stderrNumber());

let own: LineOutput | undefined;

/**
 * The stderr of this process for this thread.
 * @param dropped at the first call in a thread: the buffer of the counter that it shares with the thread that started it
 */
export function stderrLines(dropped?: SharedArrayBuffer): LineOutput {
  own ??= new LineOutput(() => withoutBlocking(stderrNumber()), new DroppedLines(dropped));
  return own;
}

/**
 * A file descriptor of the same file that does not block, if there is one. A pipe and a terminal are opened once more,
 * because `O_NONBLOCK` on the one that the process was started with would hold for every process that shares it.
 */
export function withoutBlocking(fd: number): number {
  try {
    if (fstatSync(fd).isFIFO() || isatty(fd))
      return openSync(`${OPEN_FILES}/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch {
    // There is no /proc, it is the pipe of another user, or nobody reads it any more.
  }
  // Sockets cannot be opened again. Node sets O_NONBLOCK on them, and on pipes, when it makes this stream.
  if (isMainThread) void process.stderr;
  return fd;
}

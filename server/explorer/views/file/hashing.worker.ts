/** Hashes one file in a separate thread, chunk by chunk, so that neither its size nor the page's work matters. */
import { sha256 } from "@noble/hashes/sha2.js";

/** Sent during the work and at the end. */
export type HashingMessage =
  | { readonly done: number }
  /** Bare lower-case hex. */
  | { readonly sha256: string }
  | { readonly problem: string };

/** The part of a worker's global scope that is used here; the compiler has the types of a page. */
const page = globalThis as unknown as {
  postMessage(message: HashingMessage): void;
  onmessage: ((event: { readonly data: File }) => void) | null;
};

/** Milliseconds between two reports; a reader would not see more. */
const REPORT_EVERY = 50;

page.onmessage = ({ data: file }) => {
  hash(file).then(
    (sha256) => page.postMessage({ sha256 }),
    (error: unknown) => page.postMessage({ problem: error instanceof Error ? error.message : String(error) }),
  );
};

async function hash(file: File): Promise<string> {
  const hasher = sha256.create();
  const reader = file.stream().getReader();
  let done = 0;
  let reported = 0;
  for (;;) {
    const { value, done: isEnd } = await reader.read();
    if (isEnd) break;
    hasher.update(value);
    done += value.length;
    if (performance.now() - reported > REPORT_EVERY) {
      reported = performance.now();
      page.postMessage({ done });
    }
  }
  return [...hasher.digest()].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

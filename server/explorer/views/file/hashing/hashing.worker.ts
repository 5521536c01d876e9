/** Hashes one file in a thread of its own, a chunk at a time: neither its size nor the page's work matters. */
import { kernel } from "../../../../../wasm/index.js";

/** Told while it goes on, and at the end. */
export type HashingMessage =
  | { readonly done: number }
  /** Bare lower-case hex. */
  | { readonly sha256: string }
  | { readonly problem: string };

/** What a worker has of its global scope here; the types of the page's are others. */
const page = globalThis as unknown as {
  postMessage(message: HashingMessage): void;
  onmessage: ((event: { readonly data: File }) => void) | null;
};

/** Milliseconds: more often than anybody sees. */
const REPORT_EVERY = 50;

page.onmessage = ({ data: file }) => {
  hash(file).then(
    (sha256) => page.postMessage({ sha256 }),
    (error: unknown) => page.postMessage({ problem: error instanceof Error ? error.message : String(error) }),
  );
};

async function hash(file: File): Promise<string> {
  const hasher = kernel.createSha256();
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

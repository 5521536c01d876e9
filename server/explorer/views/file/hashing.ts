/** Computes the SHA-256 of a file of any size in a worker. The file is not sent anywhere. */
import type { HashingMessage } from "./hashing.worker.js";

/**
 * @param progress called with the number of bytes done
 * @param signal ends the worker at once
 * @returns `sha256:` and lower-case hex. @throws Error with a sentence if the file cannot be read
 */
export function hashInWorker(file: File, progress: (done: number) => void, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL("./hashing.worker.ts", import.meta.url), { type: "module" });
    const end = () => worker.terminate();
    signal.addEventListener("abort", end, { once: true });
    const fail = (reason: string) => {
      end();
      reject(new Error(`${file.name} could not be read: ${reason}`));
    };
    worker.onmessage = ({ data }: MessageEvent<HashingMessage>) => {
      if ("done" in data) progress(data.done);
      else if ("problem" in data) fail(data.problem);
      else {
        end();
        resolve(`sha256:${data.sha256}`);
      }
    };
    worker.onerror = (event) => fail(event.message || "the worker did not start.");
    worker.postMessage(file);
  });
}

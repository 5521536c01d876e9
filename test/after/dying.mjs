/** Run in a thread of a pool: the next task dies with its thread, when it would answer. */
import { MessagePort } from "node:worker_threads";

export function dieWithNext() {
  const { postMessage } = MessagePort.prototype;
  let answers = 0;
  MessagePort.prototype.postMessage = function (...message) {
    if (++answers > 1) process.exit(1);
    return postMessage.apply(this, message);
  };
}

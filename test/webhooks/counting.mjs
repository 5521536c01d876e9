/** The thread of deliveries, which tells how many controllers of attempts are left in it. */
import { queryObjects } from "node:v8";
import { parentPort } from "node:worker_threads";
import "#cairnlog/server/webhooks/sending.js";

parentPort.on("message", () => parentPort.postMessage(queryObjects(AbortController)));

/**
 * A thread that reads a log which the test's thread writes. It stops before each of its reads that the test wants to hold, as
 * if the system had given its core to others, until it is let go.
 */
import { parentPort, receiveMessageOnPort, workerData } from "node:worker_threads";
import { LogFollower } from "#cairnlog/engine/log/follow/follower.js";
import { noProjection } from "#cairnlog/engine/log/state/projection.js";
import { LogReader } from "#cairnlog/engine/log/view/reader.js";
import { hashedTerm } from "#cairnlog/engine/store/postings/term.js";
import { POSTING } from "#cairnlog/engine/store/schema/schema.js";
import { openStore } from "#cairnlog/engine/store/store.js";

const { go, told, operatorKey, mapSize } = workerData;
let isHeld = false;
let log;
/** The number in the row that the writer changes with each batch, as the follower's observer saw it. */
let password = 0;

function hold(label) {
  if (!isHeld) return;
  const seen = Atomics.load(go, 0);
  parentPort.postMessage({ label });
  Atomics.wait(go, 0, seen);
}

/** Has each of these functions stop before it does anything, and after it has. */
function holding(object, names) {
  for (const name of names) {
    const work = object[name].bind(object);
    object[name] = (...given) => {
      hold(`before ${name}`);
      const result = work(...given);
      hold(`after ${name}`);
      return result;
    };
  }
}

const noWriter = {
  enqueue: (_command, _input, _resolve, reject) => reject(new Error("no writer")),
  signHead: () => Promise.reject(new Error("no writer")),
  verify: () => Promise.reject(new Error("no writer")),
};

const orders = {
  open({ path, isFollower }) {
    const store = openStore({ path, readOnly: true, isInspected: true, mapSize });
    if (!isFollower) store.pin();
    const parts = { path, store, projection: noProjection, operatorKey, mapSize, writer: noWriter };
    log = isFollower ? new LogFollower(parts) : new LogReader(parts);
    holding(store, ["refresh", "pinPostings"]);
    holding(store.postings, ["runIds"]);
    // What was told before is on the disk.
    while (receiveMessageOnPort(told));
    password = store.get("passwords", "someone")?.n ?? 0;
    if (isFollower)
      log.observeRows("passwords", (changes) => {
        password = (changes?.[0].row ?? store.get("passwords", "someone"))?.n ?? 0;
      });
  },
  /** As a front end that has answered somebody in this turn, and is asked by somebody else. */
  follow() {
    log.row("passwords", "someone");
    hold("after it has answered");
    for (let next = receiveMessageOnPort(told); next; next = receiveMessageOnPort(told)) log.follow(next.message);
  },
  refresh: () => log.refresh(),
  read({ criteria }) {
    const { size } = log;
    const { indexes, total } = log.match(criteria, 0, size + 1);
    const listed = log.postings(hashedTerm(POSTING.eventType, criteria.eventTypes[0])).window(0, 2 * total + 2);
    return {
      size,
      indexes,
      listed,
      total,
      root: log.inclusionProof(0).root_hash,
      head: log.treeHead()?.tree_size,
      password,
    };
  },
  async close() {
    await log.close();
  },
};

parentPort.on("message", async ({ order, input, held }) => {
  isHeld = held;
  try {
    const result = await orders[order](input);
    isHeld = false;
    parentPort.postMessage({ result });
  } catch (error) {
    isHeld = false;
    parentPort.postMessage({ failure: error.stack });
  }
});

/** Posts alarms to an address that the monitor's owner has configured and is responsible for. */
import { setTimeout as sleep } from "node:timers/promises";
import { traced } from "../outgoing/traced.js";
import type { Alarm } from "./alarm.js";

const TRIES = 4;
const FIRST_PAUSE_MS = 1_000;
const REQUEST_MS = 10_000;
const send = traced();

/**
 * POSTs the alarm as JSON until the answer is 2xx, a few times at most.
 * @param pause waits this many milliseconds
 * @returns the reason of the failure; null after a success
 */
export async function post(
  url: string,
  alarm: Alarm,
  pause: (ms: number) => Promise<void> = sleep,
): Promise<string | null> {
  const body = JSON.stringify(alarm);
  let reason = "";
  for (let failures = 0; failures < TRIES; failures++) {
    if (failures) await pause(FIRST_PAUSE_MS * 2 ** (failures - 1));
    try {
      const response = await send(url, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body,
        redirect: "error",
        signal: AbortSignal.timeout(REQUEST_MS),
      });
      await response.body?.cancel();
      if (response.ok) return null;
      reason = `it answered ${response.status}`;
    } catch (error) {
      reason = (error as Error).name === "TimeoutError" ? "it did not answer" : "nothing answers there";
    }
  }
  return reason;
}

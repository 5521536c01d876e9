/** Posts alarms to an address that the monitor's owner has configured and is responsible for. */
import { type Patience, patientFetch } from "../outgoing/patience.js";
import { traced } from "../outgoing/traced.js";
import type { Alarm } from "./alarm.js";

const TRIES = 4;
const FIRST_PAUSE_MS = 1_000;
const REQUEST_MS = 10_000;

/** Until the answer is 2xx, a few times at most. */
const untilAccepted = () => {
  let failures = 0;
  return (response: Response | null) =>
    response?.ok || ++failures === TRIES ? null : FIRST_PAUSE_MS * 2 ** (failures - 1);
};

/** POSTs the alarm as JSON. @returns the reason of the failure; null after a success */
export async function post(url: string, alarm: Alarm, sleep?: Patience["sleep"]): Promise<string | null> {
  const send = patientFetch(untilAccepted, { say: () => {}, requestMs: REQUEST_MS, ...(sleep && { sleep }) });
  const init = { method: "POST", headers: { "content-type": "application/json" }, redirect: "error" } as const;
  try {
    const { ok, status } = await traced(send)(url, { ...init, body: JSON.stringify(alarm) });
    return ok ? null : `it answered ${status}`;
  } catch (error) {
    return (error as Error).name === "TimeoutError" ? "it did not answer" : "nothing answers there";
  }
}

/** A service says that it is not ready while one of its front ends gives no sign. */
import { expect, test, vi } from "vitest";
import { SharedState } from "#cairnlog/server/front/shared-state.js";
import { startTestService } from "../harness.js";

/** The word with the moment of the first front end's last sign, in milliseconds. */
const BEAT = 1;

test("a service is not ready while a front end has given no sign for seconds, and is when it gives one", async () => {
  const creating = vi.spyOn(SharedState, "create");
  const service = await startTestService({ SERVICE_FRONT_ENDS: "1", SERVICE_TRANSPORT: "uws" });
  const words = new Int32Array((creating.mock.results[0]!.value as SharedState).buffer);
  creating.mockRestore();
  const ready = async (silence: number) => {
    Atomics.sub(words, BEAT, silence);
    const { status, text } = await service.send("GET", "/readyz");
    return { status, isNamed: text.includes("front-1") };
  };
  // A sign may come between: then the next look finds it silent.
  await expect.poll(() => ready(6_000)).toEqual({ status: 503, isNamed: true });
  await expect.poll(() => ready(0)).toEqual({ status: 200, isNamed: false });
});

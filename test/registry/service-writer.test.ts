/** What a program may append to the log of a service that it runs. */
import { afterAll, expect, test } from "vitest";
import type { EventInput } from "#cairnlog/engine/log/state/projection.js";
import { anyEvent } from "../anyevent.js";
import { closeWorlds, openWorld } from "./world.js";

afterAll(closeWorlds);

test("a program may append events of the service alone, so that its log stays one that is valid and can be restored", async () => {
  const { registry } = await openWorld();
  const { log, writer } = registry;
  const strange = [
    { event_type: "note", payload: {} },
    { event_type: "https://example.org/build", payload: { artifact: "app.tar.gz" } },
    { event_type: "key_registration", payload: {} },
    { event_type: "key_revocation", payload: anyEvent().payload },
    // It fits, and what would be written of it does not.
    { ...anyEvent(), payload: Object.assign(Object.create({ toJSON: () => ({}) }), anyEvent().payload) },
  ] as EventInput[];
  for (const event of strange)
    for (const given of [event, [anyEvent(), event]] as EventInput[])
      await expect(writer.append(given)).rejects.toMatchObject({
        code: "invalid-input",
        message: expect.stringMatching(/^The log of a service takes the service's events alone\. /),
      });
  for (const nothing of [undefined, null, 1, {}, { event_type: "note" }, { event_type: 1, payload: {} }, [[]]])
    await expect(writer.append(nothing as never)).rejects.toMatchObject({ code: "invalid-input" });
  expect(log.size).toBe(0);
  await writer.append(anyEvent());
  await writer.append([anyEvent(), anyEvent({ tags: ["more"] })]);
  await writer.append({ event_type: "key_revocation", payload: { fingerprint: `sha256:${"a".repeat(64)}` } });
  expect([log.size, writer.batches]).toEqual([4, 3]);
  expect(await log.verify()).toMatchObject({ valid: true, entry_count: 4 });
});

/** `cairnlog serve --env-file FILE`, with and without the parent process. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { scratchFolder, startService } from "../../service.js";

const folder = scratchFolder();
afterAll(() => folder.remove());

test.each([true, false])("its settings hold, with a parent: %s", async (hasParent) => {
  const data = join(folder.path, `${hasParent}`);
  mkdirSync(data);
  const file = join(data, "environment");
  writeFileSync(file, "SERVICE_OPERATOR_NAME='The Operator'\nSERVICE_WRITERS=registered\nSERVICE_NATIVE_CODE=any\n");
  const environment = { SERVICE_WRITERS: "endorsed" };
  const service = await startService(data, environment, { hasParent, args: ["--env-file", file] });
  expect(await (await fetch(service.url)).text()).toContain('content="The Operator"');
  // What the environment says goes before.
  expect(await (await fetch(`${service.url}/api/v1/writers`)).json()).toMatchObject({ rule: "endorsed" });
  expect(await service.stop()).toBe(0);
});

/** How long a service waits for a signer that never comes (docs/signer.md). */
import { expect, test } from "vitest";
import { cairnlog } from "../../service.js";
import { temporaryFolder } from "../harness.js";

test("a service whose signer does not come ends with a sentence and exit code 1", async () => {
  const dataDir = temporaryFolder();
  const env = { ...process.env, PORT: "0", SERVICE_DATA_DIR: dataDir, SERVICE_SIGNER: `unix:${dataDir}/signer.sock` };
  const { code, stdout, stderr } = await cairnlog(["serve"], { env });
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  const lines = stderr.trimEnd().split("\n");
  expect(lines).toHaveLength(2);
  expect(JSON.parse(lines[0]!).msg).toBe(
    `waiting for it: No signer can be reached at ${dataDir}/signer.sock (ENOENT).`,
  );
  expect(lines[1]).toContain(`No signer can be reached at ${dataDir}/signer.sock (ENOENT).`);
});

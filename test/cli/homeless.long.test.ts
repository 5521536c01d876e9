/** A user whom the system does not know, without a home, as containers run programs: the command works, and remembers nothing. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { MAIN, scratchFolder, startService } from "../service.js";

const folder = scratchFolder();
afterAll(() => folder.remove());

test("a log is read without a home", async () => {
  const service = await startService(`${folder.path}/data`);
  try {
    // Another user than root cannot become one: then a home where nothing can be made stands for it.
    const isRoot = process.getuid!() === 0;
    const user = isRoot ? { uid: 54_321, gid: 54_321 } : {};
    const env = { PATH: process.env.PATH, ...(isRoot ? {} : { HOME: "/proc/none" }) };
    const { stdout, stderr } = await promisify(execFile)(
      process.execPath,
      [MAIN, "log", "head", "--server", service.url],
      { ...user, env, cwd: "/" },
    );
    expect(stdout).toBe("The log is empty.\n");
    expect(stderr).toMatch(
      /^Nothing is remembered of this log: \S+cairnlog cannot be written \(E\w+\)\. --state names/m,
    );
  } finally {
    await service.stop();
  }
});

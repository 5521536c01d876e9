/**
 * Runs before each test file. The files of one worker share its process and the compiled code that Node has loaded. The
 * helpers of the tests are loaded again for each file, because they record what must be cleaned up after it.
 */
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { vi } from "vitest";

vi.resetModules();
// What the user who runs the tests has told the command to remember is none of their business.
process.env.XDG_CONFIG_HOME = join(tmpdir(), "cairnlog-tests-no-config");
fc.configureGlobal({ seed: Number(process.env.TEST_SEED ?? 1) });

/**
 * Runs before each test file. The files of one worker share its process and the compiled code that Node has loaded. The
 * helpers of the tests are loaded again for each file, because they record what must be cleaned up after it.
 */
import fc from "fast-check";
import { vi } from "vitest";

vi.resetModules();
fc.configureGlobal({ seed: Number(process.env.TEST_SEED ?? 1) });

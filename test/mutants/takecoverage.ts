/** vitest ends its processes with a signal, and Node writes no coverage then. */
import { takeCoverage } from "node:v8";
import { afterAll } from "vitest";

if (process.env.NODE_V8_COVERAGE) afterAll(() => takeCoverage());

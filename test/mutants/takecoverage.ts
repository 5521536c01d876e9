/** Writes coverage explicitly, because vitest ends its processes with a signal, after which Node writes none. */
import { takeCoverage } from "node:v8";
import { afterAll } from "vitest";

if (process.env.NODE_V8_COVERAGE) afterAll(() => takeCoverage());

/** Limits end what hangs, and a busy machine must not reach them. So all tests have those of their suite (`vitest.config.ts`). */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const FOLDER = fileURLToPath(new URL(".", import.meta.url));
const files = readdirSync(FOLDER, { recursive: true, encoding: "utf8" }).filter(
  (path) => path.endsWith(".ts") && !path.startsWith("build/"),
);
/** Limits in numbers, and waits that have a second unless they say otherwise: `expect.poll` has that of the suite. */
const OWN_LIMIT =
  /\bvi\s*\.wait(?:For|Until)\(|^\s*\}, [\d_]{4,}\);$|\{\s*timeout: [\d_]+,?\s*\}, (?:async )?\(|\.poll\([^;]*?\btimeout: [\d_]+/m;

test("no test, hook or wait has a limit of its own", () => {
  expect(files.length).toBeGreaterThan(400);
  expect(files.filter((path) => OWN_LIMIT.test(readFileSync(join(FOLDER, path), "utf8")))).toEqual([]);
});

test("every suite says how long a wait may take", () => {
  const suites = files.filter((path) => /(^|\/)vitest\.(\w+\.)?config\.ts$/.test(path));
  expect(suites.length).toBeGreaterThan(4);
  const silent = suites.filter(
    (path) => !/poll: \{ timeout: |\.\.\.TESTS/.test(readFileSync(join(FOLDER, path), "utf8")),
  );
  expect(silent).toEqual([]);
});

/** Replaced by hand, a timer forgets what it was given besides, and a library's callback then throws in another file's test. */
const OWN_TIMER = /stubGlobal\(\s*"setTimeout"|spyOn\(globalThis, "setTimeout"\)\s*\.mock[A-Z]/;

test("setTimeout is replaced in one place", () => {
  const places = files.filter((path) => OWN_TIMER.test(readFileSync(join(FOLDER, path), "utf8")));
  expect(places).toEqual(["timers.ts"]);
});

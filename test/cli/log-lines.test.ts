/** The service's log on a terminal. */
import { expect, test } from "vitest";
import { logLines } from "#cairnlog/server/cli/terminal/log-lines.js";

test("a line has its time, its level unless it is information, its sentence and its details", () => {
  const lines: string[] = [];
  const log = logLines((line) => lines.push(line));
  log.info({ url: "http://a", entries: 3 }, "listening");
  log.warn("careful");
  log.error({ err: new Error("no \u001b[31mroom"), id: 7 }, "request failed");
  const [first, second, third] = lines.map((line) => line.replace(/^\d\d:\d\d:\d\d /, "TIME "));
  expect([first, second]).toEqual(["TIME listening (url http://a, entries 3)\n", "TIME warn: careful\n"]);
  expect(third).toMatch(/^TIME error: request failed \(id 7\)\nError: no \\u\{1b\}\[31mroom\n {4}at /);
});

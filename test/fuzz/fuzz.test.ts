/** All texts that have failed before, and the places where faults are planted. `npm run fuzz` makes new inputs. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { CRASH_FAULTS, ENGINE_FAULTS } from "../crash/planted.js";
import { DIST } from "../reliability/planted.js";
import { readCorpus, SERVICE } from "./corpus.js";
import { judgeParser, loadTargets } from "./parsers.js";
import { PARSER_FAULTS, SERVICE_FAULTS } from "./planted.js";

test("no input that once failed a reader fails it again", async () => {
  const targets = new Map((await loadTargets(DIST)).map((target) => [target.name, target]));
  for (const { target, bytes, note } of readCorpus())
    if (target !== SERVICE)
      expect(await judgeParser(targets.get(target)!, Buffer.from(bytes!, "base64")), note).toBeNull();
});

test.each([...CRASH_FAULTS, ...ENGINE_FAULTS, ...SERVICE_FAULTS, ...PARSER_FAULTS])(
  "there is a place to plant: $name",
  ({ file, text }) => {
    expect(readFileSync(join(DIST, file), "utf8").split(text)).toHaveLength(2);
  },
);

/** The planted faults of every program fit the code: each replaces a text that its file holds once. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { CLUSTER_FAULTS } from "../cluster/check/planted.js";
import { CRASH_FAULTS, ENGINE_FAULTS } from "../crash/planted.js";
import { SYSTEM_FAULTS } from "../faults/planted.js";
import { PARSER_FAULTS, SERVICE_FAULTS } from "../fuzz/planted.js";
import { POWERLOSS_FAULTS } from "../powerloss/planted.js";
import { DIST, type PlantedFault } from "./planted.js";

const LISTS: Readonly<Record<string, readonly PlantedFault[]>> = {
  ...{ CRASH_FAULTS, ENGINE_FAULTS, SYSTEM_FAULTS },
  ...{ PARSER_FAULTS, SERVICE_FAULTS, POWERLOSS_FAULTS, CLUSTER_FAULTS },
};

test.each(Object.entries(LISTS))("%s", (_, faults) => {
  const all = faults.flatMap((fault) => [
    fault,
    ...(fault.also ?? []).map((place) => ({ ...place, name: fault.name })),
  ]);
  const places = all.map(({ name, file, text }) => [
    name,
    readFileSync(join(DIST, file), "utf8").split(text).length - 1,
  ]);
  expect(places).toEqual(all.map(({ name }) => [name, 1]));
});

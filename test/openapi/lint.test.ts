/** The OpenAPI document as @redocly/cli sees it. */
import { readFileSync } from "node:fs";
import { beforeAll, expect, test } from "vitest";
import { startTestService } from "../server/harness.js";
import { Project } from "./project.js";

const CONFIG = new URL("redocly.yaml", import.meta.url);

let project: Project;
beforeAll(async () => {
  project = await Project.of(await startTestService());
  project.write("redocly.yaml", readFileSync(CONFIG, "utf8"));
});

const lint = (file: string) => project.tool("redocly", "lint", file, "--config", "redocly.yaml", "--format=json");

test("it has no errors, and nothing to warn of", async () => {
  const { code, stdout, output } = await lint("openapi.json");
  expect(code, output).toBe(0);
  const { totals, problems } = JSON.parse(stdout);
  expect(problems).toEqual([]);
  expect(totals).toMatchObject({ errors: 0, warnings: 0 });
});

test("the check sees a fault", async () => {
  const document = JSON.parse(readFileSync(`${project.folder}/openapi.json`, "utf8"));
  delete document.paths["/api/v1/log/{entry_id}"].get.parameters;
  project.write("wrong.json", JSON.stringify(document));
  expect((await lint("wrong.json")).code).toBe(1);
});

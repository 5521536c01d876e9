/** A client that openapi-typescript generates from the document of a running service: it compiles, and it works. */
import { readFileSync } from "node:fs";
import { beforeAll, expect, test } from "vitest";
import { everyOperation } from "../contract/tour.js";
import type { Document } from "../server/contract.js";
import { startTestService, type TestService } from "../server/harness.js";
import { everyCall } from "./everycall.js";
import { Project } from "./project.js";

let service: TestService;
let project: Project;
let document: Document;
beforeAll(async () => {
  service = await startTestService();
  document = await service.openApi();
  project = await Project.of(service);
  const { code, output } = await project.tool("openapi-typescript", "openapi.json", "--output", "api.d.ts");
  expect(code, output).toBe(0);
  project.write("everycall.ts", everyCall(document));
  const manual = readFileSync(new URL("../../docs/http.md", import.meta.url), "utf8");
  const [, sample] = /<!-- compiled by test\/openapi\/client.test.ts -->\n```ts\n([\s\S]*?)```/.exec(manual)!;
  project.write("sample.ts", sample!);
});

test.each(["tools", "repository"] as const)(
  "calls of every operation compile, with the TypeScript of the %s",
  async (which) => {
    const { code, output } = await project.compile(which);
    expect([code, output]).toEqual([0, ""]);
    expect(everyOperation(document).length).toBeGreaterThan(110);
  },
);

test("a program that fills every object that may hold anything runs against the service", async () => {
  const { code, stdout, output } = await project.run("tour.js", service.url);
  expect(code, output).toBe(0);
  expect(JSON.parse(stdout)).toEqual({
    claims: { pages: [1, 2], reviewer: { name: "Grace" }, urgent: true },
    policy: "active",
    read: [true, true],
    answered: "declined",
    verified: "valid",
    tags: ["report"],
    lookup: true,
    revealed: false,
    valid: true,
    head: [200, true],
    missing: ["not-found", 404],
  });
});

/** Several things are closed: each of them, whichever fails; and no source closes them in another way. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { expect, test } from "vitest";
import { closeAfter, closeAll, closeTogether, closing } from "#cairnlog/engine/base/closing.js";

const root = fileURLToPath(new URL("..", import.meta.url));

const WAYS = ["at once", "later", "throws", "rejects"] as const;
const FORMS = ["all", "together", "after", "working", "failing"] as const;
const later = () => new Promise((resolve) => setImmediate(resolve));

test("each is closed although others fail, in turn or together, and the first error is told when all have ended", async () => {
  const given = fc.array(fc.constantFrom(...WAYS), { maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(given, fc.constantFrom(...FORMS), async (ways, form) => {
      const steps: string[] = [];
      const all = ways.map((way, i) => () => {
        steps.push(`begin ${i}`);
        const end = () => {
          steps.push(`end ${i}`);
          if (way === "throws" || way === "rejects") throw i;
        };
        return way === "later" || way === "rejects" ? later().then(end) : end();
      });
      const work = async () => {
        await later();
        if (form === "failing") throw "work";
        return "done";
      };
      const run = {
        all: () => closeAll(...all),
        together: () => closeTogether(...all),
        after: () => closeAfter("work", ...all),
        working: () => closing(work, ...all),
        failing: () => closing(work, ...all),
      }[form];
      const outcome = await run().then(
        (value) => ({ value }),
        (error: unknown) => ({ error }),
      );
      const ended = [...steps];

      const failed = ways.findIndex((way) => way === "throws" || way === "rejects");
      const told = form === "after" || form === "failing" ? "work" : failed;
      expect(outcome).toEqual(told === -1 ? { value: form === "working" ? "done" : undefined } : { error: told });
      const inTurn = ways.flatMap((_, i) => [`begin ${i}`, `end ${i}`]);
      // Nothing ends after it has resolved.
      if (form === "together") expect(ended.sort()).toEqual(inTurn.sort());
      else expect(ended).toEqual(inTurn);
    }),
  );
});

const CLOSE = String.raw`[^;{}\n]*\.(?:close|stop|end|release|destroy|terminate)\([^;{}\n]*\)`;
/** Where the first that fails would keep others from being closed, or its error would take the place of an earlier one. */
const FORBIDDEN: Readonly<Record<string, RegExp>> = {
  "one after the other": new RegExp(String.raw`await ${CLOSE};\s+await ${CLOSE};`),
  "in a loop": new RegExp(String.raw`\b(?:for|while) \([^\n]*\)\s+await ${CLOSE};`),
  "at the same time": new RegExp(String.raw`Promise\.all\(${CLOSE}`),
  "before an error is thrown on": new RegExp(String.raw`await ${CLOSE};\s+throw error;`),
};

test("no source closes several things, or one after an error, in a way that stops at the first failure", () => {
  const files = ["engine", "server"].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .filter((name) => /(?<!\.d)\.tsx?$/.test(name) && !name.includes("node_modules"))
      .map((name) => join(folder, name)),
  );
  expect(files.length).toBeGreaterThan(500);
  const found = files.flatMap((file) => {
    const text = readFileSync(join(root, file), "utf8");
    return Object.entries(FORBIDDEN).flatMap(([what, form]) => (form.test(text) ? [`${file}: ${what}`] : []));
  });
  expect(found).toEqual([]);
});

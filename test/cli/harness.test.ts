/** Output within this process goes only to the command that printed it. */
import { expect, test } from "vitest";
import { begin, divertOutput } from "./harness.js";

const outputs = () => [console.log, console.error, process.stdout.write, process.stderr.write];

test("each command has what it prints, and what the test prints is nobody's", async () => {
  const commands = [["--version"], ["fsck", "--help"], ["nonsense"]].map((args) => begin(args));
  process.stdout.write("");
  const [version, help, refused] = await Promise.all(commands.map(({ ended }) => ended));
  expect(version).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\S*\d+\.\d+\.\d+\S*\n$/), stderr: "" });
  expect(help).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Usage: cairnlog fsck/), stderr: "" });
  expect(refused).toMatchObject({ code: 2, stdout: "", stderr: expect.stringMatching(/nonsense/) });
});

test("console and streams are as before when the diversion ends", () => {
  const before = outputs();
  const restore = divertOutput();
  for (const [i, output] of outputs().entries()) expect(output).not.toBe(before[i]);
  restore();
  expect(outputs()).toEqual(before);
  for (const [i, output] of outputs().entries()) expect(output).toBe(before[i]);
});

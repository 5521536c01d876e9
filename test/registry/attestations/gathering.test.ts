import { expect, it } from "vitest";
import { Gathering } from "#cairnlog/engine/registry/attestations/gathering.js";

it("gives the results in the order of their places, and the first that each place got", async () => {
  const gathering = new Gathering<string>(3);
  const [first, second, third] = [0, 1, 2].map((i) => gathering.place(i));
  third![0]("c");
  second![1]("why not");
  second![0]("too late");
  first![0]("a");
  expect(await gathering.all).toEqual([
    { status: "fulfilled", value: "a" },
    { status: "rejected", reason: "why not" },
    { status: "fulfilled", value: "c" },
  ]);
});

it("has nothing to wait for without places", async () => {
  expect(await new Gathering(0).all).toEqual([]);
});

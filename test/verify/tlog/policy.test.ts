/** Policies: what they may say, which witnesses are a quorum, and which checkpoints pass. */
import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  formatVkey,
  isQuorum,
  type Policy,
  parsePolicy,
  parseVkey,
  verifyByPolicy,
} from "#cairnlog/engine/verify/index.js";
import { checkpointOf, type NoteSigner, newMlDsaSigner, newNoteSigner, unknownVkey } from "../note/notes.js";

const log = newNoteSigner("log.example/1");
const [x1, x2, x3, y1, y2, y3] = ["X1", "X2", "X3", "Y1", "Y2", "Y3"].map((name) =>
  newNoteSigner(`${name.toLowerCase()}.example`, 4),
) as [NoteSigner, NoteSigner, NoteSigner, NoteSigner, NoteSigner, NoteSigner];

/** The example of the specification. */
const EXAMPLE = `log ${log.vkey}

witness X1 ${x1.vkey}
witness X2 ${x2.vkey}
witness X3 ${x3.vkey}
group X-witnesses 2 X1 X2 X3

witness Y1 ${y1.vkey}
witness Y2 ${y2.vkey}
witness Y3 ${y3.vkey}
group Y-witnesses any Y1 Y2 Y3

group X-and-Y all X-witnesses Y-witnesses
quorum X-and-Y
`;

describe("the example of the specification", () => {
  const policy = parsePolicy(EXAMPLE);

  test("is read", () => {
    expect(policy.logs).toEqual([{ key: parseVkey(log.vkey), url: null }]);
    expect(policy.witnesses.map(({ name, key }) => [name, key.name])).toEqual(
      [x1, x2, x3, y1, y2, y3].map(({ name }) => [name.slice(0, 2).toUpperCase(), name]),
    );
    expect(policy.groups).toEqual([
      { name: "X-witnesses", threshold: 2, members: ["X1", "X2", "X3"] },
      { name: "Y-witnesses", threshold: 1, members: ["Y1", "Y2", "Y3"] },
      { name: "X-and-Y", threshold: 2, members: ["X-witnesses", "Y-witnesses"] },
    ]);
    expect(policy.quorum).toBe("X-and-Y");
  });

  test("needs two of X and one of Y", () => {
    for (let set = 0; set < 64; set++) {
      const names = ["X1", "X2", "X3", "Y1", "Y2", "Y3"].filter((_, bit) => set & (1 << bit));
      const of = (letter: string) => names.filter((name) => name.startsWith(letter)).length;
      expect(isQuorum(policy, new Set(names))).toBe(of("X") >= 2 && of("Y") >= 1);
    }
    expect(isQuorum(policy, new Set(["X-witnesses-x", "none", ""]))).toBe(false);
  });
});

describe("what a policy may be", () => {
  const witness = `witness W ${x1.vkey}`;
  test.each([
    ["no cosignature at all", "quorum none", null],
    ["one witness", `${witness}\nquorum W\n`, "W"],
    ["tabs, spaces, comments, no last line feed", ` \t# x\n\twitness  W\t${x1.vkey} \n\n quorum\tW`, "W"],
    ["names of any letters", `witness \u212a ${x1.vkey}\ngroup K 1 \u212a\nquorum K`, "K"],
    ["lines after the quorum", `${witness}\nquorum W\nlog ${log.vkey} https://log.example/`, "W"],
    ["names that are numbers and words", `witness all ${x1.vkey}\ngroup 2 1 all\nquorum 2`, "2"],
  ])("%s", (_, text, quorum) => {
    expect(parsePolicy(text).quorum).toBe(quorum);
  });

  test("URLs are kept as they are", () => {
    const policy = parsePolicy(`log ${log.vkey} a\n${witness} https://w.example/x\nquorum W`);
    expect([policy.logs[0]?.url, policy.witnesses[0]?.url]).toEqual(["a", "https://w.example/x"]);
  });

  test.each([
    ["no quorum", witness, "no quorum"],
    ["nothing", "", "no quorum"],
    ["two quorums", "quorum none\nquorum none", "Line 2"],
    ["a quorum of nobody", "quorum W", "Line 1"],
    ["a quorum that stands before its witness", `quorum W\n${witness}`, "Line 1"],
    ["a quorum of two", `${witness}\nquorum W W`, "one name"],
    ["another word", "logs", "Line 1"],
    ["a log without a key", "log\nquorum none", "Line 1"],
    ["a log with too much", `log ${log.vkey} a b\nquorum none`, "Line 1"],
    ["a witness without a key", "witness W\nquorum none", "Line 1"],
    ["a witness with the key of a log", `witness W ${log.vkey}\nquorum none`, "witness's key"],
    ["a log with the key of a witness", `log ${x1.vkey}\nquorum none`, "key of a witness"],
    ["a misspelt key", `log ${log.vkey}x\nquorum none`, "not a verifier key"],
    ["one name twice", `${witness}\nwitness W ${x2.vkey}\nquorum none`, "taken"],
    ["one key twice", `${witness}\nwitness V ${x1.vkey}\nquorum none`, "same key"],
    ["one key under two names of its own", `${witness}\nwitness V ${sameKey(x1)}\nquorum none`, "same key"],
    ["one log twice", `log ${log.vkey}\nlog ${log.vkey}\nquorum none`, "same key"],
    ["a witness called none", `witness none ${x1.vkey}\nquorum none`, "taken"],
    ["a group called like a witness", `${witness}\ngroup W any W\nquorum none`, "taken"],
    ["a group without members", `${witness}\ngroup G any\nquorum none`, "Line 2"],
    ["a group of none", "group G any none\nquorum none", "Line 1"],
    ["a group of nobody", "group G any W\nquorum none", "Line 1"],
    ["a group of itself", "group G any G\nquorum none", "Line 1"],
    ["a group of 0", `${witness}\ngroup G 0 W\nquorum none`, "Line 2"],
    ["a group of too many", `${witness}\ngroup G 2 W\nquorum none`, "Line 2"],
    ["a group of 01", `${witness}\ngroup G 01 W\nquorum none`, "Line 2"],
    ["a group of some", `${witness}\ngroup G some W\nquorum none`, "Line 2"],
    ["a member twice", `${witness}\ngroup G any W W\nquorum none`, "once"],
    ["a member of two groups", `${witness}\ngroup G any W\ngroup H any W\nquorum none`, "once"],
    ["carriage returns", "quorum none\r\n", "control character"],
    ["a zero byte", "quorum none\n#\0", "control character"],
    ["a comment behind a line", "quorum none # x", "one name"],
    ["another kind of space", "quorum\u00a0none", "Line 1"],
    ["a long text", `#${"x".repeat(1 << 20)}\nquorum none`, "2^20"],
  ])("%s is refused", (_, text, sentence) => {
    expect(() => parsePolicy(text)).toThrow(
      expect.objectContaining({ code: "invalid-input", message: expect.stringContaining(sentence) }),
    );
  });

  test("any text is read or refused", () => {
    const word = fc.constantFrom("log", "witness", "group", "quorum", "none", "W", "G", x1.vkey, log.vkey, "all", "1");
    fc.assert(
      fc.property(fc.array(fc.tuple(word, fc.constantFrom(" ", "\n", "\t"))), (words) => {
        try {
          expect(parsePolicy(words.flat().join("")).quorum).not.toBeUndefined();
        } catch (error) {
          expect(error).toMatchObject({ code: "invalid-input" });
        }
      }),
    );
  });
});

/** The key of a witness under another name. */
function sameKey({ point }: NoteSigner): string {
  const material = Buffer.concat([Buffer.of(4), point]);
  const id = createHash("sha256").update("other.example\n").update(material).digest("hex").slice(0, 8);
  return `other.example+${id}+${material.toString("base64")}`;
}

describe("a checkpoint", () => {
  const policy = parsePolicy(EXAMPLE);
  const text = checkpointOf(log.name, 12, Buffer.alloc(32, 1));
  const note = (...lines: string[]) => `${text}\n${lines.join("")}`;
  const own = log.line(text);

  test("passes with a quorum, and tells who cosigned when", async () => {
    const lines = [own, x1.line(text, 5), x1.line(text, 9), x1.line(text, 7), x3.line(text, 6), y2.line(text, 8)];
    const verdict = await verifyByPolicy(note(...lines), policy);
    expect(verdict).toMatchObject({ checkpoint: { origin: log.name, treeSize: 12 }, hasQuorum: true });
    expect(verdict?.log.name).toBe(log.name);
    expect(verdict?.cosigned.map(({ witness, time }) => [witness.name, time])).toEqual([
      ["X1", 9],
      ["X3", 6],
      ["Y2", 8],
    ]);
  });

  test("without one, says so; strangers do not count", async () => {
    const stranger = newNoteSigner("x2.example", 4).line(text);
    for (const lines of [[own], [own, x1.line(text), y1.line(text), stranger], [own, x1.line(text), x2.line(text)]])
      expect(await verifyByPolicy(note(...lines), policy)).toMatchObject({ hasQuorum: false });
    expect(await verifyByPolicy(note(own), parsePolicy(`log ${log.vkey}\nquorum none`))).toMatchObject({
      hasQuorum: true,
    });
  });

  test("does not pass without its log, with another log's name, or with a line that does not hold", async () => {
    const other = newNoteSigner("log.example/2");
    const both = parsePolicy(`${EXAMPLE}log ${other.vkey}\n`);
    const all = [x1, x2, y1].map((signer) => signer.line(text));
    expect(await verifyByPolicy(note(...all), policy)).toBeNull();
    expect(await verifyByPolicy(note(other.line(text), ...all), both)).toBeNull();
    expect(await verifyByPolicy(note(own, ...all), both)).toMatchObject({ hasQuorum: true });
    expect(await verifyByPolicy(note(own, ...all, y3.line(`${text}x\n`)), policy)).toBeNull();
    expect(await verifyByPolicy(log.note("no checkpoint\n"), policy)).toBeNull();
    for (const odd of ["", text, null, 7]) expect(await verifyByPolicy(odd, policy)).toBeNull();
  });

  test("may be of a log that the caller knows", async () => {
    const none = parsePolicy("quorum none");
    expect(await verifyByPolicy(note(own), none)).toBeNull();
    expect(await verifyByPolicy(note(own), none, [parseVkey(log.vkey)])).toMatchObject({ hasQuorum: true });
  });
});

describe("witnesses and logs of ML-DSA-44", () => {
  const [pqLog, pq] = [newMlDsaSigner("log.example/pq"), newMlDsaSigner("pq.example")];
  const text = checkpointOf(pqLog.name, 12, Buffer.alloc(32, 1));
  const policy = parsePolicy(
    `log ${pqLog.vkey}\nwitness X1 ${x1.vkey}\nwitness PQ ${pq.vkey}\ngroup G 2 X1 PQ\nquorum G\n`,
  );
  const judge = (...lines: string[]) => verifyByPolicy(`${text}\n${lines.join("")}`, policy);

  test("count like others", async () => {
    const verdict = await judge(pqLog.line(text, 0), x1.line(text, 5), pq.line(text, 7), pq.line(text, 6));
    expect(verdict).toMatchObject({ hasQuorum: true, log: { name: pqLog.name } });
    expect(verdict?.cosigned.map(({ witness, time }) => [witness.name, time])).toEqual([
      ["X1", 5],
      ["PQ", 7],
    ]);
    expect(await judge(pqLog.line(text), x1.line(text))).toMatchObject({ hasQuorum: false });
  });

  test("spoil the checkpoint with a line that does not hold", async () => {
    const other = checkpointOf(pqLog.name, 13, Buffer.alloc(32, 1));
    expect(await judge(pqLog.line(text), x1.line(text), pq.line(other))).toBeNull();
    expect(await judge(pqLog.line(other), x1.line(text), pq.line(text))).toBeNull();
  });

  test("with one key under two names are refused", () => {
    const material = Buffer.from(pq.vkey.split("+").slice(2).join("+"), "base64");
    const id = createHash("sha256").update("other.example\n").update(material).digest("hex").slice(0, 8);
    const again = `other.example+${id}+${material.toString("base64")}`;
    expect(() => parsePolicy(`witness A ${pq.vkey}\nwitness B ${again}\nquorum none`)).toThrow("same key");
  });

  test.each([
    ["a short one", Buffer.alloc(1311)],
    ["a long one", Buffer.alloc(1313)],
  ])("with a key that is none (%s) are refused", (_, key) => {
    const material = Buffer.concat([Buffer.of(6), key]);
    const id = createHash("sha256").update("w\n").update(material).digest("hex").slice(0, 8);
    expect(() => parsePolicy(`witness W w+${id}+${material.toString("base64")}\nquorum none`)).toThrow("1312 bytes");
  });
});

describe("keys of unknown types", () => {
  const text = checkpointOf(log.name, 12, Buffer.alloc(32, 1));
  const [later, never] = ["later.example", "never.example"].map((name) => unknownVkey(name)) as [string, string];

  test("are kept as they are written, as witnesses and logs that never sign", async () => {
    const lines = `log ${unknownVkey("log.example/2", 2)} a\nlog ${log.vkey}\nwitness L ${later} https://l.example\nwitness X1 ${x1.vkey}\ngroup G any L X1\nquorum G\n`;
    const policy = parsePolicy(lines);
    expect(policy.witnesses.map(({ name, key, url }) => [name, key.type, formatVkey(key), url])).toEqual([
      ["L", "unknown", later, "https://l.example"],
      ["X1", "cosignature/v1", x1.vkey, null],
    ]);
    const line = `\u2014 later.example ${Buffer.from(`${"01234567".repeat(1)}${"00".repeat(72)}`, "hex").toString("base64")}\n`;
    const verdict = await verifyByPolicy(`${text}\n${log.line(text)}${line}${x1.line(text)}`, policy);
    expect(verdict?.cosigned.map(({ witness }) => witness.name)).toEqual(["X1"]);
    expect(verdict?.hasQuorum).toBe(true);
    expect(await verifyByPolicy(`${text}\n${log.line(text)}${line}`, policy)).toMatchObject({ hasQuorum: false });
  });

  test.each([
    ["one that never signs", `witness L ${later}\nquorum L`],
    ["all of a group with one", `witness L ${later}\nwitness X1 ${x1.vkey}\ngroup G all L X1\nquorum G`],
    ["a group in a group", `witness L ${later}\ngroup H any L\nwitness X1 ${x1.vkey}\ngroup G 2 H X1\nquorum G`],
  ])("a quorum of %s cannot be reached, which is said", (_, lines) => {
    expect(() => parsePolicy(lines)).toThrow(
      expect.objectContaining({
        code: "invalid-input",
        message: "The quorum of the policy cannot be reached: it needs keys of types that are not known here.",
      }),
    );
  });

  test("one key twice is refused", () => {
    expect(() => parsePolicy(`witness A ${never}\nwitness B ${never}\nquorum none`)).toThrow("same key");
  });

  test("no such key makes a quorum unreachable that the others can reach", () => {
    const known = [x1, x2, x3, y1, y2, y3];
    const draw = fc.record({
      unknown: fc.uniqueArray(fc.nat(5)),
      first: fc.integer({ min: 1, max: 6 }),
      threshold: fc.tuple(fc.nat(), fc.nat()),
      outer: fc.constantFrom("any", "all"),
    });
    let reachable = 0;
    fc.assert(
      fc.property(draw, ({ unknown, first, threshold, outer }) => {
        const names = known.map((_, i) => `W${i}`);
        const groups = [names.slice(0, first), names.slice(first)].flatMap((members, i) =>
          members.length ? [`group G${i} ${1 + (threshold[i as 0 | 1] % members.length)} ${members.join(" ")}`] : [],
        );
        const rest = [...groups, `group Q ${outer} ${groups.map((_, i) => `G${i}`).join(" ")}`, "quorum Q\n"].join(
          "\n",
        );
        const linesOf = (vkeyOf: (i: number) => string) => names.map((name, i) => `witness ${name} ${vkeyOf(i)}\n`);
        const able = new Set(names.filter((_, i) => !unknown.includes(i)));
        const all = parsePolicy(linesOf((i) => known[i]!.vkey).join("") + rest);
        const some = (): Policy =>
          parsePolicy(linesOf((i) => (unknown.includes(i) ? unknownVkey(`u${i}`) : known[i]!.vkey)).join("") + rest);
        if (!isQuorum(all, able)) {
          expect(some).toThrow("cannot be reached");
          return;
        }
        reachable++;
        expect(isQuorum(some(), able)).toBe(true);
      }),
    );
    expect(reachable).toBeGreaterThan(0);
  });
});

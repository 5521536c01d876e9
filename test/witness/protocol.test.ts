/** A witness over real sockets: every answer that c2sp.org/tlog-witness names. */
import { createHash } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import { parseNote, verifyNote } from "#cairnlog/engine/verify/index.js";
import { checkpointOf, newNoteSigner } from "../verify/note/notes.js";
import { NAME, startTestWitness, type WitnessClient } from "./harness.js";
import { bodyOf, newTree, type WitnessedTree } from "./logs.js";

const code = (text: string) => JSON.parse(text).code;
let numbered = 0;
/** A log that no other test uses. */
const freshTree = () => newTree(`log.example/${numbered++}`);
const trees = Array.from({ length: 24 }, freshTree);
let left = trees;
const nextTree = (): WitnessedTree => {
  const [tree, ...rest] = left;
  left = rest;
  return tree!;
};

let witness: WitnessClient;
const logged: string[] = [];
beforeAll(async () => {
  witness = await startTestWitness(trees, {}, logged);
});

describe("200", () => {
  test("a log is cosigned from its first checkpoint on, step by step", async () => {
    const tree = nextTree();
    for (const [from, to] of [
      [0, 1],
      [1, 3],
      [3, 4],
      [4, 8],
      [8, 63],
      [63, 64],
    ] as const) {
      const before = Math.floor(Date.now() / 1000);
      const reply = await witness.add(tree.body(from, to));
      expect(reply.type).toBe("text/plain; charset=utf-8");
      const time = await witness.expectCosigned(reply, tree, to);
      expect(time).toBeGreaterThanOrEqual(before);
      expect(time).toBeLessThanOrEqual(Date.now() / 1000);
    }
  });

  test("the first checkpoint may have any size", async () => {
    const tree = nextTree();
    await witness.expectCosigned(await witness.add(tree.body(0, 40)), tree, 40);
  });

  test("the newest checkpoint is cosigned again", async () => {
    const tree = nextTree();
    for (const from of [0, 5, 5, 5]) await witness.expectCosigned(await witness.add(tree.body(from, 5)), tree, 5);
  });

  test("an empty tree is cosigned, and everything may follow", async () => {
    const tree = nextTree();
    await witness.expectCosigned(await witness.add(tree.body(0, 0)), tree, 0);
    await witness.expectCosigned(await witness.add(tree.body(0, 0)), tree, 0);
    await witness.expectCosigned(await witness.add(tree.body(0, 7)), tree, 7);
  });

  test("signatures of strangers do not matter, and extension lines are cosigned with the rest", async () => {
    const tree = nextTree();
    const text = `${checkpointOf(tree.origin, 2, tree.root(2))}an extension\n`;
    const stranger = newNoteSigner(tree.origin).line(text);
    const note = `${text}\n${stranger}${tree.signer.line(text)}\u2014 odd+name AAAAAAAA\n`;
    const { status, text: line } = await witness.add(bodyOf(0, [], note));
    expect(status).toBe(200);
    expect((await verifyNote(note + line, [witness.key]))?.text).toBe(text);
    const kept = await witness.send(`/${createHash("sha256").update(tree.origin).digest("hex")}/checkpoint`);
    // Only what was verified is passed on.
    expect(kept.text).toBe(`${text}\n${tree.signer.line(text)}${line}`);
  });
});

describe("409 with the size", () => {
  test.each([
    ["nothing was cosigned", 0, 3],
    ["the witness is ahead", 5, 3],
    ["the witness is behind", 5, 8],
  ])("when %s", async (_, known, from) => {
    const tree = nextTree();
    if (known) await witness.add(tree.body(0, known));
    expect(await witness.add(tree.body(from, 9))).toEqual({
      status: 409,
      type: "text/x.tlog.size",
      text: `${known}\n`,
    });
    // From that size on it goes.
    await witness.expectCosigned(await witness.add(tree.body(known, 9)), tree, 9);
  });

  test("a client that knows nothing asks from 0 on", async () => {
    const tree = nextTree();
    await witness.add(tree.body(0, 6));
    expect(await witness.add(tree.body(0, 6))).toMatchObject({ status: 409, text: "6\n" });
  });
});

describe("404", () => {
  test("for a log that is not in the file, and for paths", async () => {
    const stranger = newTree("log.example/stranger");
    const { status, text, type } = await witness.add(stranger.body(0, 1));
    expect([status, code(text), type]).toEqual([404, "not-found", "application/problem+json"]);
    for (const path of ["/", "/checkpoint", "/api/v1/log", `/${"0".repeat(64)}/checkpoint`, "/zz/checkpoint"])
      expect((await witness.send(path)).status, path).toBe(404);
  });
});

describe("403", () => {
  const refused = async (note: string, from = 0) => {
    const { status, text } = await witness.add(bodyOf(from, [], note));
    expect([status, code(text)]).toEqual([403, "forbidden"]);
  };

  test("without a signature of the log", async () => {
    const tree = nextTree();
    const text = checkpointOf(tree.origin, 1, tree.root(1));
    await refused(newNoteSigner(tree.origin).note(text));
    await refused(newNoteSigner("log.example/other").note(text));
    // The key of one log does not sign for another.
    await refused(nextTree().signer.note(text));
  });

  test("when a signature of the log does not hold, beside one that does, too", async () => {
    const tree = nextTree();
    const text = checkpointOf(tree.origin, 1, tree.root(1));
    const bad = tree.signer.line(`${text}x\n`);
    await refused(`${text}\n${bad}`);
    await refused(`${text}\n${tree.signer.line(text)}${bad}`);
    await refused(`${text}\n${bad}${tree.signer.line(text)}`);
    expect(await witness.size(tree)).toBe(1);
  });

  test("whoever is not the log does not learn its size", async () => {
    const tree = nextTree();
    await witness.add(tree.body(0, 4));
    await refused(newNoteSigner(tree.origin).note(checkpointOf(tree.origin, 9, tree.root(9))), 9);
  });
});

describe("400", () => {
  const tree = newTree("log.example/malformed");
  const note = tree.note(2);
  const hash = Buffer.alloc(32).toString("base64");
  test.each([
    ["nothing", ""],
    ["no empty line", `old 0\n${note.replace("\n\n", "\n")}`],
    ["no old size", `\n${note}`],
    ["another word", `size 0\n\n${note}`],
    ["a size with a zero before it", `old 01\n\n${note}`],
    ["a size with a sign", `old +1\n\n${note}`],
    ["a negative size", `old -1\n\n${note}`],
    ["a size with a space behind it", `old 0 \n\n${note}`],
    ["two spaces", `old  0\n\n${note}`],
    ["a carriage return", `old 0\r\n\r\n${note}`],
    ["a size beyond 2^53", `old 9007199254740993\n\n${note}`],
    ["a size without digits", `old \n\n${note}`],
    ["a proof that is not base64", `old 1\n!\n\n${note}`],
    ["a hash of 31 bytes", `old 1\n${Buffer.alloc(31).toString("base64")}\n\n${note}`],
    ["a hash with loose base64", `old 1\n${hash.replace("=", "")}\n\n${note}`],
    ["64 lines of proof", `old 1\n${`${hash}\n`.repeat(64)}\n${note}`],
    ["no note", "old 0\n\n"],
    ["a note without signatures", `old 0\n\n${checkpointOf(tree.origin, 2, tree.root(2))}`],
    ["a note without its last line feed", `old 0\n\n${note.slice(0, -1)}`],
    ["a note that is no checkpoint", bodyOf(0, [], tree.signer.note("hello\n"))],
    ["a checkpoint of another form", bodyOf(0, [], tree.signer.note(`${tree.origin}\n2\nAAAA\n`))],
    ["bytes that are no UTF-8", Uint8Array.of(0x6f, 0x6c, 0x64, 0x20, 0xff)],
    ["an old size beyond the checkpoint's", () => trees[0]!.body(0, 2).replace("old 0", "old 3")],
  ])("for %s", async (_, body) => {
    const { status, text } = await witness.add(typeof body === "function" ? body() : body);
    expect([status, code(text)]).toEqual([400, "malformed-request"]);
  });

  test("63 lines of proof are read", async () => {
    expect((await witness.add(`old 1\n${`${hash}\n`.repeat(63)}\n${note}`)).status).toBe(404);
  });
});

describe("422", () => {
  const refused = async (body: string) => {
    const { status, text } = await witness.add(body);
    expect([status, code(text)]).toEqual([422, "invalid-proof"]);
  };

  test("for proofs that do not hold, after which the size is what it was", async () => {
    const tree = nextTree();
    await refused(bodyOf(0, [tree.root(1)], tree.note(5)));
    await witness.add(tree.body(0, 5));
    const good = tree.body(5, 11).split("\n");
    const hashes = good.slice(1, good.indexOf(""));
    expect(hashes.length).toBeGreaterThan(2);
    for (const bad of [
      [],
      hashes.slice(1),
      hashes.slice(0, -1),
      [...hashes, hashes[0]!],
      hashes.toReversed(),
      hashes.with(1, Buffer.alloc(32).toString("base64")),
    ])
      await refused(`old 5\n${bad.map((line) => `${line}\n`).join("")}\n${tree.note(11)}`);
    await refused(bodyOf(5, [tree.root(5)], tree.note(5)));
    await witness.expectCosigned(await witness.add(tree.body(5, 11)), tree, 11);
  });

  test("for an empty tree with another root", async () => {
    const tree = nextTree();
    await refused(bodyOf(0, [], tree.signer.note(checkpointOf(tree.origin, 0, tree.root(1)))));
  });

  test("for another root of the same size, which is told as evidence with both notes", async () => {
    const tree = nextTree();
    const fork = newTree(tree.origin, tree.signer, 3);
    await witness.add(tree.body(0, 6));
    logged.length = 0;
    await refused(fork.body(6, 6));
    expect(logged).toHaveLength(1);
    const { cosigned, refused: other, origin } = JSON.parse(logged[0]!);
    expect(origin).toBe(tree.origin);
    expect(parseNote(cosigned)?.text).toBe(checkpointOf(tree.origin, 6, tree.root(6)));
    expect(other).toBe(fork.note(6));
    await refused(fork.body(6, 9));
    await witness.expectCosigned(await witness.add(tree.body(6, 9)), tree, 9);
    expect((await witness.send("/metrics")).text).toContain(`cairnlog_witness_forks_total{origin="${tree.origin}"} 1`);
  });

  test("a fork that begins behind what was cosigned is no fork", async () => {
    const tree = nextTree();
    const later = newTree(tree.origin, tree.signer, 10);
    await witness.add(tree.body(0, 6));
    await witness.expectCosigned(await witness.add(later.body(6, 20)), later, 20);
    await refused(bodyOf(20, [], tree.note(20)));
  });
});

describe("others", () => {
  test("only POST adds, only GET reads", async () => {
    for (const method of ["GET", "PUT", "DELETE"])
      expect((await witness.send("/add-checkpoint", { method })).status).toBe(405);
    expect((await witness.send("/vkey", { method: "POST", body: "x" })).status).toBe(405);
  });

  test("a body that is too large is refused", async () => {
    const { status, text } = await witness.add(`old 0\n\n${"x".repeat(300 * 1024)}`);
    expect([status, code(text)]).toEqual([413, "payload-too-large"]);
  });

  test("the newest cosigned checkpoint is there for monitors", async () => {
    const tree = nextTree();
    const path = `/${createHash("sha256").update(tree.origin).digest("hex")}/checkpoint`;
    expect((await witness.send(path)).status).toBe(404);
    await witness.add(tree.body(0, 2));
    const { text: line } = await witness.add(tree.body(2, 9));
    expect(await witness.send(path)).toEqual({
      status: 200,
      type: "text/plain; charset=utf-8",
      text: `${tree.note(9)}${line}`,
    });
  });

  test("the verifier key, probes and figures", async () => {
    const { text: vkey } = await witness.send("/vkey");
    expect(vkey).toMatch(/^witness\.example\/w1\+[0-9a-f]{8}\+B\S{43,44}\n$/);
    expect(witness.key).toMatchObject({ name: NAME, type: "cosignature/v1" });
    expect(JSON.parse((await witness.send("/livez")).text)).toEqual({ status: "ok" });
    expect(JSON.parse((await witness.send("/readyz")).text)).toEqual({
      status: "ok",
      vkey: vkey.trim(),
      logs: trees.length,
    });
    const { text } = await witness.send("/metrics");
    expect(text).toContain(`cairnlog_witness_tree_size{origin="${trees[0]!.origin}"} 64`);
    expect(text).toContain(`cairnlog_witness_cosigned_total{origin="${trees[0]!.origin}"} 6`);
    expect(text).toMatch(/^cairnlog_http_requests_total\{method="POST",route="\/add-checkpoint",status="409"\} \d+$/m);
    expect(text).toContain('cairnlog_refusals_total{code="invalid-proof"}');
  });
});

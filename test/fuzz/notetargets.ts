/** Parsers of notes and of what holds them: verifier keys, policies, proof files, requests to a witness. */
import { newNoteSigner } from "../verify/note/notes.js";
import { hashOf } from "../verify/tlog/plain-rfc6962.js";
import { bodyOf, newTree } from "../witness/logs.js";
import type { Target } from "./parsers.js";

/** @param load imports a module of the build @param attempt the result of an action, or undefined if it refuses */
export async function noteTargets(
  load: (name: string) => Promise<unknown>,
  attempt: <T>(action: () => T) => T | undefined,
): Promise<Target[]> {
  const verify = (await load("engine/verify/index")) as typeof import("#cairnlog/engine/verify/index.js");
  const { checkNoteSignature } = (await load(
    "engine/crypto/keys/signatures",
  )) as typeof import("#cairnlog/engine/crypto/keys/signatures.js");
  const { parseAddCheckpoint } = (await load(
    "server/witness/witness",
  )) as typeof import("#cairnlog/server/witness/witness.js");
  const { parseWitnessedLogs } = (await load(
    "server/witness/logs",
  )) as typeof import("#cairnlog/server/witness/logs.js");

  const text = (input: Buffer) => input.toString("utf8");
  const tree = newTree("log.example/a");
  const witness = newNoteSigner("witness.example", 4);
  const [body] = tree.note(9).split("\n\n");
  const cosigned = tree.note(9) + witness.line(`${body}\n`);
  const keys = [tree.signer, witness].map(({ vkey }) => verify.parseVkey(vkey));
  const proof = verify.formatTlogProof({
    index: 3,
    extra: Uint8Array.of(1, 2),
    hashes: [hashOf(0), hashOf(1)],
    checkpoint: cosigned,
  });

  return [
    {
      name: "cosigned notes",
      samples: [cosigned],
      async run(input) {
        const [portable, fast] = await Promise.all([
          verify.verifyNote(text(input), keys),
          verify.verifyNote(text(input), keys, checkNoteSignature),
        ]);
        if (portable && portable.text !== `${body}\n`) return `a note that nobody signed: ${portable.text}`;
        return JSON.stringify(portable) === JSON.stringify(fast) ? undefined : "the two verifiers of notes disagree";
      },
    },
    {
      name: "verifier keys",
      samples: [tree.signer.vkey, witness.vkey],
      run(input) {
        const key = attempt(() => verify.parseVkey(text(input)));
        return key && verify.formatVkey(key) !== text(input) ? "a verifier key has two spellings" : undefined;
      },
    },
    {
      name: "tlog policies",
      samples: [
        `log ${tree.signer.vkey} https://log.example/a\n# x\nwitness W ${witness.vkey}\ngroup G 1 W\nquorum G\n`,
        "quorum none\n",
      ],
      run(input) {
        const policy = attempt(() => verify.parsePolicy(text(input)));
        return policy && void verify.isQuorum(policy, new Set(["W"]));
      },
    },
    {
      name: "proof files",
      samples: [proof],
      run(input) {
        const parsed = attempt(() => verify.parseTlogProof(text(input)));
        return parsed && verify.formatTlogProof(parsed) !== text(input) ? "a proof file has two spellings" : undefined;
      },
    },
    {
      name: "requests to a witness",
      samples: [tree.body(5, 9), bodyOf(0, [], cosigned)],
      run: (input) => void attempt(() => parseAddCheckpoint(input)),
    },
    {
      name: "files of witnessed logs",
      samples: [
        `# x\nlog ${tree.signer.vkey} https://log.example/a\n`,
        `logs/v0\nvkey ${tree.signer.vkey}\norigin a b\nqpd 10\n`,
      ],
      run: (input) => void attempt(() => parseWitnessedLogs(text(input))),
    },
  ];
}

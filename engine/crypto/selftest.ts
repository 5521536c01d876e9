/**
 * The self-test of the verifiers at each start of a service. It shows that the libraries that are loaded here decide about
 * signatures at the edges of the rules as this version was tested: a library that takes the equation with cofactor, an S
 * above the order, or a key of small order would accept what other verifiers of the log refuse.
 *
 * Front ends and the pool have threads of their own. They use the same code and the same libraries of this process.
 */
import { CairnlogError } from "../base/error.js";
import { fromHex } from "../verify/bytes/encoding.js";
import { ED25519_SPKI_PREFIX } from "../verify/keys/publickey.js";
import { verifySync } from "./keys/signatures.js";
import { importPublicKey, keyToBytes, type ServerKey, signersKey } from "./keys/spki.js";
import { pack, verifyBatch } from "./pool/worker.js";
import { VECTORS, type Vector } from "./selftest-vectors.js";

/** Something that decides about the vectors, and what it must decide. */
interface Judge {
  readonly name: string;
  /** One decision for each vector, in order. */
  judge(vectors: readonly Vector[]): readonly boolean[];
  expects(vector: Vector): boolean;
}

const isValid = ({ says }: Vector): boolean => says === "valid";

/** Everything in a service that decides about keys and signatures. */
const JUDGES: readonly Judge[] = [
  {
    name: "signatures one by one",
    judge: (vectors) =>
      vectors.map((vector) => {
        const key = keyOf(vector, signersKey);
        return key !== null && verifySync(key, fromHex(vector.message), fromHex(vector.signature));
      }),
    expects: isValid,
  },
  { name: "signatures in batches", judge: inBatches, expects: isValid },
  {
    name: "keys",
    judge: (vectors) => vectors.map((vector) => keyOf(vector, importPublicKey) !== null),
    expects: ({ says }) => says !== "refused-key",
  },
];

/**
 * @param asked the judge that is asked in the place of one
 * @throws CairnlogError `precondition-failed` if a judge decides about a vector in another way than it must
 */
export function selfTest(asked = (judge: Judge): Judge => judge): void {
  for (const { name, judge, expects } of JUDGES.map(asked)) {
    const decisions = judge(VECTORS);
    const wrong = VECTORS.find((vector, i) => decisions[i] !== expects(vector));
    if (!wrong) continue;
    const reason = `The self-test of cryptography failed: the check of ${name} is wrong about "${wrong.name}". A library does not do what this version needs (libsodium, or the OpenSSL of Node ${process.versions.node}). Install the dependencies again, or use another build of Node.`;
    throw new CairnlogError("precondition-failed", reason);
  }
}

function inBatches(vectors: readonly Vector[]): readonly boolean[] {
  const checks = vectors.flatMap((vector, at) => {
    const key = keyOf(vector, signersKey);
    return key ? [{ at, parts: [keyToBytes(key), fromHex(vector.message), fromHex(vector.signature)] }] : [];
  });
  const verdicts = verifyBatch({ checks: pack(checks.flatMap(({ parts }) => parts)) });
  const isGood = new Set(checks.flatMap(({ at }, i) => (verdicts[i] === 1 ? at : [])));
  return vectors.map((_, at) => isGood.has(at));
}

/** The key of the vector as `read` takes it; null for one that it refuses. */
function keyOf({ algorithm, key }: Vector, read: (pem: string) => ServerKey): ServerKey | null {
  const bytes = fromHex(key);
  const der = algorithm === "ed25519" ? Buffer.concat([ED25519_SPKI_PREFIX, bytes]) : Buffer.from(bytes);
  const lines = der.toString("base64").replace(/.{64}(?=.)/g, "$&\n");
  try {
    return read(`-----BEGIN PUBLIC KEY-----\n${lines}\n-----END PUBLIC KEY-----\n`);
  } catch (error) {
    if (error instanceof CairnlogError && error.code === "invalid-key") return null;
    throw error;
  }
}

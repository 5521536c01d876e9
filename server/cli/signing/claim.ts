/**
 * `cairnlog claim`: encrypts claims, decrypts them and checks their commitments, all on this machine. Plaintext and
 * keys come from files or standard input, never from arguments, which other users of the machine can see.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { writeKeyFile } from "../../../engine/crypto/keys/operator-key.js";
import { CairnlogError } from "../../../engine/error.js";
import {
  commitmentKind,
  decryptClaim,
  deriveCommitmentKey,
  deriveLookupKey,
  encryptClaim,
  unwrapBytes,
  verifyClaimCommitment,
} from "../../../engine/verify/claims/claims.js";
import type { JsonObject } from "../../../engine/verify/json/shape.js";
import { runAction } from "../actions.js";
import { CONNECTION_HELP, CONNECTION_OPTIONS } from "../connection.js";
import { readPublicKey } from "../identity/public-key.js";
import { readKey } from "../identity/secrets.js";
import { readObject } from "../objects.js";
import { printableJson, steerless } from "../terminal/printable.js";
import { chosen, readArguments, required, type Subcommand, UsageError } from "../usage.js";
import { payloadOf, SERVICE_ACTIONS } from "./claim-service.js";

const STDIN = "-";

const TEXT = { type: "string" } as const;
const FLAG = { type: "boolean", default: false } as const;
const PLAINTEXT = { in: { type: "string", default: STDIN }, bytes: FLAG } as const;

const ENCRYPT = {
  ...PLAINTEXT,
  to: TEXT,
  "lookup-key": TEXT,
  "lookup-secret": TEXT,
  "lookup-context": { type: "string", default: "" },
  "name-recipient": FLAG,
  "key-out": TEXT,
  out: TEXT,
  json: FLAG,
} as const;
const DECRYPT = { key: TEXT, "passphrase-file": TEXT, bytes: FLAG, "key-out": TEXT, out: TEXT, json: FLAG } as const;
const CHECK = { ...PLAINTEXT, "commitment-key": TEXT, key: TEXT, "passphrase-file": TEXT, json: FLAG } as const;

const ACTIONS: Readonly<Record<string, (argv: readonly string[]) => number | Promise<number>>> = {
  encrypt,
  decrypt,
  check,
};

export const claim: Subcommand = {
  help: `cairnlog claim encrypt --to RECIPIENT.pub.pem (--lookup-secret FILE | --lookup-key HEX) [options]
cairnlog claim decrypt CLAIM.json --key RECIPIENT.pem [options]
cairnlog claim check CLAIM.json [--in PLAINTEXT.json] [--commitment-key FILE | --key RECIPIENT.pem] [options]
cairnlog claim post CLAIM.json --server URL [--key KEY.pem] [options]
cairnlog claim list LOOKUP_KEY --server URL [options]

encrypt  reads a JSON object, encrypts it to a P-256 key and prints the payload to post.
decrypt  prints the JSON object that a claim holds, after checking that the claim commits to it.
check    says whether a claim commits to a JSON object; a claim older than keyed commitments needs no key.

post     puts an encrypted claim on the log, and checks the receipt; the key or session (cairnlog login) that posts it
         is one held in hardware.
list     prints the claims that were filed under a lookup key.

CLAIM.json is a payload, or a log entry that holds one. The first three send nothing anywhere.
A file named - is standard input.

Options:
  --in FILE                the plaintext (default: -)
  --bytes                  the plaintext is a file of any bytes, held as {"data": base64}
  --to FILE                the recipient's public key (PEM, P-256)
  --lookup-key HEX         file the claim under this key: 32 to 128 lower-case hexadecimal characters
  --lookup-secret FILE     derive the lookup key from the bytes of FILE, which you share with whom you want
  --lookup-context TEXT    tells the lookup keys of one secret apart (default: empty)
  --name-recipient         let everybody see whose key opens the claim
  --key FILE               the recipient's private key (PEM, P-256); post: that of whoever posts
  --key-out FILE           write the claim's commitment key to a new file that you alone can read;
                           without it the recipient alone can ever show what the claim says
  --commitment-key FILE    a commitment key that --key-out wrote
  --out FILE               write the result there instead of to standard output
${CONNECTION_HELP}

Exit codes: 0 done, or the claim commits to the plaintext; 1 failed, or it does not; 2 the command was not understood.

Examples:
  cairnlog claim encrypt --to bob.pub.pem --lookup-secret shared.bin --in salary.json --key-out salary.key > claim.json
  cairnlog claim decrypt claim.json --key bob.pem
  cairnlog claim check claim.json --in salary.json --commitment-key salary.key`,
  options: { ...ENCRYPT, ...DECRYPT, ...CHECK, ...CONNECTION_OPTIONS },
  actions: [...Object.keys(ACTIONS), ...Object.keys(SERVICE_ACTIONS)],
  run: async ([action, ...argv]) => {
    if (action !== undefined && Object.hasOwn(SERVICE_ACTIONS, action))
      return runAction(SERVICE_ACTIONS, CONNECTION_OPTIONS, [action, ...argv]);
    return chosen(ACTIONS, action)(argv);
  },
};

function encrypt(argv: readonly string[]): number {
  const { values } = readArguments(argv, ENCRYPT);
  const to = required(values.to, "--to");
  const { "lookup-key": given, "lookup-secret": secret, "key-out": keyOut } = values;
  if ((given === undefined) === (secret === undefined))
    throw new UsageError("give either --lookup-key or --lookup-secret");
  checkNew(keyOut);
  const recipient = readPublicKey(to);
  const lookupKey = given ?? deriveLookupKey(read(secret!), values["lookup-context"]);
  const plaintext = readPlaintext(values.in, values.bytes);
  const options = { recipient, lookupKey, nameRecipient: values["name-recipient"] };
  const { payload, commitmentKey } = encryptClaim(plaintext, options);
  // The key is written first: a claim whose key could not be kept must not be published.
  if (keyOut !== undefined) writeKeyFile(keyOut, `${commitmentKey}\n`);
  else console.error("The commitment key was not kept (--key-out): the recipient alone can show what the claim says.");
  write(values.out, format(payload, values.json));
  return 0;
}

async function decrypt(argv: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(argv, DECRYPT, true);
  const key = required(values.key, "--key");
  checkNew(values["key-out"]);
  const { plaintext, commitmentKey } = decryptClaim(
    readClaim(positionals),
    await readSecretKey(key, values["passphrase-file"]),
  );
  const bytes = values.bytes ? unwrapBytes(plaintext) : undefined;
  if (values.bytes && !bytes)
    throw new CairnlogError("invalid-input", "The claim holds no bytes but an object; leave --bytes out.");
  if (values["key-out"] !== undefined) writeKeyFile(values["key-out"], `${commitmentKey}\n`);
  write(values.out, bytes ?? format(plaintext, values.json));
  return 0;
}

async function check(argv: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(argv, CHECK, true);
  const { "commitment-key": kept, key } = values;
  if (kept !== undefined && key !== undefined) throw new UsageError("give either --commitment-key or --key");
  if (positionals[0] === STDIN && values.in === STDIN)
    throw new UsageError("standard input cannot be both the claim and the plaintext; name one of them");
  const payload = readClaim(positionals);
  const isKeyed = commitmentKind(payload) === "keyed";
  if (isKeyed && kept === undefined && key === undefined)
    throw new UsageError("this claim's commitment is keyed: give --commitment-key or --key");
  const derived =
    isKeyed && key !== undefined
      ? deriveCommitmentKey(payload, await readSecretKey(key, values["passphrase-file"]))
      : undefined;
  const commitmentKey = kept === undefined ? derived : read(kept).toString("utf8").trim();
  const valid = verifyClaimCommitment(payload, readPlaintext(values.in, values.bytes), commitmentKey);
  const commitment = isKeyed ? "hmac-sha256-ecdh-v1" : "sha256";
  if (values.json) console.log(printableJson({ valid, commitment_alg: commitment }));
  else if (!valid) console.log("The claim does NOT commit to this plaintext, or the key is another claim's.");
  else console.log(`The claim commits to this plaintext (${commitment}).`);
  return valid ? 0 : 1;
}

/** Checked before all other work, because a key is never overwritten. */
function checkNew(path: string | undefined): void {
  if (path !== undefined && existsSync(path))
    throw new UsageError(`${path} exists already; a key is never overwritten`);
}

function read(path: string): Buffer {
  return readFileSync(path === STDIN ? 0 : path);
}

/** A JSON object, or with `bytes` the bytes of any file. */
function readPlaintext(path: string, bytes: boolean): JsonObject | Uint8Array {
  return bytes ? read(path) : readObject(path);
}

/** The payload of a claim. The file has the payload, or an answer of the service with the member `payload`. */
function readClaim(positionals: readonly string[]): JsonObject {
  const [path] = positionals;
  if (path === undefined || positionals.length > 1) throw new UsageError("name one CLAIM.json");
  const value = readObject(path);
  return payloadOf(value);
}

/** The P-256 scalar of a private key in PEM. */
async function readSecretKey(path: string, passphraseFile: string | undefined): Promise<Uint8Array> {
  const { public: owner, keyObject } = await readKey(path, passphraseFile);
  if (owner.algorithm !== "ecdsa-p256")
    throw new CairnlogError("invalid-key", `Claims are encrypted to P-256 keys; this one is ${owner.algorithm}.`);
  return Buffer.from(keyObject.export({ format: "jwk" }).d!, "base64url");
}

const format = (value: object, compact: boolean): string =>
  `${steerless(JSON.stringify(value, null, compact ? 0 : 2))}\n`;

function write(path: string | undefined, content: string | Uint8Array): void {
  if (path === undefined) process.stdout.write(content);
  else writeFileSync(path, content, { mode: 0o600 });
}

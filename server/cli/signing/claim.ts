/**
 * `cairnlog claim`: encrypts claims, decrypts them and checks their commitments, all on this machine. Plaintext and
 * keys come from files or standard input, never from arguments, which other users of the machine can see.
 */
import { existsSync } from "node:fs";
import { CairnlogError } from "../../../engine/base/error.js";
import { writeKeyFile } from "../../../engine/crypto/signer/operator-key.js";
import {
  commitmentKind,
  decryptClaim,
  deriveCommitmentKey,
  deriveLookupKey,
  encryptClaim,
  unwrapBytes,
  verifyClaimCommitment,
} from "../../../engine/verify/claims/claims.js";
import { isObject, type JsonObject } from "../../../engine/verify/json/shape.js";
import type { SealedClaim } from "../../client/base/types.js";
import { type Action, listAnswer, runAction } from "../connection/actions.js";
import { CONNECTION_OPTIONS } from "../connection/connection.js";
import { readBytes } from "../files/files.js";
import { readObject } from "../files/objects.js";
import { readPublicKey } from "../files/public-key.js";
import { privateKeyIn } from "../files/secrets.js";
import { writeWhole } from "../files/whole-file.js";
import { flag, subcommandWithActions, text, textOr, type Values } from "../line/subcommand.js";
import { none, only, required, UsageError } from "../line/usage.js";
import { printableJson, steerless } from "../terminal/printable.js";

/** The actions that need a service: posting encrypted claims, and finding claims. */
const SERVICE_ACTIONS = {
  post: (names) => {
    // The service checks its members, and says which of them are wrong.
    const payload = payloadOf(readObject(only(names, "CLAIM.json"))) as unknown as SealedClaim;
    return async (client) => {
      const answer = await client.claims.post(payload);
      return { answer, text: `entry ${answer.log_entry_id}, to be found under ${answer.lookup_key}` };
    };
  },
  list: (names) => {
    const lookupKey = only(names, "LOOKUP_KEY");
    return (client) =>
      listAnswer(client.claims.list(lookupKey), ({ id, timestamp, payload }) =>
        [id, timestamp, JSON.stringify(payload)].join(" "),
      );
  },
} satisfies Record<string, Action<typeof CONNECTION_OPTIONS>>;

/** The payload of a claim. `value` is the payload, or an answer of the service with the member `payload`. */
function payloadOf(value: JsonObject): JsonObject {
  return isObject(value.payload) ? value.payload : value;
}

const STDIN = "-";

const PLAINTEXT = {
  in: textOr("FILE", STDIN, "the plaintext"),
  bytes: flag('the plaintext is a file of any bytes, held as {"data": base64}'),
} as const;
const KEY_OUT = text(
  "FILE",
  "write the claim's commitment key to a new file that you alone can read; without it the recipient alone can ever show what the claim says",
);
const OUT = text("FILE", "write the result there instead of to standard output");
const RECIPIENT = {
  key: text("FILE", "the recipient's private key (PEM, P-256); post: that of whoever posts"),
  "passphrase-file": CONNECTION_OPTIONS["passphrase-file"],
} as const;
const JSON_FLAG = CONNECTION_OPTIONS.json;

const ENCRYPT = {
  ...PLAINTEXT,
  to: text("FILE", "the recipient's public key (PEM, P-256)"),
  "lookup-key": text("HEX", "file the claim under this key: 32 to 128 lower-case hexadecimal characters"),
  "lookup-secret": text("FILE", "derive the lookup key from the bytes of FILE, which you share with whom you want"),
  "lookup-context": textOr("TEXT", "", "tells the lookup keys of one secret apart"),
  "name-recipient": flag("let everybody see whose key opens the claim"),
  "key-out": KEY_OUT,
  out: OUT,
  json: JSON_FLAG,
} as const;
const DECRYPT = { ...RECIPIENT, bytes: PLAINTEXT.bytes, "key-out": KEY_OUT, out: OUT, json: JSON_FLAG } as const;
const CHECK = {
  ...PLAINTEXT,
  "commitment-key": text("FILE", "a commitment key that --key-out wrote"),
  ...RECIPIENT,
  json: JSON_FLAG,
} as const;

const ACTIONS = { encrypt, decrypt, check };

export const claim = subcommandWithActions({
  about: `Claims that only the holder of one key can read. CLAIM.json is a payload, or a log entry that holds one. encrypt, decrypt and
check send nothing anywhere. A file named - is standard input.`,
  options: { ...ENCRYPT, ...DECRYPT, ...CHECK, ...CONNECTION_OPTIONS, key: RECIPIENT.key },
  actions: {
    encrypt: {
      form: "--to RECIPIENT.pub.pem (--lookup-secret FILE | --lookup-key HEX)",
      about: "Reads a JSON object, encrypts it to a P-256 key, and prints the payload to post.",
      takes: ["in", "bytes", "to", "lookup-key", "lookup-secret", "lookup-context", "name-recipient", "key-out", "out"],
    },
    decrypt: {
      form: "CLAIM.json --key RECIPIENT.pem",
      about: "Prints the JSON object that a claim holds, after checking that the claim commits to it.",
      takes: ["key", "passphrase-file", "bytes", "key-out", "out"],
    },
    check: {
      form: "CLAIM.json [--in PLAINTEXT.json] [--commitment-key FILE | --key RECIPIENT.pem]",
      about: "Says whether a claim commits to a JSON object. A claim older than keyed commitments needs no key.",
      takes: ["in", "bytes", "commitment-key", "key", "passphrase-file"],
    },
    post: {
      form: "CLAIM.json [--key KEY.pem]",
      about:
        "Puts an encrypted claim on the log, and checks the receipt. The key or session (cairnlog login) that posts it is one held in hardware.",
      takes: ["key", "passphrase-file", "server", "operator-key", "state"],
    },
    list: {
      form: "LOOKUP_KEY",
      about: "Prints the claims that were filed under a lookup key.",
      takes: ["server", "operator-key", "state"],
    },
  },
  notes:
    "Exit codes: 0 done, or the claim commits to the plaintext; 1 failed, or it does not; 2 the command was not understood.",
  examples: `cairnlog claim encrypt --to bob.pub.pem --lookup-secret shared.bin --in salary.json --key-out salary.key > claim.json
cairnlog claim decrypt claim.json --key bob.pem
cairnlog claim check claim.json --in salary.json --commitment-key salary.key`,
  run(operands, values, action) {
    if (action === "post" || action === "list") return runAction(SERVICE_ACTIONS[action], operands, values);
    return ACTIONS[action](operands, values);
  },
});

function encrypt(operands: readonly string[], values: Values<typeof ENCRYPT>): number {
  none(operands);
  const to = required(values.to, "--to");
  const { "lookup-key": given, "lookup-secret": secret, "key-out": keyOut } = values;
  if ((given === undefined) === (secret === undefined))
    throw new UsageError("give either --lookup-key or --lookup-secret");
  checkNew(keyOut);
  const recipient = readPublicKey(to);
  const lookupKey = given ?? deriveLookupKey(readBytes(secret!), values["lookup-context"]);
  const plaintext = readPlaintext(values.in, values.bytes);
  const options = { recipient, lookupKey, nameRecipient: values["name-recipient"] };
  const { payload, commitmentKey } = encryptClaim(plaintext, options);
  // The key is written first: a claim whose key could not be kept must not be published.
  if (keyOut !== undefined) writeKeyFile(keyOut, `${commitmentKey}\n`);
  else console.error("The commitment key was not kept (--key-out): the recipient alone can show what the claim says.");
  write(values.out, format(payload, values.json));
  return 0;
}

async function decrypt(operands: readonly string[], values: Values<typeof DECRYPT>): Promise<number> {
  const key = required(values.key, "--key");
  checkNew(values["key-out"]);
  const { plaintext, commitmentKey } = decryptClaim(
    readClaim(operands),
    await readSecretKey(key, values["passphrase-file"]),
  );
  const bytes = values.bytes ? unwrapBytes(plaintext) : undefined;
  if (values.bytes && !bytes)
    throw new CairnlogError("invalid-input", "The claim holds no bytes but an object; leave --bytes out.");
  if (values["key-out"] !== undefined) writeKeyFile(values["key-out"], `${commitmentKey}\n`);
  write(values.out, bytes ?? format(plaintext, values.json));
  return 0;
}

async function check(operands: readonly string[], values: Values<typeof CHECK>): Promise<number> {
  const { "commitment-key": kept, key } = values;
  if (kept !== undefined && key !== undefined) throw new UsageError("give either --commitment-key or --key");
  if (operands[0] === STDIN && values.in === STDIN)
    throw new UsageError("standard input cannot be both the claim and the plaintext; name one of them");
  const payload = readClaim(operands);
  const isKeyed = commitmentKind(payload) === "keyed";
  if (isKeyed && kept === undefined && key === undefined)
    throw new UsageError("this claim's commitment is keyed: give --commitment-key or --key");
  const derived =
    isKeyed && key !== undefined
      ? deriveCommitmentKey(payload, await readSecretKey(key, values["passphrase-file"]))
      : undefined;
  const commitmentKey = kept === undefined ? derived : readBytes(kept).toString("utf8").trim();
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

/** A JSON object, or with `bytes` the bytes of any file. */
function readPlaintext(path: string, bytes: boolean): JsonObject | Uint8Array {
  return bytes ? readBytes(path) : readObject(path);
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
  const { public: owner, keyObject } = await privateKeyIn(path, passphraseFile);
  if (owner.algorithm !== "ecdsa-p256")
    throw new CairnlogError("invalid-key", `Claims are encrypted to P-256 keys; this one is ${owner.algorithm}.`);
  return Buffer.from(keyObject.export({ format: "jwk" }).d!, "base64url");
}

const format = (value: object, compact: boolean): string =>
  `${steerless(JSON.stringify(value, null, compact ? 0 : 2))}\n`;

function write(path: string | undefined, content: string | Uint8Array): void {
  if (path === undefined) process.stdout.write(content);
  else writeWhole(path, content, 0o600);
}

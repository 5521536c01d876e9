/**
 * `--signer`: whom the caller expects to have signed. A fingerprint, a public key in PEM, or a list in the form of ssh's
 * allowed signers (ssh-keygen(1), ALLOWED SIGNERS): names, options, key. A line may have a fingerprint of this log in the
 * place of the key.
 */
import { createPublicKey, type JsonWebKey } from "node:crypto";
import { readFileSync } from "node:fs";
import { CairnlogError } from "../../../engine/error.js";
import { canonicalFingerprint } from "../../../engine/registry/keys/events.js";
import { type AllowedSigner, parsePublicKey } from "../../../engine/verify/index.js";
import { readPublicKey } from "../identity/public-key.js";

/** `YYYYMMDD[HHMM[SS]]`, in UTC with a Z and in local time without. */
const MOMENT = /^(\d{4})(\d\d)(\d\d)(?:(\d\d)(\d\d)(\d\d)?)?(Z?)$/;
/** Lines with `namespaces` are for other uses of a key, unless they have this one. */
const NAMESPACES: readonly string[] = ["cairnlog", "*"];

/** Those whom the options name; undefined without options. @throws CairnlogError with the file and the line; file system */
export function readSigners(named: readonly string[]): readonly AllowedSigner[] | undefined {
  return named.length ? named.flatMap(readSigner) : undefined;
}

function readSigner(named: string): readonly AllowedSigner[] {
  const fingerprint = canonicalFingerprint(named);
  if (fingerprint !== undefined) return [{ fingerprint }];
  const text = readFileSync(named === "-" ? 0 : named, "utf8");
  if (text.includes("-----BEGIN")) return [{ fingerprint: readPublicKey(named).fingerprint }];
  const signers = text.split("\n").flatMap((line, index) => {
    try {
      return readLine(line.trim());
    } catch (cause) {
      const message = `${named}, line ${index + 1}: ${(cause as Error).message}`;
      throw new CairnlogError("invalid-input", message, { cause });
    }
  });
  if (!signers.length) throw new CairnlogError("invalid-input", `${named} names no signer of documents.`);
  return signers;
}

function readLine(line: string): readonly AllowedSigner[] {
  if (line === "" || line.startsWith("#")) return [];
  const [name = "", ...rest] = wordsOf(line);
  const isKey = (word: string) => canonicalFingerprint(word) !== undefined || word in KEY_TYPES;
  const at = rest.findIndex(isKey);
  if (at < 0 || at > 1)
    throw new Error("it must be names, options and a key (ssh-ed25519, ecdsa-sha2-nistp256, ssh-rsa, or sha256:…).");
  const options = at === 1 ? optionsOf(rest[0]!) : new Map<string, string>();
  if (options.has("cert-authority")) throw new Error("certificates are not supported.");
  const namespaces = options.get("namespaces");
  if (namespaces !== undefined && !namespaces.split(",").some((one) => NAMESPACES.includes(one))) return [];
  const fingerprint = canonicalFingerprint(rest[at]!) ?? fingerprintOf(rest[at]!, rest[at + 1] ?? "");
  return [
    {
      ...{ name, fingerprint },
      validAfter: momentOf(options.get("valid-after")),
      validBefore: momentOf(options.get("valid-before")),
    },
  ];
}

/** The words of a line. White space within double quotes parts no words. */
const wordsOf = (line: string): readonly string[] => {
  const words = [""];
  let isQuoted = false;
  for (const character of line) {
    if (character === '"') isQuoted = !isQuoted;
    if ((character === " " || character === "\t") && !isQuoted) words.push("");
    else words[words.length - 1] += character;
  }
  return words.filter((word) => word !== "").map((word, i) => (i === 0 ? word.replaceAll('"', "") : word));
};

function optionsOf(word: string): ReadonlyMap<string, string> {
  const options = new Map<string, string>();
  for (const [, name, value] of word.matchAll(/([a-z-]+)(?:="([^"]*)")?(?:,|$)/gi))
    options.set(name!.toLowerCase(), value ?? "");
  const written = [...word.matchAll(/([a-z-]+)(?:="[^"]*")?(?:,|$)/gi)].map(([all]) => all).join("");
  const unknown = [...options.keys()].find((name) => !OPTIONS.has(name));
  // An option that is not understood may forbid something.
  if (written !== word || unknown !== undefined) throw new Error(`the options ${word} are not understood.`);
  return options;
}
const OPTIONS: ReadonlySet<string> = new Set(["cert-authority", "namespaces", "valid-after", "valid-before"]);

function momentOf(text: string | undefined): string | null {
  if (text === undefined) return null;
  const [, year, month, day, hour = "00", minute = "00", second = "00", zone] = MOMENT.exec(text) ?? [];
  const time = new Date(`${year}-${month}-${day}T${hour}:${minute}:${second}${zone}`);
  if (Number.isNaN(time.getTime())) throw new Error(`${text} is no time of the form YYYYMMDD[HHMM[SS]][Z].`);
  return time.toISOString().replace("Z", "000Z");
}

/** How the key of each type of ssh is spelled as a JSON Web Key. */
const KEY_TYPES: Readonly<Record<string, (fields: readonly Buffer[]) => JsonWebKey>> = {
  "ssh-ed25519": ([, x]) => ({ kty: "OKP", crv: "Ed25519", x: url(x) }),
  "ecdsa-sha2-nistp256": ([, , point]) => ({
    ...{ kty: "EC", crv: "P-256" },
    ...{ x: url(point?.subarray(1, 33)), y: url(point?.subarray(33)) },
  }),
  "ssh-rsa": ([, e, n]) => ({ kty: "RSA", e: url(unsigned(e)), n: url(unsigned(n)) }),
};
const url = (bytes: Buffer | undefined): string => (bytes ?? Buffer.alloc(0)).toString("base64url");
const unsigned = (bytes: Buffer | undefined) => (bytes?.[0] === 0 ? bytes.subarray(1) : bytes);

/** The fingerprint in this log of a key in ssh's form: fields in base64, each after its length. */
function fingerprintOf(type: string, text: string): string {
  const fields: Buffer[] = [];
  const bytes = Buffer.from(text, "base64");
  for (let at = 0; at + 4 <= bytes.length; ) {
    const end = at + 4 + bytes.readUInt32BE(at);
    fields.push(bytes.subarray(at + 4, end));
    at = end;
  }
  try {
    if (fields[0]?.toString() !== type) throw new Error("the key is of another type.");
    const key = createPublicKey({ key: KEY_TYPES[type]!(fields), format: "jwk" });
    return parsePublicKey(key.export({ type: "spki", format: "pem" }) as string).fingerprint;
  } catch (cause) {
    throw new Error(`it has no key of the type ${type}: ${(cause as Error).message}`, { cause });
  }
}

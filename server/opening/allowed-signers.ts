/**
 * Lists of keys in the form of ssh's allowed signers (ssh-keygen(1), ALLOWED SIGNERS): names, options, key. A line may have a
 * fingerprint of this log in the place of the key.
 */
import { createPublicKey, type JsonWebKey } from "node:crypto";
import { CairnlogError } from "../../engine/base/error.js";
import { canonicalFingerprint } from "../../engine/registry/events/keys.js";
import { type AllowedSigner, parsePublicKey } from "../../engine/verify/index.js";

/** `YYYYMMDD[HHMM[SS]]`, in UTC with a Z and in local time without. */
const MOMENT = /^(\d{4})(\d\d)(\d\d)(?:(\d\d)(\d\d)(\d\d)?)?(Z|UTC)?$/i;
/** The next option of a list, and the comma behind it if there are more. */
const OPTION = /^(?:(cert-authority)|(namespaces|valid-after|valid-before)="([^"]*)")(?:,(?=.)|$)/i;
/** Lines with `namespaces` are for other uses of a key, unless they have this one. */
const NAMESPACES: readonly string[] = ["cairnlog", "*"];

/**
 * The keys that a list names, for the use by this log.
 * @param named what the list is called where it is refused
 * @throws CairnlogError `invalid-input` with the line
 */
export const readAllowedSigners = (text: string, named: string): readonly AllowedSigner[] =>
  text.split("\n").flatMap((line, index) => {
    try {
      return readLine(line.trim());
    } catch (cause) {
      const message = `${named}, line ${index + 1}: ${(cause as Error).message}`;
      throw new CairnlogError("invalid-input", message, { cause });
    }
  });

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
  return [{ name, fingerprint, ...timesOf(options) }];
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
  for (let rest = word; rest; ) {
    const [all, flag, named, value = ""] = OPTION.exec(rest) ?? [];
    // An option that is not understood may forbid something.
    if (all === undefined) throw new Error(`the options ${word} are not understood.`);
    const name = (flag ?? named!).toLowerCase();
    if (options.has(name)) throw new Error(`the option ${name} is there twice.`);
    options.set(name, value);
    rest = rest.slice(all.length);
  }
  return options;
}

/** The beginning and the end of a time, in canonical form; null for one that is open. */
function timesOf(options: ReadonlyMap<string, string>) {
  const [validAfter, validBefore] = [momentOf(options.get("valid-after")), momentOf(options.get("valid-before"))];
  if (validAfter !== null && validBefore !== null && validBefore <= validAfter)
    throw new Error("valid-before is not later than valid-after.");
  return { validAfter, validBefore };
}

function momentOf(text: string | undefined): string | null {
  if (text === undefined) return null;
  const [, year, month, day, hour = "0", minute = "0", second = "0", zone] = MOMENT.exec(text) ?? [];
  const parts = [year, month, day, hour, minute, second].map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const isWithin = LEAST.every((least, i) => parts[i]! >= least && parts[i]! <= MOST[i]!);
  if (!isWithin) throw new Error(`${text} is no time of the form YYYYMMDD[HHMM[SS]][Z].`);
  const [, , ...rest] = parts;
  // As in ssh, a day or a second that this month or minute does not have is one of the next.
  const time = zone ? new Date(Date.UTC(parts[0], parts[1] - 1, ...rest)) : new Date(parts[0], parts[1] - 1, ...rest);
  return time.toISOString().replace("Z", "000Z");
}
/** Year, month, day, hour, minute, second. */
const LEAST = [1971, 1, 1, 0, 0, 0];
const MOST = [9999, 12, 31, 23, 59, 60];

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

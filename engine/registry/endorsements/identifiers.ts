/**
 * External identifiers: names that other registries gave to the holder of a key. The service does not check whether
 * they belong to the holder. It checks their form, including check digits, to keep mistakes out of a log that never
 * forgets.
 */
import type * as contract from "../../contract/signing/endorsements.js";
import type { Value } from "../../contract/types.js";
import { isObject, type JsonObject } from "../../verify/json/shape.js";
import { IDENTIFIER } from "../../verify/keys/contract.js";
import type { Faults } from "../shared/input.js";

type IdentifierType = Value<typeof contract.IdentifierTypes>["identifier_types"][number];

export type ExternalIdentifier = NonNullable<Value<typeof contract.Endorsement>["external_identifiers"]>[number];

/** Digits of Crockford's base 32, which leaves out i, l, o and u. */
const BASE32 = "0123456789abcdefghjkmnpqrstvwxyz";
/** Number of digits of an ROR id before its two check digits. */
const ROR_BODY_DIGITS = 7;

export const IDENTIFIER_TYPES: readonly IdentifierType[] = [
  {
    type: "orcid",
    label: "ORCID iD",
    pattern: "^\\d{4}-\\d{4}-\\d{4}-\\d{3}[\\dX]$",
    example: "0000-0002-1825-0097",
    url_template: "https://orcid.org/{value}",
  },
  {
    type: "doi",
    label: "Digital Object Identifier",
    pattern: "^10\\.\\d{4,9}(?:\\.\\d+)*/[!-~]+$",
    example: "10.1000/182",
    url_template: "https://doi.org/{value}",
  },
  {
    type: "ror",
    label: "Research Organization Registry",
    pattern: "^0[0-9a-hjkmnp-tv-z]{6}\\d{2}$",
    example: "03vek6s52",
    url_template: "https://ror.org/{value}",
  },
  {
    type: "isni",
    label: "International Standard Name Identifier",
    pattern: "^\\d{4} ?\\d{4} ?\\d{4} ?\\d{3}[\\dX]$",
    example: "0000000121032683",
    url_template: "https://isni.org/isni/{value}",
  },
  {
    type: "wikidata",
    label: "Wikidata item",
    pattern: "^Q[1-9]\\d{0,11}$",
    example: "Q42",
    url_template: "https://www.wikidata.org/wiki/{value}",
  },
  {
    type: "github",
    label: "GitHub account",
    pattern: "^[0-9A-Za-z](?:-?[0-9A-Za-z]){0,38}$",
    example: "octocat",
    url_template: "https://github.com/{value}",
  },
  {
    type: "email-domain",
    label: "Domain of e-mail addresses",
    pattern: "^(?:[0-9A-Za-z](?:[0-9A-Za-z-]{0,61}[0-9A-Za-z])?\\.)+[A-Za-z](?:[0-9A-Za-z-]{0,61}[0-9A-Za-z])?$",
    example: "example.org",
    url_template: null,
  },
  {
    type: "url",
    label: "Web address",
    pattern: "^https?://[!-~]+$",
    example: "https://example.org/people/alice",
    url_template: "{value}",
  },
];

/** Checks that a pattern cannot express. */
const FURTHER_CHECKS: Readonly<Record<string, (value: string) => boolean>> = {
  orcid: hasIso7064Digit,
  isni: hasIso7064Digit,
  ror: hasRorDigits,
  github: (value) => value.length <= 39,
  "email-domain": (value) => value.length <= 253,
  url: isPlainUrl,
};

const KNOWN: ReadonlyMap<string, { readonly type: IdentifierType; readonly pattern: RegExp }> = new Map(
  IDENTIFIER_TYPES.map((type) => [type.type, { type, pattern: new RegExp(type.pattern) }]),
);

/**
 * The identifiers of an offer, each reduced to its type and value; null if `value` is null or absent. All of it may
 * come from an attacker. Faults are added to `faults` below `path`, a JSON Pointer; the result is then undefined.
 */
export function checkIdentifiers(
  value: unknown,
  path: string,
  faults: Faults,
): readonly ExternalIdentifier[] | null | undefined {
  if (value === undefined || value === null) return null;
  if (!Array.isArray(value)) {
    faults.add(path, "It must be an array of objects with `type` and `value`.");
    return undefined;
  }
  const identifiers: ExternalIdentifier[] = [];
  for (const [i, item] of value.entries()) {
    const identifier = checkIdentifier(item, `${path}/${i}`, faults);
    if (identifier) identifiers.push(identifier);
  }
  return identifiers.length === value.length ? identifiers : undefined;
}

function checkIdentifier(item: unknown, path: string, faults: Faults): ExternalIdentifier | undefined {
  if (!isObject(item)) {
    faults.add(path, "It must be an object with `type` and `value`.");
    return undefined;
  }
  const { type, value }: JsonObject = item;
  const known = typeof type === "string" ? KNOWN.get(type) : undefined;
  if (!known) {
    faults.add(`${path}/type`, `It must be one of ${[...KNOWN.keys()].join(", ")}.`);
    return undefined;
  }
  const { label, example } = known.type;
  if (typeof value !== "string" || value.length > IDENTIFIER.max || !known.pattern.test(value))
    faults.add(`${path}/value`, `It is not of the form of this type (${label}), such as ${example}.`);
  else if (FURTHER_CHECKS[known.type.type]?.(value) === false)
    faults.add(`${path}/value`, `It cannot be right (${label}): its check digits or its length do not fit.`);
  else return { type: known.type.type, value };
  return undefined;
}

/** ISO 7064 MOD 11-2, over the digits only; the last character may be X, which stands for ten. */
function hasIso7064Digit(value: string): boolean {
  const digits = value.replaceAll(/[^\dX]/g, "");
  let total = 0;
  for (const digit of digits.slice(0, -1)) total = ((total + Number(digit)) * 2) % 11;
  return "0123456789X"[(12 - total) % 11] === digits.at(-1);
}

/** Seven digits of base 32, and two check digits over their number as in ISO 7064 MOD 97-10. */
function hasRorDigits(value: string): boolean {
  let number = 0;
  for (const digit of value.slice(0, ROR_BODY_DIGITS)) number = number * BASE32.length + BASE32.indexOf(digit);
  return 98 - ((number * 100) % 97) === Number(value.slice(ROR_BODY_DIGITS));
}

/** A URL that leads where it seems to lead: people would read a name before `@` as the host. */
function isPlainUrl(value: string): boolean {
  const url = URL.canParse(value) ? new URL(value) : null;
  return url !== null && url.username === "" && url.password === "" && url.hostname !== "";
}

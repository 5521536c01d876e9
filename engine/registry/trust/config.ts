/**
 * A trust configuration: whom a verifier trusts, and how far it follows endorsements. An attacker may choose every
 * member, also in the inline configuration of a verification.
 */
import type * as contract from "../../contract/signing/trust.js";
import type { Value } from "../../contract/types.js";
import { fits, isObject, type JsonObject } from "../../verify/json/shape.js";
import {
  CATEGORY,
  DEFAULT_DECAY,
  DEFAULT_HOPS,
  MAX_ANCHORS,
  MAX_CATEGORIES,
  MAX_HOPS,
} from "../../verify/keys/contract.js";
import { canonicalFingerprint } from "../events/keys.js";
import { Faults } from "../shared/input.js";

/** A configuration without its owner. */
export type TrustPolicy = Omit<Value<typeof contract.TrustConfig>, "id" | "fingerprint" | "status" | "created_at">;

/**
 * The policy in `input`, with defaults for absent members.
 * @param path JSON Pointer of `input`, for the faults
 * @throws CairnlogError `invalid-input` with a detail for each fault
 */
export function readTrustPolicy(input: JsonObject, path = ""): TrustPolicy {
  const faults = new Faults();
  const number = (name: keyof TrustPolicy, fallback?: number, range: Range = FRACTION) =>
    readNumber(input[name] ?? fallback, `${path}/${name}`, range, faults);
  const policy = {
    direct_signer_anchors: readAnchors(input.direct_signer_anchors, `${path}/direct_signer_anchors`, faults),
    endorser_anchors: readAnchors(input.endorser_anchors, `${path}/endorser_anchors`, faults),
    minimum_threshold: number("minimum_threshold"),
    max_depth: number("max_depth", DEFAULT_HOPS, { min: 1, max: MAX_HOPS, whole: true }),
    decay_per_hop: number("decay_per_hop", DEFAULT_DECAY),
    category_weights: readWeights(input.category_weights, `${path}/category_weights`, faults),
  };
  faults.check();
  return policy;
}

interface Range {
  readonly min: number;
  readonly max: number;
  readonly whole: boolean;
}
const FRACTION: Range = { min: 0, max: 1, whole: false };

function readNumber(value: unknown, path: string, { min, max, whole }: Range, faults: Faults): number {
  if (typeof value === "number" && value >= min && value <= max && (!whole || Number.isInteger(value))) return value;
  faults.add(path, `It must be a ${whole ? "whole " : ""}number from ${min} to ${max}.`);
  return min;
}

function readAnchors(value: unknown, path: string, faults: Faults): TrustPolicy["endorser_anchors"] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) {
    faults.add(path, "It must be an array.");
    return [];
  }
  if (value.length > MAX_ANCHORS) {
    faults.add(path, `It can list ${MAX_ANCHORS} anchors at most.`);
    return [];
  }
  const seen = new Set<string>();
  return value.map((item: unknown, i) => {
    const { fingerprint: text, weight } = isObject(item) ? item : ({} as JsonObject);
    const at = `${path}/${i}`;
    const fingerprint = typeof text === "string" ? canonicalFingerprint(text) : undefined;
    if (fingerprint === undefined) faults.add(`${at}/fingerprint`, "It must be sha256: and 64 hexadecimal characters.");
    else if (seen.has(fingerprint)) faults.add(`${at}/fingerprint`, "It is listed twice.");
    else seen.add(fingerprint);
    return { fingerprint: fingerprint ?? "", weight: readNumber(weight, `${at}/weight`, FRACTION, faults) };
  });
}

function readWeights(value: unknown, path: string, faults: Faults): Record<string, number> {
  const weights: Record<string, number> = {};
  if (value === undefined || value === null) return weights;
  const entries = isObject(value) ? Object.entries(value) : null;
  if (!entries) faults.add(path, "It must be an object.");
  else if (entries.length > MAX_CATEGORIES) faults.add(path, `It can list ${MAX_CATEGORIES} categories at most.`);
  else
    for (const [category, weight] of entries) {
      const at = `${path}/${category.replaceAll("~", "~0").replaceAll("/", "~1")}`;
      // An object that gets "__proto__" as a member loses it, or gets another prototype.
      if (!category || !fits(category, CATEGORY.max) || category === "__proto__")
        faults.add(path, `A category is a text of 1 to ${CATEGORY.max} characters.`);
      else weights[category] = readNumber(weight, at, FRACTION, faults);
    }
  return weights;
}

/**
 * The language of request policies (docs/spec §10.4): conditions on a request, combined by `all`, `any` and `not`.
 * The publisher chooses the policy and the requester chooses the claims, so both may be hostile. The input is limited,
 * and evaluating a request costs no more than the size of the policy, for all claims.
 */
import { canonicalJson } from "../../verify/json/canonical.js";
import { isObject, type JsonObject } from "../../verify/json/shape.js";
import { MAX_PREDICATE_BYTES } from "../../verify/keys/contract.js";
import type { Faults } from "../shared/input.js";
import { canonicalFingerprint } from "./keys.js";

/** Maximum depth of groups within groups; the outermost is level 1. Comparisons do not count as a level. */
const MAX_NESTING = 8;
const MAX_LEAVES = 256;

/** The values of a request that a policy can compare. */
interface Subject {
  readonly attestation_type: string;
  readonly requester_fingerprint: string;
  /** 0 to 1; undefined only if the policy does not need it. */
  readonly requester_trust: number | undefined;
  readonly requester_status: string;
  readonly claims: JsonObject;
}

/** Checked predicates, ready to evaluate requests. */
export interface Predicates {
  readonly root: Node;
  /** Whether the requester's trust level is needed. */
  readonly usesTrust: boolean;
  /** RFC 8785 text. */
  readonly canonical: string;
}

type Scalar = string | number | boolean;
type Combinator = "all" | "any" | "not";
/** `test` is called with the value of the field in the request, or undefined. */
type Node =
  | { readonly combinator: Combinator; readonly parts: readonly Node[] }
  | { readonly path: readonly string[]; readonly test: (value: unknown) => boolean };

const COMBINATORS: readonly string[] = ["all", "any", "not"] satisfies Combinator[];
const LEAF_MEMBERS = ["field", "op", "value"] as const;
/** The fields that every request has, and the type of their values. */
const FIXED_FIELDS: ReadonlyMap<string, "string" | "number"> = new Map([
  ["attestation_type", "string"],
  ["requester_fingerprint", "string"],
  ["requester_trust", "number"],
  ["requester_status", "string"],
] as const);
const CLAIMS = "claims.";

/** The value that an operation compares with, and the resulting test. */
interface Operation {
  /** Types of `value`, or of its items. */
  readonly types: readonly string[];
  readonly isList: boolean;
  make(operands: readonly Scalar[]): (value: Scalar) => boolean;
}

const SCALARS = ["string", "number", "boolean"];
const ORDERED = ["string", "number"];
const order = (holds: (value: Scalar, operand: Scalar) => boolean): Operation => ({
  types: ORDERED,
  isList: false,
  make:
    ([operand]) =>
    (value) =>
      holds(value, operand!),
});
const membership = (isList: boolean, wanted: boolean): Operation => ({
  types: SCALARS,
  isList,
  make(operands) {
    const set = new Set(operands);
    return (value) => set.has(value) === wanted;
  },
});

const OPERATIONS: ReadonlyMap<string, Operation> = new Map([
  ["eq", membership(false, true)],
  ["ne", membership(false, false)],
  ["in", membership(true, true)],
  ["not_in", membership(true, false)],
  ["lt", order((value, operand) => value < operand)],
  ["le", order((value, operand) => value <= operand)],
  ["gt", order((value, operand) => value > operand)],
  ["ge", order((value, operand) => value >= operand)],
  [
    "prefix",
    {
      types: ["string"],
      isList: false,
      make:
        ([operand]) =>
        (value) =>
          (value as string).startsWith(operand as string),
    },
  ],
]);
const OPERATORS = [...OPERATIONS.keys(), "exists"];

/**
 * Reads predicates. The time is linear in their size, and nothing beyond a limit is read.
 * @returns undefined, with at least one fault, for anything that is not in the language or over a limit
 */
export function readPredicates(value: unknown, path: string, faults: Faults): Predicates | undefined {
  if (!isObject(value)) {
    faults.add(path, "It must be an object with one of all, any and not.");
    return undefined;
  }
  const reader = new Reader(faults);
  const root = reader.node(value, path, 0);
  // Nesting and members have been checked; only the length has not.
  const canonical = root && canonicalJson(value);
  if (canonical !== undefined && Buffer.byteLength(canonical) > MAX_PREDICATE_BYTES) {
    faults.add(path, `It must have at most ${MAX_PREDICATE_BYTES} bytes as canonical JSON.`);
    return undefined;
  }
  return root && canonical !== undefined ? { root, usesTrust: reader.usesTrust, canonical } : undefined;
}

class Reader {
  readonly #faults: Faults;
  #leaves = 0;
  usesTrust = false;

  constructor(faults: Faults) {
    this.#faults = faults;
  }

  #refuse(path: string, message: string): undefined {
    this.#faults.add(path, message);
    return undefined;
  }

  /** @param level number of groups around it */
  node(value: unknown, path: string, level: number): Node | undefined {
    if (!isObject(value)) return this.#refuse(path, "It must be an object.");
    const names = Object.keys(value);
    const [name] = names;
    if (names.length === 1 && COMBINATORS.includes(name!))
      return this.#group(name as Combinator, value[name!], `${path}/${name}`, level + 1);
    if (names.length === LEAF_MEMBERS.length && LEAF_MEMBERS.every((member) => Object.hasOwn(value, member)))
      return this.#leaf(value, path);
    return this.#refuse(path, "It must have one member, all, any or not, or else field, op and value.");
  }

  #group(combinator: Combinator, value: unknown, path: string, level: number): Node | undefined {
    if (level > MAX_NESTING) return this.#refuse(path, `Groups may nest ${MAX_NESTING} deep.`);
    // `not` of one condition may be written without brackets.
    if (combinator === "not" && isObject(value)) {
      const part = this.node(value, path, level);
      return part && { combinator, parts: [part] };
    }
    if (!Array.isArray(value)) return this.#refuse(path, "It must be an array of conditions.");
    const parts: Node[] = [];
    for (const [i, item] of value.entries()) {
      const part = this.node(item, `${path}/${i}`, level);
      if (!part) return undefined;
      parts.push(part);
    }
    return { combinator, parts };
  }

  #leaf({ field, op, value }: JsonObject, path: string): Node | undefined {
    this.#leaves++;
    if (this.#leaves > MAX_LEAVES) return this.#refuse(path, `There may be ${MAX_LEAVES} conditions in all.`);
    const fixed = FIXED_FIELDS.get(field as string);
    const segments = fixed ? [field as string] : claimsPath(field);
    if (!segments)
      return this.#refuse(
        `${path}/field`,
        `It must be one of ${[...FIXED_FIELDS.keys()].join(", ")} or claims.<path>.`,
      );
    if (field === "requester_trust") this.usesTrust = true;
    if (op === "exists") {
      if (typeof value !== "boolean") return this.#refuse(`${path}/value`, "It must be true or false.");
      return { path: segments, test: (found) => (found !== undefined) === value };
    }
    const operation = OPERATIONS.get(op as string);
    if (!operation) return this.#refuse(`${path}/op`, `It must be one of ${OPERATORS.join(", ")}.`);
    const operands = this.#operands(operation, fixed, value, `${path}/value`);
    if (!operands) return undefined;
    const type = typeof operands[0];
    const test = operation.make(field === "requester_fingerprint" ? operands.map(respell) : operands);
    // The one rule for absent fields and wrong types: the condition does not hold.
    return { path: segments, test: (found) => typeof found === type && test(found as Scalar) };
  }

  #operands(
    { types, isList }: Operation,
    fixed: string | undefined,
    value: unknown,
    path: string,
  ): Scalar[] | undefined {
    const operands: unknown[] = isList && Array.isArray(value) ? value : [value];
    if (isList && (!Array.isArray(value) || !value.length))
      return this.#refuse(path, "It must be an array with at least one item.");
    const type = typeof operands[0];
    const allowed = fixed ? types.filter((name) => name === fixed) : types;
    if (!allowed.length)
      return this.#refuse(path, `The field is a ${fixed}, with which this operation can do nothing.`);
    if (!allowed.includes(type)) return this.#refuse(path, `It must be a ${allowed.join(" or a ")}.`);
    if (operands.some((operand) => typeof operand !== type))
      return this.#refuse(path, "All items must be of one type.");
    return operands as Scalar[];
  }
}

/** The members to follow for `claims.<path>`; undefined if this is not such a path. */
function claimsPath(field: unknown): string[] | undefined {
  if (typeof field !== "string" || !field.startsWith(CLAIMS)) return undefined;
  const segments = field.split(".");
  return segments.includes("") ? undefined : segments;
}

/** A policy that names a key must match it in every form of its fingerprint. */
const respell = (operand: Scalar): Scalar => canonicalFingerprint(operand as string) ?? operand;

/** The result and its cost: one step for every visited condition or group and for every member that was followed. */
interface Judgement {
  readonly holds: boolean;
  readonly steps: number;
}

/** Whether a request satisfies predicates. Never throws, and stops as soon as the result is known. */
export function satisfies({ root }: Predicates, subject: Subject): Judgement {
  let steps = 0;
  const holds = (node: Node): boolean => {
    steps++;
    if ("test" in node) return node.test(find(node.path));
    const { combinator, parts } = node;
    if (combinator === "all") return parts.every(holds);
    return parts.some(holds) === (combinator === "any");
  };
  const find = (path: readonly string[]): unknown => {
    let value: unknown = subject;
    for (const name of path) {
      steps++;
      // The requester names the members of its claims. Only own members count, and not those that objects inherit.
      if (!isObject(value) || !Object.hasOwn(value, name)) return undefined;
      value = value[name];
    }
    return value;
  };
  return { holds: holds(root), steps };
}

/** The planted faults: for each node of a syntax tree, the wrong texts that may replace it. */
import type { ESTree } from "vite";

export type Node = ESTree.Node;

/** A wrong text for a range of the code. */
export interface Edit {
  /** The kind of fault, e.g. `drop-right`. */
  readonly kind: string;
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
}

type MakeEdit = (kind: string, part: { readonly start: number; readonly end: number }, replacement: string) => Edit;

const BINARY: ReadonlyMap<string, readonly [kind: string, replacement: string]> = new Map(
  Object.entries({
    "<": ["boundary", "<="],
    "<=": ["boundary", "<"],
    ">": ["boundary", ">="],
    ">=": ["boundary", ">"],
    "===": ["equality", "!=="],
    "!==": ["equality", "==="],
    "+": ["arithmetic", "-"],
    "-": ["arithmetic", "+"],
    "*": ["arithmetic", "/"],
    "/": ["arithmetic", "*"],
    "%": ["arithmetic", "*"],
    "**": ["arithmetic", "*"],
    "&": ["bitwise", "|"],
    "|": ["bitwise", "&"],
    "^": ["bitwise", "&"],
    "<<": ["bitwise", ">>"],
    ">>": ["bitwise", "<<"],
    ">>>": ["bitwise", "<<"],
  }),
);
const ASSIGNED: ReadonlyMap<string, string> = new Map(
  Object.entries({ "+=": "-=", "-=": "+=", "*=": "/=", "|=": "&=", "&=": "|=" }),
);
const SWAPPED: ReadonlyMap<string, string> = new Map(
  Object.entries({
    some: "every",
    every: "some",
    min: "max",
    max: "min",
    startsWith: "endsWith",
    endsWith: "startsWith",
    floor: "ceil",
    ceil: "floor",
    find: "findLast",
    findLast: "find",
  }),
);
/** `x.filter(…)` becomes `x`. */
const LEFT_OUT = new Set(
  "filter sort toSorted reverse toReversed trim toLowerCase toUpperCase slice subarray".split(" "),
);

/** Members with texts for people, which are not behaviour. */
const PROSE_MEMBERS = new Set(["description", "title", "summary", "detail", "details", "message", "help", "hint"]);
/** Names of durations: a test that could distinguish 5000 ms from 5001 would depend on the machine. */
const DURATION = /(_MS|_TIMEOUT|_INTERVAL|_PATIENCE)$|timeout|interval/i;
/** Calls that only report events. */
const REPORTING = /(^console|[lL]ogger)\.\w+$|^progress\.\w+$|\.unref$/;

type Callable = ESTree.Function | ESTree.ArrowFunctionExpression;
const isCallable = (node: Node): node is Callable =>
  node.type === "FunctionDeclaration" || node.type === "FunctionExpression" || node.type === "ArrowFunctionExpression";

/** A text that code compares or looks up, as opposed to a sentence. */
const isCodeText = (text: string) => /^[\w.,:;/#@$*+=?&|<>()[\]{}-]+$/.test(text) && !/[a-z]\.$/.test(text);

const isText = (node: Node): boolean =>
  node.type === "TemplateLiteral" ||
  (node.type === "Literal" && typeof node.value === "string") ||
  (node.type === "BinaryExpression" && node.operator === "+" && (isText(node.left) || isText(node.right)));

/** Whether an `if` without `else` contains only this statement. Its condition is then made false instead. */
function isGuarded(statement: Node, ancestors: readonly Node[]): boolean {
  const parent = ancestors.at(-1);
  if (parent?.type === "IfStatement") return !parent.alternate;
  const above = ancestors.at(-2);
  return (
    parent?.type === "BlockStatement" &&
    parent.body.length === 1 &&
    above?.type === "IfStatement" &&
    !above.alternate &&
    above.consequent === parent &&
    statement === parent.body[0]
  );
}

/** Whether the texts and numbers below this node are only for readers, so that nothing depends on them. */
export function isSilent(node: Node, code: string): boolean {
  if (node.type === "ImportDeclaration" || node.type === "ExportAllDeclaration" || node.type === "ImportExpression")
    return true;
  if (node.type === "CallExpression") return REPORTING.test(code.slice(node.callee.start, node.callee.end));
  if (node.type === "Property" && node.key.type === "Identifier") return PROSE_MEMBERS.has(node.key.name);
  if (node.type === "NewExpression")
    return node.callee.type === "Identifier" && ["Error", "TypeError", "RangeError", "URL"].includes(node.callee.name);
  return false;
}

/** The faults for one node. `ancestors` ends with its parent. */
export function* editsOf(node: Node, ancestors: readonly Node[], code: string): Generator<Edit> {
  const parent = ancestors.at(-1);
  const text = (part: Node) => code.slice(part.start, part.end);
  const edit: MakeEdit = (kind, { start, end }, replacement) => ({ kind, start, end, replacement });
  /** Replaces the operator between two operands. */
  const operator = (kind: string, left: Node, right: Node, from: string, to: string): Edit => {
    const start = left.end + code.slice(left.end, right.start).indexOf(from);
    return { kind, start, end: start + from.length, replacement: to };
  };

  switch (node.type) {
    case "IfStatement":
    case "ConditionalExpression":
      yield edit("condition-true", node.test, "true");
      yield edit("condition-false", node.test, "false");
      break;
    case "WhileStatement":
      if (node.test.type !== "Literal") yield edit("condition-false", node.test, "false");
      break;
    case "ForStatement":
      if (node.test) yield edit("condition-false", node.test, "false");
      break;
    case "BinaryExpression": {
      const [kind, to] = BINARY.get(node.operator) ?? [];
      if (!kind || !to || isText(node)) break;
      const isWholeCondition =
        (parent?.type === "IfStatement" || parent?.type === "ConditionalExpression") && parent.test === node;
      if (kind === "equality" && isWholeCondition) break;
      yield operator(kind, node.left, node.right, node.operator, to);
      break;
    }
    case "LogicalExpression": {
      const isRepeated = node.left.type === "LogicalExpression" && node.left.operator === node.operator;
      yield edit("drop-right", node, text(node.left));
      if (!isRepeated) yield edit("drop-left", node, text(node.right));
      break;
    }
    case "UnaryExpression":
      if (node.operator === "!" || node.operator === "-") yield edit("drop-sign", node, text(node.argument));
      break;
    case "UpdateExpression":
      if (parent?.type !== "ForStatement")
        yield edit(
          "update",
          node,
          text(node).replace(/\+\+|--/, (sign) => (sign === "++" ? "--" : "++")),
        );
      break;
    case "AssignmentExpression": {
      const to = ASSIGNED.get(node.operator);
      if (to && !isText(node.right)) yield operator("arithmetic", node.left, node.right, node.operator, to);
      if (node.operator === "??=" || node.operator === "||=" || node.operator === "&&=")
        yield operator("assignment", node.left, node.right, node.operator, "=");
      break;
    }
    case "Literal":
      yield* literalEdits(node, ancestors, edit);
      break;
    case "TemplateLiteral": {
      const fixed = node.quasis.map((quasi) => quasi.value.raw).join("");
      if (fixed && isCodeText(fixed)) yield edit("text", node, '""');
      // A key of several values, one of which is forgotten. Sentences are not behaviour.
      if (node.expressions.length > 1 && !/[a-z] /i.test(fixed))
        for (const part of node.expressions) yield edit("drop-part", part, '""');
      break;
    }
    case "AwaitExpression":
      yield edit("drop-await", node, text(node.argument));
      break;
    case "BlockStatement":
    case "Program":
      yield* orderEdits(node.body, edit, text);
      break;
    case "TryStatement":
      // What is given back before the work that needs it. An error of that work still reaches the caller.
      if (node.finalizer && !node.handler)
        yield edit("early-finally", node, `${text(node.finalizer)} ${text(node.block)}`);
      break;
    case "ArrayExpression":
      if (node.elements.length) yield edit("array", node, "[]");
      break;
    case "ObjectExpression":
      for (const property of node.properties) {
        const name = property.type === "Property" && property.key.type === "Identifier" ? property.key.name : null;
        if (name !== null && PROSE_MEMBERS.has(name)) continue;
        const next = /^\s*,/.exec(code.slice(property.end))?.[0].length ?? 0;
        yield edit("property", { start: property.start, end: property.end + next }, "");
      }
      break;
    case "CallExpression":
      if (node.callee.type === "MemberExpression" && node.callee.property.type === "Identifier") {
        const { object, property } = node.callee;
        const to = SWAPPED.get(property.name);
        if (to) yield edit("method", property, to);
        if (LEFT_OUT.has(property.name)) yield edit("drop-method", node, text(object));
      }
      if (!text(node.callee).startsWith("Math.")) yield* mixUps(node.arguments, edit, text);
      break;
    case "ReturnStatement":
      if (node.argument && !/^(undefined|null|true|false)$/.test(text(node.argument)))
        yield edit("return", node.argument, "undefined");
      break;
    case "ThrowStatement":
      if (!isGuarded(node, ancestors)) yield edit("drop-throw", node, ";");
      break;
    case "ExpressionStatement": {
      const does = node.expression.type === "AwaitExpression" ? node.expression.argument : node.expression;
      if (isGuarded(node, ancestors)) break;
      if (does.type === "CallExpression" && does.callee.type !== "Super" && !isSilent(does, code))
        yield edit("drop-call", node, ";");
      if (does.type === "AssignmentExpression" && /^(MemberExpression|Identifier)$/.test(does.left.type))
        yield edit("drop-assignment", node, ";");
      break;
    }
    default:
      if (isCallable(node) && node.type === "ArrowFunctionExpression" && node.body.type === "CallExpression")
        if (parent?.type === "VariableDeclarator") yield edit("return", node.body, "undefined");
  }
}

/** Effects in the other order: two neighbours that each do something. A declaration stays before what follows it. */
function* orderEdits(statements: readonly Node[], edit: MakeEdit, text: (part: Node) => string): Generator<Edit> {
  for (const [i, first] of statements.entries()) {
    const second = statements[i + 1];
    if (first.type !== "ExpressionStatement" || !second || !DOING.has(second.type)) continue;
    if (first.expression.type === "CallExpression" && first.expression.callee.type === "Super") continue;
    yield edit("swap-order", { start: first.start, end: second.end }, `${text(second)} ${text(first)}`);
  }
}
const DOING = new Set(["ExpressionStatement", "IfStatement", "ForOfStatement", "TryStatement"]);

/** Two values that stand beside each other, mixed up. */
function* mixUps(values: readonly Node[], edit: MakeEdit, text: (part: Node) => string): Generator<Edit> {
  for (const [i, first] of values.entries()) {
    const second = values[i + 1];
    if (!second || !NAMED.has(first.type) || !NAMED.has(second.type)) continue;
    yield edit("swap-values", { start: first.start, end: second.end }, `${text(second)}, ${text(first)}`);
  }
}
const NAMED = new Set(["Identifier", "MemberExpression"]);

function* literalEdits(
  node: Extract<Node, { type: "Literal" }>,
  ancestors: readonly Node[],
  edit: MakeEdit,
): Generator<Edit> {
  const parent = ancestors.at(-1);
  if (parent?.type === "Property" && parent.key === node) return;
  if ("regex" in node) {
    const { pattern, flags } = node.regex;
    if (pattern.startsWith("^")) yield edit("pattern-start", node, `/${pattern.slice(1)}/${flags}`);
    if (/[^\\]\$$/.test(pattern)) yield edit("pattern-end", node, `/${pattern.slice(0, -1)}/${flags}`);
  } else if (typeof node.value === "boolean") {
    const isEndless = parent?.type === "WhileStatement";
    if (!isEndless) yield edit("boolean", node, String(!node.value));
  } else if (typeof node.value === "number" && Number.isSafeInteger(node.value)) {
    if (ancestors.some((above) => isDuration(above))) return;
    yield edit("number+1", node, String(node.value + 1));
    if (node.value > 0) yield edit("number-1", node, String(node.value - 1));
  } else if (typeof node.value === "bigint") {
    yield edit("number+1", node, `${node.value + 1n}n`);
  } else if (typeof node.value === "string") {
    if (isCodeText(node.value) && parent?.type !== "ExpressionStatement") yield edit("text", node, '""');
  }
}

function isDuration(node: Node): boolean {
  if (node.type === "VariableDeclarator" && node.id.type === "Identifier") return DURATION.test(node.id.name);
  if (node.type === "Property" && node.key.type === "Identifier") return DURATION.test(node.key.name);
  return node.type === "CallExpression" && node.callee.type === "Identifier" && DURATION.test(node.callee.name);
}

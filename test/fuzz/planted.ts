/** Faults that fuzzing must find, in the service and in the parsers of untrusted text. */
import type { PlantedFault } from "../reliability/planted.js";

export const SERVICE_FAULTS: readonly PlantedFault[] = [
  {
    name: "holds the event loop for every body that nests deeply",
    file: "server/http/body/body.js",
    text: "if (deepest > MAX_LEVELS)",
    replacement:
      "if (deepest > 6) for (const end = process.cpuUsage().user + 250_000; process.cpuUsage().user < end; );\n    if (deepest > MAX_LEVELS)",
  },
  {
    name: "throws a TypeError on a member __proto__",
    file: "engine/verify/json/canonical.js",
    text: "export function parseIJson(text) {",
    replacement: "export function parseIJson(text) {\n    if (text.includes('\"__proto__\"')) undefined.member;",
  },
  {
    name: "keeps 400 KB of every request",
    file: "server/http/transport/request.js",
    text: "        this.method = method;",
    replacement: "        (globalThis.kept ??= []).push(Buffer.alloc(400_000, 1));\n        this.method = method;",
  },
  {
    name: "never answers a request whose query names a parameter twice",
    file: "server/http/input.js",
    text: "if (seen.includes(name))",
    replacement: "for (; seen.includes(name); );\n            if (false)",
  },
  {
    name: "takes any request id",
    file: "server/http/transport/request.js",
    text: "if (!this.id || !SANE_ID.test(this.id))",
    replacement: "if (!this.id)",
  },
  {
    name: "answers another type than it promises",
    file: "engine/registry/keys/directory.js",
    text: "const found = { rows, page, per_page, total };",
    replacement: "const found = { rows, page, per_page: String(per_page), total };",
  },
  {
    name: "lets a body through that is no object",
    file: "server/http/body/body.js",
    text: "if (!isObject(body))",
    replacement: "if (false)",
  },
];

export const PARSER_FAULTS: readonly PlantedFault[] = [
  {
    name: "spells a backslash without its escape in texts of ASCII",
    file: "engine/verify/json/canonical.js",
    text: "/^[ !#-[\\]-~]*$/",
    replacement: "/^[ !#-~]*$/",
  },
  {
    name: "takes numbers that are no double when their exponent is spelt with E",
    file: "engine/verify/json/canonical.js",
    text: "code === 0x65 || code === 0x45",
    replacement: "code === 0x65",
  },
  {
    name: "takes DER lengths that are not minimal",
    file: "engine/verify/keys/publickey.js",
    text: "if (length < (count === 1 ? 0x80 : 0x100))",
    replacement: "if (false)",
  },
  {
    name: "takes another hash under RSA signatures, offline only",
    file: "engine/verify/keys/signature.js",
    text: 'hash: "SHA-256" }',
    replacement: 'hash: "SHA-1" }',
  },
  {
    name: "reads an address in time that grows with the square of its length",
    file: "engine/registry/accounts/email.js",
    text: "export function isEmail(value) {",
    replacement: "export function isEmail(value) {\n    if (/.+\\u0001$/s.test(value)) return false;",
  },
  {
    name: "throws a RangeError on a truncated timestamp",
    file: "engine/verify/ots/operations.js",
    text: 'throw otsError("The OpenTimestamps proof ends too early.");',
    replacement: 'throw new RangeError("too early");',
  },
];

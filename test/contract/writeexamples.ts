/**
 * Writes the examples of the OpenAPI document, `server/http/openapi/examples.generated.ts`, from a tour of the service:
 * `UPDATE_EXAMPLES=1 npx vitest run --config test/vitest.config.ts test/contract/service/openapi.test.ts`.
 */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Reply } from "../server/harness.js";
import type { Tour } from "./tour.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const FILE = "server/http/openapi/examples.generated.ts";
const HEAD = `/**
 * A request that was granted, and its answer, for every operation. Written by test/contract/writeexamples.ts, of what a
 * service with a fixed clock answered to keys that were made for it.
 */

export interface Example {
  readonly params?: Readonly<Record<string, unknown>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  /** Absent where the answer is bytes. */
  readonly answer?: unknown;
}

/** By operationId. */
export const EXAMPLES: Readonly<Record<string, Example>> = `;

/** What only a node of a replicated log grants. */
const OF_A_NODE: Readonly<Record<string, { readonly answer: unknown }>> = {
  get_follower: {
    answer: { role: "follower", leader: "https://a.log.example", epoch: 3, sequence: 1841, lag_seconds: 0.02 },
  },
};

export function writeExamples(tour: Tour): void {
  const examples = Object.fromEntries(
    [...tour.operations.keys()].flatMap((id) => {
      const granted = tour.granted.get(id);
      if (!granted) return [[id, OF_A_NODE[id]]];
      const { params, query, body, reply } = granted;
      return [[id, { params, query, body, answer: answerOf(id, reply) }]];
    }),
  );
  writeFileSync(`${root}${FILE}`, `${HEAD}${JSON.stringify(examples)};\n`);
  execFileSync("npx", ["biome", "check", "--write", FILE], { cwd: root });
}

/** The answer, without long parts that are not informative. */
function answerOf(id: string, { headers, text, body }: Reply): unknown {
  const type = headers.get("content-type")!;
  if (type.startsWith("application/octet-stream")) return undefined;
  if (id === "get_metrics") return text.split("\n").slice(0, 6).join("\n");
  if (type.startsWith("text/")) return text;
  if (id === "get_openapi_json") return { openapi: body.openapi, info: { title: body.info.title } };
  if (id === "get_identifier_types") return { identifier_types: body.identifier_types.slice(0, 2) };
  return body;
}

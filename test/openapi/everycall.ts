/** A program that calls every operation of an OpenAPI document through openapi-fetch, with the examples in the document. */
import { everyOperation, type Operation } from "../contract/tour.js";
import type { Document } from "../server/contract.js";

const HEAD = `import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

const client = createClient<paths>({ baseUrl: "/" });
`;

/** How openapi-fetch is told to read an answer that is no JSON. */
const READ_AS: Readonly<Record<string, string>> = { "application/octet-stream": "arrayBuffer", "text/plain": "text" };

/**
 * The text of the program. The arguments are literals, so the compiler reports members that the types do not have. The
 * answers are used, so it also reports those that the types do not describe.
 */
export const everyCall = (document: Document): string => [HEAD, ...everyOperation(document).map(callOf)].join("\n");

function callOf({ method, path, id, definition }: Operation): string {
  const { parameters = [], requestBody, responses } = definition;
  const [[type, media] = ["", undefined], ...others] = Object.entries<Document>(
    (responses[200] ?? responses[201]).content ?? {},
  );
  const params = ["path", "query", "header"].flatMap((where) => {
    const given = parameters.filter(
      (one: Document) => one.in === where && (one.example !== undefined || !one.required),
    );
    const values = given.map(({ name, example, schema }: Document) => [name, example ?? sampleOf(schema)]);
    return values.length ? [`${where}: ${JSON.stringify(Object.fromEntries(values))}`] : [];
  });
  const readAs = READ_AS[type.split(";")[0]!];
  const options = [
    params.length && `params: { ${params.join(", ")} }`,
    requestBody && `body: ${JSON.stringify(requestBody.content["application/json"].example)}`,
    readAs && `parseAs: "${readAs}"`,
  ].filter(Boolean);
  // An answer with several forms has the type of all of them.
  const name = others.length ? undefined : media?.schema.$ref?.split("/").at(-1);
  return `export async function ${id}() {
  const { data, error } = await client.${method}("${path}", { ${options.join(", ")} });
  ${name ? `const answer: components["schemas"]["${name}"] | undefined = data;` : "const answer = data;"}
  ${media ? "const code: string | undefined = error?.code;" : "const code = error;"}
  return { answer, code };
}
`;
}

/** Some value of an optional parameter, which has no example. */
function sampleOf({ type, enum: values, minimum = 0 }: Document): unknown {
  if (values) return values[0];
  return type === "integer" ? minimum : "2025-01-01";
}

/** Finding operations by words. The service searches, so that the page needs no script. */
import { type Operation, type Schema, schemaName } from "./model.js";

/** The longest search that is taken; all words of the page are shorter. */
export const MAX_SEARCH_CHARACTERS = 100;

/** The text in which an operation is found: method, path, name, summary, area, and the names of what it takes and gives. */
export function textOfOperation(
  method: string,
  path: string,
  operation: Operation,
  schemas: Readonly<Record<string, Schema>>,
): string {
  const { operationId, tags, summary, parameters = [], requestBody, responses } = operation;
  const content = [requestBody?.content, responses[200]?.content, responses[201]?.content];
  const members = content.flatMap((one) => Object.values(one ?? {}).flatMap(({ schema }) => namesIn(schema, schemas)));
  const named = parameters.map(({ name }) => name);
  return [method, path, operationId, summary, ...tags, ...named, ...members].join("\n").toLowerCase();
}

/** The name of a schema, and of its members two levels deep. */
function namesIn(schema: Schema, schemas: Readonly<Record<string, Schema>>, depth = 0): string[] {
  const { $ref, anyOf = [], items } = schema;
  if ($ref) return [schemaName($ref), ...namesIn(schemas[schemaName($ref)]!, schemas, depth)];
  const members = depth < 2 ? Object.entries(schema.properties ?? {}) : [];
  return [
    ...members.flatMap(([name, member]) => [name, ...namesIn(member, schemas, depth + 1)]),
    ...[...anyOf, ...(items ? [items] : [])].flatMap((part) => namesIn(part, schemas, depth)),
  ];
}

/** A check whether a text has all words of a search. */
export function matcher(search: string): (text: string) => boolean {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return (text) => words.every((word) => text.includes(word));
}

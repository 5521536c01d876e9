/** Checks whether an answer matches the service's OpenAPI document, for programs that run without vitest. */
import { Compile } from "typebox/schema";

// biome-ignore lint/suspicious/noExplicitAny: the OpenAPI document is walked as it comes
export type Document = any;

/** The operation of a path. Paths with fixed parts come before those with parameters. */
export function operationAt(document: Document, method: string, path: string): Document {
  const matching = Object.keys(document.paths).filter((template) =>
    new RegExp(`^${template.replace(/\{\w+\}/g, "[^/]+")}$`).test(path),
  );
  const [template] = matching.sort((a, b) => a.split("{").length - b.split("{").length);
  return template === undefined ? undefined : document.paths[template][method.toLowerCase()];
}

/** A part of the document, resolved if it is a reference. */
export function resolved(document: Document, part: Document): Document {
  if (!part?.$ref) return part;
  const names: string[] = part.$ref.split("/").slice(1);
  return names.reduce((node, name) => node[name], document);
}

const compiled = new WeakMap<object, ReturnType<typeof Compile>>();

/** A sentence about the fault of a JSON answer; null if it matches the document. */
export function brokenPromise(
  document: Document,
  method: string,
  path: string,
  answer: { readonly status: number; readonly mediaType: string; readonly body: unknown },
): string | null {
  const { status, mediaType, body } = answer;
  const operation = operationAt(document, method === "HEAD" ? "GET" : method, path);
  const content = resolved(document, operation?.responses[status])?.content ?? {};
  const promised = Object.entries<Document>(content).find(([type]) => type.split(";")[0] === mediaType)?.[1].schema;
  if (operation && !promised)
    return `${method} ${path} answered ${status}, which is not promised: ${JSON.stringify(body)}`;
  const schema = promised ?? document.components.schemas.Problem;
  let validator = compiled.get(schema);
  if (!validator) {
    validator = Compile({ ...schema, components: document.components });
    compiled.set(schema, validator);
  }
  const [fits, errors] = validator.Errors(body);
  return fits ? null : `${method} ${path} answered ${status} in another form: ${JSON.stringify(errors)}`;
}

/** The parts of the service's OpenAPI document that the page uses. */

export interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly format?: string;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly maxProperties?: number;
  /** The schema of members that are not listed; true if any are allowed. */
  readonly additionalProperties?: Schema | boolean;
}

export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required: boolean;
  readonly description: string;
  readonly schema: Schema;
  readonly example?: unknown;
}

interface Media {
  readonly schema: Schema;
  readonly example?: unknown;
}
export type MediaContent = Readonly<Record<string, Media>>;

export interface Response {
  readonly $ref?: string;
  readonly description: string;
  readonly content?: MediaContent;
}

export interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description: string;
  readonly security: readonly Readonly<Record<string, unknown>>[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly required: boolean; readonly description: string; readonly content: MediaContent };
  readonly responses: Readonly<Record<string, Response>>;
}

export interface Document {
  readonly info: {
    readonly title: string;
    readonly version: string;
    readonly summary: string;
    readonly description: string;
    readonly license: { readonly name: string };
  };
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly responses: Readonly<Record<string, Response>>;
    readonly headers: Readonly<Record<string, { readonly description: string; readonly example: unknown }>>;
    readonly securitySchemes: { readonly session: { readonly description: string } };
  };
}

/** The last part of a reference, which is the name of its target. */
export const schemaName = (reference: string): string => reference.slice(reference.lastIndexOf("/") + 1);

/** HTML templates whose values cannot break the markup: every value is escaped unless it is `Html`. */

/** A piece of HTML. Only `html` makes it. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** A value in a template. All parts of a list are written; null, undefined and false give nothing. */
export type Part = string | number | Html | readonly Part[] | null | undefined | false;

/** The HTML of a template, with its values escaped for text and for quoted attributes. */
export function html(strings: TemplateStringsArray, ...values: readonly Part[]): Html {
  return new Html(strings.map((text, i) => text + (i < values.length ? rendered(values[i]) : "")).join(""));
}

function rendered(part: Part): string {
  if (part === null || part === undefined || part === false) return "";
  if (part instanceof Html) return part.text;
  if (typeof part === "object") return part.map(rendered).join("");
  return String(part).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** Text with `code` in back quotes. */
export const words = (text: string): Html =>
  html`${text.split("`").map((part, i) => (i % 2 ? html`<code>${part}</code>` : part))}`;

/** Text with `code` in back quotes, in paragraphs that empty lines separate. */
export const prose = (text: string): Html => html`${text.split("\n\n").map((part) => html`<p>${words(part)}</p>`)}`;

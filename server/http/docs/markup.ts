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

/** Commands with several actions. Each action sends requests to a service and prints the answer. */
import type { Client } from "../client/index.js";
import { type ConnectionValues, report, withClient } from "./connection.js";
import type { OptionTable, Values } from "./line/options.js";
import { type Styled, table } from "./terminal/table.js";

/** The result of an action, for programs and for people. */
export interface Done {
  readonly answer: unknown;
  readonly text: string | Styled;
}

/** Reads the arguments before anything is sent, and returns the work to do with a client. */
export type Action<T extends OptionTable> = (
  positionals: readonly string[],
  values: Values<T>,
) => (client: Client) => Promise<Done>;

/** Runs an action and prints its result. @throws UsageError */
export async function runAction<T extends OptionTable>(
  prepare: Action<T>,
  operands: readonly string[],
  values: Values<T> & ConnectionValues & { readonly json: boolean },
): Promise<number> {
  const { answer, text } = await withClient(values, prepare(operands, values));
  report(values, answer, text);
  return 0;
}

/** A result whose text is the answer itself, as JSON. */
export const shown = (answer: unknown): Done => ({ answer, text: JSON.stringify(answer, null, 2) });

/** A list as one answer, and as a table. */
export async function tabled<T>(
  items: AsyncIterable<T>,
  heading: readonly string[],
  cells: (item: T) => readonly string[],
): Promise<Done> {
  const answer: T[] = [];
  for await (const item of items) answer.push(item);
  return { answer, text: answer.length ? table(heading, answer.map(cells)) : "none" };
}

/** A list as one answer, and as text with a line for each item. */
export async function listed<T>(items: AsyncIterable<T>, line: (item: T) => string): Promise<Done> {
  const answer: T[] = [];
  for await (const item of items) answer.push(item);
  return { answer, text: answer.length ? answer.map(line).join("\n") : "none" };
}

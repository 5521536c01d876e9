/** Commands with several actions. Each action sends requests to a service and prints the answer. */
import type { Client } from "../client/index.js";
import { type ConnectionValues, report, withClient } from "./connection.js";
import { chosen, type OptionTable, readArguments, type Values } from "./usage.js";

/** The result of an action, for programs and for people. */
export interface Done {
  readonly answer: unknown;
  readonly text: string;
}

/** Reads the arguments before anything is sent, and returns the work to do with a client. */
export type Action<T extends OptionTable> = (
  positionals: readonly string[],
  values: Values<T>,
) => (client: Client) => Promise<Done>;

/**
 * Reads a command line of the form `ACTION ARGUMENT… [OPTIONS]`, runs the action and prints its result. @throws
 * UsageError
 */
export async function runAction<const T extends OptionTable>(
  actions: Readonly<Record<string, Action<T>>>,
  options: T,
  [word, ...argv]: readonly string[],
): Promise<number> {
  const prepare = chosen(actions, word);
  const { values, positionals } = readArguments(argv, options, true);
  const work = prepare(positionals, values);
  const connection = values as unknown as ConnectionValues & { readonly json: boolean };
  const { answer, text } = await withClient(connection, work);
  report(connection, answer, text);
  return 0;
}

/** A result whose text is the answer itself, as JSON. */
export const shown = (answer: unknown): Done => ({ answer, text: JSON.stringify(answer, null, 2) });

/** A list as one answer, and as text with a line for each item. */
export async function listed<T>(items: AsyncIterable<T>, line: (item: T) => string): Promise<Done> {
  const answer: T[] = [];
  for await (const item of items) answer.push(item);
  return { answer, text: answer.length ? answer.map(line).join("\n") : "none" };
}

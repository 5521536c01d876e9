/** Commands of several actions, each of which asks a service something and tells the answer. */
import type { Client } from "../client/index.js";
import { type ConnectionValues, report, withClient } from "./connection.js";
import { chosen, type OptionTable, readArguments, type Values } from "./usage.js";

/** What was done, for a program and for a reader. */
export interface Done {
  readonly answer: unknown;
  readonly text: string;
}

/** An action reads its arguments before anything is sent, and gives what is then done with a client. */
export type Action<T extends OptionTable> = (
  positionals: readonly string[],
  values: Values<T>,
) => (client: Client) => Promise<Done>;

/** Reads a command line of the form `ACTION ARGUMENT… [OPTIONS]`, does it and tells what was answered. @throws UsageError */
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

/** An answer that is its own best description. */
export const shown = (answer: unknown): Done => ({ answer, text: JSON.stringify(answer, null, 2) });

/** A list as one answer, and as a line for each item. */
export async function listed<T>(items: AsyncIterable<T>, line: (item: T) => string): Promise<Done> {
  const answer: T[] = [];
  for await (const item of items) answer.push(item);
  return { answer, text: answer.length ? answer.map(line).join("\n") : "none" };
}

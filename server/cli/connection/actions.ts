/** Commands with several actions. Each action sends requests to a service and prints the answer. */
import { rmSync } from "node:fs";
import type { Client } from "../../client/index.js";
import type { OptionTable, Values } from "../line/subcommand.js";
import { written } from "../terminal/output.js";
import { printable } from "../terminal/printable.js";
import { type Styled, table } from "../terminal/table.js";
import { type ConnectionValues, printAnswer, reported, withClient } from "./connection.js";

/** The result of an action, for programs and for people. */
export interface Done {
  readonly answer: unknown;
  /** A function if it needs more requests, such as for names; a program that wants JSON does not wait for these. */
  readonly text: string | Styled | (() => Promise<string | Styled>);
  /** A file that has what is shown only this once. It is removed when the result is written. */
  readonly keptIn?: string;
  /** Thrown when the result is printed, which then has what a file should have. */
  readonly failure?: Error;
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
  const work = prepare(operands, values);
  const { answer, text, keptIn, failure } = await withClient(values, async (client) => {
    const done = await work(client);
    return { ...done, text: typeof done.text !== "function" ? done.text : values.json ? "" : await done.text() };
  });
  if (keptIn === undefined) {
    printAnswer(values, answer, text);
    if (failure) throw failure;
    return 0;
  }
  const isWritten = await written(`${reported(values, answer, text)}\n`, () =>
    console.error(printable(`What is shown only this once is in ${keptIn}. Move it to a safe place.`)),
  );
  if (isWritten) rmSync(keptIn);
  return 0;
}

/** A result whose text is the answer itself, as JSON. */
export const shown = (answer: unknown): Done => ({ answer, text: JSON.stringify(answer, null, 2) });

/** A list as one answer, and as a table. */
export async function tabled<T>(
  items: AsyncIterable<T>,
  heading: readonly string[],
  cells: (item: T) => readonly string[] | Promise<readonly string[]>,
): Promise<Done> {
  const answer: T[] = [];
  for await (const item of items) answer.push(item);
  const text = async () => {
    const rows: (readonly string[])[] = [];
    for (const item of answer) rows.push(await cells(item));
    return rows.length ? table(heading, rows) : "none";
  };
  return { answer, text };
}

/** A list as one answer, and as text with a line for each item. */
export async function listAnswer<T>(items: AsyncIterable<T>, line: (item: T) => string): Promise<Done> {
  const answer: T[] = [];
  for await (const item of items) answer.push(item);
  return { answer, text: answer.length ? answer.map(line).join("\n") : "none" };
}

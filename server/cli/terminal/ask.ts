/** Questions on a terminal. */
import { createInterface } from "node:readline";

/** Asks a question on the terminal. @returns whether the answer is yes; everything else, and no answer, is no */
export async function isConfirmed(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr, terminal: false });
  try {
    const answer = await new Promise<string>((resolve) => {
      terminal.question(`${question} [y/N] `, resolve);
      terminal.once("close", () => resolve(""));
    });
    return /^\s*y(?:es)?\s*$/i.test(answer);
  } finally {
    terminal.close();
  }
}

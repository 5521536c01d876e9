/** `cairnlog writers`: who may write to a log. */
import { READING_OPTIONS, report, withClient } from "../connection/connection.js";
import { subcommand } from "../line/subcommand.js";
import { none } from "../line/usage.js";

export const writers = subcommand({
  forms: [""],
  about: "Shows who may write to the log. Who is on a list of the operator's is not shown.",
  options: READING_OPTIONS,
  examples: "cairnlog writers --server https://log.example",
  async run(operands, values) {
    none(operands);
    const answer = await withClient(values, (client) => client.writers());
    report(values, answer, answer.sentence);
    return 0;
  },
});

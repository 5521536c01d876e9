/** What an entry says, in one sentence: who did what to what. */
import type { Entry } from "../../../engine/verify/index.js";
import { statementOf } from "./events.js";
import { ForeignText } from "./ForeignText.js";
import { KeyName } from "./KeyName.js";

interface StatementProps {
  readonly entry: Pick<Entry, "event_type" | "payload" | "withheld_by">;
  /** Whether the keys in it are links. Not where all of it is one. */
  readonly hasLinks?: boolean;
}

export function StatementText({ entry, hasLinks = false }: StatementProps) {
  return (
    <>
      {statementOf(entry).map((part, i) => {
        const key = `${i}`;
        if (typeof part === "string") return part;
        if ("said" in part) return <ForeignText key={key} text={part.said} />;
        return <KeyName key={key} fingerprint={part.key} name={part.name} isLink={hasLinks} />;
      })}
    </>
  );
}

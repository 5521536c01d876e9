/** What an entry says, in one sentence: who did what to what. And when it was recorded. */
import type { Entry } from "../../../engine/verify/index.js";
import { statementOf } from "./events.js";
import { ForeignText } from "./ForeignText.js";
import { KeyName } from "./KeyName.js";
import { Time } from "./Time.js";

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

/** When an entry was recorded, behind "recorded" in a sentence about what the log proves: of version 1, it proves no time. */
export function RecordedOn({ entry }: { readonly entry: Pick<Entry, "chain_version" | "timestamp"> }) {
  const time = <Time at={entry.timestamp} />;
  return entry.chain_version === 2 ? <> on {time}</> : <>, at a time that no hash covers ({time})</>;
}

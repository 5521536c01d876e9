/** Whether the key is what its fingerprint says, and whether the log proves that it was recorded. */
import { isWithheld } from "../../../../engine/verify/index.js";
import type { KeyDetail } from "../../../client/index.js";
import { FailedVerdict, RecordedOn, Verdict } from "../../components/index.js";
import { useCell } from "../../state/cell.js";
import { server, teller } from "../../state/source.js";
import { useTask } from "../../state/task.js";
import { operators } from "../../state/watching.js";
import { fingerprintOf } from "./fingerprint.js";
import { recordedKey } from "./recordedkey.js";

interface KeyVerdictProps {
  readonly shown: KeyDetail;
  /** What the reader asked for. */
  readonly fingerprint: string;
}

export function KeyVerdict({ shown, fingerprint }: KeyVerdictProps) {
  const task = useTask(() => recordedKey(shown), [shown]);
  const isOperator = useCell(operators)?.current.fingerprint === fingerprint;
  if (shown.fingerprint !== fingerprint || fingerprintOf(shown.public_key) !== fingerprint)
    return <Verdict finding="wrong">{server()} shows another public key than the one with this fingerprint.</Verdict>;
  if (task.error !== undefined) return <FailedVerdict error={task.error} what="The entry of this key" />;
  if (task.value === undefined) return <Verdict finding="busy">Checking the entry of this key…</Verdict>;
  if (task.value === null)
    return isOperator ? (
      <Verdict finding="holds">This is the operator key, which signs the heads of this log.</Verdict>
    ) : (
      <Verdict finding="open">
        The public key has this fingerprint, but the service names no entry that records it.
      </Verdict>
    );
  const { proven, isItsOwn, signatures } = task.value;
  const isActive = shown.status === "active";
  if (!isItsOwn || signatures.standing === "wrong")
    return (
      <Verdict finding="wrong">
        {isItsOwn
          ? "The log recorded this key, but the signature in its entry does not fit."
          : "The entry that the service names does not record this key with this name and expiration."}
      </Verdict>
    );
  if (isWithheld(proven.entry))
    return (
      <Verdict finding="open">
        The operator withholds the name of this key, as entry {proven.entry.withheld_by} says, so what else the log
        shows of it is his word.{!isActive && ` ${teller()} says that the key is ${shown.status}.`}
      </Verdict>
    );
  const isSigned = signatures.standing === "holds";
  return (
    <Verdict finding={isSigned && isActive ? "holds" : "open"}>
      The log proves that this key was recorded
      <RecordedOn entry={proven.entry} />, and{" "}
      {isSigned
        ? "its holder has signed that."
        : signatures.standing === "open"
          ? "whether its holder has signed that cannot be checked here."
          : "nothing there shows that its holder wanted it."}
      {!isActive && ` ${teller()} says that the key is ${shown.status}.`}
    </Verdict>
  );
}

/** What this page found about the entry: whether the log proves it, and whether the signature in it fits. */

import { kindOf } from "../../../../engine/verify/events/kinds.js";
import { isCut } from "../../../../engine/verify/events/withheld.js";
import type { Entry } from "../../../../engine/verify/index.js";
import { ClientError } from "../../../client/index.js";
import { FailedVerdict, isMisbehaviour, RecordedOn, Statement, Verdict } from "../../components/index.js";
import type { CheckedSignatures } from "../../state/signatures.js";
import { type Proven, teller } from "../../state/source.js";
import type { Task } from "../../state/task.js";

interface EntryVerdictProps {
  readonly proven: Proven;
  readonly around: Task<unknown>;
  readonly signatures: Task<CheckedSignatures | undefined>;
}

export function VerdictOnEntry({ proven: { entry }, around, signatures }: EntryVerdictProps) {
  const { value: checked, error } = signatures;
  const caught = [around.error, error].find(isMisbehaviour);
  if (caught) return <FailedVerdict error={caught} what="This entry" />;
  if (error !== undefined)
    return (
      <Verdict finding="open">
        The log proves that this was recorded
        <RecordedOn entry={entry} />, but the signature in it could not be checked:{" "}
        {error instanceof ClientError ? error.detail : "this page failed."}
      </Verdict>
    );
  if (isCut(entry))
    return (
      <Verdict finding="open">
        The log proves that it has this entry, and that the operator withholds{" "}
        {entry.payload ? "the name in it; all else is his word" : "what it says"}: entry {entry.withheld_by}.
      </Verdict>
    );
  if (checked === undefined) return <Verdict finding="busy">Checking the signature in this entry…</Verdict>;
  const { standing, checks, attestation } = checked;
  const recorded = (
    <>
      <Statement entry={entry} hasLinks />. The log proves that this was recorded
      <RecordedOn entry={entry} />
    </>
  );
  if (standing === "wrong") {
    const wrong =
      checks.find(({ holds }) => holds === false)?.detail ?? "What was signed is not what the log recorded.";
    return (
      <Verdict finding="wrong">The log recorded this, but what it says of the signer is not shown: {wrong}</Verdict>
    );
  }
  if (standing === "open")
    return (
      <Verdict finding="open">
        {recorded}, but whether the signature fits cannot be checked here
        {attestation
          ? ": only the signer’s .attestation.json has all that was signed."
          : ": it was signed in another spelling."}
      </Verdict>
    );
  if (standing === "none")
    return (
      <Verdict finding="holds">
        {recorded}. {unsigned(entry)}
      </Verdict>
    );
  const isRevoked = attestation?.key.status === "revoked";
  return (
    <Verdict finding={isRevoked ? "open" : "holds"}>
      {recorded}, and the signature fits
      {isRevoked ? `; but ${teller().toLowerCase()} says that the key was revoked.` : "."}
    </Verdict>
  );
}

/** What stands behind an entry without a signature. */
function unsigned({ event_type }: Entry): string {
  if (event_type === "key_registration") return "It holds no signature: nobody has shown there to hold the key.";
  return kindOf(event_type)?.actor
    ? "It holds no signature: that the key’s holder wanted it is the word of the service."
    : "It holds no signature.";
}

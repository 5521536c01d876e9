/**
 * One entry, verified: its hash from its content, its place in the tree from its hash, the tree from the signed head.
 */
import { useState } from "preact/hooks";
import { isCut } from "../../../../engine/verify/events/withheld.js";
import type { Entry } from "../../../../engine/verify/index.js";
import { ClientError } from "../../../client/index.js";
import {
  Badge,
  Card,
  DownloadIcon,
  eventLabel,
  FailedVerdict,
  Heading,
  ProblemNote,
  saveFile,
  saveJson,
  Verdict,
} from "../../components/index.js";
import { raiseFor } from "../../state/alarm.js";
import { useCell } from "../../state/cell.js";
import { viewAddress } from "../../state/location.js";
import { type CheckedSignatures, checkSignatures } from "../../state/signatures.js";
import { hasService, type Proven, type Source, source } from "../../state/source.js";
import { type Task, useTask } from "../../state/task.js";
import { operators } from "../../state/watching.js";
import { ContentCard } from "./ContentCard.js";
import { VerdictOnEntry } from "./EntryVerdict.js";
import { HashCard } from "./HashCard.js";
import { NoSuchEntry } from "./NoSuchEntry.js";
import { SummaryCard } from "./SummaryCard.js";
import { TreeCard } from "./TreeCard.js";

const NUMBER = new Intl.NumberFormat();
const IDLE = { isBusy: false, error: undefined };

export function EntryView({ id }: { readonly id: number }) {
  const task = useTask(() => source().opened(id), [id]);
  const { value: proven, error } = task;
  const around = useTask(async () => (proven ? source().neighbours(proven) : undefined), [proven]);
  const signatures = useTask(async () => (proven ? checkSignatures(proven) : undefined), [proven]);
  const title = `Entry ${NUMBER.format(id)}`;
  if (error instanceof ClientError && error.status === 404) return <NoSuchEntry id={id} />;
  if (error !== undefined)
    return (
      <div class="stack">
        <Heading title={title} />
        <FailedVerdict error={error} what="This entry" />
        <ProblemNote error={error} retry={task.retry} />
      </div>
    );
  return (
    <div class="stack">
      <div class="view-head">
        <div class="entry-title">
          <Heading title={title} />
          {proven && <Badge tone={eventLabel(proven.entry).tone}>{eventLabel(proven.entry).label}</Badge>}
        </div>
        <Steps previous={around.value?.previous ?? null} next={around.value?.next ?? null} />
      </div>
      {proven ? (
        <>
          <VerdictOnEntry proven={proven} around={around} signatures={signatures} />
          <Parts proven={proven} around={around} signatures={signatures} />
        </>
      ) : (
        <>
          <Verdict finding="busy">Checking the entry…</Verdict>
          <Placeholders />
        </>
      )}
    </div>
  );
}

type Around = Awaited<ReturnType<Source["neighbours"]>> | undefined;

interface PartsProps {
  readonly proven: Proven;
  readonly around: Task<Around>;
  readonly signatures: Task<CheckedSignatures | undefined>;
}

function Parts({ proven, around, signatures }: PartsProps) {
  const { entry, proof, head } = proven;
  const key = useCell(operators)?.current;
  const save = () =>
    saveJson(`entry-${entry.id}.proof.json`, { entry, proof, tree_head: head, operator_key: key?.pem ?? null });
  return (
    <>
      <ContentCard entry={entry} />
      <SummaryCard proven={proven} around={around} signatures={signatures} />
      {!isCut(entry) && <HashCard entry={entry} />}
      <TreeCard proof={proof} head={head} />
      <div class="downloads">
        {hasService() && (
          <button type="button" class="button" onClick={save}>
            <DownloadIcon /> Download the proof
          </button>
        )}
        <ProofFile proven={proven} />
      </div>
    </>
  );
}

/** Saves the proof file for tools of other logs, which is made and verified when it is asked for. */
function ProofFile({ proven }: { readonly proven: Proven }) {
  const [state, setState] = useState<{ readonly isBusy: boolean; readonly error: unknown }>(IDLE);
  const save = async () => {
    setState({ isBusy: true, error: undefined });
    try {
      saveFile(`${proven.entry.id}.tlog-proof`, await source().proofFile(proven), "text/plain");
      setState(IDLE);
    } catch (error) {
      raiseFor(error);
      setState({ isBusy: false, error });
    }
  };
  return (
    <>
      <button type="button" class="button" onClick={() => void save()} disabled={state.isBusy}>
        <DownloadIcon /> Download for other tools (.tlog-proof)
      </button>
      {state.error !== undefined && <ProblemNote error={state.error} retry={() => void save()} />}
    </>
  );
}

/** Placeholders as high as the content that will replace them. */
function Placeholders() {
  return (
    <>
      {["What it says", "Verified in this page", "How its hash is made"].map((title) => (
        <Card key={title} title={title} class="placeholder">
          <span class="skeleton" />
          <span class="skeleton" />
          <span class="skeleton" />
        </Card>
      ))}
    </>
  );
}

function Steps({ previous, next }: { readonly previous: Entry | null; readonly next: Entry | null }) {
  return (
    <nav class="neighbours" aria-label="Neighbouring entries">
      <Step to={previous} label="Previous" />
      <Step to={next} label="Next" />
    </nav>
  );
}

function Step({ to, label }: { readonly to: Entry | null; readonly label: string }) {
  if (!to) return <span class="button button-off">{label}</span>;
  return (
    <a class="button" href={viewAddress(["entries", to.id])} aria-label={`${label} entry, ${to.id}`}>
      {label}
    </a>
  );
}

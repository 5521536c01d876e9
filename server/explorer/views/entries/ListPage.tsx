/** All entries, or those that match a filter, newest first. */
import { useRef } from "preact/hooks";
import type { EntryFilter } from "../../../client/index.js";
import {
  Card,
  Empty,
  EntryList,
  FailedVerdict,
  Heading,
  Loading,
  Paging,
  ProblemNote,
  Verdict,
} from "../../components/index.js";
import { alarms } from "../../state/alarm.js";
import { announce } from "../../state/announcements.js";
import { useCell } from "../../state/cell.js";
import { viewAddress } from "../../state/location.js";
import { type EntrySlice, hasService, source, teller } from "../../state/source.js";
import { type Task, useTask } from "../../state/task.js";
import { failure, sight } from "../../state/watching.js";
import { Filters } from "./Filters.js";

const PER_PAGE = 25;
/** The beginning of a hash without the name of its algorithm. */
const BARE_HASH = /^[0-9a-f]{1,63}$/i;
const NUMBER = new Intl.NumberFormat();

/** A page of the list, and whether it was verified to be in the log. */
type Shown = EntrySlice & { readonly isProven: boolean; readonly head: number };

export function EntryListPage({ query }: { readonly query: URLSearchParams }) {
  const filter = filterOf(query);
  const page = pageOf(query);
  const task = useShown(filter, page);
  const { value: shown, error } = task;
  const isAlarmed = useCell(alarms).length > 0;
  const seen = useCell(sight);
  const pages = shown ? Math.max(1, Math.ceil(shown.total / PER_PAGE)) : 1;
  const at = (number: number) => viewAddress(["entries"], { ...filter, page: number > 1 ? number : undefined });
  return (
    <div class="stack">
      <div class="view-head">
        <Heading title="Entries" />
        <Newer shown={shown} isFiltered={isFiltered(filter)} reload={task.retry} />
      </div>
      <ListVerdict
        task={task}
        isFiltered={isFiltered(filter)}
        isUnknown={shown === undefined && isAlarmed && seen.status === "looking"}
      />
      <Filters filter={filter} total={shown?.total} key={`${JSON.stringify(filter)}`} />
      <Card
        title={isFiltered(filter) ? "Matching entries" : "All entries"}
        aside={shown && <span class="number">{countOf(shown.total)}</span>}
      >
        <div class="list-body" aria-busy={task.isBusy}>
          {error !== undefined ? (
            <ProblemNote error={error} retry={task.retry} />
          ) : shown === undefined && isAlarmed && seen.status === "looking" ? (
            <Empty title="Nothing is listed during an alarm.">No head of this log can be trusted now.</Empty>
          ) : shown === undefined ? (
            <Loading what="entries" rows={12} />
          ) : shown.entries.length === 0 ? (
            <NothingHere filter={filter} total={shown.total} lastPage={at(pages)} />
          ) : (
            <EntryList entries={shown.entries} />
          )}
        </div>
      </Card>
      <Paging page={Math.min(page, pages)} pages={pages} what="entries" addressOf={at} />
    </div>
  );
}

/**
 * The requested page. The total stays as it was when the list was opened, so that entries do not move to other pages
 * while the log grows.
 */
function useShown(filter: EntryFilter, page: number): Task<Shown> {
  const seen = useCell(sight);
  const pinned = useRef<{ readonly filter: string; readonly total: number } | null>(null);
  const name = JSON.stringify(filter);
  const isReady = seen.status === "proven";
  const task = useTask(async () => {
    if (!isReady) return undefined;
    const shown = await load(filter, page, pinned.current?.filter === name ? pinned.current.total : undefined);
    pinned.current = { filter: name, total: shown.total };
    announce(`${countOf(shown.total)}. Page ${page}.`);
    return shown;
  }, [name, page, isReady]);
  const retry = () => {
    pinned.current = null;
    task.retry();
  };
  return { ...task, retry };
}

async function load(filter: EntryFilter, page: number, total: number | undefined): Promise<Shown> {
  const seen = sight.value;
  const head = seen.status === "proven" ? seen.head : null;
  const skip = (page - 1) * PER_PAGE;
  if (isFiltered(filter)) {
    const size = total === undefined ? {} : { total };
    const stretch = await source().matching(filter, { skip, count: PER_PAGE, ...size });
    return { ...stretch, isProven: false, head: head?.tree_size ?? 0 };
  }
  const size = total ?? head?.tree_size ?? 0;
  const to = Math.max(0, size - skip);
  const entries = head && to > 0 ? await source().entries(head, Math.max(0, to - PER_PAGE), to) : [];
  return { entries, total: size, isProven: true, head: head?.tree_size ?? 0 };
}

interface ListVerdictProps {
  readonly task: Task<Shown>;
  readonly isFiltered: boolean;
  /** Whether no head can be trusted. */
  readonly isUnknown: boolean;
}

/** Says what was verified about the entries below, and what cannot be verified. */
function ListVerdict({ task: { value: shown, error }, isFiltered, isUnknown }: ListVerdictProps) {
  const failed = useCell(failure);
  if (error !== undefined) return <FailedVerdict error={error} what="These entries" />;
  if (isUnknown) return <Verdict finding="wrong">No entry can be verified: see the alarm above.</Verdict>;
  if (shown === undefined && failed) return <FailedVerdict error={failed} what="These entries" />;
  if (shown === undefined) return <Verdict finding="busy">Checking the entries…</Verdict>;
  const count = shown.entries.length;
  if (isFiltered)
    return (
      <Verdict finding="open">
        {count === 0
          ? `${teller()} says that no entry matches, and nothing proves it.`
          : hasService()
            ? "Each entry's content matches its hash. Nothing can prove that no match is missing. Open an entry to verify that it is in the log."
            : "Each of these entries is in the tree of the signed checkpoint. Nothing can prove that no match is missing."}
      </Verdict>
    );
  if (count === 0) return <Verdict finding="open">There is no entry here that could be verified.</Verdict>;
  return (
    <Verdict finding="holds">
      {count === 1 ? "It is" : `All ${count} are`} in the log: each entry's content matches its hash,{" "}
      {hasService()
        ? "each hash covers the one before it, and the newest of these entries is in the tree that the operator signed"
        : "and each is in the tree of the signed checkpoint"}
      . Signatures are checked on the pages of the entries.
    </Verdict>
  );
}

/** The list does not change by itself; this button says that there are newer entries. */
function Newer({
  shown,
  isFiltered,
  reload,
}: {
  readonly shown: Shown | undefined;
  readonly isFiltered: boolean;
  reload(): void;
}) {
  const seen = useCell(sight);
  const size = seen.status === "proven" ? (seen.head?.tree_size ?? 0) : 0;
  const joined = shown ? size - (isFiltered ? shown.head : shown.total) : 0;
  if (joined <= 0) return <span class="newer" />;
  return (
    <button type="button" class="button newer" onClick={reload}>
      {isFiltered ? "The log has grown: search again" : `Show ${NUMBER.format(joined)} newer`}
    </button>
  );
}

function NothingHere({ filter, total, lastPage }: { filter: EntryFilter; total: number; lastPage: string }) {
  if (total > 0)
    return (
      <Empty title="This page does not exist.">
        <a href={lastPage}>Go to the last page</a>
      </Empty>
    );
  if (!isFiltered(filter))
    return (
      <Empty title="Nothing has been recorded yet">
        New entries appear here
        {hasService() && (
          <>
            : <code>cairnlog attest FILE</code> makes one
          </>
        )}
        .
      </Empty>
    );
  if (!hasService()) return <Empty title="No entry matches." />;
  return (
    <Empty title="No entry matches.">
      <p>
        An entry must have every tag, spelled in full, and in its title or name a beginning of every word. A search is
        the beginning of a hash or a fingerprint.
      </p>
      {BARE_HASH.test(filter.search ?? "") && (
        <p>
          {/* Payloads contain these with the prefix sha256:, so the search text must begin with it, too. */}
          <a href={viewAddress(["entries"], { ...filter, search: `sha256:${filter.search}` })}>
            Look for documents and keys that begin so
          </a>
        </p>
      )}
    </Empty>
  );
}

const isFiltered = (filter: EntryFilter): boolean => Object.keys(filter).length > 0;

const countOf = (total: number): string => `${NUMBER.format(total)} ${total === 1 ? "entry" : "entries"}`;

function filterOf(query: URLSearchParams): EntryFilter {
  const pairs = ["event_type", "tags", "search", "title"].flatMap((name) => {
    const value = query.get(name)?.trim();
    return value ? [[name, value]] : [];
  });
  return Object.fromEntries(pairs) as EntryFilter;
}

function pageOf(query: URLSearchParams): number {
  const text = query.get("page") ?? "1";
  return /^[1-9]\d{0,9}$/.test(text) ? Number(text) : 1;
}

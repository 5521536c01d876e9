/** What was found for a text, by entries and by keys: `#/search?q=…`. */
import { Card, Empty, EntryList, FailedVerdict, Heading, KeyList, TaskView, Verdict } from "../components/index.js";
import { announce } from "../state/announcements.js";
import { useCell } from "../state/cell.js";
import { viewAddress } from "../state/location.js";
import { useTask } from "../state/task.js";
import type { ViewProps } from "../state/view.js";
import { sight } from "../state/watching.js";
import { SearchBox } from "./SearchBox.js";
import { type EntryGroup, type Findings, seek } from "./seek.js";

const COUNT = 10;
const NUMBER = new Intl.NumberFormat();

export default function SearchView({ query }: ViewProps) {
  const text = query.get("q")?.trim() ?? "";
  return (
    <div class="stack">
      <Heading title={text ? `Search for ${text}` : "Search"}>Search</Heading>
      <SearchBox key={text} text={text} />
      {text ? <Results text={text} /> : <Empty title="What are you looking for?">A word of a title is enough.</Empty>}
    </div>
  );
}

function Results({ text }: { readonly text: string }) {
  // A number is that of an entry only if the log has so many.
  const isReady = useCell(sight).status === "proven";
  const task = useTask(async () => {
    if (!isReady) return undefined;
    const findings = await seek(text, { count: COUNT, hasTags: true });
    announce(isEmpty(findings) ? "Nothing was found." : "The results are there.");
    return findings;
  }, [text, isReady]);
  return (
    <>
      {task.error !== undefined ? (
        <FailedVerdict error={task.error} what="What was found" />
      ) : task.value === undefined ? (
        <Verdict finding="busy">Searching…</Verdict>
      ) : (
        <Verdict finding="open">
          {isEmpty(task.value)
            ? "The service found nothing, and nothing proves that."
            : "Each entry's content matches its hash. Nothing can prove that none is missing here. Open an entry or a key to verify that it is in the log."}
        </Verdict>
      )}
      <TaskView task={task} what="what was found" rows={8}>
        {(findings) => findings && <Found findings={findings} text={text} />}
      </TaskView>
    </>
  );
}

function Found({ findings, text }: { readonly findings: Findings; readonly text: string }) {
  const { jumps, groups, keys, namedKeys, notices } = findings;
  return (
    <div class="stack">
      {jumps.length > 0 && (
        <ul class="jumps">
          {jumps.map(({ label, address }) => (
            <li key={address}>
              <a class="button" href={address}>
                {label}
              </a>
            </li>
          ))}
        </ul>
      )}
      {notices.map((notice) => (
        <p key={notice} role="status">
          {notice}
        </p>
      ))}
      {isEmpty(findings) && (
        <Empty title="Nothing was found.">
          A title or a name is found by the beginnings of its words, a hash by its first four digits, a tag only as a
          whole.
        </Empty>
      )}
      {keys.length > 0 && (
        <Card
          title="Keys"
          aside={<span class="number">{countOf(Math.max(namedKeys, keys.length), "key", "keys")}</span>}
        >
          <KeyList keys={keys} />
          {namedKeys > keys.length && (
            <p class="note">
              <a href={viewAddress(["keys"], { pseudonym: text })}>All keys with this in their names</a>
            </p>
          )}
        </Card>
      )}
      {groups.length > 0 && <Entries groups={groups} />}
    </div>
  );
}

function Entries({ groups }: { readonly groups: readonly EntryGroup[] }) {
  return (
    <Card title="Entries">
      {groups.map(({ how, address, total, entries }) => (
        <section key={address} class="found" aria-label={`Entries found: ${how}`}>
          <h3>
            {how} <span class="soft number">{countOf(total, "entry", "entries")}</span>
          </h3>
          <EntryList entries={entries} />
          {total > entries.length && (
            <p class="note">
              <a href={address}>All {NUMBER.format(total)}</a>
            </p>
          )}
        </section>
      ))}
    </Card>
  );
}

const isEmpty = ({ jumps, groups, keys }: Findings): boolean => jumps.length + groups.length + keys.length === 0;

const countOf = (count: number, one: string, more: string): string =>
  `${NUMBER.format(count)} ${count === 1 ? one : more}`;

/** All keys, or those that match a filter, in order of registration. */
import { useRef, useState } from "preact/hooks";
import {
  Card,
  Choice,
  Empty,
  Heading,
  KEY_STATUSES,
  KeyList,
  Paging,
  SearchIcon,
  TaskView,
} from "../../components/index.js";
import { goTo, viewAddress } from "../../state/location.js";
import { useTask } from "../../state/task.js";
import { fetchKeys, KEYS_PER_PAGE, type KeyFilter, type ListedKeys } from "./listing.js";

const NUMBER = new Intl.NumberFormat();
const FINGERPRINT = /^(?:sha256:)?([0-9a-f]{64})$/i;

export function KeyListPage({ query }: { readonly query: URLSearchParams }) {
  const filter = { pseudonym: query.get("pseudonym")?.trim() ?? "", status: statusOf(query) };
  const page = pageNumberIn(query);
  const [reach, setReach] = useState(1);
  const name = JSON.stringify(filter);
  const found = useRef<{ readonly name: string; readonly listed: ListedKeys } | null>(null);
  const task = useTask(async () => {
    const listed = await fetchKeys(filter, page, found.current?.name === name ? found.current.listed : null);
    found.current = { name, listed };
    return listed;
  }, [name, page, reach]);
  const at = (number: number) => viewAddress(["keys"], { ...filter, page: number > 1 ? number : undefined });
  return (
    <div class="stack">
      <Heading title="Keys" />
      <Filters key={name} filter={filter} />
      <Card
        title={filter.pseudonym || filter.status ? "Matching keys" : "All keys"}
        aside={<Count task={task.value} />}
      >
        <TaskView task={task} what="keys" rows={10}>
          {({ keys, total, lookedAt }) => (
            <>
              {keys.length === 0 ? <NothingHere filter={filter} total={total} /> : <KeyList keys={keys} />}
              {lookedAt !== null && lookedAt < total && (
                <p class="look-on">
                  Searched {NUMBER.format(lookedAt)} of {NUMBER.format(total)} keys.{" "}
                  <button type="button" class="button" onClick={() => setReach(reach + 1)}>
                    Search further
                  </button>
                </p>
              )}
            </>
          )}
        </TaskView>
      </Card>
      {task.value && task.value.lookedAt === null && (
        <Paging page={page} pages={Math.ceil(task.value.total / KEYS_PER_PAGE)} what="keys" addressOf={at} />
      )}
    </div>
  );
}

function Filters({ filter }: { readonly filter: KeyFilter }) {
  const [text, setText] = useState(filter.pseudonym);
  const find = (event: Event) => {
    event.preventDefault();
    const fingerprint = FINGERPRINT.exec(text.trim())?.[1];
    goTo(
      fingerprint
        ? viewAddress(["keys", `sha256:${fingerprint.toLowerCase()}`])
        : viewAddress(["keys"], { ...filter, pseudonym: text.trim() }),
    );
  };
  return (
    <search>
      <form class="key-filters" onSubmit={find}>
        <label class="field">
          <span>A part of the name, or a whole fingerprint</span>
          <input
            class="input"
            type="text"
            value={text}
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </label>
        <Choice
          label="Status"
          values={KEY_STATUSES}
          value={filter.status}
          change={(status) => goTo(viewAddress(["keys"], { pseudonym: text.trim(), status }))}
        />
        <button type="submit" class="button button-strong">
          <SearchIcon /> Find
        </button>
      </form>
    </search>
  );
}

function Count({ task }: { readonly task: ListedKeys | undefined }) {
  if (!task) return null;
  const count = task.lookedAt === null ? task.total : task.keys.length;
  return (
    <span class="number">
      {NUMBER.format(count)} {count === 1 ? "key" : "keys"}
    </span>
  );
}

function NothingHere({ filter, total }: { readonly filter: KeyFilter; readonly total: number }) {
  if (filter.pseudonym || filter.status)
    return (
      <Empty title="No key matches.">
        <a href="#/keys">Show all</a>
      </Empty>
    );
  if (total > 0)
    return (
      <Empty title="This page does not exist.">
        <a href="#/keys">Go to the first page</a>
      </Empty>
    );
  return (
    <Empty title="No key is registered yet">
      A key is registered with its first signature: <a href="#/file">sign a file</a>.
    </Empty>
  );
}

function statusOf(query: URLSearchParams): string {
  const status = query.get("status") ?? "";
  return KEY_STATUSES.find((each) => each === status) ?? "";
}

/** The page number in an address; 1 for anything else. */
export function pageNumberIn(query: URLSearchParams, name = "page"): number {
  const text = query.get(name) ?? "1";
  return /^[1-9]\d{0,9}$/.test(text) ? Number(text) : 1;
}

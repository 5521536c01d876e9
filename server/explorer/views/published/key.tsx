/** One key: what the entries about it say, as far as the index of the files has them. */
import { normaliseContentHash } from "../../../../engine/verify/index.js";
import { ClientError } from "../../../client/index.js";
import {
  Card,
  Digits,
  Empty,
  EntryList,
  FailedVerdict,
  Heading,
  Paging,
  TaskView,
  Verdict,
} from "../../components/index.js";
import { viewAddress } from "../../state/location.js";
import { shownText } from "../../state/names.js";
import { source } from "../../state/source.js";
import { useTask } from "../../state/task.js";
import type { ViewProps } from "../../state/view.js";
import { IdentityCard } from "../keys/IdentityCard.js";
import { KeyVerdict } from "../keys/KeyVerdict.js";
import "../keys/keys.css";

const PER_PAGE = 10;

export default function PublishedKeyView({ path: [asked = ""], query }: ViewProps) {
  const fingerprint = normaliseContentHash(asked);
  if (fingerprint !== undefined) return <Found key={fingerprint} fingerprint={fingerprint} query={query} />;
  return (
    <div class="stack">
      <Heading title="Keys" />
      <Empty title="These files have no list of keys.">
        <p>
          Open a key from an entry, or look for its whole fingerprint among the <a href="#/entries">entries</a>.
        </p>
      </Empty>
    </div>
  );
}

function Found({ fingerprint, query }: { readonly fingerprint: string; readonly query: URLSearchParams }) {
  const task = useTask(() => source().key(fingerprint).catch(orNull), [fingerprint]);
  const { value: key, error } = task;
  return (
    <div class="stack">
      <div class="view-head">
        <Heading title={key ? `Key of ${key.pseudonym}` : "Key"}>
          <bdi class="key-title">{key ? shownText(key.pseudonym) : "Key"}</bdi> <Digits fingerprint={fingerprint} />
        </Heading>
        <p class="soft">Self-declared name: nobody has checked who holds this key.</p>
      </div>
      {error !== undefined ? (
        <FailedVerdict error={error} what="This key" />
      ) : key ? (
        <KeyVerdict shown={key} fingerprint={fingerprint} />
      ) : key === null ? (
        <Verdict finding="open">The index has no entry that records this key, and nothing proves that.</Verdict>
      ) : (
        <Verdict finding="busy">Checking the key…</Verdict>
      )}
      <TaskView task={task} what="the key" rows={6}>
        {(found) => found && <IdentityCard shown={found} fingerprint={fingerprint} />}
      </TaskView>
      <EventsCard fingerprint={fingerprint} query={query} />
    </div>
  );
}

function EventsCard({ fingerprint, query }: { readonly fingerprint: string; readonly query: URLSearchParams }) {
  const text = query.get("page") ?? "1";
  const page = /^[1-9]\d{0,9}$/.test(text) ? Number(text) : 1;
  const task = useTask(
    () => source().matching({ search: fingerprint }, { skip: (page - 1) * PER_PAGE, count: PER_PAGE }),
    [fingerprint, page],
  );
  const total = task.value?.total ?? 0;
  return (
    <Card title="Entries about this key" aside={task.value && <span class="number">{total}</span>}>
      <TaskView task={task} what="entries about this key" rows={3}>
        {({ entries }) => (entries.length ? <EntryList entries={entries} /> : <Empty title="The index has none." />)}
      </TaskView>
      <Paging
        page={page}
        pages={Math.ceil(total / PER_PAGE)}
        what="entries about this key"
        addressOf={(number) => viewAddress(["keys", fingerprint], { page: number > 1 ? number : undefined })}
      />
      <p class="soft note">
        What the key has signed, its endorsements and its trust are not in the index: they need the service.
      </p>
    </Card>
  );
}

function orNull(error: unknown): null {
  if (error instanceof ClientError && error.status === 404) return null;
  throw error;
}

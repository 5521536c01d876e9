/** The entries of the log: `#/entries` is the list, `#/entries/5` is one entry. */
import { Empty, Heading } from "../../components/index.js";
import type { ViewProps } from "../../state/view.js";
import { EntryView } from "./EntryView.js";
import { EntryListPage } from "./ListPage.js";
import "./entries.css";

export default function EntriesView({ path, query }: ViewProps) {
  const [id] = path;
  if (id === undefined) return <EntryListPage query={query} />;
  if (/^[1-9]\d{0,14}$/.test(id)) return <EntryView key={id} id={Number(id)} />;
  return (
    <>
      <Heading title="No such entry" />
      <Empty title={`“${id}” is no number of an entry.`}>
        <a href="#/entries">Show all entries</a>
      </Empty>
    </>
  );
}

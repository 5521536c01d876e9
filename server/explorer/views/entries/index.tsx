import { Empty, Heading } from "../../components/index.js";

export default function EntriesView() {
  return (
    <>
      <Heading title="Entries" />
      <Empty title="Not there yet." />
    </>
  );
}

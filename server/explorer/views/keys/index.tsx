import { Empty, Heading } from "../../components/index.js";

export default function KeysView() {
  return (
    <>
      <Heading title="Keys" />
      <Empty title="Not there yet." />
    </>
  );
}

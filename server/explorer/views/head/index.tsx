import { Empty, Heading } from "../../components/index.js";

export default function HeadView() {
  return (
    <>
      <Heading title="Head" />
      <Empty title="Not there yet." />
    </>
  );
}

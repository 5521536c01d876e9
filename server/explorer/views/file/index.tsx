import { Empty, Heading } from "../../components/index.js";

export default function FileView() {
  return (
    <>
      <Heading title="File" />
      <Empty title="Not there yet." />
    </>
  );
}

import { Empty, Heading } from "../../components/index.js";

export default function OperatorView() {
  return (
    <>
      <Heading title="Operator" />
      <Empty title="Not there yet." />
    </>
  );
}

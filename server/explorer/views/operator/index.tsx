/** The operator's view: metrics of the service, behind a session of the operator key. */
import { Heading } from "../../components/index.js";
import { announce } from "../../state/announcements.js";
import { useCell } from "../../state/cell.js";
import { Charts } from "./Charts.js";
import { OperatorHeadCard } from "./HeadCard.js";
import { SignInCard } from "./SignInCard.js";
import { session, signOut } from "./session.js";
import { WebhooksCard } from "./WebhooksCard.js";
import "./operator.css";

export default function OperatorView() {
  const current = useCell(session);
  if (!current)
    return (
      <div class="stack">
        <Heading title="Operator" />
        <SignInCard />
      </div>
    );
  const leave = () => {
    signOut();
    announce("You are signed out.");
  };
  return (
    <div class="stack">
      <div class="view-head">
        <Heading title="Operator" />
        <button type="button" class="button" onClick={leave}>
          Sign out
        </button>
      </div>
      <Charts />
      <OperatorHeadCard />
      <WebhooksCard />
    </div>
  );
}

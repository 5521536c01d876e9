/** Said in every view while the service does not answer, or answers that it was asked too much. */
import { Countdown } from "../components/states.js";
import { useCell } from "../state/cell.js";
import { failure, lookNow } from "../state/watching.js";

const again = () => void lookNow();

export function ConnectionBar() {
  const failed = useCell(failure);
  if (!failed) return null;
  const isLimited = failed.code === "rate-limited";
  return (
    <div class="connection">
      <div class="connection-inner">
        <p>
          <strong>{isLimited ? "Too many requests." : "The service does not answer as it should."}</strong>{" "}
          {isLimited
            ? "What you see is what was proven last."
            : `${failed.detail} What you see is what was proven last.`}
        </p>
        {failed.retryAfter ? (
          <Countdown key={`${failed.retryAfter}`} seconds={failed.retryAfter} done={again} />
        ) : (
          <button type="button" class="button" onClick={again}>
            Try again
          </button>
        )}
      </div>
    </div>
  );
}

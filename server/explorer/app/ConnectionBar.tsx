/** Shown in every view while the service does not answer, or refuses because of too many requests. */
import { Countdown } from "../components/states.js";
import { useCell } from "../state/cell.js";
import { server } from "../state/source.js";
import { failure, lookNow } from "../state/watching.js";

const again = () => void lookNow();

export function ConnectionBar() {
  const failed = useCell(failure);
  if (!failed) return null;
  const isLimited = failed.code === "rate-limited";
  return (
    <section class="connection" aria-label="Connection">
      <div class="connection-inner">
        <p>
          <strong>{isLimited ? "Too many requests." : `${server()} does not answer correctly.`}</strong>{" "}
          {isLimited ? "This address has reached the limit of requests for now." : failed.detail}
        </p>
        {failed.retryAfter ? (
          <Countdown seconds={failed.retryAfter} since={failed} done={again} />
        ) : (
          <button type="button" class="button" onClick={again}>
            Try again
          </button>
        )}
      </div>
    </section>
  );
}

/** The attestations of a document as a line in time, each where it was recorded. */
import { Time } from "../../components/index.js";
import type { Claim } from "./records.js";

const WHEN = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

/** @param claims oldest first; a single one is a point, which is not drawn */
export function TimeLine({ claims }: { readonly claims: readonly Claim[] }) {
  const times = claims.map(({ entry }) => Date.parse(entry.timestamp));
  const [first, last] = [times[0]!, times.at(-1)!];
  if (!(last > first)) return null;
  const said = `${claims.length} attestations from ${WHEN.format(first)} to ${WHEN.format(last)}`;
  return (
    <figure class="time-line">
      <div class="time-line-track" role="img" aria-label={said}>
        {claims.map(({ entry }, i) => (
          <span
            key={entry.id}
            class="time-line-mark"
            style={{ left: `${(100 * (times[i]! - first)) / (last - first)}%` }}
          />
        ))}
      </div>
      <figcaption class="soft">
        <Time at={claims[0]!.entry.timestamp} /> <Time at={claims.at(-1)!.entry.timestamp} />
      </figcaption>
    </figure>
  );
}

/** What this page is, for somebody who sees it for the first time, and who runs it. */
import { introduction } from "../../state/introduction.js";
import { shownText } from "../../state/names.js";

export function Introduction() {
  const { operator, description, writers } = introduction;
  const said = description === null ? null : shownText(description).trim();
  const isEnded = said !== null && /[.!?]$/.test(said);
  return (
    <p class="introduction">
      {said === null ? "A public record" : <bdi>{said}</bdi>}
      {said !== null && !isEnded && "."}
      {operator !== null && (
        <>
          {said === null ? " kept by " : " Kept by "}
          <strong>
            <bdi>{shownText(operator)}</bdi>
          </strong>
        </>
      )}
      {(said === null || operator !== null) && "."} Entries are only ever added to it, and this page checks in your own
      browser that none was changed or taken away.{writers !== null && ` ${writers}`}
    </p>
  );
}

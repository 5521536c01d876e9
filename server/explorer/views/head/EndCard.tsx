/** The end of a log, as its last entry says it. */
import type { LogEnd } from "../../../client/index.js";
import { Card, Facts, Hash, Time } from "../../components/index.js";
import { viewAddress } from "../../state/location.js";
import { shownText } from "../../state/names.js";

export function EndCard({ end }: { readonly end: LogEnd }) {
  const { entry_id, timestamp, reason, successor } = end;
  return (
    <Card title="This log has ended">
      <Facts
        facts={[
          ["Reason", shownText(reason)],
          ["Frozen", <Time key="frozen" at={timestamp} />],
          [
            "By entry",
            <a key="entry" href={viewAddress(["entries", entry_id])}>
              {entry_id}
            </a>,
          ],
          successor && ["Goes on at", <Address key="next" url={successor.url} />],
          successor && [
            "Its verifier key",
            <Hash key="vkey" value={successor.vkey} label="verifier key" show="whole" />,
          ],
        ]}
      />
      <p class="soft note">Nothing may follow its last entry: this page would raise an alarm at a larger head.</p>
    </Card>
  );
}

/** Whoever wrote the entry chose the address. */
export function Address({ url }: { readonly url: string }) {
  return /^https?:\/\//.test(url) ? (
    <a href={url} rel="noreferrer">
      {shownText(url)}
    </a>
  ) : (
    shownText(url)
  );
}

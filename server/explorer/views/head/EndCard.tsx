/** The end of a log that was frozen, proven by its last entry, and where it goes on. */

import { Shards } from "../../../wire/log/shards.js";
import { Card, Facts, Hash, Time } from "../../components/index.js";
import { addressOf } from "../../state/location.js";
import { shownText } from "../../state/said/names.js";
import { client, http } from "../../state/service.js";
import { useTask } from "../../state/task.js";

/** The end is proven when the service says that there is one: of most logs there is none, whenever they grow. */
async function provenEnd() {
  const { frozen } = await http.get(Shards, "/log/shards");
  return frozen && client.shards.end();
}

export function EndCard({ size }: { readonly size: number }) {
  const { value: end } = useTask(provenEnd, [size]);
  if (!end) return null;
  const { entry_id, timestamp, reason, successor } = end;
  return (
    <Card title="This log has ended">
      <Facts
        facts={[
          ["Reason", shownText(reason)],
          ["Frozen", <Time key="frozen" at={timestamp} />],
          [
            "By entry",
            <a key="entry" href={addressOf(["entries", entry_id])}>
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
function Address({ url }: { readonly url: string }) {
  return /^https?:\/\//.test(url) ? (
    <a href={url} rel="noreferrer">
      {shownText(url)}
    </a>
  ) : (
    shownText(url)
  );
}

/** From which log this one goes on, whether it has ended, and where it goes on: proven by its first and its last entry. */

import { Shards } from "../../../../engine/contract/log/shards.js";
import type { LogBeginning } from "../../../client/index.js";
import { Card, Facts, Hash } from "../../components/index.js";
import { client, http } from "../../state/service.js";
import { useTask } from "../../state/task.js";
import { Address, EndCard } from "./EndCard.js";

/** What the service says is proven. Most logs have neither a beginning nor an end, and need no proof whenever they grow. */
async function provenShards() {
  const { predecessor, frozen } = await http.get(Shards, "/log/shards");
  return { begun: predecessor && (await client.shards.beginning()), ended: frozen && (await client.shards.end()) };
}

export function ShardCards({ size }: { readonly size: number }) {
  const { value } = useTask(provenShards, [size]);
  return (
    <>
      {value?.ended && <EndCard end={value.ended} />}
      {value?.begun && <BeginningCard begun={value.begun} />}
    </>
  );
}

function BeginningCard({ begun: { url, tree_head } }: { readonly begun: LogBeginning }) {
  return (
    <Card title="This log goes on from another one">
      <Facts
        facts={[
          ["At", <Address key="last" url={url} />],
          ["Entries there", tree_head.tree_size],
          ["Its last root", <Hash key="root" value={tree_head.root_hash} label="last root hash" show="whole" />],
        ]}
      />
    </Card>
  );
}

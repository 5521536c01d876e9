/** The webhooks of all keys, which only the operator can see, and the state of their deliveries. */
import type { Static } from "typebox";
import { WebhookList } from "../../../../engine/contract/webhooks.js";
import { Badge, Card, TaskView } from "../../components/index.js";
import { viewAddress } from "../../state/location.js";
import { http } from "../../state/service.js";
import { useTask } from "../../state/task.js";
import { bearer } from "./session.js";

type Webhook = Static<typeof WebhookList>[number];

export function WebhooksCard() {
  const task = useTask(async () => http.get(WebhookList, "/webhooks", {}, await bearer()), []);
  const ill = task.value?.filter(({ healthy }) => !healthy).length ?? 0;
  return (
    <Card
      title="Webhooks"
      aside={
        (task.value?.length ?? 0) > 0 && (
          <Badge tone={ill ? "bad" : "good"}>{ill ? `${ill} unhealthy` : "All healthy"}</Badge>
        )
      }
    >
      <TaskView task={task} what="webhooks" rows={3}>
        {(webhooks) =>
          webhooks.length === 0 ? <p class="soft">There are no webhooks.</p> : <Table webhooks={webhooks} />
        }
      </TaskView>
      <button type="button" class="button card-action" onClick={task.retry}>
        Look again
      </button>
    </Card>
  );
}

function Table({ webhooks }: { readonly webhooks: readonly Webhook[] }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: without focus it could not be scrolled by keyboard
    <section class="table-frame" aria-label="Table of webhooks" tabIndex={0}>
      <table class="table">
        <thead>
          <tr>
            <th scope="col">Id</th>
            <th scope="col">Address</th>
            <th scope="col">Events</th>
            <th scope="col">Health</th>
            <th scope="col">Failures in a row</th>
          </tr>
        </thead>
        <tbody>
          {webhooks.map(({ id, url, events, healthy, retry_count, key_fingerprint }) => (
            <tr key={id}>
              <td data-label="Id" class="number">
                {id}
              </td>
              <td data-label="Address" class="webhook-url">
                {url}
                {key_fingerprint !== null && (
                  <>
                    {" "}
                    <a href={viewAddress(["keys", key_fingerprint])}>of one key</a>
                  </>
                )}
              </td>
              <td data-label="Events">{events.length ? events.join(", ") : "all"}</td>
              <td data-label="Health">
                <Badge tone={healthy ? "good" : "bad"}>{healthy ? "healthy" : "unhealthy"}</Badge>
              </td>
              <td data-label="Failures" class="number">
                {retry_count}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

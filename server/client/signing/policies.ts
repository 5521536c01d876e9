/** Request policies: the attestation requests that a key wants to receive. */

import * as wire from "../../../engine/contract/signing/requests.js";
import type { PayloadOf } from "../../../engine/verify/events/kinds.js";
import type { PolicyAction } from "../../../engine/verify/keys/contract.js";
import { asLogged, confirmed, moment } from "../base/compare.js";
import type { PolicyPublished, PolicyView, PublishPolicy } from "../base/types.js";
import { Area } from "../log/area.js";
import { OF_ENTRY } from "../log/expected.js";
import { receiptPlace } from "../log/proven.js";

/** A policy of the client's key; `docs/policies.md` describes the language of its predicates. */
export type NewPolicy = Omit<PublishPolicy, "target_fingerprint" | "auth">;

export class PoliciesClient extends Area {
  /** Publishes a policy in place of the key's active one. @throws ClientError */
  async publish(policy: NewPolicy): Promise<PolicyPublished> {
    const target_fingerprint = this.auth.fingerprint;
    const floor = await this.watch.sizeBefore();
    const body = { ...policy, target_fingerprint };
    const receipt = await this.auth.postAuthorised(wire.PolicyPublished, "/log/request-policies", body);
    const { predicates, default_action_on_failure } = policy;
    const content = { target_fingerprint, predicates, default_action_on_failure };
    const proven = await this.watch.recorded(receipt.log_entry_id, receipt.leaf_index, floor, {
      event_type: "request_policy",
      payload: { ...content, effective_from: moment(policy.effective_from) ?? OF_ENTRY },
    });
    const { effective_from } = proven.entry.payload as PayloadOf<"request_policy">;
    const published_at = proven.entry.timestamp;
    const status = effective_from <= published_at ? ("active" as const) : ("scheduled" as const);
    const { entry_hash: _, ...place } = receiptPlace(proven);
    return this.watch.agreed(
      receipt,
      {
        target_fingerprint,
        predicates,
        default_action_on_failure: default_action_on_failure as PolicyAction,
        effective_from,
        published_at,
        status,
        ...place,
      },
      proven,
    );
  }

  /** A key's policy in force, and the scheduled one. @throws ClientError */
  async find(fingerprint: string): Promise<PolicyView> {
    const view = await this.http.get(wire.PolicyView, `/log/request-policies/${encodeURIComponent(fingerprint)}`);
    const own = { target_fingerprint: asLogged(fingerprint) };
    for (const policy of [view.active, view.scheduled]) if (policy) confirmed(policy, own, "The policy");
    return confirmed(view, own, "The policy");
  }
}

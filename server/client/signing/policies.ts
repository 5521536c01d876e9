/** Request policies: which attestation requests a key wants to be bothered with. */
import type { PolicyAction } from "../../../engine/verify/contract.js";
import type { JsonObject } from "../../../engine/verify/json/shape.js";
import * as wire from "../../wire/signing/requests.js";
import type { Http } from "../http.js";
import type { Watch } from "../log/watch.js";
import type { Authority } from "../session.js";
import type { PolicyPublished, PolicyView, PublishPolicy } from "../types.js";

/** A policy of one's own key; `docs/policies.md` has the language of its predicates. */
export type NewPolicy = Omit<PublishPolicy, "target_fingerprint" | "auth">;

export class PoliciesClient {
  readonly #http: Http;
  readonly #watch: Watch;
  readonly #authority: Authority;

  constructor(http: Http, watch: Watch, authority: Authority) {
    this.#http = http;
    this.#watch = watch;
    this.#authority = authority;
  }

  /** Publishes a policy in place of the key's active one. @throws ClientError */
  async publish(policy: NewPolicy): Promise<PolicyPublished> {
    const target_fingerprint = this.#authority.fingerprint;
    const floor = await this.#watch.floor();
    const { auth, headers } = await this.#authority.forWrite();
    const body = { ...policy, target_fingerprint, ...auth };
    const receipt = await this.#http.post(wire.PolicyPublished, "/log/request-policies", body, headers);
    await this.#watch.recorded(receipt.log_entry_id, receipt.leaf_index, floor, {
      event_type: "request_policy",
      payload: {
        target_fingerprint,
        predicates: policy.predicates as JsonObject,
        default_action_on_failure: policy.default_action_on_failure as PolicyAction,
      },
    });
    return receipt;
  }

  /** A key's policy in force, and the one that will take its place. @throws ClientError */
  find(fingerprint: string): Promise<PolicyView> {
    return this.#http.get(wire.PolicyView, `/log/request-policies/${encodeURIComponent(fingerprint)}`);
  }
}

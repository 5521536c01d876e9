/**
 * Request policies: the holder of a key says which attestation requests it wants, and the policy in force answers the
 * others automatically (docs/spec §10.3). Policies and their answers are public.
 */

import type * as contract from "../../contract/signing/requests.js";
import type { Body, Value } from "../../contract/types.js";
import type { Log } from "../../log/log.js";
import { type Clock, formatTimestamp } from "../../log/state/clock.js";
import type { PlainObject } from "../../log/state/commands.js";
import type { PolicyRow } from "../../store/schema/rows.js";
import type { JsonObject } from "../../verify/json/shape.js";
import { POLICY_ACTIONS } from "../../verify/keys/contract.js";
import { requestedTime } from "../../verify/tree/entry.js";
import { readPredicates } from "../events/predicatelanguage.js";
import { policiesAt } from "../events/requests.js";
import type { Keys } from "../keys/keys.js";
import { boundedText, Faults, members } from "../shared/input.js";
import type { Caller, Writes } from "../writes/writes.js";
import { publishPolicy } from "./commands.js";
import { readNamedKey } from "./input.js";

/** Default maximum of publications for one target in an hour. */
export const DEFAULT_POLICY_QUOTA = 20;
const MAX_ACTION_CHARACTERS = 64;

type PolicyInput = Body<typeof contract.PublishPolicy>;

type RequestPolicy = NonNullable<PolicyView["active"]>;

type PublishedPolicy = Value<typeof contract.PolicyPublished>;

type PolicyView = Value<typeof contract.PolicyView>;

interface Parts {
  readonly log: Log;
  readonly writes: Writes;
  readonly keys: Keys;
  readonly clock: Clock;
  /** Maximum number of publications for one target in an hour; null if there is no limit. */
  readonly quota: number | null;
}

export class Policies {
  readonly #parts: Parts;

  /** Use `openRegistry`. */
  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Publishes a policy of a key whose possession was proven (`POST /log/request-policies`). From its `effective_from`
   * on, which may be in the future, it replaces the active policy. It replaces a scheduled policy immediately. Only a
   * successful publication counts against the quota.
   * @param target_fingerprint in the registry's form
   * @throws CairnlogError `invalid-input`, `not-i-json`; `key-not-active`; `precondition-failed` unless
   *   `effective_from` is later than the active policy's; `rate-limited`; and as `Log.append` does
   */
  async publish(
    target_fingerprint: string,
    policy: PolicyInput,
    client: Caller | null = null,
  ): Promise<PublishedPolicy> {
    const input = members(policy);
    const faults = new Faults();
    readNamedKey(input.target_fingerprint, "/target_fingerprint", faults);
    const predicates = readPredicates(input.predicates, "/predicates", faults);
    const action = readAction(input.default_action_on_failure, faults);
    const effectiveFrom = input.effective_from == null ? null : requestedTime(input.effective_from);
    if (effectiveFrom === undefined)
      faults.add("/effective_from", "It must be an ISO 8601 date and time with an offset.");
    faults.check();

    const served = JSON.parse(predicates!.canonical) as PlainObject;
    const { value, receipts } = await this.#parts.writes.execute(
      publishPolicy,
      {
        target_fingerprint,
        predicates: served,
        default_action_on_failure: action!,
        effective_from: effectiveFrom!,
        quota: this.#parts.quota,
      },
      client,
      target_fingerprint,
    );
    const { log_entry_id, leaf_index, timestamp: published_at } = receipts[0]!;
    return {
      target_fingerprint,
      predicates: served,
      default_action_on_failure: action!,
      published_at,
      log_entry_id,
      leaf_index,
      ...value,
    };
  }

  /**
   * The policy of a key that is in force, and the scheduled one (`GET /log/request-policies/{fingerprint}`).
   * @throws CairnlogError `not-found` if there is no such key
   */
  view(fingerprint: string): PolicyView {
    const { fingerprint: target } = this.#parts.keys.find(fingerprint);
    const { active, scheduled } = policiesAt(
      this.#parts.log.row("policies", target),
      formatTimestamp(this.#parts.clock()),
    );
    return {
      target_fingerprint: target,
      active: this.#served(target, active),
      scheduled: this.#served(target, scheduled),
    };
  }

  #served(target: string, row: PolicyRow | null): RequestPolicy | null {
    if (!row) return null;
    const predicates = JSON.parse(row.predicates) as JsonObject;
    return {
      target_fingerprint: target,
      ...row,
      predicates,
      leaf_index: this.#parts.log.leafIndexOfRow(row.log_entry_id),
    };
  }
}

function readAction(value: unknown, faults: Faults): PolicyRow["default_action_on_failure"] | undefined {
  const path = "/default_action_on_failure";
  const text = boundedText(value, path, { min: 1, max: MAX_ACTION_CHARACTERS }, faults);
  const action = POLICY_ACTIONS.find((name) => name === text);
  if (text !== undefined && !action) faults.add(path, `It must be one of ${POLICY_ACTIONS.join(", ")}.`);
  return action;
}

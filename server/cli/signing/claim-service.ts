/** The actions of `cairnlog claim` that need a service: posting encrypted claims, and finding claims. */
import { isObject, type JsonObject } from "../../../engine/verify/json/shape.js";
import type { SealedClaim } from "../../client/base/types.js";
import { type Action, listed } from "../connection/actions.js";
import type { CONNECTION_OPTIONS } from "../connection/connection.js";
import { readObject } from "../files/objects.js";
import { only } from "../line/usage.js";

export const SERVICE_ACTIONS = {
  post: (names) => {
    // The service checks its members, and says which of them are wrong.
    const payload = payloadOf(readObject(only(names, "CLAIM.json"))) as unknown as SealedClaim;
    return async (client) => {
      const answer = await client.claims.post(payload);
      return { answer, text: `entry ${answer.log_entry_id}, to be found under ${answer.lookup_key}` };
    };
  },
  list: (names) => {
    const lookupKey = only(names, "LOOKUP_KEY");
    return (client) =>
      listed(client.claims.list(lookupKey), ({ id, timestamp, payload }) =>
        [id, timestamp, JSON.stringify(payload)].join(" "),
      );
  },
} satisfies Record<string, Action<typeof CONNECTION_OPTIONS>>;

/** The payload of a claim. `value` is the payload, or an answer of the service with the member `payload`. */
export function payloadOf(value: JsonObject): JsonObject {
  return isObject(value.payload) ? value.payload : value;
}

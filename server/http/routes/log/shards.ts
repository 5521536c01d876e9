/** The end of the log, and where it goes on. */
import { FreezeLog, LogFrozen, Shards } from "../../../../engine/contract/log/shards.js";
import type { Log } from "../../../../engine/log/log.js";
import { continuedBy, freeze } from "../../../../engine/log/operator/entries.js";
import type { Served } from "../../../../engine/registry/registry.js";
import type { Gate } from "../../gate.js";
import { type Route, route } from "../../route/route.js";

/** How the log ended; null while it may grow. */
export const frozenEnd = ({ frozen, size }: Pick<Log, "frozen" | "size">) => frozen && { ...frozen, tree_size: size };

export const shardRoutes = ({ log, writer }: Pick<Served, "log" | "writer">, gate: Gate): Route[] => [
  route({
    method: "GET",
    path: "/api/v1/log/shards",
    summary: "From which log this one goes on, whether it has ended, and where it goes on",
    answer: Shards,
    limit: "general",
    handle: () => ({ predecessor: continuedBy(log.entryAt(0)), frozen: frozenEnd(log) }),
  }),
  route({
    method: "POST",
    path: "/api/v1/log/freeze",
    summary: "End the log for ever: its last entry says where it goes on; for the operator alone",
    proving: "operator",
    authorize: (asking) => gate.operatorOnly(asking),
    body: FreezeLog,
    answer: LogFrozen,
    refusals: [401, 403],
    limit: "general",
    async handle({ body: { reason, successor = null } }) {
      const { log_entry_id, leaf_index, entry_hash, sth } = await freeze(writer, { reason, successor });
      return { log_entry_id, leaf_index, entry_hash, sth };
    },
  }),
];

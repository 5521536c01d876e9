/**
 * Nodes that may have less of the log than others have shown: followers, and mirrors. A balancer sends the requests of one
 * client to all of them. So a node that is asked for more than it has waits for it, and then says that it is behind: a denial
 * would accuse the log. Only a node that certainly has everything denies.
 */
import type { Log } from "../../engine/log/log.js";
import type { RoleReader } from "../replication/role.js";
import { HttpError } from "./route/problems.js";
import type { Context, Route } from "./route/route.js";

/** How long a request waits for what this node does not have yet. */
const WAIT_MS = 1_000;
const LOOK_MS = 20;
const SIZE = /^\d{1,15}$/;
/** The first confirmation of the lead after a request may have been on its way before it. */
const CONFIRMATIONS = 2;

export class ReplicaLag {
  readonly #log: Pick<Log, "size">;
  readonly #role: Omit<RoleReader, "buffer"> | null;

  /** @param role of a node of a replicated log; null for a mirror, which never knows whether it has everything */
  constructor(log: Pick<Log, "size">, role: Omit<RoleReader, "buffer"> | null) {
    this.#log = log;
    this.#role = role;
  }

  /** `row`, as this node answers it. */
  before(row: Route): Route {
    return {
      ...row,
      handle: (context, refusal) => {
        const isThere = () => this.#has(row, context);
        if (isThere()) return row.handle(context, refusal);
        return this.#until(isThere).then(() => row.handle(context, refusal));
      },
    };
  }

  /** Whether this node has what the request names, and all that its client has seen. */
  #has({ reached }: Route, context: Context): boolean {
    const { seen } = context.request;
    return (!SIZE.test(seen) || Number(seen) <= this.#log.size) && (reached?.(context) ?? true);
  }

  /** @throws HttpError `behind` */
  #until(isThere: () => boolean): Promise<void> {
    const before = this.#role?.confirmations ?? 0;
    const deadline = performance.now() + WAIT_MS;
    return new Promise((resolve, reject) => {
      const look = () => {
        try {
          if (isThere() || this.#hasEverything(before)) resolve();
          else if (performance.now() < deadline) return void setTimeout(look, LOOK_MS);
          else reject(this.#behind());
        } catch (error) {
          reject(error);
        }
      };
      setTimeout(look, LOOK_MS);
    });
  }

  /** Whether this node still led after the request had come: then nobody has shown more than it has. */
  #hasEverything(before: number): boolean {
    const role = this.#role;
    if (!role?.leads) return false;
    return role.confirmations - before >= CONFIRMATIONS;
  }

  #behind(): HttpError {
    const { size } = this.#log;
    return new HttpError(
      "behind",
      `This node of the log has ${size} entries, and not yet what was asked for. Ask again, or ask another node.`,
      { "retry-after": "1", "cairnlog-size": `${size}` },
    );
  }
}

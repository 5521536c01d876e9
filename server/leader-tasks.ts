/**
 * What only one node of a log may do: deliver webhooks, ask calendars and witnesses, publish checkpoints at `/tlog/`. A
 * service that is alone does it all the time; one of several, while it leads. All of it runs in the writer's thread.
 */

import { closeAll, closeTogether } from "../engine/base/closing.js";
import type { CairnlogError } from "../engine/base/error.js";
import type { OperatorKey } from "../engine/crypto/signer/operator-key.js";
import type { Registry } from "../engine/registry/registry.js";
import { Anchoring } from "./anchoring/anchoring.js";
import type { Metrics } from "./http/observing/metrics.js";
import type { Logger } from "./process/logger.js";
import type { Settings } from "./settings/settings.js";
import { type OpenedTlog, openTlog } from "./tlog/tlog.js";
import { Deliverer } from "./webhooks/deliverer.js";
import { Sender } from "./webhooks/sender.js";

interface LeaderTasksParts {
  readonly settings: Settings;
  readonly registry: Registry;
  readonly operator: OperatorKey;
  readonly logName: string;
  readonly logger: Logger;
  /** Called when somebody shows that the log was set back to an old state. Must not throw. */
  readonly refuted: (error: CairnlogError) => void;
  /** Whether anybody else may do the same now. Asked before each delivery. */
  readonly isHeld?: () => boolean;
}

export class LeaderTasks {
  readonly #parts: LeaderTasksParts;
  readonly #sender: Sender;
  #deliverer: Deliverer;
  #anchoring: Anchoring;
  /** What earlier terms counted. */
  readonly #past = { delivered: 0, failed: 0, calendars: 0 };
  #tlog: OpenedTlog | null = null;

  constructor(parts: LeaderTasksParts) {
    this.#parts = parts;
    this.#sender = new Sender(parts.settings.webhookAllowPrivate);
    this.#deliverer = this.#newDeliverer();
    this.#anchoring = this.#newAnchoring();
  }

  /** The checkpoints at `/tlog/`, while it publishes them. */
  get tlog(): OpenedTlog | null {
    return this.#tlog;
  }

  /** Anchors, while it may; otherwise only says how far that is. */
  get anchoring(): Anchoring {
    return this.#anchoring;
  }

  /** Webhook deliveries since the start. */
  get delivered(): number {
    return this.#past.delivered + this.#deliverer.delivered;
  }

  get failed(): number {
    return this.#past.failed + this.#deliverer.failed;
  }

  /** Webhook deliveries that wait; none while another node makes them. */
  get waiting(): number {
    return this.#deliverer.waiting;
  }

  /** Subscriptions that are behind the log, and those whose endpoint is unhealthy. */
  get behind(): number {
    return this.#deliverer.behind;
  }

  /** Entries that were not matched with subscriptions yet. */
  get unread(): number {
    return this.#deliverer.unread;
  }

  get unhealthy(): number {
    return this.#deliverer.unhealthy;
  }

  /** Calendars that gave no usable answer, since the start. */
  get calendarFailures(): number {
    return this.#past.calendars + this.#anchoring.failures;
  }

  /**
   * Begins with all of it.
   * @param told the newest checkpoint that another node has told
   * @returns `tlog`
   * @throws CairnlogError as `openTlog` does
   */
  async begin(told: string | null = null): Promise<OpenedTlog> {
    const { registry, operator, logName, settings, logger, refuted } = this.#parts;
    const tlog = await openTlog({ log: registry.log, operator, logName, settings, logger, refuted, told });
    this.#tlog = tlog;
    this.#deliverer.start();
    this.#anchoring.start(settings.otsUpgradeIntervalSeconds);
    return tlog;
  }

  /** Ends all of it for good, and resolves when nothing is under way. Who waits for a calendar is told at once. */
  async close(): Promise<void> {
    const working = [() => this.#anchoring.stop(), () => this.#deliverer.stop(), () => this.#tlog?.stop()];
    await closeAll(
      () => closeTogether(...working),
      () => this.#sender.close(),
    );
  }

  /** Ends all of it, and resolves when nothing is under way. `begin` may be called again. */
  async end(): Promise<void> {
    await this.close();
    this.#tlog = null;
    this.#past.delivered += this.#deliverer.delivered;
    this.#past.failed += this.#deliverer.failed;
    this.#past.calendars += this.#anchoring.failures;
    this.#deliverer = this.#newDeliverer();
    this.#anchoring = this.#newAnchoring();
  }

  #newDeliverer(): Deliverer {
    const { registry, logger, isHeld } = this.#parts;
    const { send, places } = this.#sender;
    return new Deliverer({
      webhooks: registry.webhooks,
      places,
      // A delivery that is not made fails like any other, and is tried again, by whoever leads then.
      send: isHeld
        ? async (request, signal) =>
            isHeld() ? send(request, signal) : { isDelivered: false, reason: "another node may lead" }
        : send,
      logger,
    });
  }

  #newAnchoring(): Anchoring {
    const { registry, settings, logger } = this.#parts;
    return new Anchoring({ ...registry, calendars: settings.otsCalendars, logger });
  }
}

/**
 * Shows what of it is done, and how far it is.
 * @param publishes whether this service ever does
 * @param isCosigned whether witnesses cosign what it publishes
 */
export function watchLeaderTasks(
  metrics: Metrics,
  leaderTasks: LeaderTasks,
  { publishes, isCosigned }: { readonly publishes: boolean; readonly isCosigned: boolean },
): void {
  metrics.watchDeliveries(leaderTasks);
  metrics.watchAnchoring({
    status: () => leaderTasks.anchoring.status(),
    get failures() {
      return leaderTasks.calendarFailures;
    },
  });
  if (!publishes) return;
  metrics.watchCheckpoints({
    get size() {
      return leaderTasks.tlog?.size ?? 0;
    },
    get trouble() {
      return leaderTasks.tlog?.trouble ?? null;
    },
  });
  if (isCosigned) metrics.watchCosigning(() => leaderTasks.tlog?.cosigning?.() ?? null);
}

/**
 * The writer of a service's log, as a program gets it that runs the service. Whatever is on the log must be an event of the
 * service: otherwise each check of the log names the entry, and no backup can be restored.
 */
import { inputError } from "../base/error.js";
import { plainEvents, type Receipt, type Writer } from "../log/state/executor.js";
import type { EventInput } from "../log/state/projection.js";
import { eventMisfit } from "../verify/events/eventcheck.js";

/** Wraps the writer of a log. `append` throws `invalid-input` for an event that is not one of the service. */
export function serviceWriter(log: Writer): Writer {
  function append(event: EventInput): Promise<Receipt>;
  function append(events: readonly EventInput[]): Promise<readonly Receipt[]>;
  async function append(input: EventInput | readonly EventInput[]): Promise<Receipt | readonly Receipt[]> {
    const events = plainEvents(input);
    for (const event of events) {
      const misfit = eventMisfit({ ...event, chain_version: 2 });
      if (misfit !== undefined) throw inputError(`The log of a service takes the service's events alone. ${misfit}`);
    }
    return Array.isArray(input) ? log.append(events) : log.append(events[0]!);
  }
  return {
    append,
    execute: log.execute.bind(log),
    enqueue: log.enqueue.bind(log),
    signHead: log.signHead.bind(log),
    observeRows: log.observeRows.bind(log),
    get queued() {
      return log.queued;
    },
    get batches() {
      return log.batches;
    },
  };
}

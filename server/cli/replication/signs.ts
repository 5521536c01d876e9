/** Signs of life of the node that leads, as the journal shows them. What is in the journal outlives who wrote it. */
import { setTimeout as sleep } from "node:timers/promises";
import type { PostgresJournal } from "../../../engine/journal/postgres/journal.js";
import type { Lead } from "../../../engine/journal/postgres/statements.js";

const LOOK_MS = 100;

/**
 * Waits for a sign of life, or for somebody who takes the lead: both change `beat`.
 * @param before what was there
 * @returns what is there then; null if nothing has changed in so many milliseconds
 * @throws CairnlogError as `look` does
 */
export async function signOfLife(
  journal: Pick<PostgresJournal, "look">,
  before: Lead,
  milliseconds: number,
): Promise<Lead | null> {
  const until = performance.now() + milliseconds;
  do {
    await sleep(LOOK_MS);
    const lead = await journal.look();
    if (lead.beat !== before.beat) return lead;
  } while (performance.now() < until);
  return null;
}

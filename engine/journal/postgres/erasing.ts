/** How a payload is taken from its record. */
import { bodyWithout } from "../record.js";
import type { Sql, SqlRow } from "./connection.js";
import { replaceBody } from "./statements.js";

/**
 * The statement that takes a payload from its record.
 * @param row of `recordWith`
 * @param json the entry as it is served
 * @returns null if it is not there
 * @throws CairnlogError as `bodyWithout` does
 */
export function erasing({ sequence, body }: SqlRow, leafIndex: number, json: Buffer): Sql | null {
  const without = bodyWithout(body as Buffer, new Map([[leafIndex, json]]));
  return without && replaceBody(Number(sequence), without, body as Buffer);
}

/** Ends a log, for the operator. */
import { inputError } from "../../base/error.js";
import { parseVkey } from "../../verify/note/key.js";
import type { Receipt, Writer } from "../state/executor.js";
import { type Ending, endLog } from "./frozen.js";

/**
 * Ends a log. Resolves when that is on disk; whatever comes in behind it is refused.
 * @throws CairnlogError `invalid-input`, `invalid-key` for a successor that no client could follow; `frozen` if the log
 *   has ended; and as `Log.execute` does
 */
export async function freeze(writer: Pick<Writer, "execute">, { reason, successor }: Ending): Promise<Receipt> {
  if (successor) {
    if (!isAddress(successor.url))
      throw inputError(
        "The address of the successor must be an http(s) URL without query, fragment and closing slash.",
        {
          details: [{ path: "/successor/url", message: "It must be an http(s) URL, without a slash at its end." }],
        },
      );
    parseVkey(successor.vkey);
  }
  const { receipts } = await writer.execute(endLog, { reason, successor });
  return receipts[0]!;
}

/** Whether a client can put `/api/v1/…` behind it. */
function isAddress(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url?.protocol !== "https:" && url?.protocol !== "http:") return false;
  return url.username + url.password + url.search + url.hash === "" && url.href.replace(/\/$/, "") === text;
}

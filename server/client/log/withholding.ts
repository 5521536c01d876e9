/** Payloads that the operator withholds. */
import * as wire from "../../../engine/contract/log/withholding.js";
import { isWithheld } from "../../../engine/verify/events/withheld.js";
import type { PayloadWithheld, WithholdPayload } from "../base/types.js";
import { Area } from "./area.js";
import { CHOSEN } from "./expected.js";

export class WithholdingClient extends Area {
  /**
   * Withholds the payload of an entry from everybody, or the name of the key in it. Needs the operator's session.
   * @returns the receipt of the entry that says so
   * @throws ClientError `already-exists` if it is withheld; `invalid-input` for an entry that cannot be; `log-misbehaved`, also
   *   if the payload is still shown afterwards
   */
  async withhold(entryId: number, { reason, basis = null, member }: WithholdPayload): Promise<PayloadWithheld> {
    const floor = await this.watch.sizeBefore();
    const receipt = await this.auth.withSession((headers) =>
      this.http.post(wire.PayloadWithheld, `/log/${entryId}/withhold`, { reason, basis, member }, headers),
    );
    const { log_entry_id, leaf_index } = receipt;
    const withheld = await this.watch.owed(this.watch.entry(entryId), {});
    const { entry_hash } = withheld;
    const proven = await this.watch.recorded(log_entry_id, leaf_index, floor, {
      event_type: "payload_withheld",
      payload: { entry_id: entryId, entry_hash, payload_hash: CHOSEN, reason, basis, ...(member && { member }) },
    });
    const { sth } = await this.watch.agreed(receipt, { entry_hash: proven.entry.entry_hash }, proven);
    await this.watch.accept(sth, leaf_index + 1);
    if (isWithheld(withheld) && withheld.withheld_by === log_entry_id) return receipt;
    throw await this.watch.misbehaved(`The payload of entry ${entryId} is shown though it is withheld.`, {
      entry: withheld,
    });
  }
}

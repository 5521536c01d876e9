/** Second stage: a formed batch in, the signature of each of its heads out. */
import type { ServerKey } from "../../../crypto/keys/spki.js";
import { CairnlogError } from "../../../error.js";
import { treeHeadText } from "../../../verify/tree/treehead.js";
import { formatTimestamp } from "../../clock.js";
import { type Signer, signatures } from "../signer.js";
import { rootHex } from "./answers.js";
import type { FormedBatch } from "./batch.js";

export class Signing {
  readonly #signer: Signer;
  readonly #operatorKey: ServerKey;

  /** @param operatorKey the signer's public key */
  constructor(signer: Signer, operatorKey: ServerKey) {
    this.#signer = signer;
    this.#operatorKey = operatorKey;
  }

  /** @throws CairnlogError `signer-unavailable` */
  async sign({ entries, roots, headTimestamp, firstIndex }: FormedBatch): Promise<readonly Uint8Array[]> {
    if (!entries.length) return [];
    const timestamp = formatTimestamp(headTimestamp);
    const messages = entries.map((_, i) =>
      Buffer.from(treeHeadText(rootHex(roots, i), firstIndex + i + 1, timestamp), "latin1"),
    );
    try {
      return await signatures(this.#signer, this.#operatorKey, messages);
    } catch (cause) {
      throw new CairnlogError("signer-unavailable", "The operator key cannot sign, so nothing was appended.", {
        cause,
      });
    }
  }
}

/** Second stage: a formed batch in, its signed heads out. */

import { CairnlogError } from "../../base/error.js";
import type { ServerKey } from "../../crypto/keys/spki.js";
import { HASH } from "../../store/schema/schema.js";
import { treeHeadText } from "../../verify/tree/treehead.js";
import { formatTimestamp } from "../state/clock.js";
import { type Signer, signatures } from "../state/signer.js";
import type { FormedBatch, SignedHeads } from "./batch.js";

export class Signing {
  readonly #signer: Signer;
  readonly #operatorKey: ServerKey;

  /** @param operatorKey the signer's public key */
  constructor(signer: Signer, operatorKey: ServerKey) {
    this.#signer = signer;
    this.#operatorKey = operatorKey;
  }

  /** @returns the heads; none for a batch without entries. @throws CairnlogError `signer-unavailable` */
  async sign({ events, roots, headTimestamp, firstIndex }: FormedBatch): Promise<SignedHeads> {
    const timestamp = formatTimestamp(headTimestamp);
    const rootTexts: string[] = [];
    if (!events.length) return { timestamp, roots: rootTexts, signatures: NO_SIGNATURES };
    const rootBytes = Buffer.from(roots.buffer, roots.byteOffset, roots.length);
    const texts: string[] = [];
    for (let i = 0; i < events.length; i++) {
      const root = rootBytes.toString("hex", HASH * i, HASH * (i + 1));
      rootTexts.push(root);
      texts.push(treeHeadText(root, firstIndex + i + 1, timestamp));
    }
    try {
      const signed = await signatures(this.#signer, this.#operatorKey, encoded(texts));
      return { timestamp, roots: rootTexts, signatures: signed };
    } catch (cause) {
      throw new CairnlogError("signer-unavailable", "The operator key cannot sign, so nothing was appended.", {
        cause,
      });
    }
  }
}

const NO_SIGNATURES = Buffer.alloc(0);

/** The bytes of ASCII texts, in one piece of memory. */
function encoded(texts: readonly string[]): Uint8Array[] {
  const joined = texts.join("");
  const bytes = Buffer.allocUnsafeSlow(joined.length);
  bytes.write(joined, "latin1");
  let end = 0;
  return texts.map(({ length }) => {
    end += length;
    return new Uint8Array(bytes.buffer, end - length, length);
  });
}

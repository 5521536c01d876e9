/** Public keys that a command line names as files. */
import { CairnlogError } from "../../../engine/base/error.js";
import { type PublicKey, parsePublicKey } from "../../../engine/verify/index.js";
import { readText } from "./files.js";

/**
 * The public key in a PEM file.
 * @throws CairnlogError `private-key`, `invalid-key`, with the name of the file; the file system's error
 */
export function readPublicKey(file: string): PublicKey {
  try {
    return parsePublicKey(readText(file));
  } catch (cause) {
    if (!(cause instanceof CairnlogError)) throw cause;
    const name = file === "-" ? "Standard input" : file;
    const sentence =
      cause.code === "private-key"
        ? `${name} holds a private key; the public key is needed here (\`openssl pkey -pubout\` makes it). Nothing was sent.`
        : `${name} holds no public key: ${cause.message}`;
    throw new CairnlogError(cause.code, sentence, { cause });
  }
}

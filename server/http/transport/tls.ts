/** The certificate and key of the service, checked before the library is given their names: it says nothing of why. */
import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { CairnlogError } from "../../../engine/base/error.js";

/** Paths of PEM files. */
export interface TlsFiles {
  /** The service's certificate first, those that lead to its root after it. */
  readonly certificate: string;
  readonly key: string;
}

/**
 * Checks that both files can be used together.
 * @returns when the certificate expires, in milliseconds
 * @throws CairnlogError `precondition-failed` when one of the files is missing, is not what it should be, or they do not
 *   belong together
 */
export function checkTls({ certificate, key }: TlsFiles): number {
  const refused = (what: string, cause?: unknown) => new CairnlogError("precondition-failed", what, { cause });
  const read = (name: string, path: string): string => {
    try {
      return readFileSync(path, "utf8");
    } catch (cause) {
      throw refused(`${name} ${path} cannot be read.`, cause);
    }
  };
  const chain = read("SERVICE_TLS_CERT", certificate);
  const pem = read("SERVICE_TLS_KEY", key);
  let leaf: X509Certificate;
  try {
    createSecureContext({ cert: chain });
    leaf = new X509Certificate(chain);
  } catch (cause) {
    throw refused(`SERVICE_TLS_CERT ${certificate} is not a certificate in PEM.`, cause);
  }
  try {
    createSecureContext({ key: pem });
  } catch (cause) {
    throw refused(`SERVICE_TLS_KEY ${key} is not a private key in PEM without a passphrase.`, cause);
  }
  try {
    createSecureContext({ cert: chain, key: pem });
  } catch (cause) {
    throw refused(`SERVICE_TLS_KEY ${key} is not the key of the certificate ${certificate}.`, cause);
  }
  return Date.parse(leaf.validTo);
}

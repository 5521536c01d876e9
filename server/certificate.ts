/** The certificate of a service: whether its files can be used, and until when. */

import { checkTls, type TlsFiles } from "./http/transport/tls.js";
import type { Logger } from "./process/logger.js";
import type { Settings } from "./settings/settings.js";

class Certificate {
  readonly files: TlsFiles;
  readonly #logger: Pick<Logger, "info" | "warn">;
  #expires = 0;

  /** @throws CairnlogError `precondition-failed` when the files cannot be used */
  constructor(files: TlsFiles, logger: Pick<Logger, "info" | "warn">) {
    this.files = files;
    this.#logger = logger;
    this.check();
  }

  /** When the certificate that was read last expires, in milliseconds. */
  get expires(): number {
    return this.#expires;
  }

  /** Reads the files again, and logs until when they serve. @throws CairnlogError as the constructor does */
  check(): void {
    const { certificate } = this.files;
    this.#expires = checkTls(this.files);
    const expires = new Date(this.#expires).toISOString();
    if (this.#expires <= Date.now()) this.#logger.warn({ certificate, expires }, "the TLS certificate has expired");
    else this.#logger.info({ certificate, expires }, "TLS");
  }
}

/** The certificate of `settings`; null without TLS. @throws CairnlogError as `Certificate` does */
export function openCertificate(settings: Settings, logger: Logger): Certificate | null {
  const { tlsCertificate: certificate, tlsKey: key } = settings;
  return certificate === null || key === null ? null : new Certificate({ certificate, key }, logger);
}

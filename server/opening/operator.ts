/** The operator key of a service: a file, or a signer behind a socket. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { CairnlogError } from "../../engine/base/error.js";
import { privateKey } from "../../engine/crypto/keys/signatures.js";
import { importPublicKey } from "../../engine/crypto/keys/spki.js";
import type { Pool } from "../../engine/crypto/pool/pool.js";
import { type OperatorKey, openOperatorKey } from "../../engine/crypto/signer/operator-key.js";
import { type SocketSigner, signerAt } from "../../engine/crypto/signer/socket-signer.js";
import { isReadableByOthers } from "../process/machine.js";
import { operatorKeyPath, operatorPublicKeyPath, type Settings } from "../settings/settings.js";

/** Milliseconds for which a start waits for the signer, which may be starting, too; and from one try to the next. */
const PATIENCE_MS = 30_000;
const TRY_AGAIN_MS = 250;

/** What the operator of a service should know. */
export interface OperatorNotes {
  warn(details: object, sentence: string): void;
}

/** An operator key that signs here. */
export interface OpenedOperator {
  readonly operator: OperatorKey;
  /** Present when the key is behind a socket; whoever opened it closes it. */
  readonly signer: SocketSigner | null;
}

/**
 * Opens the operator key that the settings name. A key file that does not exist is made; a signer that does not answer
 * yet is waited for.
 * @throws CairnlogError as `openOperatorKey` and `signerAt` do; `wrong-operator` if there is a log but not the key's file: a
 *   new key could not continue it
 */
export async function openOperator(settings: Settings, notes: OperatorNotes, pool?: Pool): Promise<OpenedOperator> {
  if (settings.signer === null) {
    const file = operatorKeyPath(settings);
    if (!existsSync(file)) refuseNewKey(settings, file);
    const operator = openOperatorKey(file, pool);
    if (isReadableByOthers(file))
      notes.warn({ file }, "the operator key can be read by others than its owner: set the file's mode to 0600");
    return { operator, signer: null };
  }
  const signer = await patientlyAt(settings.signer, settings.signerTimeoutSeconds * 1000, notes, pool);
  const file = operatorKeyPath(settings);
  if (existsSync(file))
    notes.warn(
      { file },
      "the signer holds the operator key, but there is also a key file: move it out of this machine",
    );
  return { operator: signer, signer };
}

/**
 * Checks that the service has its key, or may make one.
 * @throws CairnlogError `wrong-operator` if there is a log and not its key; as `privateKey` does
 */
export function checkOperatorKey(settings: Settings): void {
  if (settings.signer !== null) return;
  const file = operatorKeyPath(settings);
  if (existsSync(file)) privateKey(readFileSync(file, "utf8"));
  else refuseNewKey(settings, file);
}

/** @throws CairnlogError `wrong-operator` if the data directory holds a log */
function refuseNewKey({ dataDir }: Settings, file: string): void {
  if (!existsSync(join(dataDir, "log", "data.mdb"))) return;
  const known = operatorPublicKeyPath(dataDir);
  const fingerprint = existsSync(known) ? importPublicKey(readFileSync(known, "utf8")).fingerprint : null;
  throw new CairnlogError(
    "wrong-operator",
    `There is a log in ${dataDir}, but not its operator key${fingerprint ? ` ${fingerprint}` : ""}: ${file} does not exist. Put the private key there, or name its file in SERVICE_OPERATOR_KEY. To serve the log without the key, and without appends: --read-only.`,
  );
}

/** @throws CairnlogError as `signerAt` does, `signer-unavailable` only after some time */
async function patientlyAt(
  address: string,
  deadlineMs: number,
  notes: OperatorNotes,
  pool: Pool | undefined,
): Promise<SocketSigner> {
  const until = performance.now() + PATIENCE_MS;
  for (let said = ""; ; ) {
    try {
      return await signerAt(address, { deadlineMs, ...(pool && { pool }) });
    } catch (error) {
      const isWorthWaiting = error instanceof CairnlogError && error.code === "signer-unavailable";
      if (!isWorthWaiting || performance.now() >= until) throw error;
      const { message } = error;
      if (message !== said) notes.warn({ signer: address, seconds: PATIENCE_MS / 1000 }, `waiting for it: ${message}`);
      said = message;
      await new Promise((resolve) => setTimeout(resolve, TRY_AGAIN_MS));
    }
  }
}

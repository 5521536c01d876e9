/** A service whose checkpoints witnesses cosign. They must know its key before it has started. */
import { generateKeyPairSync } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { startTestService, type TestService, temporaryFolder } from "../server/harness.js";
import { type NoteSigner, newNoteSigner } from "../verify/note/notes.js";

export const ORIGIN = "log.example/tlog";

/** A data directory with a key for its checkpoints. */
export function newCosignedDirectory(): { readonly dataDir: string; readonly signer: NoteSigner } {
  const dataDir = temporaryFolder();
  const pair = generateKeyPairSync("ed25519");
  const pem = pair.privateKey.export({ type: "pkcs8", format: "pem" });
  writeFileSync(join(dataDir, "tlog.pem"), pem, { mode: 0o600 });
  return { dataDir, signer: newNoteSigner(ORIGIN, 1, pair) };
}

/** Starts a service that asks the witnesses of a policy. */
export function startCosigned(dataDir: string, policy: string): Promise<TestService> {
  const file = join(temporaryFolder(), "witnesses.policy");
  writeFileSync(file, policy);
  return startTestService({
    SERVICE_DATA_DIR: dataDir,
    SERVICE_TLOG_ORIGIN: ORIGIN,
    SERVICE_CHECKPOINT_INTERVAL_S: "1",
    SERVICE_WITNESSES: file,
  });
}

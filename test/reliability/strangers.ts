/** A log at which strangers have registered what they may, for harnesses that run beside that. */
import { readSettings, startServer } from "#cairnlog/server/index.js";
import { registerStrangers } from "../../bench/strangers/rows.js";

/** Makes or continues the log at `dataDir`. @param receivers URLs that webhooks are delivered to */
export async function letStrangersRegister(dataDir: string, receivers: readonly string[]): Promise<void> {
  const environment = { SERVICE_DATA_DIR: dataDir, PORT: "0", LOG_LEVEL: "error", SERVICE_WEBHOOK_ALLOW_PRIVATE: "on" };
  const server = await startServer(readSettings(environment));
  await registerStrangers(server.registry, receivers);
  await server.close();
}

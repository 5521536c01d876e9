/**
 * Attestations beside what strangers have registered: an empty log, and one with 5,000 subscriptions whose receivers
 * fail, hang, are slow or work, 1,000 policies, 1,000 trust configurations, and keys with 50 endorsements each. Both get
 * the same requests, in turns.
 */
import { statSync } from "node:fs";
import { join } from "node:path";
import { readSettings, startServer } from "cairnlog/server";
import { type Cost, column, compareCosts, matchAnswers } from "../front/attestations.js";
import { CHECKOUT, type Service, startService } from "../front/service.js";
import { openStage, printRows, type Row, type Stage } from "../front/stage.js";
import { ratios } from "../stats.js";
import type { Suite } from "../suite.js";
import { openReceivers } from "./receivers.js";
import { registerStrangers } from "./rows.js";

const ROUNDS = 7;
const ENVIRONMENT = { SERVICE_WEBHOOK_ALLOW_PRIVATE: "on" };

const bytesOf = (dataDir: string): number => statSync(join(dataDir, "log", "data.mdb")).size;

async function measure(stage: Stage, empty: Service, crowded: Service): Promise<Row[]> {
  await matchAnswers(stage, empty);
  const costs = await compareCosts(stage, { empty, crowded });
  const compared = (name: keyof Cost) => ratios(column(costs.crowded, name), column(costs.empty, name));
  return [
    { figure: "attestations a second, beside strangers / alone", rounds: compared("perSecond"), digits: 2 },
    { figure: "CPU of an attestation, the same", rounds: compared("all"), digits: 2 },
    { figure: "CPU of the writer's thread, the same", rounds: compared("main"), digits: 2 },
    { figure: "attestations a second, alone", rounds: column(costs.empty, "perSecond"), digits: 0 },
  ];
}

export const suite: Suite = {
  summary: "attestations beside 5,000 subscriptions and other rows of strangers, and beside none",
  async run({ rounds = ROUNDS }) {
    const stage = await openStage(rounds);
    const receivers = await openReceivers();
    const [emptyDir, crowdedDir] = [join(stage.folder, "empty"), join(stage.folder, "crowded")];
    const services: Service[] = [];
    try {
      const server = await startServer(
        readSettings({ ...ENVIRONMENT, SERVICE_DATA_DIR: crowdedDir, PORT: "0", LOG_LEVEL: "error" }),
      );
      await registerStrangers(server.registry, receivers.urls);
      await server.close();
      const before = bytesOf(crowdedDir);
      for (const dataDir of [emptyDir, crowdedDir])
        services.push(await startService({ checkout: CHECKOUT, dataDir, environment: ENVIRONMENT }));
      const rows = await measure(stage, services[0]!, services[1]!);
      const grown = { alone: bytesOf(emptyDir), beside: bytesOf(crowdedDir) - before };
      rows.push({
        figure: "growth of the log's file, beside / alone",
        rounds: [grown.beside / grown.alone],
        digits: 2,
      });
      printRows(rows);
      return { rows, grown };
    } finally {
      for (const service of services) await service.close();
      await receivers.close();
      await stage.close();
    }
  },
};

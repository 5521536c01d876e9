/**
 * A service that reaches real limits of the system: a file may not grow, or no descriptor may be opened. Nothing is
 * injected, so this tests the behaviour of LMDB, Node and the HTTP library.
 */
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { mainOf } from "../reliability/planted.js";
import { Random } from "../reliability/random.js";
import { newSigner, submission } from "../server/signers.js";
import { type RunningService, scratchFolder, startService } from "../service.js";
import { Memory } from "./checks.js";
import { type Answer, Connection } from "./connection.js";
import { Ledger } from "./ledger.js";

export interface LimitCase {
  readonly name: string;
  /** Sentences, one for each problem. */
  run(dist: string): Promise<readonly string[]>;
}

const underLimit = (limit: string) => ["bash", "-c", `ulimit ${limit}; exec "$@"`, "bash"];

async function withService(
  dist: string,
  limit: string,
  scenario: (service: RunningService, ledger: Ledger, problems: string[]) => Promise<void>,
): Promise<readonly string[]> {
  const folder = scratchFolder();
  const ledger = new Ledger();
  const problems: string[] = [];
  const options = { main: mainOf(dist), wrapper: underLimit(limit) };
  // The service logs expected errors in this test. Each front end needs files of its own, and the limits are for one.
  const environment = { LOG_LEVEL: "silent", SERVICE_FRONT_ENDS: "1" };
  const service = await startService(folder.path, environment, options);
  try {
    await scenario(service, ledger, problems);
    const exitCode = await service.stop();
    if (exitCode !== 0) problems.push(`the service stopped with exit code ${exitCode}`);
    problems.push(...(await new Memory().checkDisk(folder.path, ledger, new Random(1), true)));
    const free = await startService(folder.path, {}, { main: mainOf(dist) });
    await attest(new Connection(free.url, ledger), ledger);
    await free.stop();
    problems.push(...(await new Memory().checkDisk(folder.path, ledger, new Random(1), true)));
  } catch (error) {
    problems.push((error as Error).stack ?? String(error));
  } finally {
    service.process.kill("SIGKILL");
    folder.remove();
  }
  return problems;
}

async function attest(service: Connection, ledger: Ledger): Promise<void> {
  const body = submission(newSigner());
  const receipt = await service.send("/attestations", body);
  ledger.add(receipt, { document_hash: body.manifest.document.content_hash });
}

export const LIMIT_CASES: readonly LimitCase[] = [
  {
    name: "the disk takes no more",
    run: (dist) =>
      // In blocks of 1 KiB; an empty log has some 200 of them.
      withService(dist, "-f 1500", async ({ url }, ledger, problems) => {
        const service = new Connection(url, ledger);
        let refused: Answer = null;
        for (let n = 0; n < 200 && !refused; n++)
          await Promise.all(
            Array.from({ length: 20 }, () =>
              attest(service, ledger).catch((error: Error) => {
                if (!error.message.includes("answered 503")) throw error;
                refused = error.message;
              }),
            ),
          );
        if (!refused?.includes("storage-full")) problems.push(`what a full disk is answered with: ${refused}`);
        const report = await service.send("/log/verify", {});
        if (!report.valid) problems.push("the log on the full disk does not verify");
        if (!ledger.entries.length) problems.push("nothing was acknowledged before the disk was full");
        const [first] = ledger.entries;
        await service.send(`/log/${first!.log_entry_id}`, null, { method: "GET" });
      }),
  },
  {
    name: "no descriptor is left",
    run: (dist) =>
      withService(dist, "-n 388", async ({ url }, ledger, problems) => {
        const service = new Connection(url, ledger);
        await attest(service, ledger);
        const { hostname: host, port } = new URL(url);
        const sockets: Socket[] = Array.from({ length: 300 }, () => connect(Number(port), host).on("error", () => {}));
        await sleep(500);
        for (const socket of sockets) socket.destroy();
        for (let n = 0; n < 20; n++) await attest(service, ledger);
        const report = await service.send("/log/verify", {});
        if (!report.valid) problems.push("the log does not verify afterwards");
      }),
  },
];

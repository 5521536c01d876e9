/** A signed statement that contradicts what is mirrored is an alarm, though the log answers nothing that is asked after it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { checkpointText, noteKeyId, parsePublicKey, signedNote, type TreeHead } from "#cairnlog/engine/verify/index.js";
import { Misbehaviour, type Misconduct, type MonitorEvidence } from "#cairnlog/server/monitor/alarm.js";
import { anyEvent } from "../anyevent.js";
import { startTestService, temporaryFolder } from "../server/harness.js";
import { otherHash } from "./liar.js";
import { hastyFetch, newMonitor } from "./monitors.js";

const SIZE = 3;

/**
 * A log whose third entry froze it, to everybody but this service: no hash covers the type of an entry. `sign` makes what its
 * operator can sign: a head, or a checkpoint at a path.
 */
async function ended() {
  const dataDir = temporaryFolder();
  const service = await startTestService({ SERVICE_DATA_DIR: dataDir, SERVICE_CHECKPOINT_INTERVAL_S: "1" });
  const payload = { event_type: "log_frozen", reason: "The year is over.", successor: null };
  await service.server.registry.log.append([anyEvent(), anyEvent(), { event_type: "log_frozem", payload }]);
  await service.checkpointed(SIZE);
  const operator = operatorKey(readFileSync(join(dataDir, "operator.pem"), "utf8"));
  const sign = async (text: string) => (await operator.sign([Buffer.from(text)]))[0]!;
  const statement = async (path: string, size: number): Promise<string> => {
    const root = otherHash((await service.get(`/log/sth/${Math.min(size, SIZE)}`)).body.root_hash);
    if (path === "/api/v1/log/sth") {
      const head: TreeHead = (await service.get("/log/sth")).body;
      const signature = await sign(`${root}:${size}:${head.timestamp}`);
      const signed = {
        ...head,
        root_hash: root,
        tree_size: size,
        signature: Buffer.from(signature).toString("base64"),
      };
      return JSON.stringify(signed);
    }
    const origin = (await service.send("GET", path)).text.split("\n")[0]!;
    const text = checkpointText({ origin, treeSize: size, rootHash: root });
    return signedNote(text, origin, noteKeyId(origin, parsePublicKey(operator.public.pem)), await sign(text));
  };
  return { service, statement };
}

/** In the order in which a round asks for them. */
const STATEMENTS = ["/api/v1/log/checkpoint", "/tlog/checkpoint", "/api/v1/log/sth"] as const;
const KINDS: readonly (readonly [number, Misconduct])[] = [
  [SIZE - 1, "fork"],
  [SIZE, "fork"],
  [SIZE + 1, "after-freeze"],
];

test("whichever of them it is, and with whatever the log refuses the rest", async () => {
  const { service, statement } = await ended();
  let lie = { path: "", text: "", status: 0 };
  let hasLied = false;
  const fetcher = hastyFetch();
  const open = (folder?: ReturnType<typeof newMonitor>["folder"]) =>
    newMonitor(service.url, {
      ...(folder && { folder }),
      fetch: async (input, init) => {
        if (hasLied) return new Response("<Error/>", { status: lie.status });
        hasLied = String(input) === service.url + lie.path;
        if (hasLied) return new Response(lie.text);
        const answer = await fetcher(input, init);
        return new Response((await answer.text()).replaceAll("log_frozem", "log_frozen"), { status: answer.status });
      },
    });
  const before = open();
  await before.monitor.round();
  expect(before.monitor.isFrozen).toBe(true);
  await before.monitor.close();
  const { monitor } = open(before.folder);
  const found: unknown[] = [];
  const cases = STATEMENTS.flatMap((path) =>
    KINDS.flatMap(([size, kind]) => [404, 500, 503].map((status) => ({ path, size, kind, status }))),
  );
  for (const each of cases) {
    const { path, size, status } = each;
    lie = { path, text: await statement(path, size), status };
    hasLied = false;
    const error = await monitor.round().catch((reason: unknown) => reason);
    found.push({ ...each, kind: error instanceof Misbehaviour ? error.kind : `${error}` });
    if (!(error instanceof Misbehaviour)) continue;
    const { checkpoint, shown } = error.evidence as MonitorEvidence;
    if (path === "/api/v1/log/sth") expect(shown).toEqual(JSON.parse(lie.text));
    else expect(checkpoint).toBe(lie.text);
  }
  expect(found).toEqual(cases);
  expect(monitor.size).toBe(SIZE);
  await monitor.close();
});

/** The name of a log in its checkpoints: taken when it is created, and kept for good. */
import { expect, test } from "vitest";
import { anyEvent } from "../../anyevent.js";
import { cairnlog } from "../../cli/harness.js";
import { NO_FRONT_ENDS, startTestService, temporaryFolder } from "../harness.js";

/**
 * The first line of the checkpoint, the origin of `/tlog/`, and the one that the command says, of a service
 * that then ends. Its front end, which hands on what the writer says, is looked at with the first.
 */
async function namesOf(dataDir: string, settings: Record<string, string> = {}, frontEnds: object = NO_FRONT_ENDS) {
  const service = await startTestService({ SERVICE_DATA_DIR: dataDir, ...frontEnds, ...settings });
  if (!service.server.registry.log.size) await service.server.registry.log.append(anyEvent());
  const [name] = (await service.get("/log/checkpoint")).text.split("\n");
  const vkey = (await (await fetch(`${service.url}/tlog/vkey`)).text()).trim();
  await service.close();
  const said = await cairnlog(["operator", "vkey"], { SERVICE_DATA_DIR: dataDir, ...settings });
  expect(said.stdout.trim()).toBe(vkey);
  return [name, vkey.split("+")[0]];
}
const URL_SET = { SERVICE_PUBLIC_URL: "https://log.example,https://other.example" };
const NAMES = ["log.example", "log.example/tlog"];

test("a log that is created under a public address has the name of its host, whatever the address is later", async () => {
  const dataDir = temporaryFolder();
  expect(await namesOf(dataDir, URL_SET, {})).toEqual(NAMES);
  expect(await namesOf(dataDir)).toEqual(NAMES);
  expect(await namesOf(dataDir, { SERVICE_PUBLIC_URL: "https://new.example:8443" })).toEqual(NAMES);
  const chosen = { SERVICE_LOG_NAME: "a.example", SERVICE_TLOG_ORIGIN: "b.example" };
  expect(await namesOf(dataDir, chosen)).toEqual(["a.example", "b.example"]);
  const backup = `${temporaryFolder()}/backup`;
  const restored = `${temporaryFolder()}/restored`;
  expect(await cairnlog(["backup", "--data", dataDir, "--to", backup])).toMatchObject({ code: 0 });
  const key = { SERVICE_OPERATOR_KEY: `${dataDir}/operator.pem` };
  expect(await cairnlog(["restore", backup, "--to", restored, "--may-fork"])).toMatchObject({ code: 0 });
  expect(await namesOf(restored, { ...key, SERVICE_PUBLIC_URL: "https://new.example" })).toEqual(NAMES);
});

test("a log that was created without one keeps its name", async () => {
  const dataDir = temporaryFolder();
  const names = await namesOf(dataDir);
  expect(names[0]).toMatch(/^cairnlog\/[0-9a-f]{16}$/);
  expect(await namesOf(dataDir, URL_SET)).toEqual(names);
});

test("the origin of /tlog/ is never the log's name", async () => {
  const clash = { ...URL_SET, SERVICE_TLOG_ORIGIN: "log.example" };
  expect((await namesOf(temporaryFolder(), clash))[0]).toMatch(/^cairnlog\//);
  const dataDir = temporaryFolder();
  await namesOf(dataDir, URL_SET);
  const refused = await startTestService({ SERVICE_DATA_DIR: dataDir, ...clash }).catch((error: unknown) => error);
  expect(refused).toMatchObject({ code: "invalid-input", message: expect.stringContaining("must differ") });
});

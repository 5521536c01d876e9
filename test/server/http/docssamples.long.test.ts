/** The requests that the page at /docs shows, run by a shell as they stand there, against a service. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { beforeAll, expect, test } from "vitest";
import { anyEvent } from "../../anyevent.js";
import { operationsOf } from "../../contract/tour.js";
import { startTestService, type TestService, temporaryFolder } from "../harness.js";

/** Requests that are refused, since they name challenges, offers and requests of the service that the examples are from. */
const OF_ANOTHER_SERVICE = {
  get_log_attestation_requests_request_id: 404,
  post_auth_login: 404,
  post_auth_password: 404,
  post_credentials_enroll: 404,
  post_endorsements_accept: 404,
  post_endorsements_offer: 404,
  post_endorsements_revocation_alert: 404,
  post_endorsements_revoke_acceptance: 404,
  post_endorsements_withdraw: 404,
  post_inbox_id_read: 404,
  post_keys_revoke: 404,
  post_keys_succeed: 404,
  post_log_attestation_requests_request_id_respond: 404,
  post_users_recover: 401,
} as const;

const REFUSED = {
  ...OF_ANOTHER_SERVICE,
  // This log is on one machine.
  get_follower: 503,
  // The reader's key is not in hardware, and the claim in this log is older than keyed commitments.
  post_claims: 403,
  post_claims_entry_id_reveal: 409,
  // For the operator alone.
  post_log_anchor: 403,
  post_log_sth_sign: 403,
  post_log_freeze: 403,
  post_log_entry_id_withhold: 403,
};

let service: TestService;
let text: string;
beforeAll(async () => {
  service = await startTestService({ SERVICE_CHECKPOINT_INTERVAL_S: "1" });
  // As many as fill a tile.
  await service.server.registry.log.append(Array.from({ length: 300 }, (_, n) => anyEvent({ n })));
  ({ text } = await service.send("GET", "/docs"));
});

const plain = (markup: string) => markup.replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)));

/** The commands under a summary, each with the name of the operation that it belongs to. */
const commands = (summary: string): [string, string][] =>
  text.split('<p class="name"><a id="').flatMap((part) => {
    const [, command] =
      new RegExp(`<summary>${summary}</summary><pre tabindex="0"><code>([^]*?)</code>`).exec(part) ?? [];
    return command === undefined ? [] : [[part.split('"')[0]!, plain(command)]];
  });

test("every operation has a request that its service understands; those that need nothing else are granted", async () => {
  // The nodes above a tile are there with the checkpoint that covers them.
  const covered = async () => Number((await (await fetch(`${service.url}/tlog/checkpoint`)).text()).split("\n")[1]);
  await expect.poll(covered).toBeGreaterThanOrEqual(300);
  const operations = operationsOf(await service.openApi());
  const samples = commands("curl");
  expect(samples.map(([id]) => id).sort()).toEqual(operations.map(({ id }) => id).sort());
  const [[, signIn]] = commands("A key and a session") as [[string, string]];
  const quiet = `curl() { command curl -sS -o answer.txt -w '%{http_code}\\n' "$@" 2>> warnings.txt; }`;
  const script = [signIn, 'test -n "$TOKEN"', quiet, ...samples.map(([, command]) => command)].join("\n");
  const { stdout, stderr } = await promisify(execFile)("bash", ["-euo", "pipefail", "-c", script], {
    cwd: temporaryFolder(),
    env: { ...process.env, SERVER: service.url },
  });
  expect(stderr.replace(/^[.+*\n-]+$/gm, "")).toBe("");
  const statuses = stdout.trim().split("\n").map(Number);
  const seen = Object.fromEntries(samples.map(([id], i) => [id, statuses[i]]));
  for (const { id, definition } of operations)
    expect(definition.responses, `${id}: ${seen[id]}`).toHaveProperty(`${seen[id]}`);
  const refused = Object.fromEntries(Object.entries(seen).filter(([, status]) => status! >= 300));
  expect(refused).toEqual(REFUSED);
});

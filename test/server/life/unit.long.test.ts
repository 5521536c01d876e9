/**
 * The service as the systemd unit of docs/deploy confines it: the kernel refuses the same system calls, in the same way, by a
 * program that is written from the unit's own lines. It works where systemd lists its groups of calls (systemd-analyze).
 */
import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { readSettings, startServer } from "#cairnlog/server/index.js";
import { scratchFolder, startService } from "../../service.js";
import { startReceiver } from "../../webhooks/receiver.js";
import { attest } from "../attesting.js";
import { testEnvironment } from "../harness.js";

const UNIT = fileURLToPath(new URL("../../../docs/deploy/cairnlog.service", import.meta.url));
const folder = scratchFolder();
afterAll(() => folder.remove());

/** The groups of calls that systemd knows, by name; null on a machine without it. */
function systemdGroups(): ReadonlyMap<string, readonly string[]> | null {
  const { error, stdout } = spawnSync("systemd-analyze", ["syscall-filter"], { encoding: "utf8" });
  if (error) return null;
  const groups = stdout.split(/\n(?=@)/).map((text): [string, string[]] => {
    const [name, ...calls] = text.split("\n").map((line) => line.trim());
    return [name!, calls.filter((call) => /^[@a-z_]/.test(call))];
  });
  return new Map(groups);
}

/**
 * A program that runs its arguments under the rules of a unit. A call that the unit refuses ends the process, so that it is seen.
 * @param refused a call that only fails
 * @returns its path
 */
function confining(unit: string, groups: ReadonlyMap<string, readonly string[]>, refused: string): string {
  const values = (name: string) => [...unit.matchAll(new RegExp(`^${name}=(.*)$`, "gm"))].map(([, value]) => value!);
  const flat = (name: string): string[] => (name.startsWith("@") ? groups.get(name)!.flatMap(flat) : [name]);
  const allowed = new Set<string>();
  for (const value of values("SystemCallFilter")) {
    const calls = value.replace("~", "").split(" ").flatMap(flat);
    for (const call of calls) value.startsWith("~") ? allowed.delete(call) : allowed.add(call);
  }
  const families = values("RestrictAddressFamilies")[0]!.split(" ");
  const call = (name: string) => `#ifdef __NR_${name}
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_${name}, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
#endif`;
  const family = (name: string) =>
    `  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ${name}, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),`;
  const source = `#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
static struct sock_filter rules[] = {
  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_socket, 0, ${2 * families.length + 2}),
  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
${families.map(family).join("\n")}
  BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_${refused}, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
${[...allowed].map(call).join("\n")}
  BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};
int main(int count, char **argv) {
  struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) perror("seccomp");
  else execvp(argv[1], argv + 1);
  return 1;
}
`;
  const program = join(folder.path, `confined-${refused}`);
  const file = `${program}.c`;
  writeFileSync(file, source);
  execFileSync("cc", ["-Wall", "-Werror", "-o", program, file]);
  return program;
}

test.each([
  ["the unit allows what the service does", "reboot"],
  ["a thread whose priority cannot be lowered works all the same", "setpriority"],
])("%s: it listens for others, delivers and verifies", async (_, refused) => {
  const groups = systemdGroups();
  if (!groups) return;
  const data = join(folder.path, refused);
  const receiver = await startReceiver();
  const before = await startServer(readSettings({ ...testEnvironment(data), SERVICE_WEBHOOK_ALLOW_PRIVATE: "on" }));
  await before.registry.webhooks.subscribe({ url: receiver.url, events: [] }, before.operatorFingerprint);
  await before.close();
  const environment = {
    HOST: "0.0.0.0",
    SERVICE_PUBLIC_URL: "https://log.example",
    SERVICE_WEBHOOK_ALLOW_PRIVATE: "on",
  };
  const wrapper = [confining(readFileSync(UNIT, "utf8"), groups, refused)];
  const service = await startService(data, environment, { wrapper, hasParent: true });
  onTestFinished(() => void service.process.kill("SIGKILL"));
  const url = `http://127.0.0.1:${new URL(service.url).port}`;
  expect((await attest(url, "confined")).status).toBe(200);
  await expect.poll(() => receiver.received.length).toBeGreaterThan(0);
  const verified = await fetch(`${url}/api/v1/log/verify`, { method: "POST" });
  expect(await verified.json()).toMatchObject({ valid: true });
  expect(await service.stop()).toBe(0);
});

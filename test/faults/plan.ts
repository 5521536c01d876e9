/** Which system calls are made to fail, and how: from the calls that a service without faults makes. */
import type { Random } from "../reliability/random.js";
import type { Call, ErrorName, Rule } from "./shim.js";

/** Making a new data directory and its log, starting on an existing one, under load, while the log ends, and at a stop. */
export const PHASES = ["create", "start", "load", "end", "stop"] as const;
export type Phase = (typeof PHASES)[number];

export interface Case extends Rule {
  readonly phase: Phase;
}

/** The calls of a service without faults. */
export type Profile = Readonly<Record<Phase, readonly Call[]>>;

const WRITE_ERRORS: readonly ErrorName[] = ["EIO", "ENOSPC", "EDQUOT", "EINTR", "ENOMEM", "short"];
const FOLDER_ERRORS: readonly ErrorName[] = ["EIO", "ENOSPC", "EDQUOT", "ENOMEM"];
const READ_ERRORS: readonly ErrorName[] = ["EIO", "EINTR", "ENOMEM"];

/** The errors that each call is given. `EROFS`: what a file system says that has given up after an error. */
const ERRORS: Readonly<Record<string, readonly ErrorName[]>> = {
  open: [...READ_ERRORS],
  create: ["EIO", "ENOSPC", "EDQUOT", "EINTR", "ENOMEM"],
  read: READ_ERRORS,
  pread64: READ_ERRORS,
  write: WRITE_ERRORS,
  writev: WRITE_ERRORS,
  pwrite64: WRITE_ERRORS,
  pwritev64: WRITE_ERRORS,
  fsync: ["EIO", "ENOSPC", "EDQUOT", "EINTR"],
  fdatasync: ["EIO", "ENOSPC", "EDQUOT", "EINTR"],
  msync: ["EIO", "ENOMEM"],
  ftruncate64: ["EIO", "ENOSPC", "EDQUOT", "EINTR"],
  mmap64: ["ENOMEM", "EIO"],
  lock: ["EIO", "EINTR", "ENOMEM"],
  rename: FOLDER_ERRORS,
  link: FOLDER_ERRORS,
  unlink: FOLDER_ERRORS,
  mkdir: FOLDER_ERRORS,
  rmdir: FOLDER_ERRORS,
  access: ["EIO", "ENOMEM"],
  stat: ["EIO", "ENOMEM"],
  statx: ["EIO", "ENOMEM"],
  statfs64: READ_ERRORS,
  fstatfs64: READ_ERRORS,
  scandir64: ["EIO", "ENOMEM"],
  opendir: ["EIO", "ENOMEM"],
  // All calls that write, on all files.
  "*": ["EIO", "ENOSPC", "EROFS"],
};

/** `pwrite64@lmdb` without its caller. */
export const nameOf = (call: string): string => call.split("@")[0]!;

/** Times at which a call that is made `count` times fails: the first three, the last, and one in between. */
function times(count: number, random: Random): number[] {
  const between = count > 4 ? 4 + random.below(count - 4) : count;
  return [...new Set([1, 2, 3, between, count])].filter((nth) => nth <= count);
}

/** Every case, in an order in which the first ones differ as much as they can. */
export function casesOf(profile: Profile, random: Random): Case[] {
  const queues: Case[][] = [];
  for (const phase of PHASES) {
    const counts = new Map<string, number>();
    for (const { call, path } of profile[phase]) {
      const key = `${call} ${path}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    if (profile[phase].length) counts.set("* *", 8);
    for (const [key, count] of counts) {
      const [call, path] = key.split(" ") as [string, string];
      const cases: Case[] = [];
      for (const nth of times(count, random))
        for (const error of ERRORS[nameOf(call)] ?? [])
          cases.push({
            phase,
            call,
            path,
            nth,
            error,
            lasts: call === "*" || (error !== "EINTR" && random.chance(0.25)),
          });
      queues.push(shuffled(cases, random));
    }
  }
  const order: Case[] = [];
  for (let turn = 0; queues.some((queue) => turn < queue.length); turn++)
    order.push(
      ...shuffled(
        queues.flatMap((queue) => queue.slice(turn, turn + 1)),
        random,
      ),
    );
  return order;
}

function shuffled<T>(items: readonly T[], random: Random): T[] {
  const all = [...items];
  for (let i = all.length - 1; i > 0; i--) {
    const j = random.below(i + 1);
    [all[i], all[j]] = [all[j]!, all[i]!];
  }
  return all;
}

/** Whether `--only` chooses a case: a call, with or without its caller, and an error, each of which may be left out. */
export function isChosen({ call, error }: Case, only: string): boolean {
  const [name = "", wanted = ""] = only.split(":");
  return (!name || name === call || name === nameOf(call)) && (!wanted || wanted === error);
}

export const describe = ({ phase, call, path, nth, error, lasts }: Case): string =>
  `${phase}: ${call} on ${path}, time ${nth}${lasts ? " and later" : ""}: ${error}`;

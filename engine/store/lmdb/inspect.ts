/**
 * A look at the data file of an environment before LMDB is let at it. LMDB maps the file and trusts what is in it: a
 * file that was cut or overwritten would end the process with SIGSEGV, SIGBUS or SIGABRT, without a word.
 */
import { join } from "node:path";
import { CairnlogError } from "../../base/error.js";
import { isPresent } from "../../base/files.js";
import { PageFile } from "./file/pagefile.js";
import { type PageFault, PageWalk } from "./file/pages.js";

/** Name of an environment's data file. */
export const DATA_FILE = "data.mdb";
/** Pages read before a file is opened. They are few, so a start takes the same time for every size of log. */
const PAGES_AT_START = 4_096;
/** A file may be open in another process that writes it, so a damaged one is looked at again if it has changed. */
const LOOKS = 5;

type FileState =
  | "absent"
  /** Nothing was ever committed to it: a crash or a power failure interrupted its making. */
  | "unborn"
  | "sound"
  | "damaged";

/** `page` is undefined for a fault of the whole file, because of which LMDB cannot open it at all. */
interface FileFault extends Pick<PageFault, "table" | "message"> {
  readonly page: number | undefined;
}

interface FileReport {
  readonly state: FileState;
  /** Empty unless the file is damaged. */
  readonly faults: readonly FileFault[];
}

interface InspectOptions {
  /** Number of pages to read; without it, the whole file is read. */
  readonly limit?: number;
  /** The look ends after this number of faults. */
  readonly maxFaults: number;
}

/**
 * Looks at the environment in the directory `path`. It takes no lock and changes nothing.
 * @throws CairnlogError `storage-failed` if the file cannot be read
 */
export function inspectEnvironment(path: string, options: InspectOptions): FileReport {
  const name = join(path, DATA_FILE);
  try {
    if (!isPresent(name)) return { state: "absent", faults: [] };
    let found = look(name, options);
    for (let looks = 1; found.state === "damaged"; looks++) {
      const again = look(name, options);
      // Nobody wrote in between, so the faults are no changes that a writer was just making.
      if (again.state !== "damaged" || again.transaction === found.transaction) return again;
      // It changes all the time: another process writes it, and that process has looked at it before.
      if (looks === LOOKS) return { state: "sound", faults: [] };
      found = again;
    }
    return found;
  } catch (cause) {
    throw new CairnlogError("storage-failed", `${name} cannot be read: ${(cause as Error).message}.`, { cause });
  }
}

/**
 * Looks at an environment that is about to be opened: the upper pages of all tables, and the newest of the others.
 * @param advice a sentence: what to do with a damaged file
 * @returns its state, which is not `damaged`
 * @throws CairnlogError `corrupt-log` if it is damaged; `storage-failed` if it cannot be read
 */
export function requireSound(path: string, advice: string): FileState {
  const { state, faults } = inspectEnvironment(path, { limit: PAGES_AT_START, maxFaults: 1 });
  const [fault] = faults;
  if (!fault) return state;
  throw new CairnlogError("corrupt-log", `${join(path, DATA_FILE)} is damaged: ${fault.message}. ${advice}`);
}

function look(name: string, { limit, maxFaults }: InspectOptions): FileReport & { readonly transaction?: number } {
  const file = new PageFile(name);
  try {
    if (file.isUnborn()) return { state: "unborn", faults: [] };
    const meta = file.meta();
    if (typeof meta === "string")
      return { state: "damaged", faults: [{ page: undefined, table: undefined, message: meta }] };
    const { transaction, lastPage, pageSize } = meta;
    const faults: FileFault[] = [];
    if (!new PageWalk(file, meta, undefined, 1).isComplete())
      faults.push({
        page: Math.floor(file.bytes / pageSize),
        table: undefined,
        message: `it was cut: it has ${file.bytes} bytes, and should have up to ${(lastPage + 1) * pageSize}`,
      });
    faults.push(...new PageWalk(file, meta, limit, maxFaults).run());
    return { state: faults.length ? "damaged" : "sound", faults, transaction };
  } finally {
    file.close();
  }
}

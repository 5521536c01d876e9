/**
 * A clock of one process that can be set. `Date` is all that a Node program sees of the time of day, so it is replaced
 * there, in each thread, before anything else is loaded. The monotonic clock stays, as it does when an operator sets
 * the time.
 */
import { writeFileSync } from "node:fs";

/** How often the offset is read: far more often than anything in the service looks at the time to decide something. */
const READ_MS = 20;

const PRELOADED = `
import { readFileSync } from "node:fs";
const RealDate = Date;
let offset = 0;
const read = () => { offset = Number(readFileSync(process.env.RIG_CLOCK, "utf8")); };
read();
setInterval(read, ${READ_MS}).unref();
globalThis.Date = class Date extends RealDate {
  constructor(...parts) { if (parts.length) super(...parts); else super(RealDate.now() + offset); }
  static now() { return RealDate.now() + offset; }
};
`;

export class SettableClock {
  readonly #file: string;
  /** What a process needs in its environment to have this clock. */
  readonly environment: Readonly<Record<string, string>>;

  /** @param file prefix of two files that are made */
  constructor(file: string) {
    this.#file = `${file}.offset`;
    const module = `${file}.mjs`;
    writeFileSync(module, PRELOADED);
    this.environment = { NODE_OPTIONS: `--import=${module}`, RIG_CLOCK: this.#file };
    this.set(0);
  }

  /** Sets the clock to so many milliseconds beside the machine's own. */
  set(milliseconds: number): void {
    writeFileSync(this.#file, String(milliseconds));
  }
}

/** `cairnlog bench`: what this machine does, measured in a log of its own that is gone afterwards. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { closeTogether } from "../../../engine/base/closing.js";
import { generatePrivateKey, privateKey, signSync, verifySync } from "../../../engine/crypto/keys/signatures.js";
import { operatorKey } from "../../../engine/crypto/signer/operator-key.js";
import { openLog } from "../../../engine/log/log.js";
import { open } from "../../../engine/native/lmdb.js";
import { flag, subcommand, text, textOr } from "../line/subcommand.js";
import { none, UsageError } from "../line/usage.js";
import { printableJson } from "../terminal/printable.js";
import { startProgress } from "../terminal/progress.js";

const IN_FLIGHT = [1, 64] as const;
/** About the bytes of a manifest. */
const MESSAGE = new Uint8Array(220);
const PUT = Buffer.alloc(400);
/** Calls between two looks at the clock. */
const CHUNK = 16;

/** Rates are in operations per second. */
interface Measured {
  readonly sign_per_s: number;
  readonly verify_per_s: number;
  readonly appends: readonly {
    readonly in_flight: number;
    readonly per_s: number;
    /** Puts of 400 bytes, flushed by LMDB, as many in flight. */
    readonly flush_per_s: number;
    /** Time of one append as a multiple of one signature and one verification. */
    readonly of_signatures: number;
    /** Time of one append as a multiple of one put and flush. */
    readonly of_flush: number;
  }[];
}

export const bench = subcommand({
  forms: ["[--seconds N] [--dir DIR]"],
  about: `Appends to a log of its own, in this process and without HTTP, and tells how many appends a second become durable, each
with its own signed tree head: one after the other, and 64 at a time. Beside it the two things that an append costs at the
least: an Ed25519 signature and verification, and a put that LMDB has flushed to the disk.`,
  options: {
    seconds: textOr("N", "10", "how long to measure in all, at least 1"),
    dir: text(
      "DIR",
      "where the log is for that time; choose the disk you mean to use (default: the folder for temporary files)",
    ),
    json: flag("one line of JSON"),
  },
  examples: "cairnlog bench --dir /var/lib",
  async run(positionals, values) {
    none(positionals);
    const seconds = /^\d{1,4}$/.test(values.seconds) ? Number(values.seconds) : 0;
    if (seconds < 1) throw new UsageError("--seconds must be a whole number from 1 to 9999");
    const folder = mkdtempSync(join(values.dir === undefined ? tmpdir() : resolve(values.dir), "cairnlog-bench-"));
    const remove = () => rmSync(folder, { recursive: true, force: true });
    const interrupted = () => {
      remove();
      process.exit(1);
    };
    process.once("SIGINT", interrupted).once("SIGTERM", interrupted);
    try {
      const measured = await measure(folder, seconds);
      console.log(values.json ? printableJson(measured) : describe(measured));
    } finally {
      process.off("SIGINT", interrupted).off("SIGTERM", interrupted);
      remove();
    }
    return 0;
  },
});

async function measure(folder: string, seconds: number): Promise<Measured> {
  const progress = startProgress("Measuring:", seconds, (amount) => `${amount.toFixed(0)} s`);
  const share = seconds / (2 + 2 * IN_FLIGHT.length);
  let done = 0;
  const rate = async (work: () => unknown, inFlight = 1) => {
    const result = await perSecond(work, share, inFlight);
    done += share;
    progress.update(done);
    return result;
  };
  try {
    const key = privateKey(generatePrivateKey("ed25519"));
    const signature = signSync(key, MESSAGE);
    const sign_per_s = await rate(() => signSync(key, MESSAGE));
    const verify_per_s = await rate(() => verifySync(key.public, MESSAGE, signature));
    const raw = open<Buffer, number>({ path: join(folder, "raw"), encoding: "binary", overlappingSync: false });
    const log = await openLog({ path: join(folder, "log"), signer: operatorKey(generatePrivateKey("ed25519")) });
    const appends = [];
    let n = 0;
    for (const in_flight of IN_FLIGHT) {
      const put = async () => {
        await raw.put(n++, PUT);
        await raw.flushed;
      };
      const flush_per_s = await rate(put, in_flight);
      const per_s = await rate(() => log.append({ event_type: "bench", payload: { n: n++ } }), in_flight);
      const of_signatures = 1 / per_s / (1 / sign_per_s + 1 / verify_per_s);
      appends.push({ in_flight, per_s, flush_per_s, of_signatures, of_flush: flush_per_s / per_s });
    }
    await closeTogether(
      () => raw.close(),
      () => log.close(),
    );
    return { sign_per_s, verify_per_s, appends };
  } finally {
    progress.end();
  }
}

/** How often a second `work` is done, `inFlight` at a time. */
async function perSecond(work: () => unknown, seconds: number, inFlight: number): Promise<number> {
  const started = performance.now();
  const elapsed = () => (performance.now() - started) / 1000;
  let count = 0;
  const worker = async () => {
    while (elapsed() < seconds)
      for (let i = 0; i < CHUNK; i++) {
        const result = work();
        if (result instanceof Promise) await result;
        count++;
      }
  };
  await Promise.all(Array.from({ length: inFlight }, worker));
  return count / elapsed();
}

function describe({ sign_per_s, verify_per_s, appends }: Measured): string {
  const line = (per_s: number, what: string) => `${Math.round(per_s).toLocaleString("en").padStart(9)}/s  ${what}`;
  const rows = appends.flatMap(({ in_flight, per_s, flush_per_s, of_signatures, of_flush }) => [
    line(flush_per_s, `puts of ${PUT.length} bytes on disk, ${in_flight} in flight`),
    line(
      per_s,
      `appends on disk, ${in_flight} in flight: ${of_flush.toFixed(2)} × such a put, ${of_signatures.toFixed(2)} × a signature and its verification`,
    ),
  ]);
  return [line(sign_per_s, "Ed25519 signatures"), line(verify_per_s, "Ed25519 verifications"), ...rows].join("\n");
}

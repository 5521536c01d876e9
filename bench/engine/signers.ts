/** Attestations in the engine alone, without HTTP: their CPU if the signers are many instead of one, and if each is new. */
import { join } from "node:path";
import { readSettings, startServer } from "cairnlog/server";
import { type Crowd, signerAt } from "../front/crowd.js";
import { signedSubmissions } from "../load/submissions.js";
import { cpuMicros, ratios, spread } from "../stats.js";

const IN_USE = [1, 3_000, 20_000] as const;
const ROUNDS = 7;
/** Attestations of one round for each contender. */
const ATTESTATIONS = 5_000;
const IN_FLIGHT = 64;

/** CPU of an attestation of each crowd, in turns; every key but the new ones has signed before. */
export async function measureSigners(folder: string) {
  const settings = { PORT: "0", SERVICE_DATA_DIR: join(folder, "signers"), SERVICE_FRONT_ENDS: "0" };
  const { registry, close } = await startServer(readSettings({ ...settings, LOG_LEVEL: "error" }));
  let prepared = 0;
  async function attest(count: number, crowd: Crowd): Promise<number> {
    const submissions = signedSubmissions(count, `signers ${prepared++}`, (n) => signerAt(crowd, n));
    const before = process.cpuUsage();
    let next = 0;
    const client = async () => {
      while (next < count) await registry.attestations.submit(submissions[next++]!);
    };
    await Promise.all(Array.from({ length: IN_FLIGHT }, client));
    return cpuMicros(before) / count;
  }
  const contenders = [
    ...IN_USE.map((size) => ({ title: `signers in turn: ${size.toLocaleString("en")}`, size: size as number })),
    { title: "a new key signs", size: Number.MAX_SAFE_INTEGER },
  ].map((one) => ({ ...one, name: one.title, next: 0, step: 1, micros: [] as number[] }));
  try {
    for (const one of contenders.filter(({ size }) => size !== Number.MAX_SAFE_INTEGER))
      await attest(one.size, { ...one, first: 0 });
    for (let round = 0; round <= ROUNDS; round++)
      for (let turn = 0; turn < contenders.length; turn++) {
        const one = contenders[(round + turn) % contenders.length]!;
        const cpu = await attest(ATTESTATIONS, { ...one, first: one.next % one.size });
        one.next += ATTESTATIONS;
        // The first round warms up compilers and caches.
        if (round > 0) one.micros.push(cpu);
      }
  } finally {
    await close();
  }
  console.log(`\nAttestations in the engine alone, ${IN_FLIGHT} in flight`);
  console.table(
    contenders.map(({ title, micros }) => ({
      contender: title,
      "CPU µs": spread(micros),
      "× one signer's": spread(ratios(micros, contenders[0]!.micros), 2),
    })),
  );
  return Object.fromEntries(contenders.map(({ title, micros }) => [title, micros]));
}

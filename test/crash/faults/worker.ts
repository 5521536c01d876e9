/** Worker threads that die in the middle of a task. The caller gets a coded error, and the next task succeeds. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Pool } from "#cairnlog/engine/crypto/pool/pool.js";
import { newSigner } from "../../server/signers.js";
import { scratchFolder } from "../../service.js";
import { answered, type Engine, type FaultCase, FaultyLog } from "./faultylog.js";

const deaths = scratchFolder();
process.on("exit", () => deaths.remove());

/** A module whose function `name` ends its thread. */
function deadly(name: string): URL {
  const path = join(deaths.path, `${name}.mjs`);
  writeFileSync(path, `export function ${name}() { process.exit(3); }`);
  return pathToFileURL(path);
}

/** A pool whose worker really dies in the middle of a task of this name. */
function dyingPool(engine: Engine, name: string, faults: { injected: number }): Pool {
  const pool = engine.pool.createPool(1);
  const death = deadly(name);
  return {
    ...pool,
    run: (url, task, input, transfer) => {
      if (task === name && !faults.injected++) return pool.run(death, name, null);
      return pool.run(url, task, input, transfer);
    },
  };
}

/** @throws Error when the pool does not end, because a task is lost */
const ended = (pool: Pool): Promise<void> => answered("the end of the pool", pool.close());

const isCoded = (error: unknown): boolean => error instanceof Error && error.name === "CairnlogError";

export const WORKER_CASES: readonly FaultCase[] = [
  {
    name: "a worker dies while it signs",
    async run(engine) {
      const count = { injected: 0 };
      const pool = dyingPool(engine, "signBatch", count);
      const faulty = await FaultyLog.open(engine, { pool });
      await faulty.storm({ waves: 1, width: 100 });
      faulty.expect(count.injected > 0, "no worker died");
      for (const code of faulty.codes) faulty.expect(code === "signer-unavailable", `a refusal has the code ${code}`);
      await faulty.recover();
      await faulty.close();
      await ended(pool);
      return faulty.problems;
    },
  },
  {
    name: "a worker dies while it verifies signatures",
    async run(engine) {
      const problems: string[] = [];
      const count = { injected: 0 };
      const pool = dyingPool(engine, "verifyBatch", count);
      const verifier = new engine.verifier.SignatureVerifier(pool);
      const signer = newSigner();
      const key = engine.spki.importPublicKey(signer.publicKey);
      const message = Buffer.from("cairn");
      const good = Buffer.from(signer.sign(message), "base64");
      const checks = Array.from({ length: 100 }, (_, i) =>
        verifier.verify(key, message, i % 2 ? good : good.toReversed()),
      );
      const outcomes = await answered("the checks", Promise.allSettled(checks));
      for (const [i, outcome] of outcomes.entries())
        if (outcome.status === "rejected") {
          if (!isCoded(outcome.reason)) problems.push(`a check ended without a code: ${outcome.reason}`);
        } else if (outcome.value !== (i % 2 === 1)) problems.push(`check ${i} had the wrong verdict`);
      if (!count.injected) problems.push("no worker died");
      if ((await answered("a check after it", verifier.verify(key, message, good))) !== true)
        problems.push("it does not go on");
      await ended(pool);
      return [...new Set(problems)];
    },
  },
  {
    name: "a worker dies with tasks behind it",
    async run(engine) {
      const pool = engine.pool.createPool(1);
      const hasher = new engine.password.PasswordHasher(pool);
      const dying = pool.run(deadly("die"), "die", null).catch((error: unknown) => error);
      const waiting = answered("the task behind it", hasher.hash("correct horse"));
      const outcomes = await Promise.allSettled([dying, waiting]);
      await ended(pool);
      return outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [String(outcome.reason)] : []));
    },
  },
  {
    name: "a worker dies while it checks a password",
    async run(engine) {
      const problems: string[] = [];
      const count = { injected: 0 };
      const pool = dyingPool(engine, "hashPassword", count);
      const hasher = new engine.password.PasswordHasher(pool);
      const first = await answered("the hash", hasher.hash("correct horse")).catch((error: unknown) => error);
      if (typeof first !== "string" && !isCoded(first)) problems.push(`the hash ended without a code: ${first}`);
      const phc = await answered("the next hash", hasher.hash("correct horse"));
      if (!(await hasher.verify("correct horse", phc))) problems.push("it does not go on");
      if (!count.injected) problems.push("no worker died");
      await ended(pool);
      return problems;
    },
  },
  {
    name: "a worker dies while it verifies the log",
    async run(engine) {
      const count = { injected: 0 };
      const real = engine.pool.createPool(2);
      const death = deadly("die");
      const pool: Pool = {
        ...real,
        run: (url, ...rest) => (count.injected++ ? real.run(url, ...rest) : real.run(death, "die", null)),
      };
      const faulty = await FaultyLog.open(engine, { pool });
      await faulty.storm({ waves: 1, width: 5 });
      const first = await answered("the verification", faulty.log.verify()).catch((error: unknown) => error);
      faulty.expect(
        isCoded(first) || (first as { valid?: boolean }).valid === true,
        `it ended without a code: ${first}`,
      );
      await faulty.recover();
      await faulty.close();
      await ended(real);
      return faulty.problems;
    },
  },
];

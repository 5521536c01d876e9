/** Rows of keys and threads: the signer behind a socket, the pool, checks of signatures, passwords. */
import { expect } from "vitest";
import { verifySync } from "#cairnlog/engine/crypto/keys/signatures.js";
import { PasswordHasher } from "#cairnlog/engine/crypto/passwords/password.js";
import { createPool, type Pool, SignatureVerifier } from "#cairnlog/engine/crypto/pool/pool.js";
import { type SocketSigner, signerAt } from "#cairnlog/engine/index.js";
import { FakeSigner, type Misdeed, send } from "../crypto/signer/fakesigner.js";
import { testOperator } from "../log/harness.js";
import { held } from "./held.js";
import type { Row, Subject } from "./rows.js";

const MESSAGES = Array.from({ length: 3 }, (_, i) => Buffer.from(`message ${i}`));
/** Above what is checked on the calling thread, and above one task. */
const CHECKS = 200;
const SIGNER = "engine/crypto/signer/socket-signer.ts";
const CONNECTION = "engine/crypto/signer/connection.ts";

interface SignerScene {
  readonly fake: FakeSigner;
  readonly signer: SocketSigner;
  /** Connections that were given up, as the test expects it. */
  lost: number;
}

/** A signer that fails as `fail` says. */
function signerRow(
  name: string,
  {
    fail,
    recover,
    pauses,
  }: {
    readonly fail: (scene: SignerScene) => Promise<void>;
    readonly recover: (scene: SignerScene) => Promise<unknown>;
    readonly pauses: boolean;
  },
): Row {
  return {
    name: `the connection to a signer ${name}`,
    files: pauses ? [CONNECTION, SIGNER] : [CONNECTION],
    ...(pauses ? { pauses: SIGNER } : {}),
    async open(): Promise<Subject> {
      const fake = await new FakeSigner().start();
      const around = held();
      const signer = await signerAt(fake.address);
      const scene: SignerScene = { fake, signer, lost: 0 };
      return {
        around,
        async call() {
          const signed = await signer.sign(MESSAGES);
          const right = signed.map((one, i) => verifySync(signer.public, MESSAGES[i]!, one));
          return { right, trouble: signer.trouble, surplus: fake.connections - scene.lost };
        },
        fail: () => fail(scene),
        async recover() {
          await recover(scene);
          await expect.poll(() => signer.trouble, { interval: 5 }).toBeNull();
        },
        close: () => signer.close(),
        remove: () => fake.remove(),
      };
    },
  };
}

/** One batch that the signer answers with `misdeed`, which costs the connection. */
const misled = async (scene: SignerScene, misdeed: Misdeed): Promise<void> => {
  scene.fake.misdeed = misdeed;
  await expect(scene.signer.sign(MESSAGES)).rejects.toMatchObject({ code: "signer-unavailable" });
  scene.fake.misdeed = null;
  scene.lost++;
};
/** Whoever has lost a connection has another one, and no more than that. */
const connected = async ({ fake, lost }: SignerScene): Promise<void> =>
  expect.poll(() => fake.connections, { interval: 5 }).toBe(lost + 1);

const SIGNERS: readonly Row[] = [
  signerRow("that refuses at length, and keeps the connection", {
    pauses: false,
    // Three together are longer than one answer may be.
    async fail({ fake, signer }) {
      fake.misdeed = (socket) => send(socket, { error: "no".repeat(500_000) });
      for (let refusals = 0; refusals < 3; refusals++)
        await expect(signer.sign(MESSAGES)).rejects.toMatchObject({ message: /^The signer refused: no/ });
    },
    recover: async ({ fake }) => {
      fake.misdeed = null;
    },
  }),
  signerRow("that signs wrongly", {
    pauses: true,
    fail: (scene) => misled(scene, (socket, { signatures }) => send(socket, { signatures: [...signatures].reverse() })),
    recover: connected,
  }),
  signerRow("that answers less than a line", {
    pauses: true,
    fail: (scene) => misled(scene, (socket) => socket.end('{"signatures":[')),
    recover: connected,
  }),
  signerRow("that is away for a while", {
    pauses: true,
    async fail(scene) {
      await scene.fake.stop();
      // Two tries have failed: the pauses grow.
      await expect.poll(() => scene.signer.trouble?.message).toMatch(/ENOENT/);
      await expect(scene.signer.sign(MESSAGES)).rejects.toMatchObject({ code: "signer-unavailable" });
      scene.lost++;
    },
    recover: ({ fake }) => fake.start(),
  }),
];

async function signedChecks(): Promise<{ message: Buffer; signature: Uint8Array; isRight: boolean }[]> {
  const messages = Array.from({ length: CHECKS }, (_, i) => Buffer.from(`check ${i}`));
  const signatures = await testOperator.sign(messages);
  // Every seventh is the signature of another message.
  return messages.map((message, i) => ({
    message,
    signature: signatures[i % 7 === 3 ? i - 1 : i]!,
    isRight: i % 7 !== 3,
  }));
}

/** Has the thread of a pool die with its next task. */
const doom = (pool: Pool): Promise<void> => pool.run(new URL("./dying.mjs", import.meta.url), "dieWithNext", null);

/** A pool of one thread that counts the tasks which its threads took with them, and how many run at one moment. */
function countedPool() {
  const pool = createPool(1);
  const counts = { deaths: 0, running: 0, most: 0 };
  const run: Pool["run"] = async (...task) => {
    counts.most = Math.max(counts.most, ++counts.running);
    return pool
      .run<never>(...task)
      .catch((error) => {
        counts.deaths++;
        throw error;
      })
      .finally(() => counts.running--);
  };
  return { pool: { ...pool, run }, counts };
}

const THREADS: readonly Row[] = [
  {
    name: "checks of signatures in a pool whose threads die",
    files: ["piscina"],
    async open() {
      const checks = await signedChecks();
      const around = held();
      const { pool, counts } = countedPool();
      const verifier = new SignatureVerifier(pool);
      const verified = async () => {
        const verdicts = await Promise.all(
          checks.map(({ message, signature }) => verifier.verify(testOperator.public, message, signature)),
        );
        return checks.filter(({ isRight }, i) => isRight !== verdicts[i]).length;
      };
      return {
        around,
        call: async () => ({ wrong: await verified() }),
        async fail() {
          const { deaths } = counts;
          await doom(pool);
          expect(await verified()).toBe(0);
          expect(counts.deaths).toBe(deaths + 1);
        },
        recover: async () => {},
        close: () => pool.close(),
      };
    },
  },
  {
    name: "slots of passwords in a pool whose threads die",
    files: ["piscina"],
    async open() {
      const around = held();
      const { pool, counts } = countedPool();
      const hasher = new PasswordHasher(pool);
      const hashes = () => Promise.allSettled(Array.from({ length: 4 }, () => hasher.hash("correct horse")));
      return {
        around,
        async call() {
          counts.most = 0;
          const settled = await hashes();
          return { most: counts.most, ended: settled.map(({ status }) => status) };
        },
        async fail() {
          const { deaths } = counts;
          await doom(pool);
          await hashes();
          expect(counts.deaths).toBe(deaths + 1);
        },
        recover: async () => {},
        close: () => pool.close(),
      };
    },
  },
];

export const SIGNING_ROWS: readonly Row[] = [...SIGNERS, ...THREADS];

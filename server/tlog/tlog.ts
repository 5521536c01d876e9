/**
 * The log as a C2SP transparency log: which key signs its checkpoints, under which origin, and who publishes them. Runs in
 * the writer's thread; a mirror shows what it has mirrored (`mirrored.ts`).
 */
import { existsSync } from "node:fs";
import { closeAll } from "../../engine/base/closing.js";
import { CairnlogError } from "../../engine/base/error.js";
import { type OperatorKey, openOperatorKey } from "../../engine/crypto/signer/operator-key.js";
import type { Log } from "../../engine/log/log.js";
import { defaultLogName } from "../../engine/log/tlog/checkpoints.js";
import {
  CheckpointPublisher,
  checkCheckpoint,
  checkpointIn,
  type PublishedCheckpoint,
} from "../../engine/log/tlog/publisher.js";
import type { LogView } from "../../engine/log/view/view.js";
import { keepPrivateFile } from "../../engine/store/lmdb/private.js";
import { type Policy, verifyNote } from "../../engine/verify/index.js";
import { parsePublicKey } from "../../engine/verify/keys/publickey.js";
import { formatVkey, type NoteKey, noteKey } from "../../engine/verify/note/key.js";
import { Cosigning, type CosigningStatus } from "../cosigning/cosigning.js";
import { readWitnessPolicy } from "../cosigning/policyfile.js";
import { Recall } from "../cosigning/recall.js";
import type { Tlog } from "../http/services.js";
import type { OperatorNotes } from "../opening/operator.js";
import type { Logger } from "../process/logger.js";
import { isReadableByOthers } from "../process/machine.js";
import {
  cosignedCheckpointPath,
  type Settings,
  tlogCheckpointPath,
  tlogKeyPath,
  tlogVkeyPath,
} from "../settings/settings.js";

/**
 * The name of a log: what is set, or else what it took when it was created, or else what follows from its first operator
 * key. A log that exists never changes its name by itself: whoever follows it would see another log.
 */
export const logNameOf = ({ logName }: Pick<Settings, "logName">, log: LogView): string =>
  logName ?? log.row("meta", "log")?.name ?? defaultLogName(log.operators.first.fingerprint);

/** The origin of the checkpoints: never the log's name, under which the heads of tree version 2 are signed. */
export const tlogOrigin = ({ tlogOrigin: set }: Pick<Settings, "tlogOrigin">, logName: string): string =>
  set ?? `${logName}/tlog`;

/**
 * The key that signs the checkpoints: `tlog.pem` in the data directory if it is there; otherwise the operator key, if it is
 * Ed25519; otherwise a new key, which is made as `tlog.pem`, mode 0600. Notes know no other algorithm.
 * @throws CairnlogError `invalid-key`, `storage-failed`
 */
export function openTlogKey(dataDir: string, operator: OperatorKey, notes: OperatorNotes): OperatorKey {
  const file = tlogKeyPath(dataDir);
  if (!existsSync(file) && operator.public.algorithm === "ed25519") return operator;
  const key = openOperatorKey(file);
  if (key.public.algorithm !== "ed25519")
    throw new CairnlogError("invalid-key", `The key in ${file} must be Ed25519: it signs notes.`);
  if (isReadableByOthers(file))
    notes.warn(
      { file },
      "the key of the checkpoints can be read by others than its owner: set the file's mode to 0600",
    );
  return key;
}

/** The key with which others verify the checkpoints that a key signs. @throws CairnlogError `invalid-input` */
export const verifierKeyOf = (signer: OperatorKey, origin: string): NoteKey =>
  noteKey(origin, parsePublicKey(signer.public.pem));

/** A log that publishes its checkpoints. */
export interface OpenedTlog extends Tlog {
  checkpoint(): string;
  /** Why no checkpoint can be made now; null while they can. */
  readonly trouble: CairnlogError | null;
  /** What the operator should know: sentences. */
  readonly warnings: readonly string[];
  /** How it stands with the witnesses; null where none are asked. */
  readonly cosigning: (() => CosigningStatus) | null;
  /** Size of the newest checkpoint; 0 before the first one. */
  readonly size: number;
  stop(): Promise<void>;
}

interface TlogParts {
  readonly log: Log;
  readonly operator: OperatorKey;
  readonly logName: string;
  readonly settings: Settings;
  readonly logger: Logger;
  /** Called when somebody shows, after the start, that the log was set back to an old state. Must not throw. */
  readonly refuted: (error: CairnlogError) => void;
  /** The newest checkpoint that another node has told, if one led before: nothing older is shown. */
  readonly told?: string | null;
}

/**
 * Compares the log with the checkpoints that were published last, and begins to publish. With witnesses, others get to see
 * the newest checkpoint that a quorum of them has cosigned.
 * Those who remember the log are asked whether it was set back, before anything is signed.
 * @throws CairnlogError `invalid-input` for an origin that is the log's name; `corrupt-log` if it was set back; as `openTlogKey`, `CheckpointPublisher.open`, `readWitnessPolicy` and `Cosigning.open` do
 */
export async function openTlog(parts: TlogParts): Promise<OpenedTlog> {
  const { log, operator, logName, settings, logger, refuted } = parts;
  const { dataDir } = settings;
  const origin = tlogOrigin(settings, logName);
  if (origin === logName)
    throw new CairnlogError(
      "invalid-input",
      `SERVICE_TLOG_ORIGIN must differ from the name of the log, ${logName}: one origin with two roots for a size looks like a fork.`,
    );
  const policy = settings.witnesses === null ? null : readWitnessPolicy(settings.witnesses);
  const cosigning = policy && (await openCosigning(log, origin, policy, settings, logger));
  let trouble: CairnlogError | null = null;
  const publisher = new CheckpointPublisher({
    log,
    origin,
    signer: openTlogKey(dataDir, operator, logger),
    file: tlogCheckpointPath(dataDir),
    intervalMs: settings.checkpointIntervalSeconds * 1000,
    told(reason) {
      trouble = reason;
      if (reason) logger.error({ code: reason.code }, `no checkpoint can be published: ${reason.message}`);
      else logger.info("checkpoints are published again");
    },
    ...(cosigning && { published: (checkpoint: PublishedCheckpoint) => cosigning.offer(checkpoint) }),
  });
  const keys = checkpointKeys(publisher.key, log);
  const told = await signedCheckpoint(parts.told ?? null, keys);
  await publisher.open(told);
  await checkCheckpoint(log, cosignedCheckpointPath(dataDir));
  const vkey = formatVkey(publisher.key);
  // For people on this machine, and for whoever serves the directory as a mirror.
  keepPrivateFile(tlogVkeyPath(dataDir), `${vkey}\n`);
  const recall = new Recall({
    log,
    origin,
    keys,
    witnesses: policy?.witnesses.flatMap(({ name, url }) => (url === null ? [] : [{ name, url }])) ?? [],
    mirrors: settings.mirrors,
    compare: (checkpoint, where, advice) => publisher.compare(checkpoint, where, advice),
    refuted(error) {
      logger.fatal({ code: error.code }, error.message);
      refuted(error);
      // Nothing of the wrong branch is signed from now on.
      void publisher.stop();
      void cosigning?.stop();
    },
    logger,
  });
  await recall.open();
  publisher.start();
  return {
    vkey,
    checkpoint() {
      if (cosigning && told && told.treeSize > (cosigning.status.treeSize ?? 0)) return told.note;
      return (cosigning ?? publisher).newest();
    },
    witnesses: () => cosigning?.status.witnesses ?? [],
    cosigning: cosigning && (() => cosigning.status),
    get trouble() {
      return trouble;
    },
    get warnings() {
      const own = trouble ? [`No checkpoint can be published at /tlog/. ${trouble.message}`] : [];
      return [...own, ...recall.warnings, ...(cosigning?.warnings ?? [])];
    },
    get size() {
      return publisher.size ?? 0;
    },
    stop: () =>
      closeAll(
        () => recall.stop(),
        () => publisher.stop(),
        () => cosigning?.stop(),
      ),
  };
}

/** The keys that sign the checkpoints of a log, or signed them before a rotation of its operator key. */
function checkpointKeys(key: NoteKey, log: LogView): NoteKey[] {
  const operators = log.operators.chain.filter(({ algorithm }) => algorithm === "ed25519");
  const earlier = operators.map(({ public_key }) => noteKey(key.name, parsePublicKey(public_key)));
  return [key, ...earlier.filter(({ id }) => id !== key.id)];
}

/** What a note says, if one of the keys has signed it. */
async function signedCheckpoint(note: string | null, keys: readonly NoteKey[]): Promise<PublishedCheckpoint | null> {
  if (note === null || !(await verifyNote(note, keys))) return null;
  return checkpointIn(note) ?? null;
}

/** @throws CairnlogError as `Cosigning.open` does */
function openCosigning(
  log: Log,
  origin: string,
  policy: Policy,
  { dataDir, witnesses: path }: Settings,
  logger: Logger,
): Promise<Cosigning> {
  if (policy.logs.length && !policy.logs.some(({ key }) => key.name === origin))
    logger.warn({ path, origin }, "the policy of SERVICE_WITNESSES has log lines, and none is of this log");
  const unknown = policy.witnesses.filter(({ key }) => key.type === "unknown").map(({ name }) => name);
  if (unknown.length)
    logger.warn({ path, witnesses: unknown }, "witnesses with keys of types that are not known here are not asked");
  return Cosigning.open({
    policy,
    file: cosignedCheckpointPath(dataDir),
    origin,
    proof: (from, to) => log.rfc6962.consistencyProof(from, to),
    told(reason, witness) {
      if (reason !== null) logger.warn({ witness }, reason);
      else
        logger.info({ witness }, witness === null ? "cosigned checkpoints can be written again" : "it cosigns again");
    },
  });
}

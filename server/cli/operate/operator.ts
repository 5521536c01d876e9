/** `cairnlog operator`: hands a log from its operator key to the next one, and what else takes that key itself. */
import { existsSync, readFileSync } from "node:fs";
import { closeAll, closing } from "../../../engine/base/closing.js";
import { CairnlogError } from "../../../engine/base/error.js";
import { privateKey } from "../../../engine/crypto/keys/signatures.js";
import { importPublicKey, type ServerKey } from "../../../engine/crypto/keys/spki.js";
import type { OperatorKey } from "../../../engine/crypto/signer/operator-key.js";
import type { SocketSigner } from "../../../engine/crypto/signer/socket-signer.js";
import { type Rotated, rotateOperatorKey } from "../../../engine/log/history/rotate.js";
import { openLog, openLogReader } from "../../../engine/log/log.js";
import { acceptClock, type ClockComparison, compareClocks } from "../../../engine/log/state/clock.js";
import { readOnlyToken } from "../../../engine/registry/access/session-token.js";
import { projection } from "../../../engine/registry/events/projection.js";
import { parsePublicKey } from "../../../engine/verify/keys/publickey.js";
import { formatVkey, noteKey } from "../../../engine/verify/note/key.js";
import { operatorKeyPath, operatorPublicKeyPath, type Settings, tlogKeyPath } from "../../settings/settings.js";
import { logNameOf, tlogOrigin } from "../../tlog/tlog.js";
import { publicOriginOf, readNumber, webAddress } from "../connection/connection.js";
import { existingLog } from "../files/data-directory.js";
import { readPublicKey } from "../files/public-key.js";
import { flag, subcommandWithActions, text, textOr, type Values } from "../line/subcommand.js";
import { none, only, required, UsageError } from "../line/usage.js";
import { interruptible } from "../terminal/interrupt.js";
import { printable, printableJson } from "../terminal/printable.js";
import { isSystemError, systemSentence } from "../terminal/system-error.js";
import { settingsAt } from "./environment.js";
import {
  continueLog,
  endedLog,
  endingOf,
  freezeAt,
  freezeLog,
  isSocket,
  keyAt,
  openSoundLog,
  putInPlace,
  readDeadline,
  readPrivateKey,
  withholdAt,
} from "./operator-log.js";

// The verifier key of a log's checkpoints, from its data directory.

/**
 * The verifier key (c2sp.org/signed-note) with which the service of these settings signs the checkpoints at `/tlog/`.
 * @throws CairnlogError `precondition-failed` if the service has still to make the key; as `openLogReader` does
 */
async function vkeyOf(settings: Settings): Promise<string> {
  const path = existingLog(settings.dataDir);
  const operator = operatorIn(settings);
  const log = await openLogReader({ path, operatorKey: operator.pem, projection });
  const name = logNameOf(settings, log);
  await log.close();
  const own = tlogKeyPath(settings.dataDir);
  const key = existsSync(own) ? privateKey(readFileSync(own, "utf8")).public : operator;
  if (key.algorithm !== "ed25519")
    throw new CairnlogError(
      "precondition-failed",
      `The operator key is not Ed25519, and there is no ${own} yet: start the service once, which makes it.`,
    );
  return formatVkey(noteKey(tlogOrigin(settings, name), parsePublicKey(key.pem)));
}

/** The public half of the operator key; of one behind a socket, as the service wrote it last. */
function operatorIn(settings: Settings): ServerKey {
  const file = settings.signer === null ? operatorKeyPath(settings) : operatorPublicKeyPath(settings.dataDir);
  if (!existsSync(file)) throw new CairnlogError("not-found", `There is no ${file}: start the service once.`);
  const pem = readFileSync(file, "utf8");
  return pem.includes("PRIVATE KEY") ? privateKey(pem).public : importPublicKey(pem);
}

const OPTIONS = {
  to: text(
    "NEW.pem",
    "the new private key, without a passphrase (cairnlog keygen makes one); or unix:/path of the socket of a signer that holds it",
  ),
  data: text(
    "DIR",
    "data directory (default: SERVICE_DATA_DIR, else ./data); the present key is SERVICE_OPERATOR_KEY, SERVICE_SIGNER or operator.pem there",
  ),
  "read-only": flag("one that can only read; there is no other kind here, sign in for that (cairnlog login)"),
  accept: flag("take the clock of this machine for right"),
  hours: textOr("N", "24", "hours for which it is good, 1 to 720"),
  reason: text("TEXT", "why the log ends, or a payload is withheld; everybody can read it on the log"),
  basis: text("TEXT", "what obliges you to withhold it: a law, an order; on the log, too"),
  member: text("pseudonym", "withhold the name of a key alone, and show all else of its registration or succession"),
  successor: text("URL", "address of the log that goes on; with --vkey"),
  vkey: text("VKEY", "verifier key of that log's checkpoints: cairnlog operator vkey prints it there"),
  server: text(
    "URL",
    "the service that writes the log; without it, the log in the data directory, which no service writes",
  ),
  as: text("ORIGIN", "how that service is known, where a tunnel or a proxy gives it another address"),
  at: text("TIME", "wait until this day (by UTC) or time, and end the log of the service then"),
  predecessor: text("URL", "address of the log that has ended"),
  "predecessor-key": text("FILE.pem", "its operator key (PEM)"),
  json: flag("print what was done, or the key or the token, as one line of JSON"),
} as const;

type Given = Values<typeof OPTIONS>;

const ACTIONS = { rotate, freeze, withhold: withholdEntry, continue: goOn, vkey, token, clock };

/** A month: such a token cannot be taken back before it expires. */
const MAX_HOURS = 720;

export const operator = subcommandWithActions({
  about: `The operator key of a log.

rotate hands the log over to the operator key in NEW.pem. An entry that both keys sign says that the present key speaks for the
entries so far and the new one for everything from that entry on. Clients and monitors that pinned a key of the log follow
it. The service must not be running; start it with the new key afterwards.

A key that is kept as operator.pem in the data directory is replaced by the new one, and kept beside it under another name.
Where SERVICE_OPERATOR_KEY or SERVICE_SIGNER names a key, no private key is moved: set it to the new one. If the command is
interrupted, run it again: either nothing has happened, or it does the rest.

Where the operator key also signs the checkpoints at /tlog/, they have a new verifier key afterwards: give it to the log's
witnesses and to everybody who verifies checkpoints. tlog.pem, if it is there, is not changed, and its checkpoints go on.`,
  options: OPTIONS,
  actions: {
    rotate: { form: "--to NEW.pem [--data DIR]", about: "Hands the log over to another operator key.", takes: ["to"] },
    freeze: {
      form: "--reason TEXT [--successor URL --vkey VKEY] [--server URL [--at TIME]] [--data DIR]",
      about:
        "Ends the log: its last entry says why, and where it goes on. Every write is refused from then on; all else is served as before. This cannot be taken back, and the operator key cannot be rotated any more.",
      takes: ["reason", "successor", "vkey", "server", "as", "at"],
    },
    withhold: {
      form: "ENTRY --reason TEXT [--basis TEXT] [--member pseudonym] [--server URL] [--data DIR]",
      about:
        "Withholds what an attestation or an encrypted claim says from everybody: the service shows its hash and place, and the entry that says why. With --member pseudonym, it withholds the name in a registration or succession of a key. This cannot be taken back. The next start of each node takes it from the disk; what others have copied stays.",
      takes: ["reason", "basis", "member", "server", "as"],
    },
    continue: {
      form: "--predecessor URL --predecessor-key FILE.pem [--data DIR]",
      about:
        "Begins an empty log where another one has ended: its first entry holds the last head of that log, verified. No service may have the log open; start it afterwards. The end of the other log must name this one, or none.",
      takes: ["predecessor", "predecessor-key"],
    },
    vkey: {
      form: "[--data DIR]",
      about: "Prints the verifier key of the checkpoints at /tlog/ (c2sp.org/signed-note).",
    },
    token: {
      form: "--read-only [--hours N] [--data DIR]",
      about:
        "Prints a session token for the operator's page of the explorer (or an Authorization: Bearer header), so that no browser needs the operator key. It reads what only the operator may read and can change nothing. The service need not be asked: the key signs the token here. It cannot be taken back before it expires, except by rotating the operator key.",
      takes: ["read-only", "hours"],
    },
    clock: {
      form: "[--accept] [--data DIR]",
      about:
        "Compares the clock of this machine with what the log has kept of it. With --accept, the clock is taken for right, and a service that appends nothing because the clock jumped goes on at once. Look at the clock first: entries keep the time that they get for ever.",
      takes: ["accept"],
    },
  },
  notes:
    "Exit codes: 0 handed over, frozen, withheld, continued, or printed; 1 refused, failed, or withheld but still on the disk; 2 the command or a setting was not understood.",
  examples: "cairnlog operator rotate --to new.pem --data /var/lib/cairnlog",
  async run(operands, values, action) {
    if (action !== "withhold") none(operands);
    return ACTIONS[action](values, operands);
  },
});

/** Works with the present key. @returns the exit code */
async function withKey(
  settings: Settings,
  work: (key: OperatorKey, signers: SocketSigner[]) => Promise<number>,
): Promise<number> {
  const signers: SocketSigner[] = [];
  const signing = async () =>
    work(await keyAt(settings.signer ?? operatorKeyPath(settings), settings, signers), signers);
  return closing(signing, () => closeAll(...signers.map((signer) => () => signer.close())));
}

async function rotate(values: Given): Promise<number> {
  const target = required(values.to, "--to");
  const settings = settingsAt(values);
  const path = existingLog(settings.dataDir);
  return withKey(settings, async (from, signers) => {
    const to = await keyAt(target, settings, signers);
    const rotated = (await isHandedOver(settings, path, from, to)) ? null : await handOver(settings, path, from, to);
    const isPlaced = settings.signer === null && settings.operatorKey === null && !isSocket(target);
    const file = operatorKeyPath(settings);
    const place = async () => {
      // The private key comes last: a run that finds the new one there has nothing left to do.
      await putInPlace(operatorPublicKeyPath(settings.dataDir), null, to.public.pem);
      return isPlaced ? putInPlace(file, from, readPrivateKey(target)) : null;
    };
    const retired = await place().catch((cause: Error) => {
      const why = isSystemError(cause) ? systemSentence(cause, settings.dataDir) : cause.message;
      // Without its key, the log would have come to its end.
      const detail = `The log is handed over to ${to.fingerprint}, so keep ${target}. Run the command again, which puts the keys in place: ${why}`;
      throw new CairnlogError("storage-failed", detail, { cause });
    });
    const keys = { old_fingerprint: from.fingerprint, fingerprint: to.fingerprint };
    const placed = { operator_key_file: isPlaced ? file : null, retired_key_file: retired };
    console.log(
      values.json
        ? printableJson({ ...keys, rotated, ...placed, data_dir: settings.dataDir })
        : printable(described(rotated, keys, retired, target)),
    );
    return 0;
  });
}

async function freeze(values: Given): Promise<number> {
  const ending = endingOf(values);
  const at = values.at === undefined ? null : readDeadline(values.at);
  if (at !== null && values.server === undefined)
    throw new UsageError("--at is for a service that runs: give --server, too");
  const settings = settingsAt(values);
  const publicOrigin = publicOriginOf(values.as);
  return withKey(settings, async (key) => {
    const { server } = values;
    const sth = await (server === undefined
      ? freezeLog(settings, key, ending)
      : interruptible((signal) =>
          freezeAt({ server: webAddress(server, "--server"), publicOrigin, key, ending, at, signal, say }),
        ));
    console.log(
      values.json
        ? printableJson({ ...ending, sth })
        : printable(`The log is frozen. Its last head is of size ${sth.tree_size}, with the root ${sth.root_hash}.`),
    );
    return 0;
  });
}

const say = (sentence: string): void => console.error(printable(sentence));

const STILL_THERE =
  "\nThe disks of its nodes still have it: restart each of them. With a journal in PostgreSQL, run cairnlog replicate erase.";

async function withholdEntry(values: Given, operands: readonly string[]): Promise<number> {
  const entryId = readNumber(only(operands, "ENTRY"), "ENTRY");
  const reason = required(values.reason, "--reason");
  const member = values.member === undefined ? undefined : { member: memberOf(values.member) };
  const settings = settingsAt(values);
  const publicOrigin = publicOriginOf(values.as);
  return withKey(settings, async (key) => {
    const { server, basis = null } = values;
    const place = server === undefined ? { settings } : { server: webAddress(server, "--server"), publicOrigin };
    const { withheldBy, staysBecause } = await withholdAt(place, key, entryId, { reason, basis, ...member });
    console.log(
      values.json
        ? printableJson({ entry_id: entryId, withheld_by: withheldBy, reason, basis, ...member })
        : printable(
            `Entry ${withheldBy} withholds ${member ? "the name in" : "what"} entry ${entryId}${member ? "" : " says"}.${server === undefined ? "" : STILL_THERE}`,
          ),
    );
    if (staysBecause === null) return 0;
    say(`The disk still has it, until a start of the service can take it away: ${staysBecause}`);
    return 1;
  });
}

function memberOf(member: string): "pseudonym" {
  if (member !== "pseudonym") throw new UsageError("--member must be pseudonym: nothing else can be withheld alone");
  return member;
}

async function goOn(values: Given): Promise<number> {
  const url = required(values.predecessor, "--predecessor");
  const operatorKey = readPublicKey(required(values["predecessor-key"], "--predecessor-key")).pem;
  const settings = settingsAt(values);
  return withKey(settings, async (key) => {
    const predecessor = await endedLog(webAddress(url, "--predecessor"), operatorKey, await vkeyOf(settings));
    const made = await continueLog(settings, key, predecessor);
    const { tree_size, root_hash } = predecessor.tree_head;
    const said = made ? "goes on" : "went on already";
    console.log(
      values.json
        ? printableJson({ predecessor, sth: made?.sth ?? null })
        : printable(
            `This log ${said} from the ${tree_size} entries at ${predecessor.url}, whose root is ${root_hash}.`,
          ),
    );
    return 0;
  });
}

async function vkey(values: Given): Promise<number> {
  const key = await vkeyOf(settingsAt(values));
  console.log(values.json ? printableJson({ vkey: key }) : printable(key));
  return 0;
}

async function token(values: Given): Promise<number> {
  none(values.to === undefined ? [] : ["--to"]);
  if (!values["read-only"]) throw new UsageError("--read-only is missing: tokens that can write come from a sign-in");
  const hours = Number(values.hours);
  if (!Number.isInteger(hours) || hours < 1 || hours > MAX_HOURS)
    throw new UsageError(`--hours must be a whole number from 1 to ${MAX_HOURS}`);
  const settings = settingsAt(values);
  return withKey(settings, async (key) => {
    const now = Math.floor(Date.now() / 1000);
    const made = await readOnlyToken(key, now, now + hours * 3600);
    const expires_at = new Date((now + hours * 3600) * 1000).toISOString();
    console.log(values.json ? printableJson({ token: made, expires_at, fingerprint: key.fingerprint }) : made);
    return 0;
  });
}

async function clock(values: Given): Promise<number> {
  const path = existingLog(settingsAt(values).dataDir);
  const compared = compareClocks(path);
  if (values.accept) acceptClock(path);
  if (values.json) console.log(printableJson({ ...compared, accepted: values.accept ?? false }));
  else console.log(printable(comparison(compared, values.accept ?? false)));
  return 0;
}

function comparison({ clock, expected, compared_at }: ClockComparison, isAccepted: boolean): string {
  const known =
    expected === null
      ? compared_at === null
        ? "The log has kept nothing to compare it with."
        : `The log was last open at ${compared_at}, before this machine was started.`
      : `By the time since the machine was started it should say ${expected}.`;
  const done = isAccepted ? "\nIt is taken for right." : "";
  return `The clock says ${clock}.\n${known}${done}`;
}

/** Whether an earlier run came so far that the log belongs to the new key, and not so far that its file is in place. */
async function isHandedOver(
  { minFreeBytes }: Settings,
  path: string,
  from: OperatorKey,
  to: OperatorKey,
): Promise<boolean> {
  if (from.fingerprint === to.fingerprint) return false;
  try {
    const log = await openLog({ path, signer: to, projection, minFreeBytes });
    const isRetired = log.operators.rotations.at(-1)?.old_fingerprint === from.fingerprint;
    await log.close();
    return isRetired;
  } catch (error) {
    if (error instanceof CairnlogError && error.code === "wrong-operator") return false;
    throw error;
  }
}

/** @throws CairnlogError also for a log that the service would not start with: a rotation signs a head, too */
async function handOver(settings: Settings, path: string, from: OperatorKey, to: OperatorKey): Promise<Rotated> {
  await (await openSoundLog(settings, path, from)).close();
  return rotateOperatorKey({ path, from, to, projection, minFreeBytes: settings.minFreeBytes });
}

function described(
  rotated: Rotated | null,
  keys: { readonly old_fingerprint: string; readonly fingerprint: string },
  retired: string | null,
  target: string,
): string {
  const done = rotated
    ? `Entry ${rotated.log_entry_id} hands the log from ${keys.old_fingerprint} to ${keys.fingerprint}.`
    : `The log had been handed over to ${keys.fingerprint} before.`;
  const rest =
    retired === null
      ? `Set ${isSocket(target) ? "SERVICE_SIGNER" : "SERVICE_OPERATOR_KEY"} to ${target} before you start the service.`
      : `The new key is in place. The old one is in ${retired}: keep it apart, or destroy it.`;
  return `${done}\n${rest}\nPublish the new public key where people know the old one from.`;
}

/**
 * `cairnlog monitor`: follows a log, mirrors the verified entries, and raises an alarm if the log misbehaves or stalls.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { CairnlogError, type ErrorCode } from "../../../engine/base/error.js";
import { frozenBy } from "../../../engine/log/operator/entries.js";
import { canonicalFingerprint } from "../../../engine/registry/events/keys.js";
import { eventIn, membersIn } from "../../../engine/verify/events/withheld.js";
import type { Entry } from "../../../engine/verify/index.js";
import { ClientError } from "../../client/index.js";
import { type Alarm, Misbehaviour, mayPass, OlderHead } from "../../monitor/alarm.js";
import { MonitorFolder } from "../../monitor/folder.js";
import { post } from "../../monitor/notice.js";
import { persistentFetch } from "../../outgoing/traced.js";
import { readInterval, readNumber, webAddress, wholeAddress } from "../connection/connection.js";
import { readPublicKey } from "../files/public-key.js";
import { flag, subcommand, text, textOr, texts, type Values } from "../line/subcommand.js";
import { required, UsageError } from "../line/usage.js";
import { endSentences } from "../printing/ending.js";
import { trustedBy } from "../printing/proof-file.js";
import { interruptible } from "../terminal/interrupt.js";
import { printable, printableJson } from "../terminal/printable.js";
import { type Progress, startProgress } from "../terminal/progress.js";
import { isSystemError, systemSentence } from "../terminal/system-error.js";
import { cairnlogFollower, type Follower, tiledFollower } from "./follower.js";

const OPTIONS = {
  state: text("DIR", "where the operator key, the newest head, the mirror and the evidence are kept; one log each"),
  "operator-key": text("FILE.pem", "the key that signs the log; without it, the first one that is seen is believed"),
  vkey: text("VKEY", "the key that signs the checkpoints of a log of tiles"),
  policy: text("FILE", "its keys, and the witnesses that must have cosigned them (tlog-policy)"),
  unpruned: flag(
    'raise the alarm "missing-entry" when a log of tiles has removed an old bundle; without it, that is only named',
  ),
  watch: texts(
    "FINGERPRINT",
    "tell of new entries that name this key; may be given several times. At first all are new",
  ),
  webhook: text("URL", "POST every alarm there as JSON"),
  "obey-withholding": flag(
    "take payloads that the log's operator withholds from the mirror, too, with the round that tells so",
  ),
  once: flag("one round, for timers; without it the log is followed until the monitor is interrupted"),
  audit: flag("compare every mirrored entry, in every round, not just a page"),
  interval: textOr("SECONDS", "60", "between rounds"),
  "max-silence": text("SECONDS", 'raise the alarm "stalled" when the newest head is older, by this machine\'s clock'),
  patience: textOr("SECONDS", "30", "for which a log is asked again that denies something, or shows an older head"),
  json: flag("one line of JSON for each alarm and each round"),
} as const;

/** Exit codes by the outcome of a run. */
const EXIT = { fine: 0, unfinished: 1, misbehaviour: 3, watched: 4, stalled: 5 } as const;
const LONGEST_PAUSE_S = 600;
const STALL_CHECK_MS = 1_000;
const ASK_AGAIN_MS = 1_000;

export const monitor = subcommand({
  forms: ["URL --state DIR"],
  about: `Fetches every entry and every signed tree head of the log at URL, derives all of it again, and keeps a verified copy in
DIR/mirror, which cairnlog serve --read-only can serve. Each round checks that the newest head is signed by the operator key
and goes on from the last one, takes what is new, and compares a page of what it has with what is served now. It can be
stopped and killed at any moment, and goes on where it was.

A log that misbehaves is told on stderr (with --json as a line of JSON on stdout) and to the webhook; the evidence is kept
in DIR/evidence, nothing of the lie enters the mirror, and the monitor ends. docs/monitor.md says what each alarm means and
how to check the evidence.

With --vkey or --policy, any log of checkpoints and tiles as c2sp.org defines them (tlog-tiles) is followed: URL is then its
address before /checkpoint, for a cairnlog https://log.example/tlog. The copy in DIR/mirror has the log's own paths, and any
web server can serve it.`,
  options: OPTIONS,
  notes: `Exit codes: 0 nothing to tell, or interrupted; 1 could not finish; 2 the command was not understood; 3 the log misbehaved;
with --once also 4 a watched key was named; 5 the log is stalled.`,
  examples: "cairnlog monitor https://log.example --state /var/lib/cairnlog-monitor --operator-key operator.pub.pem",
  async run(positionals, values) {
    const [server, more] = positionals;
    if (server === undefined) throw new UsageError("name the URL of a log");
    if (more !== undefined) throw new UsageError(`${more} is one argument too many`);
    return interruptible((signal) => new Run(server, values, signal).toItsEnd());
  },
});

type Given = Values<typeof OPTIONS>;

class Run {
  readonly #server: string;
  readonly #values: Given;
  readonly #interval: number;
  readonly #maxSilence: number | null;
  /** Milliseconds. */
  readonly #patience: number;
  readonly #webhook: string | undefined;
  readonly #folder: MonitorFolder;
  #follower: Follower;
  readonly #interrupted: AbortSignal;
  readonly #started = Date.now();
  #progress: { readonly what: string; readonly bar: Progress } | null = null;
  #hasSeenWatched = false;
  /** The beginning of the silence for which an alarm was raised. */
  #told: number | null = null;
  /** When the first of the rounds began that have not ended well since one that did, by a clock that nobody sets. */
  #unfinishedSince: number | null = null;
  /** When the first of the rounds ended that have all seen an older head, by a clock that nobody sets. */
  #olderSince: number | null = null;

  constructor(server: string, values: Given, interrupted: AbortSignal) {
    this.#interrupted = interrupted;
    this.#server = webAddress(server, "URL");
    this.#values = values;
    this.#interval = readInterval(values.interval);
    const silence = values["max-silence"];
    this.#maxSilence = silence === undefined ? null : readNumber(silence, "--max-silence");
    this.#patience = readNumber(values.patience, "--patience") * 1000;
    this.#webhook = values.webhook === undefined ? undefined : wholeAddress(values.webhook, "--webhook");
    this.#folder = new MonitorFolder(required(values.state, "--state"));
    this.#follower = this.#newFollower();
  }

  /** @throws UsageError; CairnlogError for a key or policy that is none */
  #newFollower(): Follower {
    const { vkey, policy, watch, unpruned, "operator-key": operatorKey } = this.#values;
    const obeysWithholding = this.#values["obey-withholding"];
    const options = {
      server: this.#server,
      folder: this.#folder,
      fetch: persistentFetch({ signal: this.#interrupted, say: (sentence) => this.#say(sentence) }),
      patience: this.#patience,
      onProgress: (what: "entries" | "audit", done: number, total: number) => this.#showProgress(what, done, total),
    };
    if (vkey === undefined && policy === undefined) {
      if (unpruned) throw new UsageError("--unpruned is for a log of tiles: give --vkey or --policy, too");
      return cairnlogFollower({
        ...options,
        operatorKey: operatorKey && readPublicKey(operatorKey).pem,
        obeysWithholding,
        watched: new Set(watch.map(readFingerprint)),
        onWatched: (entry, fingerprint) => this.#tellWatched(entry, fingerprint),
        onRotation: (entry) => this.#tellRotation(entry),
        onFrozen: (entry) => this.#tellEnd(entry),
      });
    }
    if (operatorKey !== undefined || watch.length || obeysWithholding)
      throw new UsageError(
        "--operator-key, --watch and --obey-withholding are for a cairnlog, --vkey and --policy for any log of tiles",
      );
    const trusted = trustedBy(vkey, policy);
    if (!trusted.logs.length) throw new UsageError("the policy names no log: give --vkey, too");
    const onFrozen = (entry: Entry) => this.#tellEnd(entry);
    return tiledFollower({ ...options, policy: trusted, isUnpruned: unpruned, onFrozen });
  }

  async toItsEnd(): Promise<number> {
    const { once } = this.#values;
    const signal = this.#interrupted;
    // Independent of the rounds, because a round may be waiting for an answer.
    const check = () => void this.#checkSilence().catch((error: Error) => this.#say(error.message));
    const watchdog = once ? undefined : setInterval(check, STALL_CHECK_MS);
    try {
      for (let failures = 0; ; ) {
        const isDone = await this.#round();
        failures = isDone ? 0 : failures + 1;
        if (once) return this.#verdict(isDone || signal.aborted, await this.#checkSilence());
        const pause = Math.max(this.#interval, Math.min(LONGEST_PAUSE_S, this.#interval * 2 ** failures));
        await sleep(pause * 1000, undefined, { signal }).catch(() => {});
        if (signal.aborted) return EXIT.fine;
      }
    } catch (error) {
      if (!(error instanceof Misbehaviour)) throw error;
      await this.#accuse(error);
      return EXIT.misbehaviour;
    } finally {
      clearInterval(watchdog);
      await this.#follower.close();
    }
  }

  /** @returns whether the round was completed. @throws Misbehaviour, and errors that waiting cannot cure */
  async #round(): Promise<boolean> {
    this.#unfinishedSince ??= performance.now();
    try {
      await this.#askUntilCertain();
    } catch (error) {
      if (error instanceof OlderHead) this.#judgeOlder(error);
      if (isFinal(error)) throw error;
      if (!this.#interrupted.aborted) this.#say((error as Error).message);
      // Nobody knows what such an error left in memory. What is on disk was verified before it was written.
      if (!(error instanceof ClientError)) await this.#startAgain(error as Error);
      return false;
    } finally {
      this.#progress?.bar.end();
      this.#progress = null;
    }
    this.#olderSince = null;
    this.#unfinishedSince = null;
    const { text, json } = await this.#follower.verified();
    console.log(this.#values.json ? printableJson(json) : printable(text));
    return true;
  }

  /** After an error that nobody foresaw: the log chose what the round was about, and must not end who watches it. */
  async #startAgain({ stack }: Error): Promise<void> {
    this.#say(`The round failed by an error of this program, and is tried again. Please report it: ${stack}`);
    await this.#follower.close().catch(() => {});
    this.#follower = this.#newFollower();
  }

  /**
   * One round. Where it ends with something that a node which is behind, or a cache, could have caused, it is begun again
   * until the patience ends: the next answer may come from another one.
   */
  async #askUntilCertain(): Promise<void> {
    const signal = this.#interrupted;
    for (const until = performance.now() + this.#patience; ; ) {
      try {
        return await this.#follower.round({ audit: this.#values.audit });
      } catch (error) {
        if (!mayPass(error) || performance.now() >= until || signal.aborted) throw error;
        await sleep(ASK_AGAIN_MS, undefined, { signal }).catch(() => {});
      }
    }
  }

  /** @throws Misbehaviour if the log has shown nothing but older heads for longer than it may be silent */
  #judgeOlder({ misbehaviour }: OlderHead): void {
    this.#olderSince ??= performance.now();
    if (this.#maxSilence !== null && performance.now() - this.#olderSince > this.#maxSilence * 1000) throw misbehaviour;
  }

  #verdict(isDone: boolean, isStalled: boolean): number {
    if (isStalled) return EXIT.stalled;
    if (!isDone) return EXIT.unfinished;
    return this.#hasSeenWatched ? EXIT.watched : EXIT.fine;
  }

  /**
   * Raises the alarm once for each silence. A silence begins at the timestamp of the newest verified head, or at the
   * start if there is none. It counts when it is longer than the allowed time. Answers without a newer head do not end
   * it. A log that has ended shows no newer one: its silence begins with the first round that is not finished.
   */
  async #checkSilence(): Promise<boolean> {
    if (this.#maxSilence === null) return false;
    const { isFrozen } = this.#follower;
    const head = await this.#follower.newest();
    const shown = head ? Date.parse(head.timestamp) : this.#started;
    const [since, now] = isFrozen ? [this.#unfinishedSince, performance.now()] : [shown, Date.now()];
    if (since === null || now - since <= this.#maxSilence * 1000) return false;
    if (this.#told !== since) {
      this.#told = since;
      const what = isFrozen
        ? "The log has ended, and no round was finished for"
        : head
          ? `No tree head newer than that of ${head.timestamp} was seen, for`
          : "No tree head was seen for";
      await this.#raise({ alarm: "stalled", detail: `${what} more than ${this.#maxSilence} s.` });
    }
    return true;
  }

  async #tellWatched(entry: Entry, fingerprint: string): Promise<void> {
    this.#hasSeenWatched = true;
    const detail = `Entry ${entry.id} (${entry.event_type}, ${entry.timestamp}) names ${fingerprint}.`;
    await this.#raise({ alarm: "watched", detail, entry, fingerprint });
  }

  async #tellRotation(entry: Entry): Promise<void> {
    const { old_fingerprint, fingerprint } = membersIn(entry);
    const detail = `Entry ${entry.id} (${entry.timestamp}) hands the log from operator key ${old_fingerprint} to ${fingerprint}.`;
    await this.#raise({ alarm: "rotated", detail, entry });
  }

  async #tellEnd(entry: Entry): Promise<void> {
    await this.#raise({ alarm: "frozen", detail: endSentences(frozenBy(eventIn(entry))!), entry });
  }

  async #accuse({ kind, message: detail, evidence }: Misbehaviour<NonNullable<Alarm["evidence"]>>): Promise<void> {
    await this.#raise({ alarm: kind, detail, evidence });
  }

  async #raise(told: Pick<Alarm, "alarm" | "detail" | "entry" | "fingerprint" | "evidence">): Promise<void> {
    const head = await this.#follower.newest();
    const alarm: Alarm = { ...told, server: this.#server, observed_at: new Date().toISOString(), head };
    const { evidence, ...line } = alarm;
    const kept = evidence && this.#keepEvidence(alarm);
    const shown = kept?.file === undefined ? alarm : { ...line, evidence_file: kept.file };
    if (this.#values.json) console.log(printableJson(shown));
    // No lie: what the operator announces, people should hear from the log, too.
    const prefix = alarm.alarm === "rotated" || alarm.alarm === "frozen" ? "NOTICE" : "ALARM";
    this.#say(`${prefix} ${alarm.alarm}: ${alarm.detail}${kept ? ` ${kept.sentence}` : ""}`);
    // The lie may never be shown again, so nobody else can be asked for what was received.
    if (kept && kept.file === undefined && !this.#values.json) console.error(printableJson(alarm));
    const refusal = this.#webhook === undefined ? null : await post(this.#webhook, alarm);
    if (refusal !== null) this.#say(`The alarm could not be posted to the webhook: ${refusal}.`);
  }

  /** Keeps the evidence in a file. A failure to write it must not stop the alarm. */
  #keepEvidence(alarm: Alarm): { readonly file?: string; readonly sentence: string } {
    try {
      const file = this.#folder.keepEvidence(alarm.alarm, alarm.observed_at, alarm);
      return { file, sentence: `The evidence is in ${file}; keep it.` };
    } catch (error) {
      const reason = (isSystemError(error) ? systemSentence(error) : (error as Error).message).replace(/\.$/, "");
      return { sentence: `The evidence could not be written (${reason}): take it from the JSON of this alarm.` };
    }
  }

  #say(sentence: string): void {
    this.#progress?.bar.end();
    console.error(printable(sentence));
  }

  #showProgress(what: "entries" | "audit", done: number, total: number): void {
    if (this.#progress?.what !== what) {
      this.#progress?.bar.end();
      this.#progress = { what, bar: startProgress(what === "audit" ? "compared" : "verified", total) };
    }
    this.#progress.bar.update(done);
  }
}

/** Errors of the monitor's own folder and disk. Others may be made by what the log sends. */
const OWN_CODES: ReadonlySet<string> = new Set<ErrorCode>([
  "storage-failed",
  "storage-full",
  "corrupt-log",
  "in-use",
  "wrong-operator",
]);

/**
 * Whether an error ends the monitor: misbehaviour of the log, and what waiting cannot cure, which is a key that is not the
 * pinned one, an error of the folder, and wrong options. Any other error makes a round fail, and silence is counted.
 */
function isFinal(error: unknown): boolean {
  if (error instanceof ClientError) return error.code === "operator-key-mismatch";
  if (error instanceof CairnlogError) return OWN_CODES.has(error.code);
  return error instanceof Misbehaviour || error instanceof UsageError || isSystemError(error);
}

/** @throws UsageError */
function readFingerprint(text: string): string {
  const fingerprint = canonicalFingerprint(text);
  if (fingerprint === undefined) throw new UsageError(`--watch must be a fingerprint (sha256: and 64 digits)`);
  return fingerprint;
}

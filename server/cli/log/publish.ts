/** `cairnlog publish`: puts the verified tiles of a log where anybody can serve them. */
import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { formatVkey } from "../../../engine/verify/index.js";
import { Http } from "../../client/base/http.js";
import { ClientError } from "../../client/index.js";
import { ServedTiles } from "../../client/log/served.js";
import { OPERATOR_KEY } from "../../client/static/layout.js";
import { Misbehaviour } from "../../monitor/alarm.js";
import { persistentFetch } from "../../outgoing/traced.js";
import { BucketTarget } from "../../publishing/bucket.js";
import { type Again, type Published, Publisher, Refused, shownKey, WrongTarget } from "../../publishing/publisher.js";
import { type EntrySource, PublishedEntries, ServiceEntries } from "../../publishing/source.js";
import { LEFT_FOR_MS, type Target } from "../../publishing/target.js";
import { readInterval } from "../connection/connection.js";
import { flag, subcommand, text, textOr, type Values } from "../line/subcommand.js";
import { UsageError } from "../line/usage.js";
import { endSentences } from "../printing/ending.js";
import { trustedBy } from "../printing/proof-file.js";
import { filesAt, REGION, targetOf } from "../static/place.js";
import { interruptible } from "../terminal/interrupt.js";
import { printable, printableJson } from "../terminal/printable.js";
import { formatBytes, type Progress, startProgress } from "../terminal/progress.js";

const OPTIONS = {
  vkey: text(
    "VKEY",
    "the key that signs the checkpoints; without it, that in the target, or else the one that the log shows",
  ),
  policy: text("FILE", "its keys, and the witnesses that must have cosigned them (tlog-policy)"),
  entries: flag(
    "publish the entries as they are served, too, with an index by document, and a page that shows and verifies them: SOURCE is the /tlog of a service, follower or mirror, or has published entries; goes without saying where the target has them",
  ),
  endpoint: text("URL", "address of the S3 store (default: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, or else Amazon's)"),
  follow: flag(
    "go on until it is interrupted, or with entries until the log has ended; without it, one round, for timers",
  ),
  interval: textOr("SECONDS", "5", "between rounds"),
  audit: flag("compare all that is in the target, in the first round, and make what is missing"),
  "keep-partial": flag("never remove partial tiles; without it, they go when the full one is a day old"),
  json: flag("one line of JSON for each round that published something"),
} as const;

/** Exit codes by the outcome of a run. */
const EXIT = { fine: 0, unfinished: 1, misbehaviour: 3, refused: 4 } as const;
const LONGEST_PAUSE_S = 60;
const TLOG = "/tlog";

export const publish = subcommand({
  forms: ["SOURCE TARGET"],
  about: `Reads the checkpoint, tiles and entry bundles of a log (tlog-tiles), verifies them, and puts them into a folder, or into a bucket
of an S3 store, which any web server or CDN can serve. SOURCE is the address before /checkpoint, of any node or mirror: for a
cairnlog https://log.example/tlog; or what was published, wherever it is. TARGET is a directory, or s3://BUCKET/PREFIX.
docs/publishing.md says how to serve it.

What is in the target is made once and never replaced; the checkpoint comes last, and never goes back. It can be stopped and
killed at any moment, and goes on where it was.`,
  options: OPTIONS,
  notes: `The credentials of a store are AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, if there is one, AWS_SESSION_TOKEN; its region is
AWS_REGION (default: ${REGION}).

Exit codes: 0 published, or up to date, or with --follow interrupted or at the end of the log; 1 could not finish; 2 the command
was not understood; 3 the log misbehaved, or the target has other bytes than the log; 4 refused: the target has another log, or a
larger tree.`,
  examples: `cairnlog publish https://log.example/tlog /srv/tlog --vkey log.example/tlog+…
cairnlog publish https://log.example/tlog s3://logs/tlog --follow`,
  async run([source, target, more], values) {
    if (source === undefined || target === undefined) throw new UsageError("name the URL of a log, and a target");
    if (more !== undefined) throw new UsageError(`${more} is one argument too many`);
    return interruptible((signal) => new Run(source, target, values, signal).toItsEnd());
  },
});

type Given = Values<typeof OPTIONS>;

class Run {
  readonly #source: ServedTiles;
  /** The service whose tiles are published; null for an address that is no `/tlog`. */
  readonly #service: ServiceEntries | null;
  readonly #target: Target;
  readonly #values: Given;
  readonly #interval: number;
  readonly #interrupted: AbortSignal;
  #publisher: Publisher | null = null;
  #bar: Progress | null = null;
  #hasToldOfPage = false;
  /** When partial tiles were looked for, by a clock that nobody sets. */
  #pruned: number | null = null;
  /** Whether the log has ended, and all of it is published. */
  #isFrozen = false;

  /** @throws UsageError */
  constructor(source: string, target: string, values: Given, interrupted: AbortSignal) {
    this.#values = values;
    this.#interrupted = interrupted;
    this.#interval = readInterval(values.interval);
    if (!/^(?:https?|s3):/.test(source) && !existsSync(source))
      throw new UsageError("SOURCE must be an address, such as https://log.example/tlog, or a folder that is there");
    const files = filesAt(source, (send) => this.#patient(send), "SOURCE");
    this.#source = new ServedTiles(files);
    this.#service =
      files instanceof Http && files.server.endsWith(TLOG)
        ? new ServiceEntries(new Http(files.server.slice(0, -TLOG.length), this.#patient()))
        : null;
    this.#target = targetOf(target, values.endpoint, (send) => this.#patient(send));
  }

  #patient(send?: typeof fetch): typeof fetch {
    return persistentFetch({ signal: this.#interrupted, say: (sentence) => this.#say(sentence), send });
  }

  async toItsEnd(): Promise<number> {
    const { follow } = this.#values;
    const signal = this.#interrupted;
    let again: Again = this.#values.audit ? "all" : "edge";
    for (let failures = 0; ; ) {
      const code = await this.#round(again);
      if (!follow) {
        if (code !== EXIT.fine) signal.throwIfAborted();
        return code;
      }
      if (code === EXIT.misbehaviour || code === EXIT.refused || this.#isFrozen) return code;
      if (code === EXIT.fine) again = "nothing";
      failures = code === EXIT.fine ? 0 : failures + 1;
      const pause = Math.max(this.#interval, Math.min(LONGEST_PAUSE_S, this.#interval * 2 ** failures));
      if (!signal.aborted) await sleep(pause * 1000, undefined, { signal }).catch(() => {});
      if (signal.aborted) return EXIT.fine;
    }
  }

  /** @returns the exit code, if this was the only round. @throws errors that waiting cannot cure */
  async #round(again: Again): Promise<number> {
    try {
      this.#publisher ??= await this.#newPublisher();
      const published = await this.#publisher.round(again);
      const removed = await this.#prune(this.#publisher, published.verdict.checkpoint.treeSize);
      this.#isFrozen = published.end !== null;
      this.#endBar();
      this.#tellOfPage(published);
      if (published.isNew || published.made || removed || again !== "nothing") this.#tell(published, removed);
      return EXIT.fine;
    } catch (error) {
      if (error instanceof Misbehaviour) return this.#accuse(error);
      if (!(error instanceof ClientError || error instanceof WrongTarget)) throw error;
      if (!this.#interrupted.aborted) this.#say(`cairnlog: ${error.message}`);
      if (error instanceof WrongTarget) return EXIT.misbehaviour;
      return error instanceof Refused && !(error.mayPass && this.#values.follow) ? EXIT.refused : EXIT.unfinished;
    } finally {
      this.#endBar();
    }
  }

  async #newPublisher(): Promise<Publisher> {
    const { vkey, policy: file, "keep-partial": keepPartial } = this.#values;
    const isPinned = vkey !== undefined || file !== undefined;
    let policy = trustedBy(vkey, file);
    if (!isPinned) {
      const { key, isNew } = await shownKey(this.#source, this.#target);
      policy = { ...policy, logs: [{ key, url: null }] };
      if (isNew)
        this.#say(
          `The key of the log is ${formatVkey(key)}. It is believed from now on; compare it with what the operator publishes elsewhere.`,
        );
    }
    if (!policy.logs.length) throw new UsageError("the policy names no log: give --vkey, too");
    const [source, target] = [this.#source, this.#target];
    const onProgress = (done: number, total: number) => this.#showProgress(done, total);
    const entries = await this.#entries();
    return new Publisher({ source, target, entries, policy, isPinned, keepPartial, onProgress });
  }

  /** Where to get the entries, if they are to be published: a target that has entries must not lack any. */
  async #entries(): Promise<EntrySource | null> {
    const isThere = (await this.#target.read(OPERATOR_KEY)) !== undefined;
    if (!isThere && !this.#values.entries) return null;
    if (await PublishedEntries.areAt(this.#source)) return new PublishedEntries(this.#source);
    if (this.#service) return this.#service;
    const why = isThere ? `${this.#target.name} has entries, too` : "--entries";
    throw new UsageError(`${why}: SOURCE must be the /tlog of a cairnlog, or have entries that were published`);
  }

  /** Once, and then once a day. */
  async #prune(publisher: Publisher, size: number): Promise<number> {
    if (this.#pruned !== null && performance.now() - this.#pruned < LEFT_FOR_MS) return 0;
    const removed = await publisher.prune(size);
    this.#pruned = performance.now();
    if (this.#target instanceof BucketTarget && this.#target.hasConditions === false)
      this.#say("The store does not know conditional requests: see that nobody else publishes there.");
    return removed;
  }

  #tell({ verdict, isNew, made, bytes, end }: Published, removed: number): void {
    const { origin, treeSize: tree_size, rootHash: root_hash } = verdict.checkpoint;
    const cosigned = verdict.cosigned.map(({ witness }) => witness.name);
    if (this.#values.json) {
      const head = { origin, tree_size, root_hash };
      const round = { published: tree_size, head, cosigned, is_new: isNew, made, bytes, removed };
      console.log(printableJson({ ...round, ...(end && { frozen: end }) }));
      return;
    }
    const by = cosigned.length ? `, cosigned by ${cosigned.join(", ")}` : "";
    const what = isNew ? "published" : "up to date";
    const objects = `${made} objects made (${formatBytes(bytes)})${removed ? `, ${removed} removed` : ""}`;
    console.log(
      printable(`${what}: ${tree_size} entries, root ${root_hash}, checkpoint of ${origin}${by}; ${objects}`),
    );
    if (end) console.log(printable(endSentences(end)));
  }

  /** Once. */
  #tellOfPage({ hasOtherPage }: Published): void {
    if (hasOtherPage && !this.#hasToldOfPage)
      this.#say(`${this.#target.name} has an index.html of its own, which stays: the explorer was not put there.`);
    this.#hasToldOfPage = hasOtherPage;
  }

  #accuse({ kind, message: detail, evidence }: Misbehaviour<NonNullable<Misbehaviour["evidence"]>>): number {
    const alarm = { alarm: kind, detail, server: this.#source.url, observed_at: new Date().toISOString(), evidence };
    this.#say(`ALARM ${kind}: ${detail} Nothing of it was published.`);
    // The lie may never be shown again.
    if (this.#values.json) console.log(printableJson(alarm));
    else console.error(printableJson(alarm));
    return EXIT.misbehaviour;
  }

  #say(sentence: string): void {
    this.#endBar();
    console.error(printable(sentence));
  }

  #showProgress(done: number, total: number): void {
    this.#bar ??= startProgress("published", total);
    this.#bar.update(done);
  }

  #endBar(): void {
    this.#bar?.end();
    this.#bar = null;
  }
}

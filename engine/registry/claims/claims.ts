/**
 * Encrypted claims: opaque payloads on the public log. The registry checks their form and files them under their lookup
 * keys. On request, it checks whether a claim commits to a given plaintext. It cannot decrypt claims.
 */

import { CairnlogError } from "../../base/error.js";
import { Pieces } from "../../base/turns.js";
import type * as contract from "../../contract/signing/claims.js";
import type { Value } from "../../contract/types.js";
import type { Log } from "../../log/log.js";
import type { Clock } from "../../log/state/clock.js";
import { isHexHash } from "../../verify/bytes/encoding.js";
import {
  type ClaimPayload,
  commitmentKind,
  readClaimPayload,
  verifyClaimCommitment,
} from "../../verify/claims/claims.js";
import { isObject, type JsonObject } from "../../verify/json/shape.js";
import type { Entry, EntryDigest } from "../../verify/tree/entry.js";
import { Tries } from "../access/tries.js";
import { committedState } from "../accounts/accounts.js";
import type { Credentials } from "../accounts/credentials.js";
import { claimLookupTerm, ENCRYPTED_CLAIM } from "../events/projection.js";
import { type PageRequest, readPaging } from "../keys/directory.js";
import { invalidInput } from "../shared/input.js";
import type { Caller, Writes } from "../writes/writes.js";
import { checkPoster, postClaim } from "./commands.js";

/** Maximum number of reveals of one claim by one caller in an hour (docs/spec §15.1). */
export const DEFAULT_CLAIM_REVEALS = 30;
/** Maximum bytes of claims that one key may post in 24 hours. An entry of the log stays for ever. */
export const DEFAULT_CLAIM_BYTES_PER_KEY = 16 * 2 ** 20;
const REVEAL_WINDOW_SECONDS = 3_600;
/** Maximum size of one page. A claim may have 350 KB, and anybody who knows a lookup key can file claims under it. */
const MAX_PAGE_BYTES = 8 * 1024 * 1024;

type ClaimReceipt = Value<typeof contract.ClaimReceipt>;

/** The entry of a claim as `GET /claims` serves it. */
interface ClaimEntry extends Pick<Entry, "id" | "timestamp" | "event_type" | "payload" | "entry_hashes"> {
  /** Digests of the entry before it. Empty for the first entry. */
  readonly previous_hashes: readonly Pick<EntryDigest, "algorithm" | "digest_hex">[];
}

/** Each entry is a `ClaimEntry` as it is served (JSON). */
type ClaimPage = Omit<Value<typeof contract.ClaimPage>, "entries"> & { readonly entries: readonly Buffer[] };

/** Neither member is stored or logged. */
export type Reveal = Value<typeof contract.RevealClaim>;

export class Claims {
  readonly #log: Log;
  readonly #writes: Writes;
  readonly #credentials: Pick<Credentials, "hardwareRoots">;
  readonly #reveals: Tries | null;
  readonly #bytesPerKey: number;

  /** Use `openRegistry`. */
  constructor(parts: {
    readonly log: Log;
    readonly writes: Writes;
    readonly credentials: Pick<Credentials, "hardwareRoots">;
    readonly clock: Clock;
    readonly reveals: number | null;
    readonly bytesPerKey: number;
  }) {
    const { log, credentials, clock, reveals } = parts;
    this.#log = log;
    this.#writes = parts.writes;
    this.#credentials = credentials;
    this.#bytesPerKey = parts.bytesPerKey;
    const options = { windowSeconds: REVEAL_WINDOW_SECONDS, clock, about: "reveals of this entry" };
    this.#reveals = reveals === null ? null : new Tries({ limit: reveals, ...options });
  }

  /**
   * Checks that a key may post claims: it must be hardware-backed.
   * @param fingerprint as it is served
   * @throws CairnlogError `forbidden`
   */
  checkPoster(fingerprint: string): void {
    checkPoster(committedState(this.#log), fingerprint, this.#credentials.hardwareRoots);
  }

  /**
   * Appends a claim (`POST /claims`) and resolves when it is on disk. The entry does not contain the poster.
   * @param payload chosen by the client; members that do not belong to a claim are dropped
   * @param poster_fingerprint the key whose possession the caller has verified
   * @throws CairnlogError `unsupported-commitment`, `invalid-input` as `readClaimPayload` does; `key-not-active`;
   *   `forbidden` as `checkPoster` does; `rate-limited` when the key has posted as much as it may; and as `Log.append`
   *   does
   */
  async post(payload: unknown, poster_fingerprint: string, client: Caller | null = null): Promise<ClaimReceipt> {
    const claim: ClaimPayload = readClaimPayload(payload).payload;
    const { receipts } = await this.#writes.execute(
      postClaim,
      {
        claim,
        poster_fingerprint,
        hardware_roots: this.#credentials.hardwareRoots,
        quota: this.#bytesPerKey,
      },
      client,
      poster_fingerprint,
    );
    const { log_entry_id, leaf_index } = receipts[0]!;
    const { commitment, lookup_key } = claim;
    return { entry_id: log_entry_id, commitment, lookup_key, leaf_index, log_entry_id };
  }

  /**
   * Claims with a lookup key, oldest first (`GET /claims`). Anybody who knows the key may read them.
   * @throws CairnlogError `invalid-input` for a page below 1, not 1 to 200 a page, or a page of more than 8 MiB
   */
  async list(lookupKey: string, paging: PageRequest = {}): Promise<ClaimPage> {
    const { page, per_page } = readPaging(paging);
    const found = this.#log.postings(claimLookupTerm(lookupKey));
    const total = found.length;
    const start = (page - 1) * per_page;
    const count = Math.max(0, Math.min(per_page, total - start));
    // The indexes are read before the first pause, because the list is valid only until the next append.
    const indexes = Array.from({ length: count }, (_, rank) => found.at(start + rank));
    const entries: Buffer[] = [];
    const pieces = new Pieces();
    let bytes = 0;
    for (const leafIndex of indexes) {
      await pieces.rest();
      const entry = this.#log.entryAt(leafIndex)!;
      // Its payload was withheld while this list was made, so it belongs to none any more.
      if (!entry.payload) return this.list(lookupKey, paging);
      const json = Buffer.from(JSON.stringify(this.#view(entry)));
      bytes += json.length;
      if (bytes > MAX_PAGE_BYTES) throw pageTooLarge(entries.length);
      entries.push(json);
    }
    return { entries, page, per_page, total };
  }

  /**
   * One claim as it was posted (`GET /claims/{entry_id}`): without `event_type`, which the log added.
   * @throws CairnlogError `not-found` when no claim has this id
   */
  payload(id: number): JsonObject {
    const entry = this.#log.entry(id);
    if (entry?.event_type !== ENCRYPTED_CLAIM)
      throw new CairnlogError("not-found", `The log has no encrypted claim with the id ${id}.`);
    if (!entry.payload)
      throw new CairnlogError("gone", `The payload of entry ${id} is withheld by entry ${entry.withheld_by}.`);
    const { event_type: _, ...claim } = entry.payload;
    return claim;
  }

  /**
   * Whether a claim commits to a plaintext (`POST /claims/{entry_id}/reveal`). The comparison takes constant time.
   * @param caller fingerprint of the key whose possession was verified
   * @throws CairnlogError `not-found`; `precondition-failed` for an entry without a keyed commitment, which earlier
   *   versions allowed; `commitment-key-missing`; `invalid-input`, `not-i-json`; `rate-limited`
   */
  reveal(id: number, { plaintext, commitment_key }: Reveal, caller: string): { readonly valid: boolean } {
    const payload = this.payload(id);
    if (commitmentKind(payload) !== "keyed" || !isHexHash(payload.commitment))
      throw new CairnlogError(
        "precondition-failed",
        "This entry is older than keyed commitments. Its commitment is not revealed to the service but checked offline.",
      );
    if (!isObject(plaintext)) throw invalidInput("/plaintext", "The plaintext must be an object.");
    // Counted before the evaluation, so that a caller over the limit learns nothing and costs nothing.
    this.#reveals?.take(`${id} ${caller}`);
    return { valid: verifyClaimCommitment(payload, plaintext, commitment_key) };
  }

  #view({ id, timestamp, event_type, payload, entry_hashes }: Entry): ClaimEntry {
    const digests = this.#log.entryAt(this.#log.leafIndexOf(id)! - 1)?.entry_hashes ?? [];
    const previous_hashes = digests.map(({ algorithm, digest_hex }) => ({ algorithm, digest_hex }));
    return { id, timestamp, event_type, payload, previous_hashes, entry_hashes };
  }
}

const pageTooLarge = (fitting: number): CairnlogError =>
  invalidInput("/per_page", `The claims of this page are larger than 8 MiB. Ask for at most ${fitting} to a page.`);

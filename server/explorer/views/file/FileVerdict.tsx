/** Who signed the file, when, and whether the log proves it. The receipt is judged, if there is one, and what the log has. */
import type { ComponentChildren } from "preact";
import type { Entry } from "../../../../engine/verify/index.js";
import { FailedVerdict, KeyName, RecordedOn, Verdict } from "../../components/index.js";
import { teller } from "../../state/source.js";
import type { CheckedReceipt } from "./ReceiptCard.js";
import type { ClaimRecords } from "./records.js";
import type { Result } from "./results.js";

/** More are counted, not named. */
const MAX_NAMED = 3;
const NUMBER = new Intl.NumberFormat();

interface FileVerdictProps {
  /** Undefined while it is fetched. */
  readonly claims: ClaimRecords | undefined;
  readonly error: unknown;
  readonly results: readonly Result[];
  /** Undefined if there is none, null while it is checked. */
  readonly receipt: CheckedReceipt | null | undefined;
}

export function FileVerdict({ claims, error, results, receipt }: FileVerdictProps) {
  const bundle = receipt?.bundle;
  const isInReceipt = ({ entry }: Result) => entry.entry_hash === bundle?.entry.entry_hash;
  // A receipt that holds has all that was signed, also what the log does not show.
  const standing = (wanted: string) =>
    results.filter((each) => {
      const found = each.checked?.standing;
      return wanted === (found === "open" && isInReceipt(each) ? "holds" : found);
    });
  const [fitting, wrong, open] = [standing("holds"), standing("wrong"), standing("open")];
  const failed = results.find((result) => result.error !== undefined);
  if (receipt?.verdict === "withheld") return <Verdict finding="open">{faultOf(receipt.checks)}</Verdict>;
  if (receipt && !receipt.valid)
    return <Verdict finding="wrong">The receipt does not hold for this file: {faultOf(receipt.checks)}</Verdict>;
  if (wrong[0])
    return (
      <Verdict finding="wrong">
        An attestation of this file in the log does not hold: {faultOf(wrong[0].checked!.checks)}
      </Verdict>
    );
  if (error !== undefined) return <FailedVerdict error={error} what="What the log has about this file" />;
  if (failed) return <FailedVerdict error={failed.error} what="An attestation of this file" />;
  const isBusy = results.some(({ checked }) => checked === undefined) || results.length < (claims?.claims.length ?? 0);
  if (receipt === null || claims === undefined || isBusy) return <Verdict finding="busy">Checking the file…</Verdict>;
  const sound = fitting.filter(({ checked }) => checked!.key.status !== "revoked");
  const signers = fitting.map(({ entry, checked }) => ({
    fingerprint: checked!.event.signer_key_fingerprint,
    name: checked!.key.pseudonym,
    entry,
  }));
  const isListed = fitting.some(isInReceipt);
  const all = bundle && !isListed ? [{ ...signerOf(bundle), name: undefined }, ...signers] : signers;
  const revoked = fitting.length - sound.length;
  const rest = [
    open.length > 0 &&
      `Of ${counted(open.length, "more attestation")}, the signature can be checked only with the signer’s .attestation.json.`,
    revoked > 0 && `${teller()} says that ${revoked === 1 ? "a key was" : `${revoked} of the keys were`} revoked.`,
    results.length < claims.total &&
      `${NUMBER.format(results.length)} of ${counted(claims.total, "attestation")} were checked here.`,
  ].filter(Boolean);
  if (all.length === 0)
    return (
      <Verdict finding="open">
        {open.length > 0
          ? "The log has this file on record, but no signature could be checked here: drop its .attestation.json, too."
          : `${teller()} says that nobody has signed this file, and nothing proves that.`}
      </Verdict>
    );
  return (
    <Verdict finding={sound.length > 0 || (bundle && !isListed) ? "holds" : "open"}>
      This file was signed by {named(all)}; the log proves it. {rest.join(" ")}
    </Verdict>
  );
}

interface Signer {
  readonly fingerprint: string;
  readonly name: string | undefined;
  readonly entry: Entry;
}

const signerOf = ({ attestation, entry }: NonNullable<CheckedReceipt["bundle"]>) => ({
  fingerprint: attestation.signer_key_fingerprint,
  entry,
});

/** "Ada on …, Grace on … and 3 more". */
function named(signers: readonly Signer[]): ComponentChildren {
  const more = signers.length - MAX_NAMED;
  const shown = signers.slice(0, MAX_NAMED);
  return (
    <>
      {shown.map(({ fingerprint, name, entry }, i) => (
        <span key={entry.entry_hash}>
          {i > 0 && (i === shown.length - 1 && more <= 0 ? " and by " : ", by ")}
          <KeyName fingerprint={fingerprint} name={name} isLink />
          <RecordedOn entry={entry} />
        </span>
      ))}
      {more > 0 && ` and ${NUMBER.format(more)} more`}
    </>
  );
}

const faultOf = (checks: CheckedReceipt["checks"]): string => checks.find(({ ok }) => !ok)?.detail ?? "";

const counted = (count: number, what: string): string => `${NUMBER.format(count)} ${what}${count === 1 ? "" : "s"}`;

/** Signing the file: the form, the submission, and the receipt, which is verified before it is shown. */
import { useId, useRef, useState } from "preact/hooks";
import { KeyDetail } from "../../../../engine/contract/identity/keys.js";
import { type BundleCheck, verifyBundle } from "../../../../engine/verify/index.js";
import { PSEUDONYM } from "../../../../engine/verify/keys/contract.js";
import { type Attested, ClientError } from "../../../client/index.js";
import { DownloadIcon, Loading, ProblemNote, saveJson } from "../../components/index.js";
import { raiseFor } from "../../state/alarm.js";
import { announce } from "../../state/announcements.js";
import { viewAddress } from "../../state/location.js";
import { client, clientOf, http } from "../../state/service.js";
import { useTask } from "../../state/task.js";
import type { BrowserKey } from "./browserkeys.js";
import { Checks } from "./Checks.js";

const TYPES: readonly (readonly [type: string, label: string])[] = [
  ["authorship", "I wrote it, or a part of it"],
  ["editorial_review", "I reviewed and approved it as an editor"],
  ["peer_review", "I reviewed it for accuracy"],
  ["publication", "I published it"],
];

interface Done extends Attested {
  readonly checks: readonly BundleCheck[];
}

export interface FileToSign {
  readonly hash: string;
  readonly fileName: string;
  /** Called after an attestation of the file was recorded. */
  recorded(): void;
}

export function SignForm({ signingKey, hash, fileName, recorded }: FileToSign & { readonly signingKey: BrowserKey }) {
  const [done, setDone] = useState<Done | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const known = useTask(() => registered(signingKey.fingerprint), [signingKey.fingerprint, done]);
  const sign = async (fields: FormData) => {
    const text = (name: string) => `${fields.get(name) ?? ""}`.trim();
    setBusy(true);
    setError(null);
    setDone(null);
    try {
      const attested = await clientOf(signingKey.signer).attest(
        { title: text("title"), content_hash: hash },
        { type: text("type"), pseudonym: text("pseudonym") || undefined, intent: text("intent") || undefined },
      );
      const operatorKey = await client.log.operatorKey();
      const { checks } = await verifyBundle(attested.bundle, { fileHash: hash, operatorKey });
      setDone({ ...attested, checks });
      announce("Your attestation is recorded, and its receipt is verified.");
      recorded();
    } catch (reason) {
      raiseFor(reason);
      setError(reason);
    } finally {
      setBusy(false);
    }
  };
  if (known.error !== undefined) return <ProblemNote error={known.error} retry={known.retry} />;
  if (known.value === undefined) return <Loading what="the registration of the key" rows={3} />;
  return (
    <>
      <Fields
        fileName={fileName}
        pseudonym={known.value?.named ? known.value.pseudonym : null}
        unsigned={known.value?.named === false ? known.value.pseudonym : null}
        isBusy={isBusy}
        sign={sign}
      />
      {error !== null && <ProblemNote error={error} />}
      {done && <Receipt done={done} fileName={fileName} />}
    </>
  );
}

/** The key in the log's registry; null if it is not registered. */
async function registered(fingerprint: string) {
  try {
    return await http.get(KeyDetail, `/keys/${encodeURIComponent(fingerprint)}`);
  } catch (error) {
    if (error instanceof ClientError && error.status === 404) return null;
    throw error;
  }
}

interface FieldsProps {
  readonly fileName: string;
  /** The pseudonym that the key has signed; null if it has signed none. */
  readonly pseudonym: string | null;
  /** The pseudonym that the log has for the key and that the key has not signed. */
  readonly unsigned: string | null;
  readonly isBusy: boolean;
  sign(fields: FormData): void;
}

function Fields({ fileName, pseudonym, unsigned, isBusy, sign }: FieldsProps) {
  const id = useId();
  const form = useRef<HTMLFormElement>(null);
  const submit = (event: Event) => {
    event.preventDefault();
    if (form.current && !isBusy) sign(new FormData(form.current));
  };
  return (
    <form ref={form} class="sign-form" onSubmit={submit}>
      <div class="field">
        <label for={`${id}title`}>Title of the document</label>
        <input id={`${id}title`} name="title" class="input" required maxLength={500} defaultValue={fileName} />
      </div>
      <div class="field">
        <label for={`${id}type`}>What you attest</label>
        <select id={`${id}type`} name="type" class="input">
          {TYPES.map(([type, label]) => (
            <option key={type} value={type}>
              {label}
            </option>
          ))}
        </select>
      </div>
      {pseudonym === null ? (
        <div class="field">
          <label for={`${id}pseudonym`}>Your name in the log (anyone can read it, for ever)</label>
          <input
            id={`${id}pseudonym`}
            name="pseudonym"
            class="input"
            required
            maxLength={PSEUDONYM.max}
            autocomplete="nickname"
          />
          {unsigned !== null && (
            <p class="soft">
              The log knows this key as <strong class="breakable">{unsigned}</strong>, which the key has not signed:
              anybody may have recorded that. The name that you give now takes its place.
            </p>
          )}
        </div>
      ) : (
        <p>
          The log knows this key as <strong class="breakable">{pseudonym}</strong>.
        </p>
      )}
      <div class="field">
        <label for={`${id}intent`}>Statement (may be empty)</label>
        <textarea id={`${id}intent`} name="intent" class="input" rows={2} maxLength={4096} />
      </div>
      <p class="soft">
        Title, name, statement and the file's hash become public and stay so. The file itself is not sent.
      </p>
      <button type="submit" class="button button-strong" disabled={isBusy}>
        {isBusy ? "Signing…" : "Sign and record"}
      </button>
    </form>
  );
}

function Receipt({
  done: { receipt, bundle, checks, notice },
  fileName,
}: {
  readonly done: Done;
  readonly fileName: string;
}) {
  const { duplicate, log_entry_id } = receipt;
  return (
    <section class="receipt" aria-label="Your receipt">
      <h3>
        {duplicate ? "You have signed this before:" : "Recorded as"}{" "}
        <a href={viewAddress(["entries", log_entry_id])}>entry {log_entry_id}</a>
      </h3>
      <Checks checks={checks} />
      {notice !== undefined && <p>{notice}</p>}
      <p>
        Keep this file beside yours: with both, anybody can check your signature without this service, by dropping them
        here or with <code>cairnlog verify</code>.
      </p>
      <button
        type="button"
        class="button button-strong"
        onClick={() => saveJson(`${fileName}.attestation.json`, bundle)}
      >
        <DownloadIcon /> Save {fileName}.attestation.json
      </button>
    </section>
  );
}

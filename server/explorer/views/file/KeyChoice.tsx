/** Chooses the browser's key that signs; also makes, exports and deletes keys. */
import { useId, useState } from "preact/hooks";
import { Badge, Hash, saveFile, shortened } from "../../components/index.js";
import { announce } from "../../state/announcements.js";
import { viewAddress } from "../../state/location.js";
import { type BrowserKey, exportKey, forgetKey, makeKey } from "./browserkeys.js";

interface KeyChoiceProps {
  readonly keys: readonly BrowserKey[];
  readonly chosen: BrowserKey | undefined;
  choose(fingerprint: string): void;
  /** Called after the list of keys has changed. */
  changed(): void;
}

export function KeyChoice({ keys, chosen, choose, changed }: KeyChoiceProps) {
  const id = useId();
  return (
    <div class="key-choice">
      {chosen ? (
        <>
          {keys.length > 1 && (
            <div class="field">
              <label for={id}>Key</label>
              <select
                id={id}
                class="input"
                value={chosen.fingerprint}
                onChange={(event) => choose(event.currentTarget.value)}
              >
                {keys.map(({ fingerprint, made_at }) => (
                  <option key={fingerprint} value={fingerprint}>
                    {shortened(fingerprint)} of {made_at.slice(0, 10)}
                  </option>
                ))}
              </select>
            </div>
          )}
          <ChosenKey signingKey={chosen} forgotten={changed} />
        </>
      ) : (
        <p>
          There is no key in this browser yet. A key that you make here never leaves the browser; the log gets only the
          public key when you sign.
        </p>
      )}
      <details open={!chosen}>
        <summary>{chosen ? "Make another key" : "Make a key"}</summary>
        <NewKey
          made={({ fingerprint }) => {
            choose(fingerprint);
            changed();
          }}
        />
      </details>
    </div>
  );
}

function ChosenKey({ signingKey, forgotten }: { readonly signingKey: BrowserKey; forgotten(): void }) {
  const { fingerprint, signer, isExportable } = signingKey;
  const [error, setError] = useState<string | null>(null);
  const failed = (what: string) => (reason: unknown) => setError(`The browser did not ${what}: ${reasonOf(reason)}`);
  const save = async () => {
    if (window.confirm(EXPORT_WARNING))
      saveFile(
        `${shortened(fingerprint, 8).replace("…", "-")}.private.pem`,
        await exportKey(signingKey),
        "application/x-pem-file",
      );
  };
  const forget = async () => {
    if (!window.confirm(isExportable ? FORGET_WARNING : FORGET_FOR_EVER_WARNING)) return;
    await forgetKey(fingerprint);
    announce("The key was deleted from this browser.");
    forgotten();
  };
  return (
    <div class="chosen-key">
      <Hash value={fingerprint} label="fingerprint of your key" />
      <Badge>{signer.algorithm}</Badge>
      <Badge tone={isExportable ? "warning" : "good"}>
        {isExportable ? "Can be exported" : "Cannot leave this browser"}
      </Badge>
      <a href={viewAddress(["keys", fingerprint])}>In the log</a>
      {isExportable && (
        <button type="button" class="button" onClick={() => save().catch(failed("export the key"))}>
          Export the private key
        </button>
      )}
      <button type="button" class="button" onClick={() => forget().catch(failed("delete the key"))}>
        Delete
      </button>
      {error && (
        <p class="form-error" role="alert">
          {error}
        </p>
      )}
    </div>
  );
}

function NewKey({ made }: { made(key: BrowserKey): void }) {
  const [isExportable, setExportable] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const make = async () => {
    setBusy(true);
    setError(null);
    try {
      const key = await makeKey(isExportable);
      announce("A key was made.");
      made(key);
    } catch (reason) {
      setError(`The browser did not make a key: ${reasonOf(reason)}`);
    } finally {
      setBusy(false);
    }
  };
  return (
    <div class="new-key">
      <label class="option">
        <input
          type="checkbox"
          checked={isExportable}
          onChange={(event) => setExportable(event.currentTarget.checked)}
        />
        <span>
          It can be exported
          <span class="soft option-note">
            Then it can be kept elsewhere and used by <code>cairnlog</code>, and whatever runs in this page can read it.
            Otherwise it is lost with this browser's data.
          </span>
        </span>
      </label>
      <button type="button" class="button button-strong" disabled={isBusy} onClick={make}>
        Make the key
      </button>
      {error && (
        <p class="form-error" role="alert">
          {error}
        </p>
      )}
    </div>
  );
}

const reasonOf = (reason: unknown): string => (reason instanceof Error ? reason.message : String(reason));

const EXPORT_WARNING =
  "The file will be the private key itself, PKCS #8 in PEM, not encrypted: anybody who gets it can sign as you. Save it?";
const FORGET_WARNING =
  "Delete the key from this browser? Without an exported copy, nobody can sign with it again or revoke it.";
const FORGET_FOR_EVER_WARNING = "Delete the key? There is no copy of it: nobody can sign with it again or revoke it.";

/** Signs in as the operator: the page signs a challenge with a key file, which is not sent. */
import { useId, useState } from "preact/hooks";
import { ClientError } from "../../../client/index.js";
import { Card, Empty, Hash, ProblemNote } from "../../components/index.js";
import { announce } from "../../state/announcements.js";
import { useCell } from "../../state/cell.js";
import { operators } from "../../state/watching.js";
import { openWithToken, signIn } from "./session.js";

export function SignInCard() {
  const pinned = useCell(operators)?.current;
  return (
    <Card title="Sign in" aside="for the operator of this log">
      {pinned && (
        <p class="sign-in-key">
          The operator key is <Hash value={pinned.fingerprint} label="operator fingerprint" />
        </p>
      )}
      <TokenForm />
      <details class="note">
        <summary>With the key itself, to sign heads from here</summary>
        {globalThis.crypto?.subtle === undefined ? (
          <Empty title="This browser cannot sign here.">
            Browsers let only pages from HTTPS, or from this machine, use keys.
          </Empty>
        ) : (
          <KeyForm />
        )}
      </details>
    </Card>
  );
}

/** A form that begins a session. @param begin throws an `Error` with a sentence, or a `ClientError` */
function useSignIn(begin: (fields: FormData) => Promise<void>) {
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    setBusy(true);
    setError(null);
    try {
      await begin(new FormData(event.currentTarget as HTMLFormElement));
      announce("You are signed in.");
    } catch (reason) {
      setError(reason);
      setBusy(false);
    }
  };
  return { submit, error, isBusy };
}

function TokenForm() {
  const id = useId();
  const { submit, error, isBusy } = useSignIn((fields) => openWithToken(`${fields.get("token") ?? ""}`));
  return (
    <form class="sign-in" onSubmit={submit}>
      <div class="field">
        <label for={`${id}token`}>Token that only reads</label>
        <input id={`${id}token`} name="token" class="input" type="password" autocomplete="off" required />
      </div>
      <p class="soft">
        <code>cairnlog operator token --read-only</code> makes one on the machine of the service. It shows this page and
        can change nothing, so the operator key stays where it is.
      </p>
      <button type="submit" class="button button-strong" disabled={isBusy}>
        {isBusy ? "Opening…" : "Open"}
      </button>
      <SignInError error={error} />
    </form>
  );
}

function KeyForm() {
  const id = useId();
  const { submit, error, isBusy } = useSignIn(async (fields) => {
    const file = fields.get("key");
    if (file instanceof File) await signIn(file, `${fields.get("password") ?? ""}`);
  });
  return (
    <form class="sign-in" onSubmit={submit}>
      <div class="field">
        <label for={`${id}key`}>Operator key (PEM file, PKCS #8)</label>
        <input id={`${id}key`} name="key" class="input" type="file" required />
      </div>
      <div class="field">
        <label for={`${id}password`}>Password, if the key has one</label>
        <input id={`${id}password`} name="password" class="input" type="password" autocomplete="off" />
      </div>
      <p class="soft">
        This page reads the file, signs one challenge with the key, and forgets it: the key is neither sent nor stored.
        The session lasts one hour, in this page's memory. The page itself comes from the service: on a machine that you
        do not trust, use the <code>cairnlog</code> command.
      </p>
      <button type="submit" class="button button-strong" disabled={isBusy}>
        {isBusy ? "Signing in…" : "Sign in"}
      </button>
      <SignInError error={error} />
    </form>
  );
}

function SignInError({ error }: { readonly error: unknown }) {
  if (error === null) return null;
  if (error instanceof ClientError) return <ProblemNote error={error} />;
  return (
    <p class="form-error" role="alert">
      {error instanceof Error ? error.message : String(error)}
    </p>
  );
}

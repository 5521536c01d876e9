/** Signs in as the operator: the page signs a challenge with a key file, which is not sent. */
import { useId, useRef, useState } from "preact/hooks";
import { ClientError } from "../../../client/index.js";
import { Card, Empty, Hash, Problem } from "../../components/index.js";
import { announce } from "../../state/announcements.js";
import { useCell } from "../../state/cell.js";
import { operators } from "../../state/watching.js";
import { signIn } from "./session.js";

export function SignInCard() {
  const pinned = useCell(operators)?.current;
  return (
    <Card title="Sign in" aside="for the operator of this log">
      {globalThis.crypto?.subtle === undefined ? (
        <Empty title="This browser cannot sign here.">
          Browsers let only pages from HTTPS, or from this machine, use keys.
        </Empty>
      ) : (
        <>
          {pinned && (
            <p class="sign-in-key">
              The operator key is <Hash value={pinned.fingerprint} label="operator fingerprint" />
            </p>
          )}
          <Form />
        </>
      )}
    </Card>
  );
}

function Form() {
  const id = useId();
  const form = useRef<HTMLFormElement>(null);
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    const fields = new FormData(form.current!);
    const file = fields.get("key");
    if (!(file instanceof File) || isBusy) return;
    setBusy(true);
    setError(null);
    try {
      await signIn(file, `${fields.get("password") ?? ""}`);
      announce("You are signed in.");
    } catch (reason) {
      setError(reason);
      setBusy(false);
    }
  };
  return (
    <form ref={form} class="sign-in" onSubmit={submit}>
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
      {error instanceof ClientError ? (
        <Problem error={error} />
      ) : (
        error !== null && (
          <p class="form-error" role="alert">
            {error instanceof Error ? error.message : String(error)}
          </p>
        )
      )}
    </form>
  );
}

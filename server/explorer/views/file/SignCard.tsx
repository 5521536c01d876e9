/** Signing the file with a key of this browser: choosing the key. */
import { useState } from "preact/hooks";
import { Card, Empty, TaskView } from "../../components/index.js";
import { useTask } from "../../state/task.js";
import { canSign, keptKeys } from "./browserkeys.js";
import { KeyChoice } from "./KeyChoice.js";
import { type FileToSign, SignForm } from "./SignForm.js";

export function SignCard(props: FileToSign) {
  return (
    <Card title="Sign it" aside="The key is made and kept in this browser.">
      {canSign() ? (
        <WithKeys {...props} />
      ) : (
        <Empty title="This browser cannot sign here.">
          Browsers let only pages from HTTPS, or from this machine, use keys. <code>cairnlog attest</code> signs
          anywhere.
        </Empty>
      )}
    </Card>
  );
}

function WithKeys(props: FileToSign) {
  const kept = useTask(keptKeys, []);
  const [chosen, setChosen] = useState<string | null>(null);
  return (
    <TaskView task={kept} what="keys of this browser" rows={3}>
      {(keys) => {
        const key = keys.find(({ fingerprint }) => fingerprint === chosen) ?? keys[0];
        return (
          <div class="signing">
            <KeyChoice keys={keys} chosen={key} choose={setChosen} changed={kept.retry} />
            {key && <SignForm key={`${key.fingerprint} ${props.hash}`} signingKey={key} {...props} />}
          </div>
        );
      }}
    </TaskView>
  );
}

/** A public key, and whether it has its fingerprint. */
import type { KeyDetail } from "../../../client/index.js";
import { Card, Check, Facts, Hash, KeyStatusBadge, Time, whoseName } from "../../components/index.js";
import { viewAddress } from "../../state/location.js";
import { fingerprintOf } from "./fingerprint.js";

const NUMBER = new Intl.NumberFormat();

export function IdentityCard({ shown, fingerprint }: { readonly shown: KeyDetail; readonly fingerprint: string }) {
  const computed = fingerprintOf(shown.public_key);
  const holds = computed === fingerprint && shown.fingerprint === fingerprint;
  return (
    <Card title="The key" aside={<KeyStatusBadge status={shown.status} />}>
      <div class="key-facts">
        <Check holds={holds}>
          {holds
            ? "The public key has this fingerprint: this page computed it from the SPKI bytes."
            : "The public key that the service shows does not have this fingerprint."}
        </Check>
        <Facts
          facts={[
            ["Fingerprint", <Hash key="hash" value={fingerprint} label="fingerprint" show="whole" />],
            !holds && ["Computed", computed ?? "This is not a public key that this log accepts."],
            ["Algorithm", shown.algorithm],
            ["Registered", <Time key="time" at={shown.registered_at} />],
            ["Name and expiration", whoseName(shown)],
            shown.expires_at !== null && ["Expires", <Time key="expires" at={shown.expires_at} />],
            shown.log_entry_id !== null && [
              "Recorded in",
              <a key="entry" href={viewAddress(["entries", shown.log_entry_id])}>
                entry {NUMBER.format(shown.log_entry_id)}
              </a>,
            ],
          ]}
        />
        <details>
          <summary>Public key</summary>
          <Hash value={shown.public_key} label="public key in PEM" show="whole" />
        </details>
        <p class="soft">This page cannot verify the status; the entries about it are in the log.</p>
      </div>
    </Card>
  );
}

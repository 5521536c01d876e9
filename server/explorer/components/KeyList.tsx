/** A list of keys, one on each line. Keys of one name are told apart by what nobody can choose. */
import { TrustStatus } from "../../../engine/contract/signing/trust.js";
import type { KeySummary } from "../../client/index.js";
import { viewAddress } from "../state/location.js";
import { foldedName, sharedNames, shownText } from "../state/names.js";
import { http } from "../state/service.js";
import { useTask } from "../state/task.js";
import { Hash } from "./Hash.js";
import { KeyStatusBadge } from "./status.js";
import { Time } from "./Time.js";
import "./keylist.css";

/** Keys of a shared name whose endorsements are asked for, each with a request. */
const MAX_ASKED = 4;

export function KeyList({ keys }: { readonly keys: readonly KeySummary[] }) {
  const shared = sharedNames(keys.map(({ pseudonym }) => pseudonym));
  const alike = keys.filter(({ pseudonym }) => shared.has(foldedName(pseudonym)));
  const asked = new Set(alike.slice(0, MAX_ASKED));
  return (
    <>
      <div class="key-line key-head" aria-hidden="true">
        <span>Name (self-declared)</span>
        <span>Status</span>
        <span>Algorithm</span>
        <span>Registered</span>
        <span>Fingerprint</span>
      </div>
      <ul class="key-list">
        {keys.map((key) => (
          <li key={key.fingerprint} class="key-line">
            <KeyCells shown={key} />
            {alike.includes(key) && <Alike shown={key} isAsked={asked.has(key)} />}
          </li>
        ))}
      </ul>
    </>
  );
}

function KeyCells({
  shown: { fingerprint, pseudonym, status, algorithm, registered_at, named },
}: {
  readonly shown: KeySummary;
}) {
  return (
    <>
      <a class="key-name" href={viewAddress(["keys", fingerprint])}>
        <bdi class="key-said">{shownText(pseudonym)}</bdi>
        {!named && (
          <span class="soft" title="Anybody may have recorded this name for the key.">
            {" "}
            not signed by it
          </span>
        )}
      </a>
      <KeyStatusBadge status={status} />
      <span class="key-algorithm soft">{algorithm}</span>
      <span class="key-time soft">
        <Time at={registered_at} as="age" />
      </span>
      <span class="key-hash">
        <Hash value={fingerprint} label={`fingerprint of ${pseudonym}`} show={6} />
      </span>
    </>
  );
}

/** Says that another key has this name, and how many have endorsed this one. */
function Alike({ shown: { fingerprint }, isAsked }: { readonly shown: KeySummary; readonly isAsked: boolean }) {
  const { value } = useTask(async () => (isAsked ? endorsementsOf(fingerprint) : undefined), [fingerprint, isAsked]);
  const known =
    value === undefined ? "" : value === 1 ? " 1 key endorses this one." : ` ${value || "No"} keys endorse this one.`;
  return <p class="key-alike soft">Another key has this name: compare the fingerprints.{known}</p>;
}

/** How many active endorsements a key has received. @throws ClientError */
async function endorsementsOf(fingerprint: string): Promise<number> {
  const { received } = await http.get(TrustStatus, `/endorsements/${encodeURIComponent(fingerprint)}/status`);
  return received.active ?? 0;
}

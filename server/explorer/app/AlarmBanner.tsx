/** The log was caught. Full width, in every view, until the reader puts it away. */

import { Hash, saveJson, Time } from "../components/index.js";
import { AlarmIcon, DownloadIcon } from "../look/icons.js";
import { type Alarm, beginAnew, putAway } from "../state/alarm.js";
import { lookNow } from "../state/watching.js";

export function AlarmBanner({ alarm }: { readonly alarm: Alarm }) {
  return (
    <section class="alarm" role="alert" aria-label="Alarm">
      <div class="alarm-inner">
        <h2>
          <AlarmIcon /> {alarm.keys ? "The operator key has changed" : "This log has been caught"}
        </h2>
        <p>{alarm.detail}</p>
        {alarm.keys && (
          <dl class="alarm-keys">
            <div>
              <dt>Pinned by this browser</dt>
              <dd>
                <Hash value={alarm.keys.pinned} label="pinned operator fingerprint" show="whole" />
              </dd>
            </div>
            <div>
              <dt>Shown by the service now</dt>
              <dd>
                <Hash value={alarm.keys.shown} label="fingerprint that the service shows" show="whole" />
              </dd>
            </div>
          </dl>
        )}
        <p>
          Raised <Time at={alarm.raised_at} />. Keep the evidence and show it to others who read this log: it holds what
          was believed, what was shown, and the proof that fails. Believe nothing new of this log until it is explained.
        </p>
        <div class="alarm-actions">
          <button
            type="button"
            class="button button-strong"
            onClick={() => saveJson("log-evidence.json", alarm.evidence)}
          >
            <DownloadIcon /> Save the evidence
          </button>
          <button type="button" class="button" onClick={lookAgain}>
            Put the alarm away
          </button>
          <button
            type="button"
            class="button"
            onClick={() => {
              if (window.confirm(FORGET)) beginAnew();
            }}
          >
            Forget this log and begin anew
          </button>
        </div>
      </div>
    </section>
  );
}

/** A log that still misbehaves raises it again at once. */
function lookAgain(): void {
  putAway();
  void lookNow();
}

const FORGET =
  "Only if you know that a new log was started at this address: forget its key and the newest head that this browser knows?";

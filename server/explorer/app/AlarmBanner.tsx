/** An alarm: shown at full width in every view until the reader dismisses it. */

import { Hash, saveJson, Time } from "../components/index.js";
import { AlarmIcon, DownloadIcon } from "../look/icons.js";
import { putAway, type ShownAlarm } from "../state/alarm.js";
import { forgetLog } from "../state/memory.js";
import { shownText } from "../state/names.js";
import { server } from "../state/source.js";
import { lookNow } from "../state/watching.js";

export function AlarmBanner({ alarm }: { readonly alarm: ShownAlarm }) {
  return (
    <section class="alarm" role="alert" aria-label="Alarm">
      <div class="alarm-inner">
        <h2>
          <AlarmIcon /> {alarm.keys ? "The operator key has changed" : "This log misbehaves"}
        </h2>
        <p>{shownText(alarm.detail)}</p>
        {alarm.keys && (
          <dl class="alarm-keys">
            <div>
              <dt>Pinned by this browser</dt>
              <dd>
                <Hash value={alarm.keys.pinned} label="pinned operator fingerprint" show="whole" />
              </dd>
            </div>
            <div>
              <dt>Shown by {server().toLowerCase()} now</dt>
              <dd>
                <Hash value={alarm.keys.shown} label="fingerprint that the service shows" show="whole" />
              </dd>
            </div>
          </dl>
        )}
        <p>
          Raised <Time at={alarm.raised_at} />. Keep the evidence and show it to other readers of this log: it contains
          the head that this browser had verified, the answer of {server().toLowerCase()}, and the proof that fails. Do
          not trust new data of this log until somebody has explained this.
        </p>
        <div class="alarm-actions">
          <button
            type="button"
            class="button button-strong"
            onClick={() => saveJson("log-evidence.json", alarm.evidence)}
          >
            <DownloadIcon /> Save the evidence
          </button>
          <button type="button" class="button" onClick={() => lookAgain(alarm)}>
            Dismiss the alarm
          </button>
          <button
            type="button"
            class="button"
            onClick={() => {
              if (window.confirm(FORGET)) forgetLog();
            }}
          >
            Forget this log and start again
          </button>
        </div>
      </div>
    </section>
  );
}

/** If the log still misbehaves, this raises the alarm again at once. */
function lookAgain(dismissed: ShownAlarm): void {
  putAway(dismissed);
  void lookNow();
}

const FORGET =
  "Do this only if you know that a new log was started at this address. Forget its key and the newest head that this browser knows?";

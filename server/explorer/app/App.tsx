/** The shell around every view. */
import { alarmId, alarms } from "../state/alarm.js";
import { announcement } from "../state/announcements.js";
import { useCell } from "../state/cell.js";
import { hasService } from "../state/source.js";
import type { ViewRoute } from "../state/view.js";
import { AlarmBanner } from "./AlarmBanner.js";
import { ConnectionBar } from "./ConnectionBar.js";
import { Header } from "./Header.js";
import { View } from "./View.js";

export function App({ routes }: { readonly routes: readonly ViewRoute[] }) {
  const raised = useCell(alarms);
  return (
    <>
      <button type="button" class="skip" onClick={() => document.getElementById("main")?.focus()}>
        Skip to content
      </button>
      <Header routes={routes} />
      {raised.map((alarm) => (
        <AlarmBanner key={alarmId(alarm)} alarm={alarm} />
      ))}
      <ConnectionBar />
      <main id="main" tabIndex={-1}>
        <View routes={routes} />
      </main>
      <footer class="foot">
        <p>
          {hasService() ? (
            <>
              “Verified” means that this browser computed it itself from the data that the service sent.{" "}
              <a href="docs">API</a>
            </>
          ) : (
            "“Verified” means that this browser computed it itself from the files that were published here."
          )}
        </p>
      </footer>
      <Announcer />
    </>
  );
}

function Announcer() {
  const text = useCell(announcement);
  return (
    <div class="visually-hidden" aria-live="polite" role="status">
      {text}
    </div>
  );
}

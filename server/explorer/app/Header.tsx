/** The header: name and state of the log, navigation, colour scheme. */
import { AlarmIcon, MoonIcon, ShieldIcon, SunIcon, SystemIcon } from "../look/icons.js";
import { alarms } from "../state/alarm.js";
import { useCell } from "../state/cell.js";
import { place, viewAddress } from "../state/location.js";
import { changeTheme, type Theme, theme } from "../state/theme.js";
import type { ViewRoute } from "../state/view.js";
import { failure, sight, signedLogName } from "../state/watching.js";

const THEMES: Readonly<Record<Theme, { readonly label: string; readonly icon: () => preact.JSX.Element }>> = {
  system: { label: "Colours: like the system", icon: SystemIcon },
  light: { label: "Colours: light", icon: SunIcon },
  dark: { label: "Colours: dark", icon: MoonIcon },
};

export function Header({ routes }: { readonly routes: readonly ViewRoute[] }) {
  const name = useCell(signedLogName);
  const current = useCell(place).path[0] ?? "";
  return (
    <header class="top">
      <div class="top-inner">
        <a class="brand" href="#/">
          <Cairn />
          <span class="brand-text">
            <span class="brand-name">{name ?? window.location.host}</span>
            <span class="brand-kind">Transparency log</span>
          </span>
        </a>
        <nav class="views" aria-label="Views">
          {routes
            .filter(({ isUnlisted }) => !isUnlisted)
            .map((route) => (
              <a
                key={route.name}
                href={viewAddress([route.name].filter(Boolean))}
                {...(route.name === current ? { "aria-current": "page" as const } : {})}
              >
                {route.label}
              </a>
            ))}
        </nav>
        <div class="top-end">
          <Standing />
          <ThemeButton />
        </div>
      </div>
    </header>
  );
}

/** The state of the log in one or two words, in every view. */
function Standing() {
  const seen = useCell(sight);
  const failed = useCell(failure);
  const isAlarmed = useCell(alarms).length > 0;
  const [tone, text] = isAlarmed
    ? ["bad", "Log not verified"]
    : failed
      ? ["warning", "Log not reached"]
      : seen.status === "looking"
        ? ["neutral", "Checking the log…"]
        : seen.head
          ? ["good", "Log verified"]
          : ["neutral", "Log empty"];
  return (
    <a class={`standing standing-${tone}`} href="#/" aria-label={text}>
      {isAlarmed ? <AlarmIcon /> : <ShieldIcon />}
      <span class="standing-text">{text}</span>
    </a>
  );
}

function ThemeButton() {
  const { label, icon: Icon } = THEMES[useCell(theme)];
  return (
    <button type="button" class="icon-button" aria-label={label} title={label} onClick={changeTheme}>
      <Icon />
    </button>
  );
}

const Cairn = () => (
  <svg class="cairn" viewBox="0 0 32 32" width="32" height="32" aria-hidden="true">
    <ellipse cx="16" cy="25" rx="12" ry="4.2" />
    <ellipse cx="16.8" cy="16.6" rx="8.6" ry="3.7" />
    <ellipse cx="15.4" cy="9.2" rx="5.4" ry="3.1" />
  </svg>
);

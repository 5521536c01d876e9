/** Starts the page. */
import { render } from "preact";
import { readFrom, type Source } from "../state/source.js";
import { startTheme } from "../state/theme.js";
import type { ViewRoute } from "../state/view.js";
import { startWatching } from "../state/watching.js";
import { App } from "./App.js";

export function start(source: Source, routes: readonly ViewRoute[]): void {
  readFrom(source);
  startTheme();
  startWatching();
  const app = document.getElementById("app")!;
  // What is said before the page starts.
  app.replaceChildren();
  render(<App routes={routes} />, app);
}

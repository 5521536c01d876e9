/**
 * The explorer: shows the log and verifies it in the reader's own browser. It does not trust answers of the service.
 */
import { render } from "preact";
import { App } from "./app/App.js";
import { startTheme } from "./state/theme.js";
import { startWatching } from "./state/watching.js";

startTheme();
startWatching();
render(<App />, document.getElementById("app")!);

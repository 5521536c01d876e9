/** The explorer: shows the log and proves it in the reader's own browser. Nothing that the service says is believed here. */
import { render } from "preact";
import { App } from "./app/App.js";
import { startTheme } from "./state/theme.js";
import { startWatching } from "./state/watching.js";

startTheme();
startWatching();
render(<App />, document.getElementById("app")!);

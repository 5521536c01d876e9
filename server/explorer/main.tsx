/**
 * The explorer: shows the log and verifies it in the reader's own browser. It does not trust answers of the service.
 */
import { render } from "preact";
import { App } from "./app/App.js";
import { startTheme } from "./state/theme.js";
import { startWatching } from "./state/watching.js";

startTheme();
startWatching();
const app = document.getElementById("app")!;
// What is said before the page starts.
app.replaceChildren();
render(<App />, app);

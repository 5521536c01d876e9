/**
 * The explorer: shows the log and verifies it in the reader's own browser. It does not trust answers of the service.
 */
import { start } from "./app/start.js";
import { ROUTES } from "./routes.js";
import { serviceSource } from "./state/reading/service.js";

start(serviceSource, ROUTES);

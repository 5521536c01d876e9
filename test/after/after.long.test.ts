/** Objects that live long, after a failure of what they depend on. */
import { BACKGROUND_ROWS } from "./background.js";
import { watchResources } from "./held.js";
import { SIGNING_ROWS } from "./signers.js";
import { testRows } from "./table.js";

watchResources();
testRows([...SIGNING_ROWS, ...BACKGROUND_ROWS]);

/** Objects that live long, after a failure of what they depend on. */
import { BACKGROUND_ROWS } from "./background.js";
import { FOLLOWING_ROWS } from "./following.js";
import { watchResources } from "./held.js";
import { SERVING_ROWS } from "./serving.js";
import { SIGNING_ROWS } from "./signers.js";
import { testRows } from "./table.js";

watchResources();
testRows([...SIGNING_ROWS, ...BACKGROUND_ROWS, ...FOLLOWING_ROWS, ...SERVING_ROWS]);

/** The endorsement graph as the service answers it. */
import type { Static } from "typebox";
import type { Graph } from "../../../../../engine/contract/signing/trust.js";

export type GraphAnswer = Static<typeof Graph>;

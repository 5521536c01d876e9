import type { Suite } from "../suite.js";
export declare const suite: Suite;

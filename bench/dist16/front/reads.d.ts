import { type Measured, type Stage } from "./stage.js";
/** Fills a log of this many entries, serves it, and reads it. */
export declare function measureReads(stage: Stage, entries: number): Promise<Measured>;

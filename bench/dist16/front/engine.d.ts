import type { Measured, Stage } from "./stage.js";
/** The parent's side. */
export declare function measureEngine({ folder, rounds }: Stage): Promise<Measured>;

import type { Measured, Stage } from "./stage.js";
export declare function measureAgainst(stage: Stage, checkout: string): Promise<Measured>;

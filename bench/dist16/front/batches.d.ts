import type { Service } from "./service.js";
import { type Measured, type Stage } from "./stage.js";
/** Null if this version takes no batches. */
export declare function measureBatches(stage: Stage, service: Service): Promise<Measured | null>;

import type { Service } from "./service.js";
import type { Measured, Stage } from "./stage.js";
/** @param service one that already runs compiled code */
export declare function measureLone(stage: Stage, service: Service): Promise<Measured>;

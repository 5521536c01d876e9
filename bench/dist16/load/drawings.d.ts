/** The drawings for `--svg`: one run over time, or a sweep over the number of connections. */
import { type Machine } from "../machine.js";
import type { LoadReport } from "./measure.js";
export declare function drawTimeline(report: LoadReport, machine: Machine): string;
export declare function drawSweep(reports: readonly LoadReport[], machine: Machine): string;

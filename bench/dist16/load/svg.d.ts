/**
 * Line charts as SVG, written by hand: no script, no font, and colours that are visible on light and dark pages. One
 * drawing is a stack of panels that share the x axis.
 */
export interface Series {
    readonly name: string;
    readonly points: readonly {
        readonly x: number;
        readonly y: number;
    }[];
}
export interface Panel {
    readonly title: string;
    readonly series: readonly Series[];
    /** Powers of ten on the y axis: for latencies, whose percentiles differ by orders of magnitude. */
    readonly logarithmic?: boolean;
}
export interface Drawing {
    readonly title: string;
    /** Small print under the title: machine, commit, what was run. */
    readonly notes: readonly string[];
    readonly xLabel: string;
    /** Values on the x axis as categories at equal distances, in order; without it the axis is linear from 0. */
    readonly categories?: readonly number[];
    readonly panels: readonly Panel[];
}
/** The whole drawing as an SVG document. */
export declare function draw({ title, notes, xLabel, categories, panels }: Drawing): string;

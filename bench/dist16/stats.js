/**
 * The statistics that suites share. A figure is the median of its rounds, with the lowest and highest beside it. A
 * ratio is first computed within each round, so that other load in a round affects both sides.
 */
/** The value that this share of `values`, in any order, does not exceed. */
export function quantile(values, share) {
    const sorted = values.toSorted((a, b) => a - b);
    return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
export const median = (values) => quantile(values, 0.5);
/** `12.3 (11.9 – 14.0)`: the median of the rounds, the lowest and the highest. */
export function spread(values, digits = 1) {
    const [low, high] = [Math.min(...values), Math.max(...values)];
    return `${median(values).toFixed(digits)} (${low.toFixed(digits)} – ${high.toFixed(digits)})`;
}
/** The ratio of each value to `base`, round by round. */
export const ratios = (values, base) => values.map((value, round) => value / base[round]);
/** Microseconds of CPU, user and system, of all threads of this process since `before`. */
export function cpuMicros(before) {
    const { user, system } = process.cpuUsage(before);
    return user + system;
}
/** Median microseconds of `count` calls, each timed on its own. */
export function p50Micros(count, work) {
    const micros = [];
    for (let n = 0; n < count; n++) {
        const started = performance.now();
        work(n);
        micros.push((performance.now() - started) * 1000);
    }
    return median(micros);
}
//# sourceMappingURL=stats.js.map
/** The drawings for `--svg`: one run over time, or a sweep over the number of connections. */
import { machineHeader } from "../machine.js";
import { draw } from "./svg.js";
/** The header of a run, short enough for a line of small print. */
function notes(machine, text) {
    const [hardware = "", , commit = ""] = machineHeader(machine).split("\n");
    return [text, `${hardware}, Node ${machine.node}`, commit];
}
export function drawTimeline(report, machine) {
    const { timeline, connections, rate, answered } = report;
    const points = (y) => timeline.map((slice) => ({ x: slice.at, y: slice[y] }));
    const panels = [
        { title: "Attestations a second", series: [{ name: "recorded", points: points("perSecond") }] },
        {
            title: "Latency, ms",
            logarithmic: true,
            series: [
                { name: "p50", points: points("p50") },
                { name: "p99", points: points("p99") },
            ],
        },
    ];
    const kind = rate === undefined ? "closed loop" : `open loop, ${rate} a second wanted`;
    return draw({
        title: "Durable attestations over HTTP, over time",
        notes: notes(machine, `${answered} answers, ${connections} connections, ${kind}`),
        xLabel: "seconds",
        panels,
    });
}
export function drawSweep(reports, machine) {
    const points = (value) => reports.map((report) => ({ x: report.connections, y: value(report) }));
    const panels = [
        {
            title: "Attestations a second",
            series: [{ name: "recorded", points: points(({ perSecond }) => perSecond) }],
        },
        {
            title: "Latency, ms",
            logarithmic: true,
            series: [
                { name: "p50", points: points(({ p50 }) => p50) },
                { name: "p99", points: points(({ p99 }) => p99) },
                { name: "p99.9", points: points(({ p999 }) => p999) },
            ],
        },
        {
            title: "Attestations that shared a commit (batches form by themselves)",
            series: [{ name: "per commit", points: points(({ perCommit }) => perCommit ?? Number.NaN) }],
        },
    ];
    const total = reports.reduce((sum, { answered }) => sum + answered, 0);
    return draw({
        title: "Durable attestations over HTTP, over concurrency",
        notes: notes(machine, `${total} answers, closed loop: each connection waits for its answer`),
        xLabel: "connections",
        categories: reports.map(({ connections }) => connections),
        panels,
    });
}
//# sourceMappingURL=drawings.js.map
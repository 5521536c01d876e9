/** Attestations sent in batches: what is left when a hundred of them share the cost of HTTP. */
import { ratios } from "../stats.js";
import { ATTESTATIONS, column, load } from "./attestations.js";
import { takeTurns } from "./stage.js";
/** Attestations in one request. */
const PER_REQUEST = 100;
const CONNECTIONS = 16;
/** Signatures of each kind that are timed in a round. */
const SIGNATURES = 3_000;
/** Statuses of a service that has no such route. */
const NO_ROUTE = [404, 405];
/** Null if this version takes no batches. */
export async function measureBatches(stage, service) {
    const { generator, bare, rounds } = stage;
    await generator.sign({ attestations: 1, perRequest: PER_REQUEST, name: "whether there is a route" });
    const { statuses } = await generator.post(service.port, 1);
    if (NO_ROUTE.some((status) => statuses[status])) {
        console.log("This version takes no batches of attestations: their row is left out.");
        return null;
    }
    const floors = [];
    const { batches: costs } = await takeTurns(rounds, { batches: () => load(stage, service, ATTESTATIONS / PER_REQUEST, CONNECTIONS) }, async (round) => {
        // While the generator makes the round's requests, it keeps another core as busy as when it sends them. A signature
        // alone on a quiet machine costs less than any service could reach, because cores share their units and clock.
        const order = { attestations: ATTESTATIONS, perRequest: PER_REQUEST, name: `batches, round ${round}` };
        const [micros] = await Promise.all([bare.signatures(SIGNATURES), generator.sign(order)]);
        floors.push(micros);
    });
    floors.splice(0, floors.length - rounds);
    const batches = column(costs, "all");
    const rows = [
        {
            figure: `batches of ${PER_REQUEST}: CPU of an attestation / (verify + sign)`,
            rounds: ratios(batches, floors),
            digits: 2,
        },
        { figure: "batches: CPU of an attestation, µs", rounds: batches, digits: 1 },
        { figure: "batches: attestations a second", rounds: column(costs, "perSecond"), digits: 0 },
        { figure: "verify + sign: CPU, µs", rounds: floors, digits: 1 },
    ];
    return { rows, details: { costs, floors } };
}
//# sourceMappingURL=batches.js.map
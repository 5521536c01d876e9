/**
 * One attestation that waits for nobody else, beside the floor: the bare server that also writes one page and waits until
 * it is on disk. Each attestation goes to both, one after the other: a disk that is slow for a moment is slow for both.
 */
import { median, ratios } from "../stats.js";
/** Attestations of one round. */
const ATTESTATIONS = 150;
/** @param service one that already runs compiled code */
export async function measureLone(stage, service) {
    const { generator, bare, rounds } = stage;
    const [attested, floors] = [[], []];
    // The first round compiles the code for single requests.
    for (let round = 0; round <= rounds; round++) {
        await generator.sign({ attestations: ATTESTATIONS, name: `alone, round ${round}` });
        const [own, floor] = await generator.alternate(service.port, bare.durablePort);
        if (round === 0)
            continue;
        attested.push(median(own));
        floors.push(median(floor));
    }
    const rows = [
        { figure: "one attestation alone, p50 / floor", rounds: ratios(attested, floors), digits: 2 },
        { figure: "one attestation alone, p50, ms", rounds: attested.map((micros) => micros / 1000), digits: 2 },
        { figure: "its floor, p50, ms", rounds: floors.map((micros) => micros / 1000), digits: 2 },
    ];
    return { rows, details: { attested, floors } };
}
//# sourceMappingURL=lone.js.map
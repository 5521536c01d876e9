/** Another built checkout, usually the version before, beside this one: the same attestations in turns. */
import { join, resolve } from "node:path";
import { ratios } from "../stats.js";
import { column, compareCosts, costRows, matchAnswers } from "./attestations.js";
import { CHECKOUT, startService } from "./service.js";
export async function measureAgainst(stage, checkout) {
    const [ours, theirs] = [
        await startService({ checkout: CHECKOUT, dataDir: join(stage.folder, "ours") }),
        await startService({ checkout: resolve(checkout), dataDir: join(stage.folder, "theirs") }),
    ];
    try {
        await matchAnswers(stage, ours);
        const costs = await compareCosts(stage, { ours, theirs });
        const compared = (name) => ratios(column(costs.ours, name), column(costs.theirs, name));
        const rows = [
            { figure: "attestations a second, this version / the other", rounds: compared("perSecond"), digits: 2 },
            { figure: "CPU of an attestation, this version / the other", rounds: compared("all"), digits: 2 },
            ...costRows("this version", costs.ours, costs.bare),
            ...costRows("the other version", costs.theirs, costs.bare),
        ];
        return { rows, details: costs };
    }
    finally {
        await ours.close();
        await theirs.close();
    }
}
//# sourceMappingURL=against.js.map
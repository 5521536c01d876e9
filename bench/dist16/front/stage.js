/** What the rows of this suite share: a load generator, the bare server, a folder, and turns. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Bare } from "./bare.js";
import { Generator } from "./generator.js";
/** Rounds before those that count: the JIT compilers settle after about 20,000 requests. */
const WARM_ROUNDS = 2;
/** Starts the generator and the bare server. */
export async function openStage(rounds) {
    const folder = mkdtempSync(join(tmpdir(), "cairnlog-bench-"));
    const generator = new Generator();
    const bare = await Bare.start(folder);
    return {
        folder,
        generator,
        bare,
        rounds,
        async close() {
            await bare.close();
            await generator.close();
            rmSync(folder, { recursive: true, force: true });
        },
    };
}
/**
 * Measures every contender once in each round. Another one begins each time, so that none always follows the same one.
 * @param prepare called before each round
 */
export async function takeTurns(rounds, contenders, prepare = async () => { }) {
    const names = Object.keys(contenders);
    const measured = Object.fromEntries(names.map((name) => [name, []]));
    for (let round = 0; round < WARM_ROUNDS + rounds; round++) {
        await prepare(round);
        for (let turn = 0; turn < names.length; turn++) {
            const name = names[(round + turn) % names.length];
            const value = await contenders[name]();
            if (round >= WARM_ROUNDS)
                measured[name].push(value);
        }
    }
    return measured;
}
//# sourceMappingURL=stage.js.map
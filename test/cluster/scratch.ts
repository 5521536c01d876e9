import { FAULTS } from "./check/faults/all.js";
import { check } from "./check/rounds.js";

const [dist, rounds, seed, only = ""] = process.argv.slice(2) as [string, string, string, string?];
const report = await check({
  dist,
  rounds: Number(rounds),
  seed: Number(seed),
  faults: FAULTS.filter(({ name }) => name.includes(only)),
  progress: (r) => console.log("round", r, new Date().toISOString()),
});
console.log(JSON.stringify(report, null, 1));
process.exit(0);

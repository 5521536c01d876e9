// An import that ends itself with SIGKILL before one of the calls by which the built log takes its place: calls that change
// names and calls that flush, counted from the moment when the head is signed. It ends normally if there are fewer calls.

// An import that ends itself with SIGKILL before one of the calls by which the built log takes its place: calls that change
// names and calls that flush, counted from the moment when the head is signed. It ends normally if there are fewer calls.
import fs, { readFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { importEntries } from "#cairnlog/engine/log/history/import.js";

const [, , path, file, key, before] = process.argv;
let calls = Number.POSITIVE_INFINITY;

for (const name of ["renameSync", "rmSync", "mkdirSync", "fsyncSync"]) {
  const call = fs[name];
  fs[name] = (...given) => {
    if (calls-- <= 0) process.kill(process.pid, "SIGKILL");
    return call(...given);
  };
}
syncBuiltinESMExports();

const signer = operatorKey(readFileSync(key, "utf8"));
const signing = {
  ...signer,
  sign: (messages) => {
    calls = Number(before);
    return signer.sign(messages);
  },
};
await importEntries({ path, signer: signing, mapSize: 2 ** 30 }, [readFileSync(file)]);

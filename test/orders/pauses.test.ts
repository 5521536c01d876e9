/** Every source file that reads before and after a pause is known: what is played beside it, or why nothing has to be. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { ASKED } from "./changes.js";
import { SUBJECTS } from "./registry.js";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** Work in pieces: others have their turn in between. */
const PIECES = /\bturn\(\)|\.rest\(\)|\b(?:Steps|Slices)<|\b#?(?:slices|querySlices|queries)\.run\(/;
/** Work that waits for others. */
const WAITS = /\bawait\s|\.then\(/;
/** Where rows and entries are read for an answer, or for a command. */
const READERS = /^engine\/(?:registry|log\/(?:read|view|follow))\//;

/** What a command finds when it runs is what counts: it looks again, and refuses what does not hold any more. */
const COMMANDED = "its command looks again";
/** Of a snapshot, which no commit changes. */
const OF_A_SNAPSHOT = "reads one snapshot";
const WALKS = ["test/log/read/walks.long.test.ts", "test/log/read/query.long.test.ts"];
const SCENES = "test/orders/scenes.long.test.ts";

/** By file: scenes, which are questions of this folder or test files; or why there is none. */
const PAUSING: Readonly<Record<string, readonly string[] | string>> = {
  "engine/log/read/plan.ts": WALKS,
  "engine/log/read/query.ts": WALKS,
  "engine/log/rfc6962/growth.ts": "one at a time, over leaves that never change",
  "engine/log/view/reader.ts": "waits in its end alone",
  "engine/log/view/view.ts": "waits in its end alone",
  "engine/registry/access/challenges.ts": COMMANDED,
  "engine/registry/access/passwords.ts": "one check of a key at a time, and its command compares the hash",
  "engine/registry/access/session-token.ts": "reads nothing",
  "engine/registry/accounts/accounts.ts": COMMANDED,
  "engine/registry/accounts/credentials.ts": COMMANDED,
  "engine/registry/attestations/attestations.ts": COMMANDED,
  "engine/registry/attestations/documents.ts": COMMANDED,
  "engine/registry/claims/claims.ts": ["claims under a lookup key"],
  "engine/registry/endorsements/endorsements.ts": COMMANDED,
  "engine/registry/endorsements/queries.ts": [
    "endorsements of a key",
    "those that are accepted",
    "those of them on the first page",
    "endorsements by a key",
    "how many there are of each status",
    "alerts about a key",
  ],
  "engine/registry/graph/graph.ts": OF_A_SNAPSHOT,
  "engine/registry/graph/recent-graphs.ts": ["a graph"],
  "engine/registry/keys/directory.ts": ["keys by a name", SCENES],
  "engine/registry/keys/keys.ts": COMMANDED,
  "engine/registry/keys/lifecycle.ts": COMMANDED,
  "engine/registry/registry.ts": "opens, closes, and passes on",
  "engine/registry/requests/inbox.ts": COMMANDED,
  "engine/registry/requests/policies.ts": COMMANDED,
  "engine/registry/requests/requests.ts": COMMANDED,
  "engine/registry/shared/slices.ts": "runs the steps of others",
  "engine/registry/trust/configs.ts": COMMANDED,
  "engine/registry/trust/levels.ts": ["what trust reaches"],
  "engine/registry/trust/paths.ts": OF_A_SNAPSHOT,
  "engine/registry/trust/score.ts": OF_A_SNAPSHOT,
  "engine/registry/trust/service.ts": ["what trust reaches"],
  "engine/registry/trust/trust.ts": OF_A_SNAPSHOT,
  "engine/registry/trust/view.ts": ["what trust reaches"],
  "engine/registry/verification/composites.ts": "each part is judged for itself",
  "engine/registry/verification/layer3.ts": OF_A_SNAPSHOT,
  "engine/registry/verification/verification.ts": ["the verdict on a manifest"],
  "engine/registry/webhooks/outbox.ts": COMMANDED,
  "engine/registry/webhooks/webhooks.ts": COMMANDED,
  "engine/registry/writes/writes.ts": COMMANDED,
  "engine/store/lmdb/growth.ts": "no other transaction runs meanwhile",
  "engine/store/postings/merge.ts": "reads nothing",
  "engine/store/postings/postings.ts": [SCENES],
  "server/client/signing/receipts.ts": "reads what it was given",
  "server/http/observing/metrics.ts": "each figure is of its own moment",
  "server/http/routes/log/log.ts": "a pause comes before what is read, and periods do not change any more",
  "server/http/routes/log/pages.ts": WALKS,
  "server/http/routes/signing/trust.ts": "each member is of its own moment, and none older than the question",
  "server/http/transport/answer.ts": ["test/orders/streamed.long.test.ts"],
  "server/webhooks/deliverer.ts": ["test/webhooks/cursors.long.test.ts", "test/webhooks/failures.test.ts"],
};

const sourceOf = (path: string) => readFileSync(`${ROOT}/${path}`, "utf8");
const pausing = ["engine", "server"]
  .flatMap((folder) =>
    readdirSync(`${ROOT}/${folder}`, { recursive: true, encoding: "utf8" }).map((path) => `${folder}/${path}`),
  )
  .filter((path) => path.endsWith(".ts") && path !== "engine/base/turns.ts")
  .filter((path) => PIECES.test(sourceOf(path)) || (READERS.test(path) && WAITS.test(sourceOf(path))));

test("a file that pauses between two reads has a scene, or is known to need none", () => {
  expect(pausing.sort()).toEqual(Object.keys(PAUSING).sort());
});

test("each scene is there", () => {
  const questions = new Set([...Object.keys(ASKED), ...Object.keys(SUBJECTS)]);
  const named = Object.values(PAUSING).flatMap((scenes) => (typeof scenes === "string" ? [] : scenes));
  expect(named.filter((scene) => !questions.has(scene) && !existsSync(`${ROOT}/${scene}`))).toEqual([]);
  expect([...questions].filter((question) => !named.includes(question))).toEqual([]);
});

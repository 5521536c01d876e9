// Checks places in a log with @sigstore/verify, the verifier of npm's own provenance. The file that the argument names has
// trusted logs and bundles. For each bundle, stdout has the checks that were made and what they said.
import { readFileSync } from "node:fs";
import { bundleFromJSON } from "@sigstore/bundle";
import { TrustedRoot } from "@sigstore/protobuf-specs";
import { toSignedEntity, toTrustMaterial, Verifier } from "@sigstore/verify";
// The checks of the transparency log alone, which `Verifier` makes among others.
import { verifyTLogBody, verifyTLogInclusion } from "@sigstore/verify/dist/tlog/index.js";

const { trustedRoot, keys, bundles, artifact } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const publicKeys = Object.fromEntries(
  Object.entries(keys ?? {}).map(([hint, base64]) => [hint, { rawBytes: Buffer.from(base64, "base64") }]),
);
const trust = toTrustMaterial(TrustedRoot.fromJSON(trustedRoot), publicKeys);

/** "holds", or the code and message of the error. */
function outcome(check) {
  try {
    check();
    return "holds";
  } catch (error) {
    return `${error.code ?? error.name}: ${error.message}`;
  }
}

const verdicts = bundles.map((json) => {
  const entity = toSignedEntity(
    bundleFromJSON(json),
    artifact === undefined ? undefined : Buffer.from(artifact, "base64"),
  );
  const verifier = new Verifier(trust, { tlogThreshold: 1, timestampThreshold: 0, ctlogThreshold: 0 });
  const [entry] = entity.tlogEntries;
  return {
    inclusion: outcome(() => verifyTLogInclusion(entry, trust.tlogs)),
    body: outcome(() => verifyTLogBody(entry, entity.signature)),
    signature: outcome(() => verifier.verifySignature(entity, verifier.verifySigningKey(entity, []))),
    all: outcome(() => verifier.verify(entity)),
  };
});
console.log(JSON.stringify(verdicts));

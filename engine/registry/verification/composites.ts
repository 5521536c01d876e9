/**
 * Composite documents: ordered parts, one hash over them, one manifest to sign. Each part keeps the manifest that it
 * came with, including its attestations, so that a verifier can judge each part.
 */

import type * as contract from "../../contract/signing/verification.js";
import type { Value } from "../../contract/types.js";
import { encodeBase64 } from "../../verify/bytes/encoding.js";
import {
  compositeHash,
  type Manifest,
  manifestHash,
  normaliseContentHash,
  signingPayload,
} from "../../verify/events/manifest.js";
import { isObject, type JsonObject } from "../../verify/json/shape.js";
import { MAX_PARTS, ROLE, TITLE } from "../../verify/keys/contract.js";
import type { PreparedDocument } from "../attestations/documents.js";
import { readManifest } from "../attestations/manifest.js";
import { boundedText, Faults, members } from "../shared/input.js";
import type { Visits } from "../trust/score.js";
import { visitsOfRequest } from "./layer3.js";
import { type LayerResult, worst } from "./standing.js";
import type { Verification, VerificationRequest, VerificationResult } from "./verification.js";

/** Maximum depth of composites within composites. Each level is verified in turn. */
const MAX_DEPTH = 4;

type CompositePart = Composite["parts"][number];

type Composite = Value<typeof contract.Composite>;

type PartVerdict = NonNullable<VerificationResult["parts"]>[number];

/**
 * Makes a composite of 1 to 1000 parts, in the given order (`POST /composite/assemble`).
 * @throws CairnlogError `invalid-input` with every fault in `details`, also for a part that occurs twice
 */
export function assemble(request: unknown): { readonly composite: Composite } {
  return { composite: readComposite(members(request), "") };
}

/**
 * The manifest of a composite and the bytes to sign (`POST /composite/compile`).
 * @throws CairnlogError `invalid-input`, also when `composite_hash` is not that of title and parts
 */
export function compile(request: unknown): PreparedDocument {
  const faults = new Faults();
  const { composite: value } = members(request);
  if (!isObject(value)) faults.add("/composite", "It must be an object.");
  faults.check();
  const { title, parts, composite_hash } = readComposite(value as JsonObject, "/composite");
  if (normaliseContentHash((value as JsonObject).composite_hash) !== composite_hash)
    faults.add("/composite/composite_hash", "It is not the hash of this title and these parts.");
  faults.check();
  const manifest = { attestations: [] as const, document: { content_hash: composite_hash, parts, title } };
  return {
    manifest,
    signing_payload: encodeBase64(signingPayload(manifest)),
    manifest_hash: manifestHash(manifest),
  };
}

function readComposite(value: JsonObject, path: string): Composite {
  const faults = new Faults();
  const title = boundedText(value.title, `${path}/title`, TITLE, faults);
  if (!Array.isArray(value.parts) || value.parts.length < 1 || value.parts.length > MAX_PARTS)
    faults.add(`${path}/parts`, `It must be an array of 1 to ${MAX_PARTS} parts.`);
  faults.check();
  const parts = (value.parts as unknown[]).map((part, i) => readPart(part, `${path}/parts/${i}`, faults));
  const seen = new Set<string>();
  for (const [i, part] of parts.entries()) {
    if (part && seen.has(part.content_hash)) faults.add(`${path}/parts/${i}/content_hash`, "This part is there twice.");
    if (part) seen.add(part.content_hash);
  }
  faults.check();
  const checked = parts as CompositePart[];
  return {
    title: title!,
    parts: checked,
    composite_hash: compositeHash(
      title!,
      checked.map((part) => part.content_hash),
    ),
  };
}

function readPart(value: unknown, path: string, faults: Faults): CompositePart | undefined {
  if (!isObject(value)) {
    faults.add(path, "It must be an object.");
    return undefined;
  }
  const title = boundedText(value.title, `${path}/title`, TITLE, faults);
  const contentHash = normaliseContentHash(value.content_hash);
  if (contentHash === undefined)
    faults.add(`${path}/content_hash`, "It must be a SHA-256 in hexadecimal, bare or with sha256: before it.");
  const role = value.role == null ? undefined : boundedText(value.role, `${path}/role`, ROLE, faults);
  let manifest: Manifest | undefined;
  if (value.manifest != null) {
    const checked = readManifest(value.manifest, `${path}/manifest`);
    if (checked.contentHash !== contentHash)
      faults.add(`${path}/manifest/document/content_hash`, "It is not the content hash of the part.");
    manifest = checked.manifest;
  }
  if (title === undefined || contentHash === undefined) return undefined;
  return {
    title,
    content_hash: contentHash,
    ...(role === undefined ? {} : { role }),
    ...(manifest === undefined ? {} : { manifest }),
  };
}

/**
 * Verifies a manifest (`POST /verify`). If its document has parts, each part is verified against its own content hash.
 * The result of the whole is no better than the worst result of a part with a manifest.
 * @param budget what layer 3 may follow for all of them together
 * @throws CairnlogError as `Verification.verify` does; `invalid-input` for parts of the wrong form
 */
export async function verifyComposite(
  verification: Pick<Verification, "verify">,
  request: VerificationRequest,
  budget: Visits = visitsOfRequest(),
  depth = 0,
): Promise<VerificationResult> {
  const result = await verification.verify(request, budget);
  const { document } = request.manifest as Manifest;
  if (document.parts === undefined) return result;
  const faults = new Faults();
  if (depth >= MAX_DEPTH) faults.add("/manifest/document/parts", `Composites can be nested ${MAX_DEPTH} deep.`);
  faults.check();
  const { parts, composite_hash } = readComposite(document, "/manifest/document");
  const verdicts: PartVerdict[] = [];
  // One after the other, so that a composite of a thousand parts does not delay all other signatures.
  for (const { title, content_hash, manifest } of parts) {
    if (!manifest) verdicts.push({ title, content_hash, overall_status: "not_evaluated" });
    else {
      const asked = { ...request, manifest, source_hash: content_hash };
      const part = await verifyComposite(verification, asked, budget, depth + 1);
      verdicts.push({ title, content_hash, overall_status: part.overall_status, result: part });
    }
  }
  const isWhole = normaliseContentHash(document.content_hash) === composite_hash;
  const layer1: LayerResult = isWhole
    ? result.layer1
    : { status: "invalid", details: "The content hash is not the hash of the document's title and parts." };
  const statuses = [layer1.status, result.overall_status, ...verdicts.map((verdict) => verdict.overall_status)];
  return { ...result, layer1, overall_status: worst(statuses), parts: verdicts };
}

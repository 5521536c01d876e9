/**
 * Manifests that the service makes for a document or for a composite. A client must know what it signs, so each
 * manifest is compared with the request before it is returned.
 */
import { PreparedDocument } from "../../../engine/contract/signing/attestations.js";
import * as wire from "../../../engine/contract/signing/verification.js";
import {
  compositeHash,
  encodeBase64,
  type Manifest,
  manifestHash,
  signingPayload,
} from "../../../engine/verify/index.js";
import { asLogged, same } from "../base/compare.js";
import { ClientError } from "../base/error.js";
import type { AssembleComposite, Composite, PrepareDocument } from "../base/types.js";
import { Area } from "../log/area.js";

export class DocumentsClient extends Area {
  /**
   * The unsigned manifest of a document, which the service has checked. `attest` takes it.
   * @throws ClientError `malformed-answer` for a manifest of another document
   */
  prepare({ title, content_hash, tags }: PrepareDocument): Promise<Manifest> {
    const document = { title, content_hash: asLogged(content_hash), ...(tags ? { tags } : {}) };
    const body = { ...document, public_key_pem: this.auth.key.pem };
    return this.#manifest("/documents/sign", body, document);
  }

  /** Makes a composite of 1 to 1000 parts, in the given order. @throws ClientError */
  async assemble(request: AssembleComposite): Promise<Composite> {
    const { composite } = await this.http.post(wire.AssembledComposite, "/composite/assemble", request);
    const { title } = request;
    const parts = request.parts.map(asTaken);
    const asked = { title, parts, composite_hash: compositeHash(title, parts.map(hashOf)) };
    if (same(composite, asked)) return asked;
    throw another("composite");
  }

  /**
   * The manifest of a composite. `attest` takes it.
   * @throws ClientError `malformed-answer` for a manifest of another composite
   */
  compile(composite: Composite): Promise<Manifest> {
    const { title, parts, composite_hash: content_hash } = composite;
    // Of a file that has no parts, the service says so.
    return this.#manifest("/composite/compile", { composite }, { title, parts: parts?.map(asTaken), content_hash });
  }

  async #manifest(path: string, body: object, document: object): Promise<Manifest> {
    const prepared = await this.http.post(PreparedDocument, path, body);
    const manifest = { attestations: [], document } as unknown as Manifest;
    const isAsked =
      same(prepared.manifest, manifest) &&
      prepared.signing_payload === encodeBase64(signingPayload(manifest)) &&
      prepared.manifest_hash === manifestHash(manifest);
    if (isAsked) return manifest;
    throw another("manifest");
  }
}

type Part = Composite["parts"][number];

/** What the service takes over of a part. */
const asTaken = ({ title, content_hash, role, manifest }: Part): Part => ({
  title,
  content_hash: asLogged(content_hash),
  ...(role === undefined ? {} : { role }),
  ...(manifest === undefined ? {} : { manifest }),
});

const another = (what: string): ClientError =>
  new ClientError("malformed-answer", `The service made another ${what} than was asked.`);

const hashOf = (part: Part): string => part.content_hash;

/** An attestation, and a byte by byte search in files for what must not be in them of its payload. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { withhold } from "#cairnlog/engine/log/operator/entries.js";
import { anyEvent } from "../anyevent.js";
import type { TestService } from "../server/harness.js";
import { newManifest, newSigner, registration, submission } from "../server/signers.js";

/** Files below a folder that have one of these bytes, each with which. */
export function holding(folder: string, secrets: Readonly<Record<string, Buffer>>, path = ""): string[] {
  return readdirSync(join(folder, path)).flatMap((name) => {
    const file = join(path, name);
    if (statSync(join(folder, file)).isDirectory()) return holding(folder, secrets, file);
    const bytes = readFileSync(join(folder, file));
    return Object.keys(secrets).flatMap((secret) => (bytes.includes(secrets[secret]!) ? [`${file}: ${secret}`] : []));
  });
}

/** Every form in which a text may be stored: as it is, as terms are folded, and as bytes. */
export const formsOf = (values: Readonly<Record<string, string>>): Record<string, Buffer> =>
  Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => {
      const bare = value.replace(/^sha256:/, "");
      const digits = bare.replaceAll("-", "");
      const forms: [string, Buffer][] = [
        [name, Buffer.from(bare.slice(0, 12))],
        [`${name} folded`, Buffer.from(bare.slice(0, 12).toLowerCase())],
      ];
      // Terms have 16 bytes of a hash.
      if (/^[0-9a-f]+$/.test(digits)) forms.push([`${name} as bytes`, Buffer.from(digits, "hex").subarray(0, 16)]);
      if (name === "signature") forms.push(["signature as bytes", Buffer.from(value, "base64")]);
      return forms;
    }),
  );

/** What is searched for of the payload of an attestation with a tag and a statement. */
export const secretsOf = (payload: Readonly<Record<string, string>> & { readonly tags: readonly string[] }) =>
  formsOf({
    title: payload.document_title!,
    tag: payload.tags[0]!,
    statement: payload.intent_statement!,
    document: payload.document_hash!,
    manifest: payload.manifest_hash!,
    attestation: payload.attestation_id!,
    signature: payload.signature!,
  });

/** How the operator withholds it. */
export const ORDER = { reason: "An order.", basis: null };

const NAME = "Holundergelee";

/** Withholds what `attestSecrets` recorded. */
export async function withholdSecrets(
  { server: { registry } }: TestService,
  { id, named }: { readonly id: number; readonly named: number },
): Promise<void> {
  await withhold(registry, id, ORDER);
  await withhold(registry, named, { ...ORDER, member: "pseudonym" });
}

/** Attests and names a key on a service, with other entries between. @returns the entries' ids, and what is searched for of their payloads */
export async function attestSecrets(service: TestService) {
  const holder = newSigner();
  const { body } = await service.post("/keys/register", registration(holder, NAME));
  await service.server.registry.log.append(Array.from({ length: 20 }, (_, n) => anyEvent({ n })));
  const manifest = newManifest("Zwetschgenkuchen mit Zimt");
  manifest.document.tags = ["Quittengelee"];
  const sent = submission(newSigner(), manifest, { intent_statement: "Sauerampfersuppe" });
  const id: number = (await service.post("/attestations", sent)).body.log_entry_id;
  const { payload } = (await service.get(`/log/${id}`)).body;
  return { id, named: body.log_entry_id as number, secrets: { ...secretsOf(payload), ...formsOf({ name: NAME }) } };
}

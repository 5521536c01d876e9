/** Searches files byte by byte for what must not be in them. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

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

/** The checks of an attestation, step by step. */
import type { BundleCheck } from "../../../../engine/verify/index.js";
import { Check } from "../../components/index.js";

const NAMES: Readonly<Record<BundleCheck["name"], string>> = {
  format: "Form",
  file: "File",
  manifest: "Manifest",
  signature: "Signature",
  attestation: "Attestation",
  entry: "Log entry",
  inclusion: "Place in the tree",
  "tree-head": "Signed tree head",
  anchor: "Anchor",
  envelope: "Envelope",
  signer: "The signer",
  witnesses: "Witnesses",
  key: "The key's status",
  trust: "Trust in the signer",
  withholding: "Withholding",
  withheld: "Withheld",
};

export function Checks({ checks }: { readonly checks: readonly BundleCheck[] }) {
  return (
    <ol class="checks">
      {checks.map(({ name, ok, detail }) => (
        <li key={name}>
          <Check holds={name === "withheld" ? null : ok}>
            <strong>{NAMES[name]}.</strong> <span class="breakable">{detail}</span>
          </Check>
        </li>
      ))}
    </ol>
  );
}

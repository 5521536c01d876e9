/** Keys: `#/keys` lists and finds them, `#/keys/sha256:…` shows one. */
import type { ViewProps } from "../../state/view.js";
import { KeyView } from "./KeyView.js";
import { KeyListPage } from "./ListPage.js";
import "./keys.css";

export default function KeysView({ path: [fingerprint], query }: ViewProps) {
  if (fingerprint === undefined) return <KeyListPage query={query} />;
  return <KeyView key={fingerprint} fingerprint={fingerprint} query={query} />;
}

/** The name of a key and the beginning of its fingerprint: names are not unique, and nobody has checked them. */
import { useCell } from "../state/cell.js";
import { viewAddress } from "../state/location.js";
import { keyName, learnt, shownText } from "../state/names.js";

interface KeyNameProps {
  readonly fingerprint: string;
  /** Absent: the name that the service last said. */
  readonly name?: string | undefined;
  readonly isLink?: boolean;
}

/** Digits of a fingerprint that are shown beside a name. */
const DIGITS = 8;

/** The beginning of a fingerprint. */
export const Digits = ({ fingerprint }: { readonly fingerprint: string }) => (
  <code class="key-digits">{fingerprint.replace(/^sha256:/, "").slice(0, DIGITS)}</code>
);

export function KeyName({ fingerprint, name: given, isLink = false }: KeyNameProps) {
  useCell(learnt);
  const name = given ?? keyName(fingerprint);
  const shown = (
    <>
      {name === undefined ? "key" : <bdi class="key-said">{shownText(name)}</bdi>} <Digits fingerprint={fingerprint} />
    </>
  );
  const title = name === undefined ? fingerprint : `Self-declared name of the key ${fingerprint}`;
  if (!isLink)
    return (
      <span class="key-ref" title={title}>
        {shown}
      </span>
    );
  return (
    <a class="key-ref" href={viewAddress(["keys", fingerprint])} title={title}>
      {shown}
    </a>
  );
}

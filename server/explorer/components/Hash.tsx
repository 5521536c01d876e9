/** A hash or fingerprint: short on the screen, whole on the clipboard. */
import { useEffect, useState } from "preact/hooks";
import { CheckIcon, CopyIcon } from "../look/icons.js";
import { announce } from "../state/announcements.js";
import { shownText } from "../state/names.js";
import { copyText } from "./clipboard.js";

const COPIED_MS = 1_600;

interface HashProps {
  readonly value: string;
  /** A description for screen readers, such as "entry hash". */
  readonly label: string;
  /** Number of characters shown at the beginning and at the end; `whole` shows all of them, wrapped if necessary. */
  readonly show?: number | "whole";
}

/** A button that copies the value. */
export function Hash({ value, label, show = 8 }: HashProps) {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return undefined;
    const timer = setTimeout(() => setCopied(false), COPIED_MS);
    return () => clearTimeout(timer);
  }, [isCopied]);
  const copy = async () => {
    const done = await copyText(value);
    setCopied(done);
    announce(done ? `The ${label} was copied.` : `The ${label} could not be copied.`);
  };
  return (
    <button type="button" class={`hash ${show === "whole" ? "hash-whole" : ""}`} title={value} onClick={copy}>
      <span class="visually-hidden">Copy {shownText(label)} </span>
      <code>{show === "whole" ? value : shortened(value, show)}</code>
      <span class="hash-icon" aria-hidden="true">
        {isCopied ? <CheckIcon /> : <CopyIcon />}
      </span>
    </button>
  );
}

/** Beginning and end of a hash, without the prefix `sha256:`, which the label implies. */
export function shortened(value: string, show = 8): string {
  const bare = value.replace(/^sha256:/, "");
  return bare.length <= 2 * show + 1 ? bare : `${bare.slice(0, show)}…${bare.slice(-show)}`;
}

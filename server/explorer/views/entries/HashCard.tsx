/** The entry hash, step by step: the bytes that are hashed, and the result. */
import {
  canonicalJson,
  canonicalTimestamp,
  type Entry,
  entryHash,
  entryPreimage,
} from "../../../../engine/verify/index.js";
import { Card, Check, Hash, Scroll } from "../../components/index.js";
import { server } from "../../state/source.js";

/** A part of the preimage, in order. */
interface Part {
  readonly kind: "prefix" | "syntax" | "payload" | "previous" | "time";
  readonly text: string;
}

const NAMES: Readonly<Record<Part["kind"], string>> = {
  prefix: "domain prefix, and one zero byte",
  syntax: "canonical JSON around them",
  payload: "payload, canonical",
  previous: "previous hash",
  time: "timestamp, canonical",
};
const NUMBER = new Intl.NumberFormat();

export function HashCard({ entry }: { readonly entry: Entry }) {
  const version = entry.chain_version ?? 1;
  const parts = version === 2 ? secondVersion(entry) : firstVersion(entry);
  const bytes = entryPreimage(entry);
  // The parts are for display; together they must be exactly the hashed bytes.
  const isWhole = new TextDecoder().decode(bytes) === parts.map(({ text }) => text).join("");
  const computed = entryHash(entry);
  const kinds = [...new Set(parts.map(({ kind }) => kind))].filter((kind) => kind !== "syntax");
  return (
    <Card title="How its hash is made" aside={`version ${version}`}>
      <ol class="steps">
        <li>
          <p>
            These {NUMBER.format(bytes.length)} bytes{isWhole ? "" : " (shown in part)"}, made of{" "}
            {kinds.map((kind, i) => (
              <span key={kind}>
                {i > 0 && (i === kinds.length - 1 ? " and " : ", ")}
                <span class={`part part-${kind}`}>{NAMES[kind]}</span>
              </span>
            ))}
            :
          </p>
          <Scroll label="Bytes that are hashed">
            <pre class="preimage">
              {parts.map(({ kind, text }, i) => (
                <span key={`${kind}${i}`} class={`part part-${kind}`}>
                  {text.replaceAll("\0", "\\0")}
                </span>
              ))}
            </pre>
          </Scroll>
        </li>
        <li>
          <p>Their SHA-256, computed in this page:</p>
          <Hash value={computed} label="computed hash" show="whole" />
        </li>
        <li>
          <p>The entry hash that {server().toLowerCase()} shows:</p>
          <Hash value={entry.entry_hash} label="entry hash" show="whole" />
          <div class="note">
            <Check holds={computed === entry.entry_hash}>
              {computed === entry.entry_hash ? "They are equal." : "They differ."}
            </Check>
          </div>
        </li>
      </ol>
      <Digests entry={entry} />
    </Card>
  );
}

/** Further digests over the same bytes; the page has checked them together with the entry hash. */
function Digests({ entry }: { readonly entry: Entry }) {
  const others = entry.entry_hashes.filter(({ is_primary }) => !is_primary);
  if (others.length === 0) return null;
  return (
    <div class="note">
      <p class="soft">Also checked, over the same bytes:</p>
      <ul class="digests">
        {others.map(({ algorithm, digest_hex }) => (
          <li key={algorithm}>
            {algorithm} <Hash value={digest_hex} label={`${algorithm} digest`} show={12} />
          </li>
        ))}
      </ul>
    </div>
  );
}

function firstVersion({ payload, previous_hash }: Entry): Part[] {
  const parts: Part[] = [{ kind: "payload", text: canonicalJson(payload) }];
  return previous_hash === null ? parts : [...parts, { kind: "previous", text: previous_hash }];
}

function secondVersion({ payload, previous_hash, timestamp }: Entry): Part[] {
  return [
    { kind: "prefix", text: "service.log.entry.v2\0" },
    { kind: "syntax", text: '{"payload":' },
    { kind: "payload", text: canonicalJson(payload) },
    { kind: "syntax", text: ',"previous_hash":' },
    { kind: "previous", text: canonicalJson(previous_hash) },
    { kind: "syntax", text: ',"timestamp":' },
    { kind: "time", text: canonicalJson(canonicalTimestamp(timestamp)) },
    { kind: "syntax", text: "}" },
  ];
}

/** The payload as JSON, with links for keys and documents. */
import { SEARCH_MEMBERS } from "../../../../engine/verify/contract.js";
import type { Entry } from "../../../../engine/verify/index.js";
import { KEY_MEMBERS } from "../../../../engine/verify/kinds.js";
import { Card, CopyIcon, copyText, Scroll } from "../../components/index.js";
import { announce } from "../../state/announcements.js";
import { addressOf } from "../../state/location.js";

export function ContentCard({ entry }: { readonly entry: Entry }) {
  const copy = async () => {
    const done = await copyText(JSON.stringify(entry.payload, null, 2));
    announce(done ? "The content was copied." : "The content could not be copied.");
  };
  return (
    <Card
      title="Content"
      aside={
        <button type="button" class="icon-button" aria-label="Copy the content" title="Copy the content" onClick={copy}>
          <CopyIcon />
        </button>
      }
    >
      <Scroll label="Content as JSON">
        <pre class="json">
          <Value value={entry.payload} depth={0} />
        </pre>
      </Scroll>
    </Card>
  );
}

interface ValueProps {
  readonly value: unknown;
  readonly depth: number;
  /** Name of the member with this value. */
  readonly name?: string;
}

function Value({ value, depth, name }: ValueProps) {
  if (typeof value === "string") return <Text value={value} name={name} />;
  if (typeof value !== "object" || value === null) return <span class="json-literal">{String(value)}</span>;
  const isArray = Array.isArray(value);
  const members = Object.entries(value);
  const [open, close] = isArray ? "[]" : "{}";
  if (members.length === 0) return <>{`${open}${close}`}</>;
  const margin = "  ".repeat(depth + 1);
  return (
    <>
      {open}
      {members.map(([member, inner], i) => (
        <span key={member}>
          {`\n${margin}`}
          {!isArray && (
            <>
              <span class="json-name">{JSON.stringify(member)}</span>
              {": "}
            </>
          )}
          <Value value={inner} depth={depth + 1} {...(isArray ? {} : { name: member })} />
          {i < members.length - 1 && ","}
        </span>
      ))}
      {`\n${"  ".repeat(depth)}${close}`}
    </>
  );
}

function Text({ value, name }: { readonly value: string; readonly name: string | undefined }) {
  const text = <span class="json-text">{JSON.stringify(value)}</span>;
  const to = name === undefined ? undefined : addressBehind(name, value);
  return to === undefined ? text : <a href={to}>{text}</a>;
}

function addressBehind(name: string, value: string): string | undefined {
  if (KEY_MEMBERS.has(name) && /^sha256:[0-9a-f]{64}$/.test(value)) return addressOf(["keys", value]);
  if (SEARCH_MEMBERS.some((member) => member === name)) return addressOf(["entries"], { search: value });
  return undefined;
}

/** The place of an entry in the tree: the path up to the root, with each hash computed before the reader's eyes. */
import { useEffect, useState } from "preact/hooks";
import { height } from "../../../../engine/verify/index.js";
import { Card, Check, Hash } from "../../components/index.js";
import { announce } from "../../state/announcements.js";
import type { Way as Path, Rooted } from "../../state/source.js";
import { type Ascent, atLeaf, climb } from "./ascent.js";
import { TreeDrawing } from "./TreeDrawing.js";

/** The animation of the whole path takes about this long, for any height of the tree. */
const CLIMB_MS = 5_000;
const SLOWEST_MS = 450;
const NUMBER = new Intl.NumberFormat();
const counted = (count: number, what: string): string => `${NUMBER.format(count)} ${what}${count === 1 ? "" : "s"}`;

interface TreeCardProps {
  readonly proof: Path;
  readonly head: Rooted;
}

/** Nothing is computed or drawn before it is opened. */
export function TreeCard(props: TreeCardProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <Card title="Where it lies">
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>Compute the way from this entry up to the signed root</summary>
        {isOpen && <Way {...props} />}
      </details>
    </Card>
  );
}

function Way({ proof, head }: TreeCardProps) {
  const { ascent, replay } = useClimb(proof, head);
  const top = height(head.tree_size);
  const root = ascent.isComplete ? ascent.rungs.at(-1)!.hash : undefined;
  return (
    <div class="tree-layout">
      <div class="tree-frame">
        <TreeDrawing ascent={ascent} top={top} proof={proof} />
      </div>
      <div class="tree-words">
        <p class="soft">
          {top === 0 ? (
            "It is the only leaf, and so the root."
          ) : (
            <>
              Leaf {NUMBER.format(proof.leaf_index)} of {NUMBER.format(head.tree_size)}, {counted(top, "level")} below
              the root. From the bottom up, each coloured hash is computed here from the two below it;{" "}
              {counted(proof.audit_path.length, "plain one")} came with the proof.
            </>
          )}
        </p>
        <dl class="roots">
          <div>
            <dt class="soft">Root computed here</dt>
            <dd>
              {root ? <Hash value={root} label="computed root" show="whole" /> : <span class="soft">computing…</span>}
            </dd>
          </div>
          <div>
            <dt class="soft">
              Root that {head.tree_version === "rfc6962" ? "the checkpoint has" : "the operator signed"}
            </dt>
            <dd>
              <Hash value={head.root_hash} label="signed root" show="whole" />
            </dd>
          </div>
        </dl>
        <div class="tree-check">
          {root && (
            <Check holds={root === head.root_hash}>
              {root === head.root_hash ? "They are equal: the entry is in the log." : "They differ."}
            </Check>
          )}
        </div>
        <details>
          <summary>Every hash on the path, as text</summary>
          <Rungs ascent={ascent} />
        </details>
        <button type="button" class="button" onClick={replay} disabled={!ascent.isComplete}>
          Compute again
        </button>
      </div>
    </div>
  );
}

/** Climbs level by level; without animation for readers who want no motion. */
function useClimb(proof: Path, head: Rooted) {
  const [ascent, setAscent] = useState<Ascent>(() => atLeaf(proof, head));
  useEffect(() => {
    if (ascent.isComplete) return undefined;
    if (window.matchMedia("(prefers-reduced-motion: reduce)").matches) {
      let climbed = ascent;
      while (!climbed.isComplete) climbed = climb(climbed, proof, head);
      setAscent(climbed);
      return undefined;
    }
    const pause = Math.min(SLOWEST_MS, CLIMB_MS / height(head.tree_size));
    const timer = setTimeout(() => setAscent(climb(ascent, proof, head)), pause);
    return () => clearTimeout(timer);
  }, [ascent, proof, head]);
  const replay = () => {
    announce("Computing the path to the root again.");
    setAscent(atLeaf(proof, head));
  };
  return { ascent, replay };
}

function Rungs({ ascent }: { readonly ascent: Ascent }) {
  return (
    <ol class="way">
      {ascent.rungs.map(({ level, index, hash, partner }) => (
        <li key={level}>
          <span class="soft">
            Level {level}, node {NUMBER.format(index)}
          </span>
          <Hash value={hash} label={`hash of level ${level}`} show={12} />
          {partner && (
            <span class="soft">
              {partner.from === "self"
                ? "has no neighbour and is hashed with itself"
                : partner.from === "none"
                  ? "has no neighbour and goes up as it is"
                  : `is hashed with its ${partner.side} neighbour`}
            </span>
          )}
          {partner?.from === "proof" && <Hash value={partner.hash} label={`sibling on level ${level}`} show={12} />}
        </li>
      ))}
    </ol>
  );
}

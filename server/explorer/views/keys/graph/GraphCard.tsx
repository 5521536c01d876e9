/** The endorsements around a key: a picture that the reader can navigate, and a table with the same data. */
import { useState } from "preact/hooks";
import { Graph } from "../../../../../engine/contract/signing/trust.js";
import { ENDORSEMENT_CATEGORIES, ENDORSEMENT_STATUSES } from "../../../../../engine/verify/keys/contract.js";
import { Card, Choice, EndorsementBadge, KeyName, spoken, TaskView, Time } from "../../../components/index.js";
import { goTo, viewAddress } from "../../../state/location.js";
import { learnNames } from "../../../state/names.js";
import { http } from "../../../state/service.js";
import { useTask } from "../../../state/task.js";
import type { GraphAnswer } from "./answer.js";
import { GraphPicture } from "./GraphPicture.js";

/** A picture of more keys would not be readable. */
const MAX_DRAWN = 250;
const DEPTHS = ["1", "2", "3", "4"] as const;
const DEFAULT_DEPTH = "2";
const FINGERPRINT = /^sha256:[0-9a-f]{64}$/;
const DATE = /^\d{4}-\d\d-\d\d$/;

interface GraphCardProps {
  readonly fingerprint: string;
  readonly query: URLSearchParams;
}

/** The shown part of the graph. All of it is in the address, so that the reader can go back and share it. */
interface Wanted {
  /** The key to which the reader has moved. */
  readonly around: string;
  readonly type: string;
  readonly status: string;
  readonly since: string;
  readonly until: string;
  readonly depth: string;
}

export function GraphCard({ fingerprint, query }: GraphCardProps) {
  const wanted = wantedOf(fingerprint, query);
  const task = useTask(() => graphOf(wanted), Object.values(wanted));
  const go = (changes: Partial<Wanted>) => {
    const { around, depth, ...filter } = { ...wanted, ...changes };
    goTo(
      viewAddress(["keys", fingerprint], {
        ...Object.fromEntries(query),
        ...filter,
        around: around === fingerprint ? undefined : around,
        depth: depth === DEFAULT_DEPTH ? undefined : depth,
      }),
    );
  };
  return (
    <Card title="Endorsements around the key" aside="from endorser to endorsed">
      <Filters wanted={wanted} go={go} />
      <TaskView task={task} what="the graph of endorsements" rows={6}>
        {(graph) => (
          <div class="graph">
            <Where graph={graph} fingerprint={fingerprint} go={go} />
            {graph.edges.length === 0 ? (
              <p class="soft">This key has no endorsement of this kind.</p>
            ) : (
              <>
                {graph.nodes.length <= MAX_DRAWN ? (
                  <GraphPicture graph={graph} walk={(around) => go({ around })} />
                ) : (
                  <p>{graph.nodes.length} keys are too many for a picture: the table has them.</p>
                )}
                <GraphTable graph={graph} walk={(around) => go({ around })} />
              </>
            )}
            {graph.truncated && (
              <p class="soft">The graph is larger than the service can send at once: choose a smaller depth.</p>
            )}
          </div>
        )}
      </TaskView>
    </Card>
  );
}

function Filters({ wanted, go }: { readonly wanted: Wanted; go(changes: Partial<Wanted>): void }) {
  return (
    <div class="card-filters">
      <Choice label="Category" values={ENDORSEMENT_CATEGORIES} value={wanted.type} change={(type) => go({ type })} />
      <Choice label="Status" values={ENDORSEMENT_STATUSES} value={wanted.status} change={(status) => go({ status })} />
      <DateField label="Not before" value={wanted.since} change={(since) => go({ since })} />
      <DateField label="Not after" value={wanted.until} change={(until) => go({ until })} />
      <label class="field">
        <span>Steps</span>
        <select class="input" value={wanted.depth} onChange={(event) => go({ depth: event.currentTarget.value })}>
          {DEPTHS.map((depth) => (
            <option key={depth} value={depth}>
              {depth}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}

const DateField = ({ label, value, change }: { label: string; value: string; change(value: string): void }) => (
  <label class="field">
    <span>{label}</span>
    <input class="input" type="date" value={value} onChange={(event) => change(event.currentTarget.value)} />
  </label>
);

/** Shown when the reader has moved away from the key of this page. */
function Where({ graph, fingerprint, go }: { graph: GraphAnswer; fingerprint: string; go(to: Partial<Wanted>): void }) {
  if (graph.root === fingerprint) return null;
  return (
    <p class="where">
      Around <KeyName fingerprint={graph.root} isLink />
      <button type="button" class="button" onClick={() => go({ around: fingerprint })}>
        Back to the first key
      </button>
    </p>
  );
}

function GraphTable({ graph, walk }: { readonly graph: GraphAnswer; walk(fingerprint: string): void }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>The same data as a table</summary>
      {isOpen && <Rows graph={graph} walk={walk} />}
    </details>
  );
}

/** Of the largest graphs they take the browser seconds: who does not open the table need not wait for them. */
function Rows({ graph, walk }: { readonly graph: GraphAnswer; walk(fingerprint: string): void }) {
  const nodes = new Map(graph.nodes.map((node) => [node.fingerprint, node]));
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: without focus it could not be scrolled by keyboard
    <section class="table-frame graph-table" aria-label="Table of endorsements around the key" tabIndex={0}>
      <table class="table">
        <thead>
          <tr>
            <th scope="col">From</th>
            <th scope="col">To</th>
            <th scope="col">Category</th>
            <th scope="col">Status</th>
            <th scope="col">Since</th>
            <th scope="col">Until</th>
            <th scope="col">Entry</th>
          </tr>
        </thead>
        <tbody>
          {graph.edges.map(({ from, to, category, status, since, until, offer_entry_id }) => (
            <tr key={offer_entry_id}>
              <td data-label="From">
                <Walk node={nodes.get(from)} to={from} walk={walk} />
              </td>
              <td data-label="To">
                <Walk node={nodes.get(to)} to={to} walk={walk} />
              </td>
              <td data-label="Category">{spoken(category)}</td>
              <td data-label="Status">
                <EndorsementBadge status={status} />
              </td>
              <td data-label="Since">
                <Time at={since} />
              </td>
              <td data-label="Until">{until === null ? "—" : <Time at={until} />}</td>
              <td data-label="Entry">
                <a href={viewAddress(["entries", offer_entry_id])}>{offer_entry_id}</a>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

interface WalkProps {
  readonly node: GraphAnswer["nodes"][number] | undefined;
  readonly to: string;
  walk(to: string): void;
}

function Walk({ node, to, walk }: WalkProps) {
  return (
    <span class="key-link">
      <button type="button" class="walk" onClick={() => walk(to)}>
        <KeyName fingerprint={to} name={node?.pseudonym} />
      </button>
      {node && node.status !== "active" && <span class="soft">{node.status}</span>}
    </span>
  );
}

async function graphOf({ around, depth, ...filter }: Wanted): Promise<GraphAnswer> {
  const given = Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== ""));
  const graph = await http.get(Graph, `/graph/${encodeURIComponent(around)}`, { max_depth: Number(depth), ...given });
  learnNames(Object.fromEntries(graph.nodes.map(({ fingerprint, pseudonym }) => [fingerprint, pseudonym])));
  return graph;
}

/** Invalid values in the address are ignored. */
function wantedOf(fingerprint: string, query: URLSearchParams): Wanted {
  const among = (name: string, values: readonly string[], otherwise = "") =>
    values.find((value) => value === query.get(name)) ?? otherwise;
  const fitting = (name: string, form: RegExp, otherwise = "") => {
    const value = query.get(name) ?? "";
    return form.test(value) ? value : otherwise;
  };
  return {
    around: fitting("around", FINGERPRINT, fingerprint),
    type: among("type", ENDORSEMENT_CATEGORIES),
    status: among("status", ENDORSEMENT_STATUSES),
    since: fitting("since", DATE),
    until: fitting("until", DATE),
    depth: among("depth", DEPTHS, DEFAULT_DEPTH),
  };
}

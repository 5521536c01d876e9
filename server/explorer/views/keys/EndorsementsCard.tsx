/** Endorsements that a key received or issued. */

import { useState } from "preact/hooks";
import { EndorsementPage } from "../../../../engine/contract/signing/endorsements.js";
import { ENDORSEMENT_CATEGORIES, ENDORSEMENT_STATUSES } from "../../../../engine/verify/keys/contract.js";
import type { Endorsement } from "../../../client/index.js";
import {
  Card,
  CardPaging,
  Choice,
  Empty,
  EndorsementBadge,
  ForeignText,
  KeyName,
  spoken,
  TaskView,
  Time,
} from "../../components/index.js";
import { viewAddress } from "../../state/location.js";
import { http } from "../../state/service.js";
import { useTask } from "../../state/task.js";

const PER_PAGE = 10;
const PERCENT = new Intl.NumberFormat(undefined, { style: "percent" });

interface EndorsementsCardProps {
  readonly fingerprint: string;
  readonly direction: "received" | "issued";
}

export function EndorsementsCard({ fingerprint, direction }: EndorsementsCardProps) {
  const [status, setStatus] = useState("");
  const [category, setCategory] = useState("");
  const [page, setPage] = useState(1);
  const task = useTask(() => {
    const path = `/endorsements/${encodeURIComponent(fingerprint)}${direction === "issued" ? "/issued" : ""}`;
    const query = { status: status || undefined, category: category || undefined, page, per_page: PER_PAGE };
    return http.get(EndorsementPage, path, query);
  }, [fingerprint, direction, status, category, page]);
  const total = task.value?.total ?? 0;
  const pages = Math.max(1, Math.ceil(total / PER_PAGE));
  const isFiltered = status !== "" || category !== "";
  const filter = (change: (value: string) => void) => (value: string) => {
    change(value);
    setPage(1);
  };
  return (
    <Card title={direction === "received" ? "Endorsements received" : "Endorsements issued"} aside={`${total}`}>
      {(total > 0 || isFiltered) && (
        <div class="card-filters">
          <Choice label="Status" values={ENDORSEMENT_STATUSES} value={status} change={filter(setStatus)} />
          <Choice label="Category" values={ENDORSEMENT_CATEGORIES} value={category} change={filter(setCategory)} />
        </div>
      )}
      <TaskView task={task} what="endorsements" rows={2}>
        {({ endorsements }) =>
          endorsements.length > 0 ? (
            <EndorsementTable endorsements={endorsements} direction={direction} />
          ) : isFiltered ? (
            <Empty title="No endorsement matches." />
          ) : (
            <p class="soft">
              {direction === "received" ? "Nobody has endorsed this key." : "This key has endorsed nobody."}
            </p>
          )
        }
      </TaskView>
      <CardPaging page={page} pages={pages} onPage={setPage} />
    </Card>
  );
}

interface TableProps extends Pick<EndorsementsCardProps, "direction"> {
  readonly endorsements: readonly Endorsement[];
}

function EndorsementTable({ endorsements, ...rest }: TableProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: without focus it could not be scrolled by keyboard
    <section class="table-frame" aria-label={`Table of endorsements ${rest.direction}`} tabIndex={0}>
      <table class="table">
        <thead>
          <tr>
            <th scope="col">{rest.direction === "received" ? "From" : "To"}</th>
            <th scope="col">Category</th>
            <th scope="col">Status</th>
            <th scope="col">Since</th>
            <th scope="col">Entry</th>
          </tr>
        </thead>
        <tbody>
          {endorsements.map((each) => (
            <EndorsementRow key={each.offer_entry_id} endorsement={each} {...rest} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

type RowProps = Pick<TableProps, "direction"> & { readonly endorsement: Endorsement };

function EndorsementRow({ endorsement, direction }: RowProps) {
  const { category, status, offered_at, accepted_at, discount, offer_entry_id, end_note } = endorsement;
  const other = direction === "received" ? endorsement.endorser_fingerprint : endorsement.endorsed_fingerprint;
  return (
    <tr class="endorsement">
      <td data-label={direction === "received" ? "From" : "To"}>
        <KeyName fingerprint={other} isLink />
      </td>
      <td data-label="Category">{spoken(category)}</td>
      <td data-label="Status">
        <EndorsementBadge status={status} />
        {discount < 1 && <span class="soft"> counts {PERCENT.format(discount)}</span>}
        {end_note !== null && <ForeignText text={end_note} />}
      </td>
      <td data-label="Since">
        <Time at={accepted_at ?? offered_at} as="age" />
      </td>
      <td data-label="Entry">
        <a href={viewAddress(["entries", offer_entry_id])}>{offer_entry_id}</a>
      </td>
    </tr>
  );
}

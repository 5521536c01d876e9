/** Links to the pages of a list: first, last, and the pages around the current one. */
import { AfterIcon, BeforeIcon } from "../look/icons.js";

interface PagingProps {
  /** Counted from 1. */
  readonly page: number;
  readonly pages: number;
  /** The items on the pages: "entries". */
  readonly what: string;
  addressOf(page: number): string;
}

const NUMBER = new Intl.NumberFormat();

/** Empty if there is only one page. */
export function Paging({ page, pages, what, addressOf }: PagingProps) {
  if (pages <= 1) return null;
  return (
    <nav class="paging" aria-label={`Pages of ${what}`}>
      <Step to={page > 1 ? addressOf(page - 1) : null} label="Previous page">
        <BeforeIcon />
      </Step>
      {shownPages(page, pages).map((each, i, all) => (
        <span class="paging-item" key={each}>
          {i > 0 && each - all[i - 1]! > 1 && (
            <span class="paging-gap" aria-hidden="true">
              …
            </span>
          )}
          <a
            href={addressOf(each)}
            aria-label={`Page ${NUMBER.format(each)} of ${NUMBER.format(pages)}`}
            {...(each === page ? { "aria-current": "page" as const } : {})}
          >
            {NUMBER.format(each)}
          </a>
        </span>
      ))}
      <Step to={page < pages ? addressOf(page + 1) : null} label="Next page">
        <AfterIcon />
      </Step>
    </nav>
  );
}

function Step({ to, label, children }: { to: string | null; label: string; children: preact.ComponentChildren }) {
  if (to === null) return <span class="paging-step paging-step-off">{children}</span>;
  return (
    <a class="paging-step" href={to} aria-label={label}>
      {children}
    </a>
  );
}

/** First, last, this one and its neighbours, ascending. */
function shownPages(page: number, pages: number): number[] {
  const wanted = [1, page - 1, page, page + 1, pages].filter((each) => each >= 1 && each <= pages);
  return [...new Set(wanted)].sort((a, b) => a - b);
}

/** Buttons for the pages of a list within a card; these pages have no address. Empty if there is only one page. */
export function CardPaging({
  page,
  pages,
  onPage,
}: {
  /** Counted from 1. */
  readonly page: number;
  readonly pages: number;
  onPage(page: number): void;
}) {
  if (pages <= 1) return null;
  return (
    <div class="card-paging">
      <button type="button" class="button" disabled={page === 1} onClick={() => onPage(page - 1)}>
        Earlier
      </button>
      <span class="soft number">
        {page} of {pages}
      </span>
      <button type="button" class="button" disabled={page === pages} onClick={() => onPage(page + 1)}>
        Later
      </button>
    </div>
  );
}

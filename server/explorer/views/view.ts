/** What every view is given. */
export interface ViewProps {
  /** Parts of the address behind the view's name, decoded. */
  readonly path: readonly string[];
  readonly query: URLSearchParams;
}

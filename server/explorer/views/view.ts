/** The properties of every view. */
export interface ViewProps {
  /** Parts of the address after the view's name, decoded. */
  readonly path: readonly string[];
  readonly query: URLSearchParams;
}

/** What a view is. */
import type { ComponentType } from "preact";

/** The properties of every view. */
export interface ViewProps {
  /** Parts of the address after the view's name, decoded. */
  readonly path: readonly string[];
  readonly query: URLSearchParams;
}

export interface ViewRoute {
  /** First part of the address; empty for the view at `#/`. */
  readonly name: string;
  /** Name in the navigation. */
  readonly label: string;
  /** Whether it is reached from elsewhere, and is not in the navigation. */
  readonly isUnlisted?: true;
  load(): Promise<{ readonly default: ComponentType<ViewProps> }>;
}

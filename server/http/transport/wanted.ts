/** The objects of a body whose canonical bytes (RFC 8785) a route wants, so that it need not spell them when they came so. */

/** The member that is wanted: of the body itself, or of each item of a list in it. The names are ASCII. */
export interface Wanted {
  readonly member: string;
  /** The member of the body that is the list; absent if the wanted member is the body's own. */
  readonly list?: string;
}

/**
 * Bytes of the wanted objects that came in canonical form: the one of the body, or one of each item of its list, by number.
 * They are parts of the body. Those that came in another form are not here.
 */
export type Canonical = readonly (Buffer | undefined)[];

export const NO_CANONICAL: Canonical = [];

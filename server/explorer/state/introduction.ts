/** What the service says of itself, in the page that it sends: no request is needed for it. */

const meta = (name: string): string | null =>
  document.querySelector<HTMLMetaElement>(`meta[name="${name}"]`)?.content ?? null;

/** Null where the operator has not said it; `writers`, who may write, at a mirror. */
export const introduction = {
  operator: meta("log-operator"),
  description: meta("log-description"),
  writers: meta("log-writers"),
};

const predicates = meta("log-predicates");

/** The URL below which the predicates of this service are. */
export const predicateBase = predicates === null ? null : `https://${predicates}`;

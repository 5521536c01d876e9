/** The heading of a view: the document's title, and where the focus goes when the reader comes to the view. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { arrivals } from "../state/arrivals.js";

export interface HeadingProps {
  /** In the document's title. */
  readonly title: string;
  /** What the heading shows, where that is more than the title. */
  readonly children?: ComponentChildren;
}

/** The one `h1` of a view. */
export function Heading({ title, children = title }: HeadingProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} · Transparency log`;
    if (arrivals.take()) heading.current?.focus({ preventScroll: true });
  }, [title]);
  return (
    <h1 ref={heading} tabIndex={-1}>
      {children}
    </h1>
  );
}

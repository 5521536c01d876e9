/** The heading of a view: sets the document's title, and takes the focus when the reader opens the view. */
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { arrivals } from "../state/arrivals.js";
import { shownText } from "../state/names.js";

interface HeadingProps {
  /** Text for the document's title. */
  readonly title: string;
  /** Content of the heading, if it is more than the title. */
  readonly children?: ComponentChildren;
}

/** The one `h1` of a view. */
export function Heading({ title, children = title }: HeadingProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  // Before anything else of the view can be used: later, the focus would be taken from a reader who is typing already.
  useLayoutEffect(() => {
    document.title = `${shownText(title)} · Transparency log`;
    if (arrivals.take()) heading.current?.focus({ preventScroll: true });
  }, [title]);
  return (
    <h1 ref={heading} tabIndex={-1}>
      {children}
    </h1>
  );
}

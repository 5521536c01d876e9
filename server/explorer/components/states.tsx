/** Placeholders for content that is empty, not loaded yet, or could not be loaded. */
import type { ComponentChildren } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { ClientError } from "../../client/index.js";
import { AlarmIcon } from "../look/icons.js";
import { server } from "../state/source.js";
import type { Task } from "../state/task.js";
import { useNow } from "./Time.js";

export function Empty({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) {
  return (
    <div class="state state-empty">
      <p class="state-title">{title}</p>
      {children && <div class="state-text">{children}</div>}
    </div>
  );
}

/**
 * Grey lines as high as the content that will replace them, so that the page does not jump. `rows` are lines of a list.
 */
export function Loading({ rows = 3, what }: { readonly rows?: number; readonly what: string }) {
  return (
    <div class="state-loading" role="status">
      <span class="visually-hidden">Loading {what}</span>
      {Array.from({ length: rows }, (_, row) => (
        <span key={row} class="skeleton" aria-hidden="true" />
      ))}
    </div>
  );
}

interface ProblemProps {
  readonly error: unknown;
  retry?(): void;
}

/** An error, and what to do about it. If waiting helps, it counts down and then tries again. */
export function ProblemNote({ error, retry }: ProblemProps) {
  const { title, text } = describe(error);
  const wait = error instanceof ClientError ? error.retryAfter : undefined;
  return (
    <div class="state state-problem" role="alert">
      <p class="state-title">
        <AlarmIcon /> {title}
      </p>
      <p class="state-text">{text}</p>
      {retry && (wait ? <Countdown seconds={wait} since={error} done={retry} /> : <RetryButton retry={retry} />)}
    </div>
  );
}

const RetryButton = ({ retry }: { readonly retry: () => void }) => (
  <button type="button" class="button" onClick={retry}>
    Try again
  </button>
);

interface CountdownProps {
  readonly seconds: number;
  /** The countdown starts again when this value changes. */
  readonly since: unknown;
  /** Called at the end, and when the reader does not want to wait. */
  done(): void;
}

export function Countdown({ seconds, since, done }: CountdownProps) {
  const end = useMemo(() => Date.now() + seconds * 1000, [seconds, since]);
  const left = Math.max(0, Math.ceil((end - useNow()) / 1000));
  useEffect(() => {
    if (left === 0) done();
  }, [left, done]);
  return (
    <p class="state-text" aria-live="off">
      Trying again in <span class="number">{left}</span> s. <RetryButton retry={done} />
    </p>
  );
}

/** Shows the value of a task; before that, or if the task fails, a placeholder. */
export function TaskView<T>({
  task,
  what,
  rows,
  children,
}: {
  readonly task: Task<T>;
  /** The thing that is being loaded: "entries". */
  readonly what: string;
  readonly rows?: number;
  readonly children: (value: T) => ComponentChildren;
}) {
  if (task.error !== undefined) return <ProblemNote error={task.error} retry={task.retry} />;
  if (task.value === undefined) return <Loading what={what} {...(rows === undefined ? {} : { rows })} />;
  return <div aria-busy={task.isBusy}>{children(task.value)}</div>;
}

function describe(error: unknown): { title: string; text: string } {
  if (!(error instanceof ClientError)) return { title: "This page failed", text: String(error) };
  if (error.code === "no-answer")
    return { title: `${server()} does not answer`, text: "It may be restarting, or you may be offline." };
  if (error.code === "rate-limited")
    return { title: "Too many requests", text: "This address has reached the limit of requests for now." };
  if (error.code === "log-misbehaved") return { title: "The log misbehaves", text: error.detail };
  if (error.code === "operator-key-mismatch") return { title: "The operator key has changed", text: error.detail };
  if (error.code === "stale-answer") return { title: `${server()} shows an older log`, text: error.detail };
  if (error.code === "malformed-answer") return { title: `${server()} sent an unexpected answer`, text: error.detail };
  if (error.status === 404) return { title: "Not found", text: error.detail };
  if (error.status >= 500) return { title: `${server()} has an error`, text: error.detail + idOf(error) };
  return { title: "That did not work", text: error.detail };
}

/** Leads the operator to the request in the service's log. */
const idOf = ({ requestId }: ClientError): string => (requestId === undefined ? "" : ` Request id: ${requestId}`);

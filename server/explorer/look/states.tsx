/** What stands where contents would: nothing there, not there yet, could not be had. */
import type { ComponentChildren } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { ClientError } from "../../client/index.js";
import { useNow } from "../components/Time.js";
import type { Task } from "../state/task.js";
import { AlarmIcon } from "./icons.js";

export function Empty({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) {
  return (
    <div class="state state-empty">
      <p class="state-title">{title}</p>
      {children && <div class="state-text">{children}</div>}
    </div>
  );
}

/** Grey lines as high as what will stand there, so that nothing jumps. `rows` are lines of a list. */
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

export interface ProblemProps {
  readonly error: unknown;
  retry?(): void;
}

/** What went wrong and what to do. Where waiting helps it counts down and then tries again by itself. */
export function Problem({ error, retry }: ProblemProps) {
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

export interface CountdownProps {
  readonly seconds: number;
  /** What it counts from: another one begins anew. */
  readonly since: unknown;
  /** At the end, and when the reader does not want to wait. */
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

/** A task's value once it is there; until then, and when it fails, what stands for it. */
export function TaskView<T>({
  task,
  what,
  rows,
  children,
}: {
  readonly task: Task<T>;
  /** What is being loaded: "entries". */
  readonly what: string;
  readonly rows?: number;
  readonly children: (value: T) => ComponentChildren;
}) {
  if (task.error !== undefined) return <Problem error={task.error} retry={task.retry} />;
  if (task.value === undefined) return <Loading what={what} {...(rows === undefined ? {} : { rows })} />;
  return <div aria-busy={task.isBusy}>{children(task.value)}</div>;
}

function describe(error: unknown): { title: string; text: string } {
  if (!(error instanceof ClientError)) return { title: "This page failed", text: String(error) };
  if (error.code === "no-answer")
    return { title: "The service does not answer", text: "It may be restarting, or you may be offline." };
  if (error.code === "rate-limited")
    return { title: "Too many requests", text: "This address has asked as much as the service allows for now." };
  if (error.code === "log-misbehaved") return { title: "The log was caught", text: error.detail };
  if (error.code === "malformed-answer")
    return { title: "The service answered with something else than promised", text: error.detail };
  if (error.status === 404) return { title: "Not found", text: error.detail };
  if (error.status >= 500) return { title: "The service is not well", text: error.detail };
  return { title: "That did not work", text: error.detail };
}

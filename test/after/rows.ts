/** The rows of the table: objects that live long and hold a connection, a timer, a slot or a queue. */

/** One such object, opened, with what it depends on. */
export interface Subject {
  /** What was held when everything around it was there, and it was not. */
  readonly around: readonly string[];
  /** What it is for. @returns what tells a whole object from one that a failure has left in another state */
  call(): Promise<unknown>;
  /** What it depends on fails; resolves when the object has met that. */
  fail(): Promise<void>;
  /** What it depends on is there again; resolves when the object knows. */
  recover(): Promise<void>;
  close(): Promise<void>;
  /** Ends what the test made around it, when all was looked at. */
  remove?(): Promise<void>;
}

export interface Row {
  readonly name: string;
  /** Source files whose timers, connections and threads it makes, each seen while the test runs. */
  readonly files: readonly string[];
  /** The source file whose first pause after a failure must be as short the next time. */
  readonly pauses?: string;
  readonly open: () => Promise<Subject>;
}

export const nothing = async (): Promise<void> => {};

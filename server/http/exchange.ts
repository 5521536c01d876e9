/** A request and its answer, while they are under way. */
import type { Span } from "@opentelemetry/api";
import type { Upload } from "./body/uploads.js";
import type { Standing } from "./limits/limits.js";
import type { PreparedRoute, Resource } from "./resources.js";
import type { HttpError } from "./route/problems.js";
import type { Context } from "./route/route.js";
import type { Share } from "./transport/pending.js";
import type { Request } from "./transport/request.js";
import type { TransportResponse } from "./transport/transport.js";

/** One request on its way. */
export interface Exchange {
  readonly response: TransportResponse;
  readonly request: Request;
  readonly resource: Resource;
  readonly prepared: PreparedRoute | undefined;
  readonly started: number;
  /** Null without a tracer, and when it has ended. */
  span: Span | null;
  /** Why nothing of it is done, known before its body; null for most. */
  readonly refusal: HttpError | null;
  /** Null when nothing is limited. */
  standing: Standing | null;
  /** What was aborted while it was `handled` still holds its body. */
  state: "waiting" | "handled" | "answered" | "sent";
  /** While the library's handler runs, whose writes it gathers. */
  isCorked: boolean;
  isAborted: boolean;
  /** Whether it is being handled, or its answer is not written yet. */
  isActive: boolean;
  /** Whether the body is waited for; of a request that is refused whatever its body is, it is thrown away. */
  isWanted: boolean;
  /** What is held of its body, and of an answer that is read slowly; released at its end. */
  upload: Upload | null;
  answer: Share | null;
  /** Once it is there: its body, or why that was refused. */
  body: Buffer | Error | null;
  /** Once it is checked. */
  context: Context | null;
}

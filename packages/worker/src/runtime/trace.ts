/**
 * The trace that a request belongs to (W3C Trace Context, w3.org/TR/trace-context). A service worker names it in the
 * query, as the id of its read: a `traceparent` header would cost each browser a CORS preflight.
 */

/** A request's place in a trace. All ids are lower-case hexadecimal. */
export interface Trace {
  /** 32 digits. */
  readonly trace: string;
  /** 16 digits: the span that the request was made in. */
  readonly parent: string;
  /** 16 digits: the span of this request. */
  readonly span: string;
  /** Whether the caller records the trace. */
  readonly sampled: boolean;
}

const TRACEPARENT = /^(?!ff)[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(?:-|$)/;
const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/;
const ZEROS = /^0+$/;

/**
 * Returns the trace that the `traceparent` header names, else the one of `?trace=<id of a read>`. The span of a read is
 * the first half of its trace id. Undefined for none, and for a malformed one, which the standard wants ignored.
 */
export function traceOf(headers: Headers, query: URLSearchParams): Trace | undefined {
  const [, trace, parent, flags] = TRACEPARENT.exec(headers.get("traceparent") ?? "") ?? [];
  if (trace && parent && flags && !ZEROS.test(trace) && !ZEROS.test(parent)) {
    return { trace, parent, span: newSpan(), sampled: (Number.parseInt(flags, 16) & 1) === 1 };
  }
  const read = query.get("trace") ?? "";
  if (!UUID.test(read)) return undefined;
  const id = read.replaceAll("-", "");
  const root = id.slice(0, 16);
  return ZEROS.test(root) ? undefined : { trace: id, parent: root, span: newSpan(), sampled: true };
}

/** Returns the header that continues a trace at another server. */
export function traceparent({ trace, span, sampled }: Trace): string {
  return `00-${trace}-${span}-${sampled ? "01" : "00"}`;
}

/** The fields of a trace for a log line; none without a trace. */
export function traceFields(trace: Trace | undefined): Readonly<Record<string, string>> {
  return trace ? { trace_id: trace.trace, span_id: trace.span, parent_span_id: trace.parent } : {};
}

/** 16 random digits, of which the first is no 0: a span id of zeros is none. */
function newSpan(): string {
  const [first, ...rest] = crypto.getRandomValues(new Uint8Array(8));
  return [first! | 0x10, ...rest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

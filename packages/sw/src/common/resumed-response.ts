/**
 * A response whose body outlives its worker: where it breaks off (the browser has ended the worker, or its reads
 * failed) or ends short, the rest is asked for and appended to the same body. A worker that reads through a PoP
 * continues so at the next one.
 */
import { AgaroseError, toAgaroseError } from "@agarose/core";
import { streamOf, type PullSink, type Pulled } from "@agarose/core/async";
import { HAS_MESSAGES } from "@agarose/core/features";

/** Asks for the rest of the object, with a `range` and an `if-range`. Rejects with the reason of an error answer. */
export type Reopen = (headers: Record<string, string>) => Promise<Response>;

/** So often in a row, without a byte in between, is the rest asked for. */
const ATTEMPTS_MAX = 3;

/**
 * `response` as it is when its length or version is unknown; else one whose body has exactly its length or errors, with
 * what `reopen` rejects with or with SOURCE_FAILED.
 */
export function resumedResponse(response: Response, reopen: Reopen, signal?: AbortSignal): Response {
  const { body, headers, status } = response;
  const span = spanOf(response);
  const etag = headers.get("etag");
  if (!body || !span || !etag) return response;
  const { end } = span;
  // Position in the object of the next byte.
  let at = span.start;
  let reader = body.getReader();
  let failures = 0;

  const goOn = async (cause: unknown): Promise<void> => {
    const missing = end - at;
    if (missing <= 0 || ++failures > ATTEMPTS_MAX) {
      throw new AgaroseError(
        "SOURCE_FAILED",
        HAS_MESSAGES &&
          `the read broke off ${failures} times in a row with ${missing} bytes missing of ${end}: read again`,
        { missing, end },
        cause,
      );
    }
    const rest = await reopen({ range: `bytes=${at}-${end - 1}`, "if-range": etag });
    const found = spanOf(rest);
    if (rest.status !== 206 || found?.start !== at || found.end !== end || !rest.body) {
      await rest.body?.cancel();
      const actual = rest.headers.get("etag");
      throw new AgaroseError(
        "SOURCE_FAILED",
        HAS_MESSAGES &&
          `the object changed while it was read: it was ${etag} and is ${actual ?? "unknown"}: read it again`,
        { expected: etag, actual },
        cause,
      );
    }
    reader = rest.body.getReader();
  };

  /** The end is also when the consumer has left. */
  const next = async (sink: PullSink<unknown>): Promise<Pulled<Uint8Array<ArrayBuffer>>> => {
    for (;;) {
      let error: unknown;
      const part = await reader.read().catch((cause: unknown) => {
        error = cause;
      });
      if (part?.value) {
        failures = 0;
        at += part.value.length;
        return part;
      }
      // A body that its consumer has cancelled ends short, too.
      if (sink.isOver || (error === undefined && at === end)) return { done: true };
      if (signal?.aborted) throw toAgaroseError(signal.reason, "ABORTED");
      await goOn(error);
      if (sink.isOver) reader.cancel().catch(() => {});
    }
  };

  // A body that has broken off cannot be cancelled.
  const stream = streamOf(next, (reason) => reader.cancel(reason).catch(() => {}));
  return new Response(stream, { status, headers });
}

/** Bytes [start, end) of the object that a response says it holds. */
function spanOf({ headers }: Response): { start: number; end: number } | undefined {
  const range = /^bytes (\d+)-(\d+)\//.exec(headers.get("content-range") ?? "");
  if (range) return { start: Number(range[1]), end: Number(range[2]) + 1 };
  const length = headers.get("content-length");
  return length === null ? undefined : { start: 0, end: Number(length) };
}

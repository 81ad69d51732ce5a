/**
 * The one reader: the service worker, the edge and `agarose get` use it.
 *
 * It reads ahead within a bounded window (`range-reader.ts`), each stripe by late binding (`stripe-reader.ts`), and
 * delivers all in order. A read that cannot be completed errors its stream: it never ends short.
 */
import { whenAborted } from "../async/when-aborted.ts";
import { AgaroseError, HAS_MESSAGES, toAgaroseError } from "../errors.ts";
import { pullStream, type PullSink } from "../pull-stream.ts";
import { rangeReader, type Step } from "./range-reader.ts";
import { WINDOW_BYTES_DEFAULT } from "./read-options.ts";
import type { ReadContext, ReadObserver, ReadPolicy, ReadTarget } from "./read-options.ts";
import type { ReadReport } from "./read-report.ts";
import type { StripeHashes } from "./stripe-hashes.ts";
import { stripeReader } from "./stripe-reader.ts";

/** A read that has started. */
export interface ObjectRead {
  /** The bytes of the range, in order. It errors if the read fails. */
  readonly body: ReadableStream<Uint8Array>;
  /** The report of the read, which grows while the body is read. */
  readonly report: ReadReport;
}

/**
 * Starts a read and resolves when its first stripe is ready. A read that cannot succeed then rejects here, with
 * NOT_ENOUGH_CHUNKS, READ_TIMEOUT or ABORTED, instead of in the middle of a body.
 */
export async function openRead(
  target: ReadTarget,
  context: ReadContext,
  policy: ReadPolicy = {},
  observer: ReadObserver = {},
): Promise<ObjectRead> {
  const { signal, sources } = target;
  const { clock, line } = context;
  const { fallback, windowBytes = WINDOW_BYTES_DEFAULT } = policy;
  const abort = new AbortController();
  const stripes = stripeReader(target, context, policy, observer);
  const { report } = stripes;
  const range = rangeReader(target, context, policy, stripes, abort.signal);
  const window: Step[] = [];
  /** The step that the consumer is taking now. */
  let given: Step | undefined;
  let sink: PullSink<Uint8Array> | undefined;
  let detach = (): void => {};
  if (line) line.reads++;
  detach = whenAborted(signal, () => finish(toAgaroseError(signal!.reason, "ABORTED")));
  fillWindow();
  try {
    abort.signal.throwIfAborted();
    // A cancelled request must not fail a body that has begun.
    await (fallback === "none" ? Promise.all(window.map(({ parts }) => parts)) : window[0]?.parts);
  } catch (cause) {
    const error = toAgaroseError(cause);
    finish(error);
    throw error;
  }
  const body = pullStream<Uint8Array>({
    start: (own) => {
      sink = own;
    },
    pull,
    // One microtask later: WebKit 2.50 stops a service worker for good when requests are aborted within this call.
    cancel: (reason) =>
      queueMicrotask(() =>
        // Consumers give reasons of their own, or none. Only a failure of ours on the way to them says more.
        finish(
          reason === undefined
            ? new AgaroseError("ABORTED", HAS_MESSAGES && "the consumer cancelled")
            : toAgaroseError(reason, "ABORTED"),
        ),
      ),
  });
  return { body, report };

  /** Enqueues one stripe. The stream calls it when the stripe before is consumed, so only one of them is in memory. */
  async function pull(to: PullSink<Uint8Array>): Promise<void> {
    given?.onTaken?.();
    fillWindow();
    given = window.shift();
    try {
      const parts = (await given?.parts) ?? [];
      // `cancel` ends the read of a consumer that has left.
      if (to.isOver) return;
      for (const part of parts) to.enqueue(part);
      if (window.length > 0 || !range.isOver) return;
      to.close();
      finish();
    } catch (error) {
      if (!to.isOver) finish(toAgaroseError(error));
    }
  }

  function fillWindow(): void {
    if (abort.signal.aborted) return;
    const bytesMax = typeof windowBytes === "function" ? windowBytes() : windowBytes;
    for (let step; (step = range.next(window, bytesMax)); window.push(step)) {
      const started = step;
      const arrived = (): void => {
        range.came(started);
        if (range.hasFlowed) fillWindow();
      };
      // `pull` reports the failure, which must not count as unhandled until then.
      started.parts.then(arrived, () => {});
    }
  }

  /** Ends the read, once. With a reason, it aborts all requests and errors the stream. */
  function finish(reason?: unknown): void {
    if (report.endMs !== undefined) return;
    report.endMs = clock.now();
    detach();
    if (line) line.reads--;
    given?.onTaken?.();
    if (reason !== undefined) {
      abort.abort(reason);
      sink?.error(reason);
    }
    for (const source of sources) source.close?.();
    observer.onEnd?.(report, reason);
  }
}

/** The hashes of an object, whose pages are read from `sources`. Who made the sources closes them. */
export function hashesFrom(target: ReadTarget, context: ReadContext): StripeHashes {
  return stripeReader(target, context, {}, {}).hashes;
}

/** Returns the verified leaves of one stripe, from memory or a source. Rejects as `openRead` does. */
export async function readLeaves(target: ReadTarget, context: ReadContext, stripe: number): Promise<Uint8Array> {
  const signal = target.signal ?? new AbortController().signal;
  try {
    return await stripeReader(target, context, {}, {}).leaves(stripe, signal);
  } finally {
    for (const source of target.sources) source.close?.();
  }
}

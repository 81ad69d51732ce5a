/**
 * The one reader: the service worker, the edge and `agarose get` use it.
 *
 * It reads ahead within a bounded window (`range-reader.ts`), each stripe by late binding (`stripe-reader.ts`), and
 * delivers all in order. A read that cannot be completed errors its stream: it never ends short.
 */
import { whenAborted } from "../async/when-aborted.ts";
import { AgaroseError, HAS_MESSAGES, toAgaroseError } from "../errors.ts";
import { pullStream, type PullSink } from "../pull-stream.ts";
import { RangeReader, type Step } from "./range-reader.ts";
import type { Line } from "./line.ts";
import { WINDOW_BYTES_DEFAULT } from "./read-options.ts";
import type { ReadContext, ReadObserver, ReadPolicy, ReadTarget } from "./read-options.ts";
import type { ReadReport } from "./read-report.ts";
import type { StripeHashes } from "./stripe-hashes.ts";
import { StripeReader } from "./stripe-reader.ts";

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
  const read = new ObjectStream(target, context, policy, observer);
  await read.firstStripe();
  return { body: read.stream(), report: read.report };
}

/** The hashes of an object, whose pages are read from `sources`. Who made the sources closes them. */
export function hashesFrom(target: ReadTarget, context: ReadContext): StripeHashes {
  return new StripeReader(target, context, {}, {}).hashes;
}

/** Returns the verified leaves of one stripe, from memory or a source. Rejects as `openRead` does. */
export async function readLeaves(target: ReadTarget, context: ReadContext, stripe: number): Promise<Uint8Array> {
  const signal = target.signal ?? new AbortController().signal;
  try {
    return await new StripeReader(target, context, {}, {}).leaves(stripe, signal);
  } finally {
    for (const source of target.sources) source.close?.();
  }
}

/** The window and the end of one read. */
class ObjectStream {
  readonly report: ReadReport;
  readonly #target: ReadTarget;
  readonly #clock: ReadContext["clock"];
  readonly #policy: ReadPolicy;
  readonly #observer: ReadObserver;
  readonly #abort = new AbortController();
  readonly #range: RangeReader;
  readonly #window: Step[] = [];
  readonly #detach: (() => void) | undefined;
  readonly #line: Line | undefined;
  #sink: PullSink<Uint8Array> | undefined;
  /** The step that the consumer is taking now. */
  #given: Step | undefined;

  constructor(target: ReadTarget, context: ReadContext, policy: ReadPolicy, observer: ReadObserver) {
    const { signal } = target;
    const stripes = new StripeReader(target, context, policy, observer);
    this.report = stripes.report;
    this.#target = target;
    this.#clock = context.clock;
    this.#policy = policy;
    this.#observer = observer;
    this.#range = new RangeReader(target, context, policy, stripes, this.#abort.signal);
    this.#line = context.line;
    if (this.#line) this.#line.reads++;
    this.#detach = whenAborted(signal, () => this.finish(toAgaroseError(signal!.reason, "ABORTED")));
  }

  async firstStripe(): Promise<void> {
    this.#fillWindow();
    try {
      this.#abort.signal.throwIfAborted();
      // A cancelled request must not fail a body that has begun.
      const { fallback } = this.#policy;
      await (fallback === "none" ? Promise.all(this.#window.map(({ parts }) => parts)) : this.#window[0]?.parts);
    } catch (cause) {
      const error = toAgaroseError(cause);
      this.finish(error);
      throw error;
    }
  }

  stream(): ReadableStream<Uint8Array> {
    return pullStream<Uint8Array>({
      start: (sink) => {
        this.#sink = sink;
      },
      pull: (sink) => this.#pull(sink),
      // One microtask later: WebKit 2.50 stops a service worker for good when requests are aborted within this call.
      cancel: (reason) =>
        queueMicrotask(() =>
          // Consumers give reasons of their own, or none. Only a failure of ours on the way to them says more.
          this.finish(
            reason === undefined
              ? new AgaroseError("ABORTED", HAS_MESSAGES && "the consumer cancelled")
              : toAgaroseError(reason, "ABORTED"),
          ),
        ),
    });
  }

  /** Enqueues one stripe. The stream calls it when the stripe before is consumed, so only one of them is in memory. */
  async #pull(sink: PullSink<Uint8Array>): Promise<void> {
    this.#given?.onTaken?.();
    this.#fillWindow();
    this.#given = this.#window.shift();
    try {
      const parts = (await this.#given?.parts) ?? [];
      // `cancel` ends the read of a consumer that has left.
      if (sink.isOver) return;
      for (const part of parts) sink.enqueue(part);
      if (this.#window.length > 0 || !this.#range.isOver) return;
      sink.close();
      this.finish();
    } catch (error) {
      if (!sink.isOver) this.finish(toAgaroseError(error));
    }
  }

  #fillWindow(): void {
    if (this.#abort.signal.aborted) return;
    const { windowBytes = WINDOW_BYTES_DEFAULT } = this.#policy;
    const bytesMax = typeof windowBytes === "function" ? windowBytes() : windowBytes;
    for (let step; (step = this.#range.next(this.#window, bytesMax)); this.#window.push(step)) {
      const started = step;
      const arrived = (): void => {
        started.hasCome = true;
        this.#range.came += started.bytes;
        if (this.#range.hasFlowed) this.#fillWindow();
      };
      // `#pull` reports the failure, which must not count as unhandled until then.
      started.parts.then(arrived, () => {});
    }
  }

  /** Ends the read, once. With a reason, it aborts all requests and errors the stream. */
  finish(reason?: unknown): void {
    if (this.report.endMs !== undefined) return;
    this.report.endMs = this.#clock.now();
    this.#detach?.();
    if (this.#line) this.#line.reads--;
    this.#given?.onTaken?.();
    if (reason !== undefined) {
      this.#abort.abort(reason);
      this.#sink?.error(reason);
    }
    for (const source of this.#target.sources) source.close?.();
    this.#observer.onEnd?.(this.report, reason);
  }
}

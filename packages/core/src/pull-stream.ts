/** Streams that make their parts on demand, and whose consumer may leave while a part is awaited. */

/** The producer's side of a stream. After the end of the stream, whoever ended it, none of these has an effect. */
export interface PullSink<T> {
  /** Whether the stream has ended: by `close` or `error`, or because its consumer left. */
  readonly isOver: boolean;
  enqueue(part: T): void;
  close(): void;
  error(reason: unknown): void;
}

/** Makes the parts of a stream. */
export interface PullSource<T> {
  /** Called at once, for a producer that ends its stream without being asked for a part. */
  start?(sink: PullSink<T>): void;
  /** Called when the consumer wants a part. A rejection errors the stream, unless that is over. */
  pull(sink: PullSink<T>): Promise<void>;
  /** Called once if the consumer leaves before the end. */
  cancel(reason: unknown): void | Promise<void>;
}

/**
 * Returns a stream that asks for a part when its consumer wants one, and holds none in advance. The controller of a
 * stream throws a TypeError when its consumer has left in the meantime, which reads as a defect of the producer; the
 * sink knows that the stream is over.
 */
export function pullStream<T>(source: PullSource<T>): ReadableStream<T> {
  let isOver = false;
  let sink!: PullSink<T>;
  return new ReadableStream<T>(
    {
      start(controller) {
        const ending = (end: () => void): void => {
          if (isOver) return;
          isOver = true;
          end();
        };
        sink = {
          get isOver() {
            return isOver;
          },
          enqueue: (part) => {
            if (!isOver) controller.enqueue(part);
          },
          close: () => ending(() => controller.close()),
          error: (reason) => ending(() => controller.error(reason)),
        };
        source.start?.(sink);
      },
      pull: () => source.pull(sink),
      cancel(reason) {
        isOver = true;
        return source.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
}

/** The next part of a reader or an iterator, or its end. */
export interface Pulled<T> {
  readonly done?: boolean | undefined;
  readonly value?: T | undefined | void;
}

/** Returns a stream of what `next` gives. `cancel` is that of a `PullSource`. */
export function streamOf<T>(
  next: (sink: PullSink<T>) => Promise<Pulled<T>>,
  cancel: PullSource<T>["cancel"],
): ReadableStream<T> {
  return pullStream({
    async pull(sink) {
      const { done, value } = await next(sink);
      if (done) sink.close();
      else sink.enqueue(value as T);
    },
    cancel,
  });
}

/** A walk that reports to a callback, as an iterator of what it reports. */
import { AgaroseError } from "@agarose/core";

/**
 * Passes on what `run` gives to `emit`, and returns what it resolves to. It waits for the reader after each item. A
 * reader who leaves aborts the signal of the context that `run` gets, and the walk has ended once the reader continues.
 */
export async function* outcomesOf<T, R, C extends { readonly signal: AbortSignal }>(
  context: C,
  run: (emit: (item: T) => Promise<void>, context: C) => Promise<R>,
): AsyncGenerator<T, R, undefined> {
  const left = new AbortController();
  const { readable, writable } = new TransformStream<T, T>();
  const writer = writable.getWriter();
  const ended = run((item) => writer.write(item), {
    ...context,
    signal: AbortSignal.any([context.signal, left.signal]),
  });
  const closed = ended.then(
    () => writer.close(),
    (error: unknown) => writer.abort(error),
  );
  closed.catch(() => {});
  try {
    yield* readable;
    return await ended;
  } finally {
    left.abort(new AgaroseError("ABORTED", "the reader of the outcomes left"));
    await ended.catch(() => {});
  }
}

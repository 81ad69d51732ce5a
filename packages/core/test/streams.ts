/** A body of these parts, one a read, that then ends, or breaks off with `error`. */
export function streamOf(
  parts: readonly Uint8Array[],
  error?: Error,
  onCancel?: (reason: unknown) => void,
): ReadableStream<Uint8Array> {
  const rest = [...parts];
  return new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const part = rest.shift();
        if (part) controller.enqueue(part);
        else if (error) controller.error(error);
        else controller.close();
      },
      cancel: (reason) => onCancel?.(reason),
    },
    { highWaterMark: 0 },
  );
}

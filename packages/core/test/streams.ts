/** How a body behaves. */
export interface StreamOptions {
  /** The error after the last part. Default: it ends. */
  readonly error?: Error | undefined;
  /** Whether it is a byte stream, as response bodies are in most runtimes. */
  readonly isBytes?: boolean;
  readonly onRead?: () => void;
  readonly onCancel?: (reason: unknown) => void;
}

/** Returns a body of these parts, one for each read. */
export function streamOf(parts: readonly Uint8Array[], options: StreamOptions = {}): ReadableStream<Uint8Array> {
  const { error, isBytes = false, onRead, onCancel } = options;
  // A byte stream takes the buffers of its parts, and refuses empty ones.
  const rest = isBytes ? parts.filter(({ length }) => length > 0).map((part) => part.slice()) : [...parts];
  const source = {
    pull(controller: ReadableStreamDefaultController<Uint8Array> | ReadableByteStreamController): void {
      const part = rest.shift();
      if (part) {
        onRead?.();
        controller.enqueue(part as Uint8Array<ArrayBuffer>);
      } else if (error) {
        controller.error(error);
      } else {
        controller.close();
        // A reader with its own buffer waits for it to be handed back.
        if ("byobRequest" in controller) controller.byobRequest?.respond(0);
      }
    },
    cancel: (reason: unknown) => onCancel?.(reason),
  };
  return isBytes
    ? (new ReadableStream({ ...source, type: "bytes" }) as ReadableStream<Uint8Array>)
    : new ReadableStream<Uint8Array>(source, { highWaterMark: 0 });
}

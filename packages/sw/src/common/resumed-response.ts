/**
 * A response whose body outlives its worker: where it breaks off (the browser has ended the worker, or its reads
 * failed) or ends short, the rest is asked for and appended to the same body. A worker that reads through a PoP
 * continues so at the next one.
 */
import { AgaroseError, toAgaroseError } from "@agarose/core";
import { pullStream, type PullSink } from "@agarose/core/async";
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
  return new Response(new Resumed(body, span, etag, reopen, signal).stream(), { status, headers });
}

/** Bytes [start, end) of the object that a response says it holds. */
function spanOf({ headers }: Response): { start: number; end: number } | undefined {
  const range = /^bytes (\d+)-(\d+)\//.exec(headers.get("content-range") ?? "");
  if (range) return { start: Number(range[1]), end: Number(range[2]) + 1 };
  const length = headers.get("content-length");
  return length === null ? undefined : { start: 0, end: Number(length) };
}

class Resumed {
  #reader: ReadableStreamDefaultReader<Uint8Array>;
  /** Position in the object of the next byte. */
  #at: number;
  readonly #end: number;
  readonly #etag: string;
  readonly #reopen: Reopen;
  readonly #signal: AbortSignal | undefined;
  #failures = 0;

  constructor(
    body: ReadableStream<Uint8Array>,
    { start, end }: { readonly start: number; readonly end: number },
    etag: string,
    reopen: Reopen,
    signal: AbortSignal | undefined,
  ) {
    this.#reader = body.getReader();
    this.#at = start;
    this.#end = end;
    this.#etag = etag;
    this.#reopen = reopen;
    this.#signal = signal;
  }

  stream(): ReadableStream<Uint8Array<ArrayBuffer>> {
    return pullStream({
      pull: async (sink) => {
        const part = await this.#next(sink);
        if (part) sink.enqueue(part as Uint8Array<ArrayBuffer>);
        else sink.close();
      },
      // A body that has broken off cannot be cancelled.
      cancel: (reason) => this.#reader.cancel(reason).catch(() => {}),
    });
  }

  /** The next part, or undefined at the end and when the consumer has left. */
  async #next(sink: PullSink<unknown>): Promise<Uint8Array | undefined> {
    for (;;) {
      const { done, value, error } = await this.#reader.read().then(
        (result) => ({ ...result, error: undefined }),
        (cause: unknown) => ({ done: true, value: undefined, error: cause }),
      );
      if (!done) {
        this.#failures = 0;
        this.#at += value!.length;
        return value;
      }
      // A body that its consumer has cancelled ends short, too.
      if (sink.isOver || (error === undefined && this.#at === this.#end)) return undefined;
      if (this.#signal?.aborted) throw toAgaroseError(this.#signal.reason, "ABORTED");
      await this.#goOn(error);
      if (sink.isOver) return void this.#reader.cancel().catch(() => {});
    }
  }

  async #goOn(cause: unknown): Promise<void> {
    const missing = this.#end - this.#at;
    if (missing <= 0 || ++this.#failures > ATTEMPTS_MAX) {
      throw new AgaroseError(
        "SOURCE_FAILED",
        HAS_MESSAGES &&
          `the read broke off ${this.#failures} times in a row with ${missing} bytes missing of ${this.#end}: read again`,
        { missing, end: this.#end },
        cause,
      );
    }
    const response = await this.#reopen({ range: `bytes=${this.#at}-${this.#end - 1}`, "if-range": this.#etag });
    const span = spanOf(response);
    if (response.status !== 206 || span?.start !== this.#at || span.end !== this.#end || !response.body) {
      await response.body?.cancel();
      const etag = response.headers.get("etag");
      throw new AgaroseError(
        "SOURCE_FAILED",
        HAS_MESSAGES &&
          `the object changed while it was read: it was ${this.#etag} and is ${etag ?? "unknown"}: read it again`,
        { expected: this.#etag, actual: etag },
        cause,
      );
    }
    this.#reader = response.body.getReader();
  }
}

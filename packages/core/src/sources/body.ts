/** Reads response bodies that have a known or a bounded length. */
import { AgaroseError, HAS_MESSAGES } from "../errors.ts";
import { READS_IN_PLACE } from "../features.ts";
import { concat } from "../format/hash-tree.ts";
import type { FetchedResponse } from "../ports.ts";

const NOTHING = new Uint8Array(0);
/** The least bytes that one read waits for, unless fewer are missing. After each, a slow body counts as progress. */
const PART_BYTES = 4 * 1024;

/** `ReadableStreamBYOBReader` with `min`, which the types of Workers omit. */
interface InPlaceReader {
  read(
    view: Uint8Array<ArrayBuffer>,
    options: { readonly min: number },
  ): Promise<{ done: boolean; value?: Uint8Array<ArrayBuffer> | undefined }>;
  cancel(): Promise<void>;
}

/**
 * Reads a body in pieces of known length. If the runtime's bodies are byte streams, it reads each piece in place,
 * without a copy.
 */
export class BodyReader {
  readonly #inPlace: InPlaceReader | undefined;
  readonly #inParts: ReadableStreamDefaultReader<Uint8Array> | undefined;
  /** Bytes that have arrived and are not read yet. */
  #rest: Uint8Array = NOTHING;
  readonly #onPart: ((bytes: number) => void) | undefined;

  /**
   * @param from the body; null is an empty one.
   * @param onPart is called with its bytes whenever a part has arrived.
   */
  constructor(from: ReadableStream<Uint8Array> | null, onPart?: (bytes: number) => void) {
    this.#onPart = onPart;
    const body = from ?? new Blob([]).stream();
    if (READS_IN_PLACE) {
      try {
        this.#inPlace = body.getReader({ mode: "byob" }) as InPlaceReader;
        return;
      } catch {
        // Not a byte stream.
      }
    }
    this.#inParts = body.getReader();
  }

  /** Returns the next `bytes` bytes in a buffer of their own; fewer only if the body ends. */
  async read(bytes: number): Promise<Uint8Array> {
    let whole = new Uint8Array(bytes);
    let filled = 0;
    let ended = false;
    while (filled < bytes && !ended) {
      const before = filled;
      if (READS_IN_PLACE && this.#inPlace) {
        // Each read detaches the buffer and returns another view of it. The first part shows that the body flows.
        const min = before === 0 ? 1 : Math.min(bytes - filled, PART_BYTES);
        const { done, value } = await this.#inPlace.read(whole.subarray(filled), { min });
        ended = done;
        if (value) whole = new Uint8Array(value.buffer);
        filled += value?.length ?? 0;
      } else {
        if (this.#rest.length === 0) {
          const { done, value = NOTHING } = await this.#inParts!.read();
          ended = done;
          this.#rest = value;
        }
        const part = this.#rest.subarray(0, bytes - filled);
        whole.set(part, filled);
        filled += part.length;
        // An empty view would keep its whole buffer alive.
        this.#rest = part.length < this.#rest.length ? this.#rest.subarray(part.length) : NOTHING;
      }
      this.#onPart?.(filled - before);
    }
    return filled < bytes ? whole.subarray(0, filled) : whole;
  }

  cancel(): Promise<void> {
    return ((READS_IN_PLACE && this.#inPlace) || this.#inParts!).cancel();
  }
}

/**
 * Returns the body of a response of exactly `bytes` bytes; `what` names it in errors. Rejects with CHUNK_WRONG_LENGTH,
 * and does not read a longer body to its end.
 */
export async function readExactly({ body }: FetchedResponse, bytes: number, what: string | false): Promise<Uint8Array> {
  const reader = new BodyReader(body);
  const whole = checkedLength(await reader.read(bytes), bytes, what);
  await expectEnd(reader, bytes, what);
  return whole;
}

/** Throws CHUNK_WRONG_LENGTH and cancels the body if more follows the `bytes` bytes that were expected. */
export async function expectEnd(reader: BodyReader, bytes: number, what: string | false): Promise<void> {
  const { length } = await reader.read(1);
  if (length === 0) return;
  reader.cancel().catch(() => {});
  throw wrongLength(what, bytes, bytes + length);
}

/** Returns `read` if it has `bytes` bytes. Throws CHUNK_WRONG_LENGTH otherwise; `what` names it in the message. */
export function checkedLength(read: Uint8Array, bytes: number, what: string | false): Uint8Array {
  if (read.length === bytes) return read;
  throw wrongLength(what, bytes, read.length);
}

/** Returns the whole body of a response. `check` gets the length after each part, and ends the reading by throwing. */
export async function readChecked(
  { body }: FetchedResponse,
  check: (bytes: number) => void | Promise<void>,
): Promise<Uint8Array> {
  if (!body) return NOTHING;
  const reader = body.getReader();
  const parts: Uint8Array[] = [];
  let bytes = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      bytes += value.length;
      await check(bytes);
      parts.push(value);
    }
  } catch (error) {
    reader.cancel().catch(() => {});
    throw error;
  }
  return concat(parts);
}

/** Throws CHUNK_MISSING or SOURCE_FAILED for a response that is not the chunk `what` that was asked for. */
export async function refuseChunk({ status, body }: FetchedResponse, what: string | false): Promise<never> {
  await body?.cancel();
  const code = status === 404 ? "CHUNK_MISSING" : "SOURCE_FAILED";
  throw new AgaroseError(code, HAS_MESSAGES && `${what} was answered with ${status}`, { status });
}

function wrongLength(what: string | false, expected: number, received: number): AgaroseError {
  return new AgaroseError(
    "CHUNK_WRONG_LENGTH",
    HAS_MESSAGES && `${what} sent ${received > expected ? "at least " : ""}${received} bytes, ${expected} are expected`,
    { expected, received },
  );
}

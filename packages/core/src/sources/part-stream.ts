/**
 * Hands out one response in parts, in order, to the requests that wait for them.
 *
 * The body is read only while a request waits, so a slow consumer holds the sender back instead of filling memory.
 */
import { whenAborted } from "../async/when-aborted.ts";
import { toAgaroseError } from "../errors.ts";
import { checkedLength, expectEnd, type BodyReader } from "./body.ts";

interface PartRequest {
  readonly signal: AbortSignal;
  /** Called with the number of bytes whenever some of the part have come. */
  readonly onPart?: ((bytes: number) => void) | undefined;
}

interface Waiter extends PartRequest {
  readonly bytes: number;
  readonly arrival: PromiseWithResolvers<Uint8Array>;
}

/** One response, of which each part is taken once. */
export class PartStream {
  progress = 0;
  /** Where the next part begins that is not taken yet. */
  next: number;
  readonly end: number;
  readonly #body: Promise<BodyReader>;
  readonly #what: string | false;
  /** In order. The part of one that has left is read past. */
  readonly #waiting: Waiter[] = [];
  #isReading = false;
  #failure: unknown;

  /**
   * @param next where the response begins.
   * @param end where it must end.
   * @param open requests it, and calls its argument with the number of bytes whenever some have come.
   * @param what names the response in errors.
   */
  constructor(
    next: number,
    end: number,
    open: (onPart: (bytes: number) => void) => Promise<BodyReader>,
    what: string | false,
  ) {
    this.next = next;
    this.end = end;
    this.#what = what;
    this.#body = open((bytes) => this.#waiting[0]?.onPart?.(bytes));
    // Nobody may have waited for it when it fails, and Node ends a process for that.
    this.#body.catch(() => {});
  }

  get awaited(): number {
    return this.#waiting.length - this.overtaken;
  }

  /** How many parts have to be read past, because whoever wanted them has left. */
  get overtaken(): number {
    return this.#waiting.filter(({ signal }) => signal.aborted).length;
  }

  /**
   * Returns the next `bytes` bytes in a buffer of their own. Rejects with CHUNK_WRONG_LENGTH if the response ends
   * before them or continues behind `end`, with the error of the response, or with the reason of the signal.
   */
  async take(bytes: number, { signal, onPart }: PartRequest): Promise<Uint8Array> {
    this.next += bytes;
    if (this.#failure) throw this.#failure;
    const arrival = Promise.withResolvers<Uint8Array>();
    this.#waiting.push({ bytes, signal, onPart, arrival });
    const detach = whenAborted(signal, () => arrival.reject(signal.reason));
    void this.#read();
    try {
      return await arrival.promise;
    } finally {
      detach();
    }
  }

  async #read(): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      const body = await this.#body;
      while (this.awaited > 0) {
        const { bytes, arrival } = this.#waiting[0]!;
        const part = checkedLength(await body.read(bytes), bytes, this.#what);
        if (this.#waiting.length === 1 && this.next === this.end) await expectEnd(body, bytes, this.#what);
        this.progress++;
        this.#waiting.shift();
        arrival.resolve(part);
      }
    } catch (error) {
      this.#failure = toAgaroseError(error, "SOURCE_FAILED");
      for (const { arrival } of this.#waiting.splice(0)) arrival.reject(this.#failure);
      // Nothing behind a failure can be read.
      await this.#body.then((body) => body.cancel()).catch(() => {});
    } finally {
      this.#isReading = false;
    }
  }
}

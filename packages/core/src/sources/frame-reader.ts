/** Frames of a bundle as they arrive in a response body. */
import { bundleError, FRAME_HEADER_BYTES, parseFrameHeader, type Frame } from "../format/bundle.ts";
import { HAS_MESSAGES } from "../errors.ts";
import { BodyReader } from "./body.ts";

/** Reads the frames of a response body as they arrive. */
export class FrameReader {
  /** Called with the number of bytes whenever some have come. */
  onPart: ((bytes: number) => void) | undefined;
  readonly #body: BodyReader;

  constructor(body: ReadableStream<Uint8Array>) {
    this.#body = new BodyReader(body, (bytes) => this.onPart?.(bytes));
  }

  /**
   * Waits for one whole frame and returns it; the end frame too. Throws BUNDLE_INVALID if the frame is malformed or
   * the body ends within it.
   */
  async next(): Promise<Frame> {
    const { frame, length } = parseFrameHeader(await this.#take(FRAME_HEADER_BYTES));
    return { ...frame, payload: await this.#take(length) };
  }

  cancel(): Promise<void> {
    return this.#body.cancel();
  }

  async #take(count: number): Promise<Uint8Array> {
    const taken = await this.#body.read(count);
    if (taken.length === count) return taken;
    throw bundleError(HAS_MESSAGES && `is truncated: ${taken.length} of ${count} bytes of a frame`);
  }
}

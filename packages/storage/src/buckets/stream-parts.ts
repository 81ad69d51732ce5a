/** Cuts a stream into parts of known length, of which it holds one buffer. */
import { Readable } from "node:stream";

/** The parts of one stream, which are read one after the other. */
export class StreamParts {
  readonly #buffers: AsyncIterator<Buffer>;
  #held: Buffer = Buffer.alloc(0);

  constructor(body: Readable) {
    this.#buffers = body[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  }

  /** The next `bytes` bytes. It fails when the stream has fewer. */
  next(bytes: number): Readable {
    return Readable.from(this.#take(bytes), { objectMode: false });
  }

  async *#take(bytes: number): AsyncGenerator<Buffer> {
    for (let left = bytes; left > 0;) {
      if (this.#held.length === 0) {
        const { done, value } = await this.#buffers.next();
        if (done) throw new Error(`the stream ended ${left} bytes early`);
        this.#held = value;
      }
      const part = this.#held.subarray(0, left);
      this.#held = this.#held.subarray(part.length);
      left -= part.length;
      yield part;
    }
  }
}

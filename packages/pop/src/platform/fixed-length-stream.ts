/** Cloudflare's `FixedLengthStream`: a body of exactly so many bytes, which errors rather than end short. */
export class FixedLengthStream extends TransformStream<Uint8Array, Uint8Array> {
  constructor(length: number) {
    let sent = 0;
    super({
      transform(bytes, controller) {
        sent += bytes.length;
        if (sent > length) throw new TypeError(`a body of ${length} bytes got ${sent}`);
        controller.enqueue(bytes);
      },
      flush() {
        if (sent < length) throw new TypeError(`a body of ${length} bytes ended after ${sent}`);
      },
    });
  }
}

/** The body of a response with several ranges: each is read when the one before it has been sent. */
import { streamOf } from "@agarose/core/async";
import type { OpenedObject } from "@agarose/core/content";
import type { Manifest } from "@agarose/core/format";
import type { PartsAnswer } from "@agarose/core/http";
import { ofFixedLength, readObject, type ClientOfRead } from "../read/object-read.ts";
import type { Invocation } from "../runtime/invocation.ts";

/**
 * Resolves to the response when the first stripe of the first range has been read. Rejects as `readObject` does. A
 * later range that cannot be read cuts the body off.
 */
export async function readParts(
  invocation: Invocation,
  manifest: Manifest,
  { status, headers, parts, end }: PartsAnswer,
  client: ClientOfRead,
  opened?: OpenedObject,
): Promise<Response> {
  // As status 200, a range is sent in whole or refused: a shorter one would not fit the length.
  const read = (part: number): Promise<Response> =>
    readObject(invocation, manifest, { status: 200, headers: {}, range: parts[part]!.range }, client, opened);
  const first = await read(0);
  const encoder = new TextEncoder();
  async function* body(): AsyncGenerator<Uint8Array> {
    for (const [part, { head }] of parts.entries()) {
      yield encoder.encode(head);
      const response = part === 0 ? first : await read(part);
      yield* response.body!;
    }
    yield encoder.encode(end);
  }
  const pieces = body();
  const stream = streamOf(
    () => pieces.next(),
    // The read under way ends with it. Where the platform aborts `client.signal`, it does not wait for its region.
    async () => void (await pieces.return(undefined)),
  );
  const fixed = ofFixedLength(stream, Number(headers["content-length"]), invocation);
  return new Response(fixed, { status, headers: { ...Object.fromEntries(first.headers), ...headers } });
}

/**
 * Reading response bodies with a known or a largest length.
 */
import { AgaroseError } from "./errors.ts";
import type { FetchedResponse } from "./ports.ts";

/** The body of a response, which must have exactly `bytes` bytes; what is longer is not read. */
export async function readExactly(response: FetchedResponse, bytes: number, what: string): Promise<Uint8Array> {
  const whole = new Uint8Array(bytes);
  let filled = 0;
  for await (const part of bodyParts(response)) {
    if (filled + part.length > bytes) throw wrongLength(what, bytes, filled + part.length);
    whole.set(part, filled);
    filled += part.length;
  }
  if (filled !== bytes) throw wrongLength(what, bytes, filled);
  return whole;
}

/** The whole body of a response; `check` is told the length so far, and ends the reading by throwing. */
export async function readChecked(response: FetchedResponse, check: (bytes: number) => void): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of bodyParts(response)) {
    bytes += part.length;
    check(bytes);
    parts.push(part);
  }
  const whole = new Uint8Array(bytes);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/**
 * The parts of a body as they come; who leaves early cancels it. (A loop over the stream itself would say the same, but
 * not every browser's streams can be iterated.)
 */
async function* bodyParts({ body }: FetchedResponse): AsyncGenerator<Uint8Array, void> {
  if (!body) return;
  const reader = body.getReader();
  let ended = false;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      ended = done;
      if (done) return;
      yield value;
    }
  } finally {
    if (!ended) reader.cancel().catch(() => {});
  }
}

function wrongLength(what: string, expected: number, received: number): AgaroseError {
  return new AgaroseError(
    "CHUNK_WRONG_LENGTH",
    `${what} sent ${received > expected ? "at least " : ""}${received} bytes, ${expected} are expected`,
    { expected, received },
  );
}

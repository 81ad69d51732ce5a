/** Tests of the stream itself only; `region-source.test.ts` tests it in use. */
import { expect, test } from "vitest";
import { rejectionOf } from "../../test/errors.ts";
import { BodyReader } from "./body.ts";
import { PartStream } from "./part-stream.ts";

const NEVER = { signal: new AbortController().signal };
const BYTES = Uint8Array.from({ length: 10 }, (_, i) => i);

/** A response of `sent`, as parts of two bytes, of which 10 bytes are expected. */
function streamOf(sent: Uint8Array): { parts: PartStream; pulled: () => number; cancelled: () => boolean } {
  let at = 0;
  let isCancelled = false;
  const body = new ReadableStream<Uint8Array>(
    {
      pull: (controller) => {
        if (at >= sent.length) return controller.close();
        controller.enqueue(sent.slice(at, (at += 2)));
      },
      cancel: () => void (isCancelled = true),
    },
    { highWaterMark: 0 },
  );
  const parts = new PartStream(0, 10, async (onPart) => new BodyReader(body, onPart), "the response");
  return { parts, pulled: () => at, cancelled: () => isCancelled };
}

test("parts come in order, and each knows of its own bytes", async () => {
  const { parts } = streamOf(BYTES);
  const seen: [number, number][] = [];
  const take = (part: number, bytes: number): Promise<Uint8Array> =>
    parts.take(bytes, { ...NEVER, onPart: (count) => seen.push([part, count]) });
  const taken = await Promise.all([take(0, 3), take(1, 3), take(2, 4)]);
  expect(taken.map((part) => [...part])).toEqual([
    [0, 1, 2],
    [3, 4, 5],
    [6, 7, 8, 9],
  ]);
  for (const [part, bytes] of [3, 3, 4].entries()) {
    expect(seen.filter(([of]) => of === part).reduce((sum, [, count]) => sum + count, 0)).toBe(bytes);
  }
  expect(parts.progress).toBe(3);
});

test("the body is read only for who waits", async () => {
  const { parts, pulled } = streamOf(BYTES);
  await parts.take(3, NEVER);
  expect(pulled()).toBe(4);
  expect([parts.next, parts.awaited]).toEqual([3, 0]);
});

test("the part of one that has left is read past once another waits", async () => {
  const { parts, pulled } = streamOf(BYTES);
  const abort = new AbortController();
  const left = parts.take(4, { signal: abort.signal }).catch((error: unknown) => error);
  abort.abort("enough");
  expect(await left).toBe("enough");
  expect([parts.overtaken, parts.awaited]).toEqual([1, 0]);
  expect([...(await parts.take(2, NEVER))]).toEqual([4, 5]);
  expect([parts.overtaken, pulled()]).toEqual([0, 6]);
});

test("the last part is handed out when the response has ended with it", async () => {
  const { parts, cancelled } = streamOf(new Uint8Array(12));
  await parts.take(6, NEVER);
  const { code, details } = await rejectionOf(parts.take(4, NEVER));
  expect([code, details]).toEqual(["CHUNK_WRONG_LENGTH", { expected: 4, received: 5 }]);
  expect(cancelled()).toBe(true);
});

test("a response that ends early rejects all that wait, and all who come later", async () => {
  const { parts } = streamOf(BYTES.subarray(0, 5));
  const codes = await Promise.all([4, 4].map((bytes) => parts.take(bytes, NEVER).then(String, ({ code }) => code)));
  expect(codes).toEqual(["0,1,2,3", "CHUNK_WRONG_LENGTH"]);
  expect((await rejectionOf(parts.take(2, NEVER))).code).toBe("CHUNK_WRONG_LENGTH");
});

test("a response that fails before anything was taken from it leaves no rejection that nobody handles", async () => {
  const parts = new PartStream(0, 1, () => Promise.reject(new TypeError("connection reset")), "the response");
  // A run in which a rejection stays unhandled until here fails.
  await new Promise((resolve) => setTimeout(resolve));
  expect(await rejectionOf(parts.take(1, NEVER))).toMatchObject({ code: "SOURCE_FAILED" });
});

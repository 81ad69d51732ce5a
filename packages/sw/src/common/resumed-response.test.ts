/** Bodies that break off, and how they continue. */
import { expect, test, vi } from "vitest";
import { resumedResponse, type Reopen } from "./resumed-response.ts";
import { sampleBytes } from "../../test/fake-world.ts";

const BYTES = sampleBytes(1000);
const ETAG = '"v1"';

/**
 * Bytes [start, end) of the object in parts of 100, of which only `sent` come before the body ends or, with `error`,
 * breaks.
 */
function answer(start: number, end: number, sent: number, error?: Error, etag = ETAG): Response {
  let at = start;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const until = Math.min(at + 100, start + sent, end);
      if (at < until) controller.enqueue(BYTES.subarray(at, until));
      else if (error) controller.error(error);
      else controller.close();
      at = until;
    },
  });
  const range = { "content-range": `bytes ${start}-${end - 1}/1000`, "content-length": String(end - start), etag };
  return new Response(body, { status: 206, headers: range });
}

const WHOLE = Number.POSITIVE_INFINITY;
const KILLED = new TypeError("network error");

async function bytesOf(response: Response): Promise<Uint8Array> {
  return new Uint8Array(await response.arrayBuffer());
}

test("a whole body passes without another request", async () => {
  const reopen = vi.fn<Reopen>();
  const response = resumedResponse(answer(100, 900, WHOLE), reopen);
  expect(await bytesOf(response)).toEqual(BYTES.subarray(100, 900));
  expect(reopen).not.toHaveBeenCalled();
});

test.each([
  ["breaks off", KILLED],
  ["ends short as if it were whole", undefined],
])("a body that %s continues with the rest, of the same version only", async (_, error) => {
  const reopen = vi.fn<Reopen>().mockResolvedValueOnce(answer(400, 900, 200, error));
  reopen.mockResolvedValueOnce(answer(600, 900, WHOLE));
  expect(await bytesOf(resumedResponse(answer(100, 900, 300, error), reopen))).toEqual(BYTES.subarray(100, 900));
  expect(reopen.mock.calls).toEqual([
    [{ range: "bytes=400-899", "if-range": ETAG }],
    [{ range: "bytes=600-899", "if-range": ETAG }],
  ]);
});

test("an error answer to the rest is the body's error", async () => {
  const reason = new Error("NOT_ENOUGH_CHUNKS");
  const response = resumedResponse(answer(0, 1000, 300, KILLED), vi.fn<Reopen>().mockRejectedValue(reason));
  await expect(bytesOf(response)).rejects.toBe(reason);
});

test("an object that changed meanwhile is not mixed: the body errors with both versions", async () => {
  const changed = new Response("new", { status: 200, headers: { etag: '"v2"', "content-length": "3" } });
  const response = resumedResponse(answer(0, 1000, 300, KILLED), vi.fn<Reopen>().mockResolvedValue(changed));
  await expect(bytesOf(response)).rejects.toMatchObject({
    code: "SOURCE_FAILED",
    message: expect.stringMatching(/it was "v1" and is "v2"/),
    details: { expected: ETAG, actual: '"v2"' },
  });
});

test("it gives up after three attempts in a row that brought nothing, and says what is missing", async () => {
  const reopen = vi.fn<Reopen>(async () => answer(300, 1000, 0, KILLED));
  const response = resumedResponse(answer(0, 1000, 300, KILLED), reopen);
  await expect(bytesOf(response)).rejects.toMatchObject({
    code: "SOURCE_FAILED",
    details: { missing: 700, end: 1000 },
  });
  expect(reopen).toHaveBeenCalledTimes(3);
});

test("a reader that aborts is not served the rest", async () => {
  const abort = new AbortController();
  const reopen = vi.fn<Reopen>();
  const reader = resumedResponse(answer(0, 1000, 300, KILLED), reopen, abort.signal).body!.getReader();
  await reader.read();
  abort.abort();
  const rest = async (): Promise<void> => {
    while (!(await reader.read()).done);
  };
  await expect(rest()).rejects.toMatchObject({ code: "ABORTED" });
  expect(reopen).not.toHaveBeenCalled();
});

/** A body whose first part comes, and whose second one does not. */
function stuck(): Response {
  const body = new ReadableStream<Uint8Array>({ start: (controller) => controller.enqueue(BYTES.subarray(0, 300)) });
  return new Response(body, { status: 200, headers: { "content-length": "1000", etag: ETAG } });
}

test("a reader that cancels while a part is awaited asks for nothing more", async () => {
  const reopen = vi.fn<Reopen>(async () => answer(300, 1000, WHOLE));
  const reader = resumedResponse(stuck(), reopen).body!.getReader();
  await reader.read();
  const next = reader.read();
  await reader.cancel();
  expect(await next).toMatchObject({ done: true });
  await new Promise((resolve) => setTimeout(resolve));
  expect(reopen).not.toHaveBeenCalled();
});

test("a reader that cancels while the rest is asked for leaves no body open", async () => {
  const asked = Promise.withResolvers<Response>();
  const cancelled = vi.fn();
  const rest = answer(300, 1000, WHOLE);
  const body = new ReadableStream({ pull: () => new Promise(() => {}), cancel: cancelled });
  const reader = resumedResponse(answer(0, 1000, 300, KILLED), () => asked.promise).body!.getReader();
  for (let part = 0; part < 3; part++) await reader.read();
  const next = reader.read();
  await new Promise((resolve) => setTimeout(resolve));
  void reader.cancel();
  asked.resolve(new Response(body, rest));
  expect(await next).toMatchObject({ done: true });
  await vi.waitFor(() => expect(cancelled).toHaveBeenCalledOnce());
});

test("a response of unknown length or version is left as it is", () => {
  for (const headers of [{ etag: ETAG }, { "content-length": "3" }]) {
    const response = new Response("abc", { headers: headers as Record<string, string> });
    expect(resumedResponse(response, vi.fn<Reopen>())).toBe(response);
  }
});

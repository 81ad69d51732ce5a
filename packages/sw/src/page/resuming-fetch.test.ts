/** What a library gets from `resumingFetch` in place of `fetch`. */
import { afterEach, expect, test, vi } from "vitest";
import { resumingFetch } from "./resuming-fetch.ts";
import { sampleBytes } from "../../test/fake-world.ts";

const BYTES = sampleBytes(1000);
const URL = "https://app.example/ec/model.onnx";

afterEach(() => {
  vi.unstubAllGlobals();
});

/** Answers as the service worker does. Each body has only `sent` bytes of what was asked. */
function stubWorker(sent: number, headers: Record<string, string> = { "x-agarose-read": "origin" }) {
  const answer = vi.fn<(request: Request) => Promise<Response>>(async (request) => {
    const range = /^bytes=(\d+)-/.exec(request.headers.get("range") ?? "");
    const start = Number(range?.[1] ?? 0);
    const body = BYTES.slice(start, start + sent);
    const length = String(BYTES.length - start);
    const part = range ? { "content-range": `bytes ${start}-999/1000` } : {};
    const all = { "content-length": length, etag: '"v1"', ...part, ...headers };
    return new Response(body, { status: range ? 206 : 200, headers: all });
  });
  vi.stubGlobal("fetch", answer);
  return answer;
}

const bytesOf = async (response: Response): Promise<Uint8Array> => new Uint8Array(await response.arrayBuffer());

test("a body that its worker leaves short continues, with the request's own headers", async () => {
  const answer = stubWorker(400);
  const response = await resumingFetch(URL, { headers: { authorization: "Bearer of-the-app" } });
  expect(response.status).toBe(200);
  expect(await bytesOf(response)).toEqual(BYTES);
  const sent = answer.mock.calls.map(([{ headers }]) => [headers.get("range"), headers.get("authorization")]);
  expect(sent).toEqual([
    [null, "Bearer of-the-app"],
    ["bytes=400-999", "Bearer of-the-app"],
    ["bytes=800-999", "Bearer of-the-app"],
  ]);
  expect(answer.mock.calls[1]![0].headers.get("if-range")).toBe('"v1"');
});

test("an error of the worker stays an answer, as libraries expect it", async () => {
  vi.stubGlobal(
    "fetch",
    async () => new Response("{}", { status: 404, headers: { "x-agarose-error": "OBJECT_NOT_FOUND" } }),
  );
  expect((await resumingFetch(URL)).status).toBe(404);
});

test.each([
  ["an answer that is no object", {}, "GET"],
  ["a HEAD", { "x-agarose-read": "origin" }, "HEAD"],
])("%s passes as it is", async (_, headers, method) => {
  const answer = stubWorker(400, headers);
  expect((await bytesOf(await resumingFetch(URL, { method }))).length).toBe(400);
  expect(answer).toHaveBeenCalledOnce();
});

test("an aborted body does not ask for the rest", async () => {
  const answer = stubWorker(400);
  const abort = new AbortController();
  const response = await resumingFetch(URL, { signal: abort.signal });
  abort.abort();
  await expect(response.arrayBuffer()).rejects.toThrow();
  expect(answer).toHaveBeenCalledOnce();
});

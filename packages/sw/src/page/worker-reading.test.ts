/** Reads of a page through the worker that controls it. */
import { afterEach, expect, test, vi } from "vitest";
import { explainError } from "@agarose/core";
import { Agarose, errorOf } from "./agarose.ts";
import { workerReading } from "./worker-reading.ts";
import { sampleBytes } from "../../test/fake-world.ts";

const BYTES = sampleBytes(1000);
/** Distinguishes an answer of our worker from others. */
const OURS = { "x-agarose-read": "origin" };
const { fetch } = new Agarose(workerReading("/ec/"));

afterEach(() => vi.unstubAllGlobals());

type Answer = (request: Request) => Response;

function stub(answer: Answer) {
  const asked = vi.fn<(request: Request) => Promise<Response>>(async (request) => answer(request));
  vi.stubGlobal("fetch", asked);
  return asked;
}

/** Answers as the service worker does. Each body has only `sent` bytes of what was asked. */
function stubWorker(sent: number, headers: Record<string, string> = OURS) {
  return stub((request) => {
    const range = /^bytes=(\d+)-/.exec(request.headers.get("range") ?? "");
    const start = Number(range?.[1] ?? 0);
    const length = String(BYTES.length - start);
    const part = range ? { "content-range": `bytes ${start}-999/1000` } : {};
    const all = { "content-length": length, etag: '"v1"', ...part, ...headers };
    return new Response(BYTES.slice(start, start + sent), { status: range ? 206 : 200, headers: all });
  });
}

const bytesOf = async (response: Response): Promise<Uint8Array> => new Uint8Array(await response.arrayBuffer());

test("a key is asked for below the prefix, encoded, with the request's headers", async () => {
  stub(({ url, headers }) => new Response(`${url} ${headers.get("range")}`, { status: 206, headers: OURS }));
  const own = new Agarose(workerReading("/m/"));
  const response = await own.fetch("ü/a b", { headers: { range: "bytes=1-2" } });
  expect(await response.text()).toBe("http://localhost/m/%C3%BC/a%20b bytes=1-2");
});

test("a body that its worker leaves short continues, with the request's own headers", async () => {
  const asked = stubWorker(400);
  const response = await fetch("model.onnx", { headers: { authorization: "Bearer of-the-app" } });
  expect(response.status).toBe(200);
  expect(await bytesOf(response)).toEqual(BYTES);
  const sent = asked.mock.calls.map(([{ headers }]) => [headers.get("range"), headers.get("authorization")]);
  expect(sent).toEqual([
    [null, "Bearer of-the-app"],
    ["bytes=400-999", "Bearer of-the-app"],
    ["bytes=800-999", "Bearer of-the-app"],
  ]);
  expect(asked.mock.calls[1]![0].headers.get("if-range")).toBe('"v1"');
});

test("an aborted body does not ask for the rest", async () => {
  const asked = stubWorker(400);
  const abort = new AbortController();
  const response = await fetch("a", { signal: abort.signal });
  abort.abort();
  await expect(response.arrayBuffer()).rejects.toThrow();
  expect(asked).toHaveBeenCalledOnce();
});

test("a body errors when the worker that would continue it is gone", async () => {
  let isAsked = false;
  stub(() => {
    if (isAsked) return new Response("<html>");
    isAsked = true;
    return new Response("12345", { headers: { ...OURS, etag: '"v"', "content-length": "9" } });
  });
  await expect((await fetch("a")).text()).rejects.toMatchObject({ code: "SOURCE_FAILED" });
});

test.each([
  ["a page in the place of the object", 200],
  ["an error of its own", 404],
])("no answer of another worker is taken for the object: %s", async (_name, status) => {
  let cancelled = 0;
  stub(() => new Response(new ReadableStream({ cancel: () => void cancelled++ }), { status }));
  const error = await errorOf(await fetch("a"));
  expect(error).toMatchObject({ code: "CONFIG_INVALID", details: { path: "/ec/a" } });
  expect(cancelled).toBe(1);
});

test.each([
  ["a HEAD", "HEAD", 200],
  ["a condition that is met", "GET", 304],
])("%s has no body to continue", async (_name, method, status) => {
  const asked = stub(() => new Response(null, { status, headers: { etag: '"v1"' } }));
  expect((await fetch("a", { method })).status).toBe(status);
  expect(asked).toHaveBeenCalledOnce();
});

test.each([
  ["high", "u=1"],
  ["low", "u=5"],
  ["auto", null],
] as const)("says in a header that its priority is %s", async (priority, header) => {
  stub(({ headers }) => new Response(String(headers.get("priority")), { headers: OURS }));
  expect(await (await fetch("a", { priority })).text()).toBe(String(header));
});

test("an error that came without words has some of its own", async () => {
  const error = { code: "NOT_ENOUGH_CHUNKS", message: "NOT_ENOUGH_CHUNKS", details: { needed: 9 } };
  stub(() => Response.json({ error }, { status: 502, headers: { "x-agarose-error": error.code } }));
  const response = await fetch("a");
  expect(response.status).toBe(502);
  expect(await errorOf(response)).toMatchObject({
    code: "NOT_ENOUGH_CHUNKS",
    message: `${explainError("NOT_ENOUGH_CHUNKS")} Details: {"needed":9}`,
    details: { needed: 9, status: 502 },
  });
});

test("messages go to the worker in control", () => {
  const posted: unknown[] = [];
  const controller = { postMessage: (message: unknown) => void posted.push(message) };
  vi.stubGlobal("navigator", { serviceWorker: { controller } });
  const agarose = new Agarose(workerReading("/ec/"));
  agarose.preload(["a"]);
  agarose.update(["b"]);
  agarose.purge({ prefix: "c/" });
  expect(posted).toEqual([
    { agarose: "preload", keys: ["a"] },
    { agarose: "update", keys: ["b"] },
    { agarose: "purge", prefix: "c/" },
  ]);
});

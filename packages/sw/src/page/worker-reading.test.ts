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

/** A worker in control that does as `answer` says with a message, and the messages it gets. */
function control(answer: (port: MessagePort) => void): unknown[] {
  const posted: unknown[] = [];
  const controller = {
    scriptURL: "https://app.test/a.js",
    postMessage(message: unknown, [port]: [MessagePort]) {
      posted.push(message);
      answer(port);
    },
  };
  vi.stubGlobal("navigator", { serviceWorker: { controller } });
  return posted;
}

test("messages go to the worker in control, and resolve when it answers", async () => {
  let answer = (): void => {};
  const posted = control((port) => (answer = () => port.postMessage(undefined)));
  const agarose = new Agarose(workerReading("/ec/"));
  for (const ask of [
    () => agarose.preload(["a"]),
    () => agarose.update(["b"]),
    () => agarose.purge({ prefix: "c/" }),
  ]) {
    let isDone = false;
    const asked = ask().then(() => (isDone = true));
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(isDone).toBe(false);
    answer();
    await asked;
  }
  expect(posted).toEqual([
    { agarose: "preload", keys: ["a"] },
    { agarose: "update", keys: ["b"] },
    { agarose: "purge", prefix: "c/" },
  ]);
});

test("what a worker fails at rejects with its error, which has words", async () => {
  const error = { code: "OBJECT_NOT_FOUND", message: "OBJECT_NOT_FOUND", details: { key: "a" } };
  control((port) => port.postMessage(error));
  await expect(new Agarose(workerReading("/ec/")).preload(["a"])).rejects.toMatchObject({
    code: "OBJECT_NOT_FOUND",
    message: `${explainError("OBJECT_NOT_FOUND")} Details: {"key":"a"}`,
    details: { key: "a" },
  });
});

test("a page that no worker controls is told so, and a worker that never answers is named", async () => {
  const agarose = new Agarose(workerReading("/ec/"));
  vi.stubGlobal("navigator", { serviceWorker: { controller: null } });
  await expect(agarose.purge({ prefix: "" })).rejects.toMatchObject({ code: "CONFIG_INVALID" });
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    control(() => {});
    const refused = expect(agarose.purge({ prefix: "" })).rejects.toMatchObject({
      code: "READ_TIMEOUT",
      details: { controller: "https://app.test/a.js", timeoutMs: 300_000 },
    });
    await vi.advanceTimersByTimeAsync(300_000);
    await refused;
  } finally {
    vi.useRealTimers();
  }
});
